//! Login at a proxy, visitor's side: two questions, and a check that the proxy knows the secret.
//!
//! Rule: the secret itself is never sent; the proofs are bound to the keys of this very connection, and a
//! proxy that does not prove in return that it knows the secret is not trusted.
//! Not here: the proxy's side (`proxy::login::raw`), the proofs (`tunnel::challenge`).

use super::{Error, LOGIN_TIMEOUT, SessionSpec};
use crate::hub;
use crate::net::handle::{AskError, Handle};
use crate::net::protocol::Protocol;
use tunnel::challenge::{Exchange, Role, binding};
use tunnel::digest::Ha1;
use tunnel::hash::Algorithm;
use wire::entering::{Hash, Inside, NONCE_LEN_BYTES, Question, Reply};

/// Log in at the proxy, to which a connection is open.
pub(super) async fn log_in(net: &Handle, spec: &SessionSpec) -> Result<Inside, Error> {
    let SessionSpec { proxy, login, domain, .. } = spec;
    let (algorithm, hash) = match login.allows_md5 {
        false => (Algorithm::Sha256, Hash::Sha256),
        true => (Algorithm::Md5, Hash::Md5),
    };
    let mut mine = [0; NONCE_LEN_BYTES];
    getrandom::fill(&mut mine).map_err(|error| Error::Net(error.to_string()))?;
    let begin = Question::Begin { account: login.name.clone(), hash, nonce: mine };
    let (realm, theirs) = match ask(net, spec, &begin).await? {
        Reply::Challenge { realm, nonce } => (realm, nonce),
        Reply::Refused(reason) => return Err(Error::Refused(reason)),
        Reply::In(_) => return Err(Error::Unreadable),
    };
    let secret = Ha1::of(algorithm, &login.name, &realm, &login.secret);
    let key = secret.secret_hex().as_bytes();
    let exchange = Exchange {
        algorithm,
        asker: &login.name,
        holder: &realm,
        asker_nonce: &mine,
        holder_nonce: &theirs,
        binding: &binding(&net.me().0, &proxy.key.0),
    };
    let proof = exchange.prove(key, Role::Asker).map_err(|error| Error::Refused(error.to_string()))?;
    let prove = Question::Prove { proof: proof.bytes().to_vec(), domain: domain.clone() };
    match ask(net, spec, &prove).await? {
        Reply::In(inside) => {
            exchange.check(key, Role::Holder, &inside.proof).map_err(|_| Error::Unproved)?;
            Ok(*inside)
        }
        Reply::Refused(reason) => Err(Error::Refused(reason)),
        Reply::Challenge { .. } => Err(Error::Unreadable),
    }
}

async fn ask(net: &Handle, spec: &SessionSpec, question: &Question) -> Result<Reply, Error> {
    let body = postcard::to_stdvec(question).expect("plain data is encoded");
    let answered = net.ask(spec.proxy.key, Protocol::Enter, &body, LOGIN_TIMEOUT).await;
    let answer = answered.map_err(|error| match error {
        AskError::Refused { reason, .. } if reason == hub::answers_none(Protocol::Enter) => {
            Error::NoProxy { at: spec.at() }
        }
        AskError::Refused { reason, .. } => Error::Refused(reason),
        AskError::Open { .. }
        | AskError::TimedOut { .. }
        | AskError::Broken { .. }
        | AskError::Full { .. }
        | AskError::Stopping => Error::Unreached { at: spec.at(), waited: LOGIN_TIMEOUT },
    })?;
    postcard::from_bytes(&answer).map_err(|_| Error::Unreadable)
}
