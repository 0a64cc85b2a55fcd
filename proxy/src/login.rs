//! Who a request comes from, by HTTP Digest (RFC 7616): the server's side as a pure core.
//!
//! ```text
//! Attempt ─▶ too many failures? ─▶ readable? ─▶ proved? ─▶ nonce live and count new? ─▶ In, or Challenge, or Wait
//! ```
//! Pure; callers pass `now` and random bytes. Rules: a name that is not there costs the same work as one that is, and is
//! answered alike; `stale` is sent only to a client that proved the account; a nonce is spent only by such a client; an account
//! without MD5 is never let in by MD5, and who comes by MD5 is a viewer at most.
//! Not here: header fields (`tunnel::digest`), what who came in may do (`grant`).

pub mod raw;

use crate::account::{Account, Accounts, Name};
use crate::attempts::{Attempts, Source};
use crate::grant::{Grant, Rights};
use crate::nonces::{Nonces, RANDOM_LEN_BYTES, Seen};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tunnel::digest::Ha1;
use tunnel::digest::header::{Challenge, Credentials, Info};
use tunnel::hash::Algorithm;
use wire::time::Moment;

/// Which hashes a request is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// SHA-256 alone.
    Sha256,
    /// SHA-256 first, then MD5.
    Both,
    /// MD5 alone, for clients that answer the first challenge only and know no other.
    Md5,
}

impl Offer {
    const fn algorithms(self) -> &'static [Algorithm] {
        match self {
            Offer::Sha256 => &[Algorithm::Sha256],
            Offer::Both => &[Algorithm::Sha256, Algorithm::Md5],
            Offer::Md5 => &[Algorithm::Md5],
        }
    }
}

/// What is known of a request before its body.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Its method of HTTP.
    pub method: &'a str,
    /// What it asks for, as it was sent: path and query.
    pub target: &'a str,
    /// The field `Authorization`.
    pub authorization: Option<&'a str>,
    /// From where.
    pub source: IpAddr,
    /// What nonces are bound to beside the source: the listener, as scheme and address.
    pub channel: &'a [u8],
    /// Which hashes it may use.
    pub offer: Offer,
}

/// A client that was let in.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Its name: of an account, or `DOMAIN/HOST` of a member.
    pub name: String,
    /// What it may see.
    pub grant: Arc<Grant>,
    /// What it may be trusted with: not more than the account, and not more than how it came allows.
    pub rights: Rights,
    /// How it proved itself.
    pub by: By,
    /// What it proved, where that was an account.
    pub proof: Option<Ha1>,
}

/// How a client was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By Digest, with this hash.
    Digest(Algorithm),
    /// By a member's pass.
    Pass,
    /// Over the overlay, with this hash.
    Raw(Algorithm),
}

/// What is to be done with a request.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is let in; the answer carries this field `Authentication-Info`.
    In(Visitor, String),
    /// It has to prove itself: the fields `WWW-Authenticate`, and why in words.
    Challenge(Vec<String>, &'static str),
    /// It failed too often and has to wait.
    Wait(Duration),
    /// What it sent cannot be read in one way only.
    Unreadable(String),
}

/// Who is known.
#[derive(Debug)]
struct Known {
    realm: String,
    by_name: std::collections::BTreeMap<String, Arc<Account>>,
    /// Worked through for a name that is not there.
    nobody: [Ha1; 2],
}

/// The core.
#[derive(Debug)]
pub struct Login {
    known: Known,
    nonces: Nonces,
    attempts: Attempts,
    challenges: raw::Challenges,
}

impl Login {
    /// For these accounts; `secret` is drawn at each start.
    #[must_use]
    pub fn new(accounts: &Accounts, secret: [u8; 32]) -> Login {
        Login {
            known: Known::new(accounts),
            nonces: Nonces::new(secret),
            attempts: Attempts::default(),
            challenges: raw::Challenges::default(),
        }
    }

    /// These are the accounts from now on. Who was let in before proves itself again with its next request.
    pub fn set_accounts(&mut self, accounts: &Accounts) {
        self.known = Known::new(accounts);
    }

    /// What is to be done with a request.
    pub fn handle_attempt(
        &mut self,
        attempt: Attempt<'_>,
        random: [u8; RANDOM_LEN_BYTES],
        now: Moment,
    ) -> Verdict {
        let source = Source::from(attempt.source);
        let credentials = match attempt.authorization.map(Credentials::read) {
            None => return self.challenge(attempt, random, now, None),
            Some(Ok(None)) => {
                let why = "expected Digest credentials, found another scheme; Basic is never taken";
                return self.challenge(attempt, random, now, Some(why));
            }
            Some(Ok(Some(credentials))) => credentials,
            Some(Err(error)) => return Verdict::Unreadable(error.to_string()),
        };
        // What is no account's name is counted under none: `passes_of` has names of its own there.
        if let Err(error) = credentials.username.parse::<Name>() {
            return Verdict::Unreadable(error.to_string());
        }
        if let Err(wait) = self.attempts.check(&credentials.username, source, now) {
            return Verdict::Wait(wait);
        }
        if credentials.uri != attempt.target {
            return Verdict::Unreadable(
                "expected as uri what the request asks for, found another".to_owned(),
            );
        }
        let Some(account) = self.known.prove(&attempt, &credentials) else {
            self.attempts.handle_failure(&credentials.username, source, now);
            return self.challenge(attempt, random, now, Some("name or secret is wrong"));
        };
        let bound = bound(attempt);
        let (Seen::Live(nonce), Ok(count)) =
            (self.nonces.look(&credentials.nonce, &bound, now), credentials.count())
        else {
            return self.stale(attempt, random, now);
        };
        if self.nonces.spend(nonce, count, now).is_err() {
            return self.stale(attempt, random, now);
        }
        // Not before: an attacker that captured a login has no right of the owner's where it sends that again.
        self.attempts.handle_success(&credentials.username, source, now);
        let next = Nonces::is_old(nonce, now).then(|| self.nonces.issue(random, &bound, now));
        let algorithm = credentials.algorithm;
        let proof = account.proofs.by(algorithm).expect("it was proved by this");
        let info = Info {
            rspauth: proof.rspauth(credentials.spoken()),
            cnonce: credentials.cnonce.clone(),
            nc: credentials.nc.clone(),
            nextnonce: next,
        };
        let most = if algorithm == Algorithm::Md5 { Rights::Viewer } else { Rights::Operator };
        let rights = account.rights.min(most);
        let (name, grant) = (account.name.to_string(), Arc::new(account.grant.clone()));
        let proof = Some(proof.clone());
        Verdict::In(Visitor { name, grant, rights, by: By::Digest(algorithm), proof }, info.write())
    }

