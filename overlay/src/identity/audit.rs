//! Audit log: one value for each admission and refusal, limited to a rate that does not fill the disk.
//!
//! Rule: admissions and refusals have separate rate limits, so that a flood of refusals hides no admission.
//! Values that are left out are counted, and the next one that is written states the count. A refusal of one
//! peer for one reason is written once and then counted ([`super::repeats`]).
//! Not here: where the log goes (the daemons' telemetry); values are written under the target `audit`.

use super::refused::Refused;
use super::repeats::Repeats;
use super::throttle::{Rate, Throttle};
use std::collections::VecDeque;
use std::time::Duration;
use wire::credential::Chain;
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::{Moment, Time};

/// Refusals of one peer that gives a new reason each time: the first few show what is wrong, the later ones
/// that it continues.
const REFUSED_EACH: Rate = Rate { burst: 5, interval: Duration::from_secs(60) };
/// Refusals in all: some 10 MB a day of lines of 600 bytes.
const REFUSED_ALL: Rate = Rate { burst: 200, interval: Duration::from_secs(5) };
/// Admissions of one peer; a connection that flaps need not be logged each time.
const ADMITTED_EACH: Rate = Rate { burst: 20, interval: Duration::from_secs(30) };
/// Admissions in all: when a domain of a thousand hosts starts at once, each admission is logged.
const ADMITTED_ALL: Rate = Rate { burst: 2000, interval: Duration::from_secs(2) };
/// Most values waiting to be written: the bursts of both limits together.
const WAITING_MAX: usize = 2200;

/// What the peer requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditedAction {
    /// A connection.
    Hello,
    /// An action of [`super::principal::Action`], or another call, by its name.
    Action(&'static str),
    /// Membership of the domain.
    Join,
    /// Membership under a host name that another key holds.
    Replace,
    /// A new certificate for one that is past half of its life.
    Renew,
    /// That this daemon accepts a record or a leave.
    Record,
    /// That this daemon accepts a revocation list.
    DenyList,
}

impl AuditedAction {
    /// Its name in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AuditedAction::Hello => "hello",
            AuditedAction::Action(action) => action,
            AuditedAction::Join => "join",
            AuditedAction::Replace => "replace",
            AuditedAction::Renew => "renew",
            AuditedAction::Record => "record",
            AuditedAction::DenyList => "deny-list",
        }
    }
}

/// Whether the request was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Admitted,
    Refused,
}

/// One decision, as it is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// When, by this host's calendar clock.
    pub at: Time,
    pub peer: PeerKey,
    /// Domain of the peer, if it was proved.
    pub domain: Option<DomainName>,
    /// Host of the peer, if it was proved.
    pub host: Option<HostName>,
    /// Host and domain that the peer claims, if neither was proved; for a record, those of its signer.
    pub said: Option<String>,
    pub what: AuditedAction,
    pub outcome: Outcome,
    /// Why it was refused; for an admission, the roles.
    pub reason: String,
    /// Decisions of the same outcome that were left out since the last one written.
    pub left_out: u64,
}

impl Audit {
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

/// One rate limit, and the decisions that it left out.
#[derive(Debug)]
struct Lane {
    throttle: Throttle,
    left_out: u64,
}

/// Queue of decisions that wait to be written.
#[derive(Debug)]
pub struct Trail {
    admitted: Lane,
    refused: Lane,
    /// Refusals that repeat for the same reason, logged once.
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

/// The peer and the request that a decision is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub peer: PeerKey,
    /// Its domain, if it was proved.
    pub domain: Option<&'a DomainName>,
    /// Its host, if it was proved.
    pub host: Option<&'a HostName>,
    /// Host and domain that the peer claims, if neither was proved; for a record, those of its signer.
    pub said: Option<&'a str>,
    pub what: AuditedAction,
}

/// Host and domain that a chain claims, before anything is verified.
#[must_use]
pub fn said(chain: &Chain) -> Option<String> {
    chain.certificate.unverified().ok().map(|said| format!("{} of {}", said.host, said.domain))
}

impl Subject<'_> {
    /// The hello of a peer that has proved its key and nothing else.
    #[must_use]
    pub fn stranger(peer: PeerKey) -> Subject<'static> {
        Subject { peer, domain: None, host: None, said: None, what: AuditedAction::Hello }
    }
}

impl Trail {
    /// Log an admission.
    pub fn admit(&mut self, subject: Subject<'_>, reason: impl ToString, now: Time, at: Moment) {
        self.note(subject, Outcome::Admitted, &reason, now, at);
    }

    /// Log a refusal.
    pub fn refuse(&mut self, subject: Subject<'_>, refused: &Refused, now: Time, at: Moment) {
        self.note(subject, Outcome::Refused, refused, now, at);
    }

    /// The next decision to be written.
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
