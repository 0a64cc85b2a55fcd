//! Both sides of joining and renewing: the joiner's request and its checks of the answer, and the issuer's
//! rate limit.
//!
//! Pure: the moment is passed in. Rules: a joiner accepts only what is signed under the root in its token; a
//! client that guesses secrets must wait, but no client with a valid token waits because of others' guesses.
//! Not here: the exchange itself (`wire::join`, `net`), the tokens (`token`), the issuer's store (`issuer_store`).

use super::certificate;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::throttle::{Rate, Throttle};
use super::token;
use super::token_text::{self, Kind};
use super::trust::{Readers, Trust};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Denial, Roles};
use wire::id::{HostName, PeerKey};
use wire::join::{ADDRESSES_MAX, Admitted, DIRECTORIES_MAX, Directory, Join, SEEDS_MAX, Token};
use wire::time::{Moment, Time};

const LINE: Kind = Kind { prefix: "visperfcert1-", what: "certificate", made_by: "visperf domain certify" };

/// Refused attempts of one peer: a person who mistypes has three tries at once.
const FAILED_EACH: Rate = Rate { burst: 3, interval: Duration::from_secs(20) };
/// Refused attempts in all.
const FAILED_ALL: Rate = Rate { burst: 100, interval: Duration::from_millis(500) };

/// Membership of a daemon, as it stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The certificate chain that the daemon shows to its peers.
    pub chain: Chain,
    /// Addresses where its certificate is renewed.
    pub issuer: Vec<Address>,
    pub directories: Vec<Directory>,
    /// Addresses of members to contact first.
    pub seeds: Vec<Address>,
}

impl Membership {
    /// The certificate in the chain.
    ///
    /// # Errors
    /// If the chain is not valid.
    pub fn certificate(&self) -> Result<Certificate, Refused> {
        Ok(certificate::open(&self.chain)?.certificate)
    }

    /// The trust of a daemon of this domain.
    ///
    /// # Errors
    /// If the chain is not valid.
    pub fn trust(&self, readers: Readers) -> Result<Trust, Refused> {
        let certificate = self.certificate()?;
        Ok(Trust::of_member(certificate.domain, certificate.root, readers))
    }

    /// The key of the issuer that renews the certificate; none if the root signed it, because then only the
    /// holder of the root key renews it.
    ///
    /// # Errors
    /// If the chain is not valid.
    pub fn issuer_key(&self) -> Result<Option<PeerKey>, Refused> {
        Ok(certificate::open(&self.chain)?.delegation.map(|delegation| delegation.issuer))
    }

    /// Take the issuer's answer to a renewal. Its directories and its seeds replace the stored ones, unless
    /// they are empty.
    ///
    /// # Errors
    /// If the answer is not for this daemon and this domain; nothing has changed then.
    pub fn take(&mut self, answer: Admitted, own: PeerKey, now: Time) -> Result<Vec<Denial>, Refused> {
        let trust = self.trust(Readers::Nobody)?;
        check_answer(&answer, own, now, &trust)?;
        self.chain = answer.chain;
        if !answer.directories.is_empty() {
            self.directories = answer.directories;
        }
        if !answer.seeds.is_empty() {
            self.seeds = answer.seeds;
        }
        Ok(answer.denials)
    }
}

/// The request of a joiner that has a token.
///
/// # Errors
/// If the token has expired by this host's clock.
pub fn question(token: &Token, host: HostName, wanted: Roles, now: Time) -> Result<Join, Refused> {
    token::check_fresh(token, now)?;
    Ok(Join { secret: token.secret, root: token.root, host, wanted })
}

