//! Authentication of a request by HTTP Digest (RFC 7616): the server's side as a pure core.
//!
//! ```text
//! Attempt ─▶ too many failures? ─▶ readable? ─▶ proved? ─▶ nonce live and count new? ─▶ In, or Challenge, or Wait
//! ```
//! Pure; callers pass `now` and random bytes. Rules: an unknown name costs the same work as a known one, and
//! gets the same answer; `stale` is sent only to a client that proved the account; only such a client can use
//! up a nonce; an account without an MD5 hash is never accepted by MD5, and a client that used MD5 has at
//! most the rights of a viewer.
//! Not here: header fields (`tunnel::digest`), permissions (`grant`).

pub mod raw;

use crate::account::{Account, Accounts, Name};
use crate::attempts::{Attempts, Source};
use crate::grant::{Grant, Rights};
use crate::nonces::{NonceStatus, Nonces, RANDOM_LEN_BYTES};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tunnel::digest::Ha1;
use tunnel::digest::header::{Challenge, Credentials, Info};
use tunnel::hash::Algorithm;
use wire::time::Moment;

/// Hashes offered in a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Only SHA-256.
    Sha256,
    /// SHA-256 first, then MD5.
    Both,
    /// Only MD5, for clients that answer only the first challenge and know no other hash.
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

/// A request before its body is read.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path and query as they were sent.
    pub target: &'a str,
    pub authorization: Option<&'a str>,
    /// Address of the client.
    pub source: IpAddr,
    /// What a nonce is bound to besides the source: the listener, as scheme and address.
    pub channel: &'a [u8],
    pub offer: Offer,
}

/// An authenticated client.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Name of the account, or `DOMAIN/HOST` of a member.
    pub name: String,
    /// Domains, hosts and methods granted to the account.
    pub grant: Arc<Grant>,
    /// Rights: limited by the account and by the kind of authentication.
    pub rights: Rights,
    /// Kind of authentication.
    pub by: By,
    /// Hash that the client proved; `None` for a member.
    pub proof: Option<Ha1>,
}

/// Kind of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// HTTP Digest with this hash.
    Digest(Algorithm),
    /// A member's pass.
    Pass,
    /// Challenge and response over the overlay, with this hash.
    Raw(Algorithm),
}

/// Outcome of a request.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Accepted; the answer carries this value of `Authentication-Info`.
    In(Visitor, String),
    /// Challenged: the values of `WWW-Authenticate`, and the reason as text.
    Challenge(Vec<String>, &'static str),
    /// Too many failures: wait this long.
    Wait(Duration),
    /// The credentials are malformed or ambiguous.
    Unreadable(String),
}

/// Index of the accounts.
#[derive(Debug)]
struct AccountIndex {
    realm: String,
    by_name: std::collections::BTreeMap<String, Arc<Account>>,
    /// Dummy hashes, checked for an unknown name to take the same time.
    dummies: [Ha1; 2],
}

/// State of the authentication.
#[derive(Debug)]
pub struct Login {
    accounts: AccountIndex,
    nonces: Nonces,
    attempts: Attempts,
    challenges: raw::Challenges,
}

impl Login {
    /// For these accounts; `secret` is random at each start.
    #[must_use]
    pub fn new(accounts: &Accounts, secret: [u8; 32]) -> Login {
        Login {
            accounts: AccountIndex::new(accounts),
            nonces: Nonces::new(secret),
            attempts: Attempts::default(),
            challenges: raw::Challenges::default(),
        }
    }

    /// Replace the accounts. Clients authenticate against them with their next request.
    pub fn set_accounts(&mut self, accounts: &Accounts) {
        self.accounts = AccountIndex::new(accounts);
    }

    /// Decide about a request.
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
        // A name that is not valid for an account is not counted: `passes_of` uses such names for passes.
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
        let Some(account) = self.accounts.prove(&attempt, &credentials) else {
            self.attempts.handle_failure(&credentials.username, source, now);
            return self.challenge(attempt, random, now, Some("name or secret is wrong"));
        };
        let bound = bound(attempt);
        let (NonceStatus::Live(nonce), Ok(count)) =
            (self.nonces.look(&credentials.nonce, &bound, now), credentials.count())
        else {
            return self.stale(attempt, random, now);
        };
        if self.nonces.spend(nonce, count, now).is_err() {
            return self.stale(attempt, random, now);
        }
        // Only after the nonce was checked: an attacker that replays a captured login must not gain the
        // owner's bucket.
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

    /// Present grant of an account; `None` if a client that proved `proof` would no longer be accepted,
    /// because the account was removed or has another secret.
    #[must_use]
    pub fn granted(&self, name: &str, proof: &Ha1) -> Option<(&Grant, Rights)> {
        let account = self.accounts.by_name.get(name)?;
        let now = account.proofs.by(proof.algorithm())?;
        (now.secret_hex() == proof.secret_hex()).then_some((&account.grant, account.rights))
    }

    /// Whether a client at `source` may present a pass now.
    ///
    /// # Errors
    /// The time to wait.
    pub fn check_pass(&self, source: IpAddr, now: Moment) -> Result<(), Duration> {
        self.attempts.check(&passes_of(source), Source::from(source), now)
    }

    /// Record whether a pass presented from `source` was valid.
    pub fn count_pass(&mut self, source: IpAddr, is_good: bool, now: Moment) {
        let name = passes_of(source);
        match is_good {
            true => self.attempts.handle_success(&name, source.into(), now),
            false => self.attempts.handle_failure(&name, source.into(), now),
        }
    }

    /// Number of stored nonces.
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
            let realm = self.accounts.realm.clone();
            Challenge { realm, nonce: nonce.clone(), algorithm: *algorithm, is_stale }.write()
        };
        attempt.offer.algorithms().iter().map(one).collect()
    }
}

impl AccountIndex {
    fn new(accounts: &Accounts) -> AccountIndex {
        let realm = accounts.realm().to_owned();
        let dummies = [Algorithm::Sha256, Algorithm::Md5].map(|by| Ha1::of(by, "", &realm, ""));
        let by_name = accounts.all().map(|one| (one.name.to_string(), Arc::new(one.clone()))).collect();
        AccountIndex { realm, by_name, dummies }
    }

    /// The account that `credentials` prove, by a hash that was offered and that the account has.
    fn prove(&self, attempt: &Attempt<'_>, credentials: &Credentials) -> Option<Arc<Account>> {
        let algorithm = credentials.algorithm;
        let account = self.by_name.get(&credentials.username);
        let proof = account.and_then(|account| account.proofs.by(algorithm));
        let dummy = &self.dummies[usize::from(algorithm == Algorithm::Md5)];
        // The same work for an unknown name, and for an account without this hash.
        let is_proved = proof.unwrap_or(dummy).is_proved_by(attempt.method, credentials);
        let may = attempt.offer.algorithms().contains(&algorithm) && credentials.realm == self.realm;
        (is_proved && proof.is_some() && may).then(|| account.cloned()).flatten()
    }
}

/// The name under which passes from a source are counted; no account can have it. A pass cannot be guessed,
/// so failures from other sources say nothing about it.
fn passes_of(source: IpAddr) -> String {
    format!("(pass {source})")
}

/// A nonce is bound to the listener and to the source.
fn bound(attempt: Attempt<'_>) -> Vec<u8> {
    let source = match attempt.source.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    [&[u8::try_from(source.len()).unwrap_or(0)], source.as_slice(), attempt.channel].concat()
}

#[cfg(test)]
mod tests;