    /// What the account of this name may see now; none if a client that proved this would not be let in any more, for it is gone or
    /// has another secret.
    #[must_use]
    pub fn granted(&self, name: &str, proof: &Ha1) -> Option<(&Grant, Rights)> {
        let account = self.known.by_name.get(name)?;
        let now = account.proofs.by(proof.algorithm())?;
        (now.secret_hex() == proof.secret_hex()).then_some((&account.grant, account.rights))
    }

    /// Whether a client at `source` may show a pass now.
    ///
    /// # Errors
    /// How long to wait.
    pub fn check_pass(&self, source: IpAddr, now: Moment) -> Result<(), Duration> {
        self.attempts.check(&passes_of(source), Source::from(source), now)
    }

    /// Records whether a pass shown from `source` was good.
    pub fn count_pass(&mut self, source: IpAddr, is_good: bool, now: Moment) {
        let name = passes_of(source);
        match is_good {
            true => self.attempts.handle_success(&name, source.into(), now),
            false => self.attempts.handle_failure(&name, source.into(), now),
        }
    }

    /// How many nonces are kept.
    #[must_use]
    pub fn nonces_len(&self) -> usize {
        self.nonces.used_len()
    }

    fn stale(&self, attempt: Attempt<'_>, random: [u8; RANDOM_LEN_BYTES], now: Moment) -> Verdict {
        let fields = self.fields(attempt, random, now, true);
        Verdict::Challenge(fields, "the nonce is used up; the same secret will do with the new one")
    }

    fn challenge(
        &self,
        attempt: Attempt<'_>,
        random: [u8; RANDOM_LEN_BYTES],
        now: Moment,
        why: Option<&'static str>,
    ) -> Verdict {
        let fields = self.fields(attempt, random, now, false);
        Verdict::Challenge(
            fields,
            why.unwrap_or("expected credentials, found none; send them by HTTP Digest"),
        )
    }

    fn fields(
        &self,
        attempt: Attempt<'_>,
        random: [u8; RANDOM_LEN_BYTES],
        now: Moment,
        is_stale: bool,
    ) -> Vec<String> {
        let nonce = self.nonces.issue(random, &bound(attempt), now);
        let one = |algorithm: &Algorithm| {
            let realm = self.known.realm.clone();
            Challenge { realm, nonce: nonce.clone(), algorithm: *algorithm, is_stale }.write()
        };
        attempt.offer.algorithms().iter().map(one).collect()
    }
}

impl Known {
    fn new(accounts: &Accounts) -> Known {
        let realm = accounts.realm().to_owned();
        let nobody = [Algorithm::Sha256, Algorithm::Md5].map(|by| Ha1::of(by, "", &realm, ""));
        let by_name = accounts.all().map(|one| (one.name.to_string(), Arc::new(one.clone()))).collect();
        Known { realm, by_name, nobody }
    }

    /// The account that `credentials` prove, by a hash that was offered and that it has.
    fn prove(&self, attempt: &Attempt<'_>, credentials: &Credentials) -> Option<Arc<Account>> {
        let algorithm = credentials.algorithm;
        let account = self.by_name.get(&credentials.username);
        let proof = account.and_then(|account| account.proofs.by(algorithm));
        let nobody = &self.nobody[usize::from(algorithm == Algorithm::Md5)];
        // The same work for a name that is not there, and for one that has no such proof.
        let is_proved = proof.unwrap_or(nobody).is_proved_by(attempt.method, credentials);
        let may = attempt.offer.algorithms().contains(&algorithm) && credentials.realm == self.realm;
        (is_proved && proof.is_some() && may).then(|| account.cloned()).flatten()
    }
}

/// The name under which passes shown at a source are counted; no account can have it. A pass cannot be guessed, so others'
/// failures elsewhere say nothing about it.
fn passes_of(source: IpAddr) -> String {
    format!("(pass {source})")
}

/// A nonce is bound to the listener and to where its client is.
fn bound(attempt: Attempt<'_>) -> Vec<u8> {
    let source = match attempt.source.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    [&[u8::try_from(source.len()).unwrap_or(0)], source.as_slice(), attempt.channel].concat()
}

#[cfg(test)]
mod tests;
