//! The issuer's answers to joiners and to members who renew.
//!
//! Rule: every question is guarded against guessing and told in the audit; a fault of this host is logged here and
//! told to the asker in general words only.
//! Not here: who is given what (`book`), the stream on which a question comes (`net`).

use super::audit::{self, Subject, Trail, What};
use super::certificate;
use super::domain_files::{DomainFiles, Error, Replacement};
use super::join::Desk;
use super::peer_clocks::Members;
use super::refused::Refused;
use super::replace_refused;
use super::throttle::{Rate, Throttle};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Roles};
use wire::id::{HostName, PeerKey};
use wire::join::{Admitted, Directory, Question, Reply};
use wire::time::{Moment, Time};

/// How often one host's name is given to another key: a host that is started again and again while it is mended, but not
/// two machines of one name that take it from each other.
const REPLACED_EACH: Rate = Rate { burst: 3, interval: Duration::from_secs(20 * 60) };
/// The same of all: a whole cluster that starts at once waits for nothing else.
const REPLACED_ALL: Rate = Rate { burst: 10_000, interval: Duration::from_millis(10) };

/// One that answers by a domain's files. Its calls read and write files: not for a thread that must not wait.
#[derive(Debug)]
pub struct Issuer {
    files: DomainFiles,
    desk: Desk,
    directories: Vec<Directory>,
    seeds: Vec<Address>,
    clock: Members,
    replacements: Throttle<HostName>,
}

impl Issuer {
    /// One that tells whom it admits of these directories and seeds.
    #[must_use]
    pub fn new(files: DomainFiles, directories: Vec<Directory>, seeds: Vec<Address>) -> Issuer {
        Issuer {
            files,
            desk: Desk::default(),
            directories,
            seeds,
            clock: Members::Unknown,
            replacements: Throttle::new(REPLACED_EACH, REPLACED_ALL),
        }
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &DomainFiles {
        &self.files
    }

    /// The members known now, for those who join next.
    pub fn set_seeds(&mut self, seeds: Vec<Address>) {
        self.seeds = seeds;
    }

    /// What members say of this host's clock now.
    pub fn set_clock(&mut self, clock: Members) {
        self.clock = clock;
    }

    /// Whether this host's clock may be signed by.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_clock(&self, now: Time, at: Moment) -> Result<(), Error> {
        self.files.check_clock(now, at, self.clock)
    }

    /// Answer `peer`, whose key the connection has proved.
    pub fn answer(
        &mut self,
        question: &Question,
        peer: PeerKey,
        now: Time,
        at: Moment,
        trail: &mut Trail,
    ) -> Reply {
        let what = match question {
            Question::Join(_) => What::Join,
            Question::Replace(_) => What::Replace,
            Question::Renew { .. } => What::Renew,
        };
        let said = match question {
            Question::Join(join) | Question::Replace(join) => Some(join.host.to_string()),
            Question::Renew { chain } => audit::said(chain),
        };
        let subject = Subject { what, ..Subject::stranger(peer) };
        let refused = match self.decide(question, peer, now, at) {
            Ok((admitted, replaced)) => {
                let opened = certificate::open(&admitted.chain).map(|opened| opened.certificate);
                let given = opened.as_ref().ok();
                let subject = Subject {
                    domain: given.map(|given| &given.domain),
                    host: given.map(|given| &given.host),
                    ..subject
                };
                let roles = given.map(|given| given.roles).unwrap_or_default();
                trail.admit(subject, reason(roles, &replaced), now, at);
                return Reply::Admitted(Box::new(admitted));
            }
            // No fault of the peer: it may ask again as soon as it likes.
            Err(Error::Refused(
                refused @ (Refused::IssuerClock { .. }
                | Refused::Replace(replace_refused::Refused::Often { .. })),
            )) => refused,
            Err(Error::Refused(refused)) => self.desk.handle_refusal(peer, refused, at),
            Err(error) => {
                tracing::error!(%peer, %error, "cannot answer who wants to join or renew");
                let told = "the issuer cannot use its files; its log says why, ask its operator";
                return Reply::Refused(told.to_owned());
            }
        };
        trail.refuse(Subject { said: said.as_deref(), ..subject }, &refused, now, at);
        Reply::Refused(refused.to_string())
    }

    /// What it is given, and whose certificates were revoked for it.
    fn decide(
        &mut self,
        question: &Question,
        peer: PeerKey,
        now: Time,
        at: Moment,
    ) -> Result<(Admitted, Vec<Certificate>), Error> {
        self.desk.admit(peer, at)?;
        self.check_clock(now, at)?;
        let (chain, replaced) = match question {
            Question::Join(join) => (self.files.redeem(join, peer, now)?, Vec::new()),
            Question::Renew { chain } => (self.files.renew(chain, peer, now)?, Vec::new()),
            Question::Replace(join) => {
                let often = &mut self.replacements;
                let mut allow = |holder: &Certificate| allow_replacement(often, holder, peer, at);
                let Replacement { chain, replaced } = self.files.replace(join, peer, now, &mut allow)?;
                (chain, replaced)
            }
        };
        let denials = self.files.denials(now)?;
        let (directories, seeds) = (self.directories.clone(), self.seeds.clone());
        Ok((Admitted { chain, directories, seeds, denials }, replaced))
    }
}

/// Whether the name of `holder` may be given to `joiner` now.
fn allow_replacement(
    often: &mut Throttle<HostName>,
    holder: &Certificate,
    joiner: PeerKey,
    at: Moment,
) -> Result<(), Refused> {
    let host = holder.host.clone();
    let wait = often.wait_of(&host, at);
    if wait > Duration::ZERO {
        let (peer, issued) = (holder.peer, holder.issued);
        return Err(replace_refused::Refused::Often { host, peer, issued, joiner, wait }.into());
    }
    often.count_anyhow(host, at);
    Ok(())
}

/// Why it was admitted, as the audit has it.
fn reason(roles: Roles, replaced: &[Certificate]) -> String {
    let shown = |certificate: &Certificate| {
        let Certificate { peer, serial, .. } = certificate;
        format!("; in place of {peer}, whose certificate {serial} is revoked")
    };
    roles.to_string() + &replaced.iter().map(shown).collect::<String>()
}
