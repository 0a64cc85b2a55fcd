//! Both sides of joining and renewing: what a joiner asks and believes, how often an issuer listens.
//!
//! Pure: the moment is passed in. Rules: a joiner believes nothing that is not signed under the root in its
//! token; a client that guesses waits, but no one with a good token waits because of others' guesses.
//! Not here: the exchange itself (`wire::join`, `net`), the tokens (`token`), the book (`book`).

use super::certificate;
use super::deny_list::Denials;
use super::line::{self, Kind};
use super::refused::Refused;
use super::throttle::{Rate, Throttle};
use super::token;
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

/// What a daemon keeps of its membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// What it shows to others.
    pub chain: Chain,
    /// Where its certificate is renewed.
    pub issuer: Vec<Address>,
    /// The grid's directories.
    pub directories: Vec<Directory>,
    /// Members to begin with.
    pub seeds: Vec<Address>,
}

impl Membership {
    /// Its certificate.
    ///
    /// # Errors
    /// If the chain does not hold together.
    pub fn certificate(&self) -> Result<Certificate, Refused> {
        Ok(certificate::open(&self.chain)?.certificate)
    }

    /// What a daemon of this domain trusts.
    ///
    /// # Errors
    /// If the chain does not hold together.
    pub fn trust(&self, readers: Readers) -> Result<Trust, Refused> {
        let certificate = self.certificate()?;
        Ok(Trust::of_member(certificate.domain, certificate.root, readers))
    }

    /// Whom to ask for a renewal; none if the root signed the certificate, which only its keeper renews.
    ///
    /// # Errors
    /// If the chain does not hold together.
    pub fn issuer_key(&self) -> Result<Option<PeerKey>, Refused> {
        Ok(certificate::open(&self.chain)?.delegation.map(|delegation| delegation.issuer))
    }

    /// Take what the issuer answered to a renewal. Its directories and seeds replace those held, unless it
    /// names none.
    ///
    /// # Errors
    /// If it is not for this daemon and this domain; nothing has changed then.
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

/// What to ask by a token.
///
/// # Errors
/// If the token has expired, as far as this host's clock can say.
pub fn question(token: &Token, host: HostName, wanted: Roles, now: Time) -> Result<Join, Refused> {
    token::check_fresh(token, now)?;
    Ok(Join { secret: token.secret, root: token.root, host, wanted })
}

/// What the issuer answered to [`question`]: the membership, and who is denied.
///
/// # Errors
/// If the certificate is not for this daemon or not under the token's root.
pub fn accept(
    token: &Token,
    answer: Admitted,
    own: PeerKey,
    now: Time,
) -> Result<(Membership, Denials), Refused> {
    let trust = Trust::of_member(token.domain.clone(), token.root, Readers::Nobody);
    let denials = check_answer(&answer, own, now, &trust)?;
    // What the issuer says now is newer than what it wrote into the token.
    let directories =
        if answer.directories.is_empty() { token.directories.clone() } else { answer.directories };
    let Admitted { chain, seeds, .. } = answer;
    Ok((Membership { chain, issuer: token.addresses.clone(), directories, seeds }, denials))
}

/// What the root's keeper gives to somebody by hand, as a line: the way of operators and filter-admins.
#[must_use]
pub fn text(given: &Admitted) -> String {
    line::write(LINE, given)
}

/// What is in such a line; nothing of it is checked yet.
///
/// # Errors
/// If it is none, or was mistyped or cut.
pub fn parse(text: &str) -> Result<Admitted, line::Error> {
    line::read(LINE, text)
}

/// Take what the root's keeper gave by hand. Who is in no domain yet believes the root in it, as it would that
/// of a token; a member believes its own domain's alone, and keeps what it knows if nothing newer is given.
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

fn check_answer(answer: &Admitted, own: PeerKey, now: Time, trust: &Trust) -> Result<Denials, Refused> {
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
    let mut denials = Denials::default();
    for denial in &answer.denials {
        denials.take(denial, trust)?;
    }
    certificate::verify(&answer.chain, own, now, &denials, trust)?;
    Ok(denials)
}

/// The issuer's guard against guessing.
#[derive(Clone, Debug)]
pub struct Desk {
    failed: Throttle,
}

impl Default for Desk {
    fn default() -> Desk {
        Desk { failed: Throttle::new(FAILED_EACH, FAILED_ALL) }
    }
}

impl Desk {
    /// Whether `peer` may try now.
    ///
    /// # Errors
    /// If it has failed too often lately.
    pub fn admit(&self, peer: PeerKey, now: Moment) -> Result<(), Refused> {
        match self.failed.wait_of(&peer, now) {
            Duration::ZERO => Ok(()),
            wait => Err(Refused::TooManyAttempts { wait }),
        }
    }

    /// `peer` was refused: what it is told. Where too many are refused in all, that is all it learns.
    pub fn handle_refusal(&mut self, peer: PeerKey, refused: Refused, now: Moment) -> Refused {
        let wait = self.failed.wait_of_all(now);
        self.failed.count_anyhow(peer, now);
        if wait > Duration::ZERO { Refused::TooManyAttempts { wait } } else { refused }
    }
}
