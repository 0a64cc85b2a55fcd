//! Who was let in and who was not: one value each, at a rate that fills no disk.
//!
//! Rule: admissions and refusals are limited apart, so that a flood of refusals hides no admission; what is left
//! out is counted and told with the next one written. One peer's refusal for one reason is told once and then
//! counted ([`super::repeats`]).
//! Not here: where the log goes (the daemons' telemetry); values are written under the target `audit`.

use super::refused::Refused;
use super::repeats::Repeats;
use super::throttle::{Rate, Throttle};
use std::collections::VecDeque;
use std::time::Duration;
use wire::credential::Chain;
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::{Moment, Time};

/// Refusals of one peer for ever new reasons: the first few say what is wrong, the rest that it goes on.
const REFUSED_EACH: Rate = Rate { burst: 5, interval: Duration::from_secs(60) };
/// Refusals in all: some 10 MB a day of lines of 600 bytes.
const REFUSED_ALL: Rate = Rate { burst: 200, interval: Duration::from_secs(5) };
/// Admissions of one peer; a connection that flaps need not be told each time.
const ADMITTED_EACH: Rate = Rate { burst: 20, interval: Duration::from_secs(30) };
/// Admissions in all: a domain of a thousand that starts at once is told whole.
const ADMITTED_ALL: Rate = Rate { burst: 2000, interval: Duration::from_secs(2) };
/// Most values waiting to be written; as many as may come at once.
const WAITING_MAX: usize = 2200;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// To be connected at all.
    Hello,
    /// To do this.
    Action(&'static str),
    /// To become a member.
    Join,
    /// To become a member in place of another key.
    Replace,
    /// A certificate for one that is half through.
    Renew,
    /// That a record be believed.
    Record,
    /// That a list of denied be believed.
    DenyList,
}

impl What {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            What::Hello => "hello",
            What::Action(action) => action,
            What::Join => "join",
            What::Replace => "replace",
            What::Renew => "renew",
            What::Record => "record",
            What::DenyList => "deny-list",
        }
    }
}

/// Whether it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Yes.
    Admitted,
    /// No.
    Refused,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// When, by this host's calendar clock.
    pub at: Time,
    /// Who.
    pub peer: PeerKey,
    /// Of which domain, as far as it was proved.
    pub domain: Option<DomainName>,
    /// On which host, as far as it was proved.
    pub host: Option<HostName>,
    /// Which host it says it is, and of which domain, where nothing of that was proved; of a record, whose that is.
    pub said: Option<String>,
    /// What it asked for.
    pub what: What,
    /// What became of it.
    pub outcome: Outcome,
    /// Why not; for an admission, the roles.
    pub reason: String,
    /// Decisions of the same outcome since the last one told that were left out.
    pub left_out: u64,
}

impl Audit {
    /// Write it to the log.
    pub fn log(&self) {
        let host = self.host.as_ref().map(HostName::as_str);
        let domain = self.domain.as_ref().map(DomainName::as_str);
        let Audit { peer, reason, left_out, .. } = self;
        let (what, said) = (self.what.as_str(), self.said.as_deref());
        match self.outcome {
            Outcome::Admitted => {
                tracing::info!(target: "audit", %peer, domain, host, what, reason, left_out, "admitted");
            }
            Outcome::Refused => {
                tracing::warn!(target: "audit", %peer, domain, host, said, what, reason, left_out, "refused");
            }
        }
    }
}

#[derive(Debug)]
struct Lane {
    throttle: Throttle,
    left_out: u64,
}

/// Decisions waiting to be written.
#[derive(Debug)]
pub struct Trail {
    admitted: Lane,
    refused: Lane,
    /// Refusals that come again and again for the same reason, told once.
    repeats: Repeats,
    waiting: VecDeque<Audit>,
}

impl Default for Trail {
    fn default() -> Trail {
        let lane = |each, all| Lane { throttle: Throttle::new(each, all), left_out: 0 };
        Trail {
            admitted: lane(ADMITTED_EACH, ADMITTED_ALL),
            refused: lane(REFUSED_EACH, REFUSED_ALL),
            repeats: Repeats::default(),
            waiting: VecDeque::new(),
        }
    }
}

/// Of whom and what a decision is.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Who.
    pub peer: PeerKey,
    /// Of which domain, if it was proved.
    pub domain: Option<&'a DomainName>,
    /// On which host, if it was proved.
    pub host: Option<&'a HostName>,
    /// Which host it says it is, if nothing of that was proved; of a record, whose that is.
    pub said: Option<&'a str>,
    /// What it asked for.
    pub what: What,
}

/// Whose a chain says that it is, before anything of that is proved.
#[must_use]
pub fn said(chain: &Chain) -> Option<String> {
    chain.certificate.unverified().ok().map(|said| format!("{} of {}", said.host, said.domain))
}

impl Subject<'_> {
    /// A hello of somebody of whom nothing is proved but the key.
    #[must_use]
    pub fn stranger(peer: PeerKey) -> Subject<'static> {
        Subject { peer, domain: None, host: None, said: None, what: What::Hello }
    }
}

impl Trail {
    /// It was let in.
    pub fn admit(&mut self, subject: Subject<'_>, reason: impl ToString, now: Time, at: Moment) {
        self.note(subject, Outcome::Admitted, &reason, now, at);
    }

    /// It was not.
    pub fn refuse(&mut self, subject: Subject<'_>, refused: &Refused, now: Time, at: Moment) {
        self.note(subject, Outcome::Refused, refused, now, at);
    }

    /// The next one to be written.
    pub fn poll_output(&mut self) -> Option<Audit> {
        self.waiting.pop_front()
    }

    fn note(
        &mut self,
        subject: Subject<'_>,
        outcome: Outcome,
        reason: &impl ToString,
        now: Time,
        at: Moment,
    ) {
        let reason = reason.to_string();
        let (lane, is_new) = match outcome {
            Outcome::Admitted => (&mut self.admitted, true),
            Outcome::Refused => {
                let asked = format!("{}: {reason}", subject.what.as_str());
                (&mut self.refused, self.repeats.take(subject.peer, &asked, at).is_some())
            }
        };
        if !is_new {
            lane.left_out += 1;
            return;
        }
        if self.waiting.len() >= WAITING_MAX || lane.throttle.take(subject.peer, at).is_err() {
            lane.left_out += 1;
            self.repeats.forget(subject.peer);
            return;
        }
        self.waiting.push_back(Audit {
            at: now,
            peer: subject.peer,
            domain: subject.domain.cloned(),
            host: subject.host.cloned(),
            said: subject.said.map(str::to_owned),
            what: subject.what,
            outcome,
            reason,
            left_out: std::mem::take(&mut lane.left_out),
        });
    }
}