/// Take the issuer's answer to [`question`]: the membership and the revocation lists.
///
/// # Errors
/// If the certificate is not for this daemon or not under the token's root.
pub fn accept(
    token: &Token,
    answer: Admitted,
    own: PeerKey,
    now: Time,
) -> Result<(Membership, RevocationLists), Refused> {
    let trust = Trust::of_member(token.domain.clone(), token.root, Readers::Nobody);
    let denials = check_answer(&answer, own, now, &trust)?;
    // The issuer's answer is newer than its token.
    let directories =
        if answer.directories.is_empty() { token.directories.clone() } else { answer.directories };
    let Admitted { chain, seeds, .. } = answer;
    Ok((Membership { chain, issuer: token.addresses.clone(), directories, seeds }, denials))
}

/// The text of a certificate that the holder of the root key hands over manually: operators and filter-admins
/// join with it.
#[must_use]
pub fn text(given: &Admitted) -> String {
    token_text::write(LINE, given)
}

/// Parse such a text; its content is not verified yet.
///
/// # Errors
/// If it is another text, or was mistyped or cut.
pub fn parse(text: &str) -> Result<Admitted, token_text::Error> {
    token_text::read(LINE, text)
}

/// Install a certificate that was handed over manually. A daemon that is in no domain trusts the root in it,
/// as it would the root in a token. A member trusts only the root of its own domain; it keeps its directories
/// and seeds if the certificate names none.
///
/// # Errors
/// If it is not for this daemon, or of another domain.
pub fn install(
    held: Option<Membership>,
    given: Admitted,
    own: PeerKey,
    now: Time,
) -> Result<(Membership, Vec<Denial>), Refused> {
    if let Some(mut membership) = held {
        let denials = membership.take(given, own, now)?;
        return Ok((membership, denials));
    }
    let claimed = given.chain.certificate.unverified()?;
    let trust = Trust::of_member(claimed.domain, claimed.root, Readers::Nobody);
    check_answer(&given, own, now, &trust)?;
    let Admitted { chain, directories, seeds, denials } = given;
    Ok((Membership { chain, issuer: Vec::new(), directories, seeds }, denials))
}

fn check_answer(
    answer: &Admitted,
    own: PeerKey,
    now: Time,
    trust: &Trust,
) -> Result<RevocationLists, Refused> {
    let most = answer.directories.iter().map(|directory| directory.addresses.len()).max().unwrap_or(0);
    for (what, found, max) in [
        ("directories of an answer", answer.directories.len(), DIRECTORIES_MAX),
        ("addresses of a directory", most, ADDRESSES_MAX),
        ("seeds of an answer", answer.seeds.len(), SEEDS_MAX),
        ("deny-lists of an answer", answer.denials.len(), 2),
    ] {
        if found > max {
            return Err(Refused::Full { what, max, remedy: "the issuer answers with more than it may" });
        }
    }
    let mut denials = RevocationLists::default();
    for denial in &answer.denials {
        denials.take(denial, trust)?;
    }
    certificate::verify(&answer.chain, own, now, &denials, trust)?;
    Ok(denials)
}

/// The issuer's rate limiter against guessing of secrets.
#[derive(Clone, Debug)]
pub struct JoinLimiter {
    failed: Throttle,
}

impl Default for JoinLimiter {
    fn default() -> JoinLimiter {
        JoinLimiter { failed: Throttle::new(FAILED_EACH, FAILED_ALL) }
    }
}

impl JoinLimiter {
    /// Check that `peer` may try now.
    ///
    /// # Errors
    /// If it has failed too often lately.
    pub fn admit(&self, peer: PeerKey, now: Moment) -> Result<(), Refused> {
        match self.failed.wait_of(&peer, now) {
            Duration::ZERO => Ok(()),
            wait => Err(Refused::TooManyAttempts { wait }),
        }
    }

    /// Count a refusal of `peer`, and return the refusal that it receives. While refusals exceed the total
    /// limit, it receives only that there were too many.
    pub fn handle_refusal(&mut self, peer: PeerKey, refused: Refused, now: Moment) -> Refused {
        let wait = self.failed.wait_of_all(now);
        self.failed.count_anyhow(peer, now);
        if wait > Duration::ZERO { Refused::TooManyAttempts { wait } } else { refused }
    }
}
