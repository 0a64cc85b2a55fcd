//! The issuer's answers to joiners and to members who renew.
//!
//! Rule: every question is guarded against guessing and told in the audit; a fault of this host is logged here and
//! told to the asker in general words only.
//! Not here: who is given what (`book`), the stream on which a question comes (`net`).

use super::audit::{self, Subject, Trail, What};
use super::certificate;
use super::domain_files::{DomainFiles, Error};
use super::join::Desk;
use super::peer_clocks::Members;
use super::refused::Refused;
use wire::address::Address;
use wire::id::PeerKey;
use wire::join::{Admitted, Directory, Question, Reply};
use wire::time::{Moment, Time};

/// One that answers by a domain's files. Its calls read and write files: not for a thread that must not wait.
#[derive(Debug)]
pub struct Issuer {
    files: DomainFiles,
    desk: Desk,
    directories: Vec<Directory>,
    seeds: Vec<Address>,
    clock: Members,
}

impl Issuer {
    /// One that tells whom it admits of these directories and seeds.
    #[must_use]
    pub fn new(files: DomainFiles, directories: Vec<Directory>, seeds: Vec<Address>) -> Issuer {
        Issuer { files, desk: Desk::default(), directories, seeds, clock: Members::Unknown }
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
            Question::Renew { .. } => What::Renew,
        };
        let said = match question {
            Question::Join(join) => Some(join.host.to_string()),
            Question::Renew { chain } => audit::said(chain),
        };
        let subject = Subject { what, ..Subject::stranger(peer) };
        let refused = match self.decide(question, peer, now, at) {
            Ok(admitted) => {
                let opened = certificate::open(&admitted.chain).map(|opened| opened.certificate);
                let given = opened.as_ref().ok();
                let subject = Subject {
                    domain: given.map(|given| &given.domain),
                    host: given.map(|given| &given.host),
                    ..subject
                };
                trail.admit(subject, given.map(|given| given.roles).unwrap_or_default(), now, at);
                return Reply::Admitted(Box::new(admitted));
            }
            // No fault of the peer: it may ask again as soon as it likes.
            Err(Error::Refused(refused @ Refused::IssuerClock { .. })) => refused,
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

    fn decide(&self, question: &Question, peer: PeerKey, now: Time, at: Moment) -> Result<Admitted, Error> {
        self.desk.admit(peer, at)?;
        self.check_clock(now, at)?;
        let chain = match question {
            Question::Join(join) => self.files.redeem(join, peer, now)?,
            Question::Renew { chain } => self.files.renew(chain, peer, now)?,
        };
        let denials = self.files.denials(now)?;
        Ok(Admitted { chain, directories: self.directories.clone(), seeds: self.seeds.clone(), denials })
    }
}
