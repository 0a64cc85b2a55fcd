//! One connected peer: what it reported, and what was sent to it.
//!
//! Pure. Sequence numbers count per link, so that a peer that restarts is heard at once. Invariant: what a
//! peer says of itself never overrides what its certificate says.
//! Not here: what follows from a report (`node`).

use crate::membership::{Profile, Rank};
use std::collections::VecDeque;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Answer, Claim, Heartbeat, Load, Member, TableVersion, View};
use wire::time::Moment;

/// Most heartbeats counted as missed at once: five minutes; a link does not live so long in silence.
const MISSED_MAX: u64 = 600;

/// Heartbeats whose time of sending is stored: half a minute, longer than the silence after which a link is
/// closed.
const SENT_MAX: usize = 64;

/// Minimum interval of redirects to one peer. 500 ms: about one heartbeat.
const REDIRECT_INTERVAL: Duration = Duration::from_millis(500);

/// Minimum interval at which the same change of the table is sent again, until a heartbeat acknowledges it.
const TABLE_INTERVAL: Duration = Duration::from_millis(900);

/// What the peer said in its last heartbeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub incarnation: u64,
    /// By how much it stretches its timers: 1 to 8.
    pub stretch: u8,
    pub may_stand: bool,
    /// Whether it needs the link; true until it reports otherwise.
    pub needs_link: bool,
    pub load: Load,
    pub view: View,
    /// Which incarnation of this sensor it knows.
    pub knows: u64,
    /// How long ago it had received something from this sensor.
    pub hears_us: Option<Duration>,
}

/// The last answer to a question of this sensor.
#[derive(Clone, Debug)]
pub(super) struct LastAnswer {
    /// Whether the peer lost the leader too.
    pub has_lost: bool,
    /// The best candidate the peer hears.
    pub best: Option<Member>,
    pub at: Moment,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    profile: Profile,
    rank: Rank,
    since: Moment,
    /// When the peer sent the last heartbeat that arrived, as far as that is known.
    last_heard: Option<Moment>,
    /// When it was heard first after a suspicious silence: until it had the time to hear this sensor, what it
    /// reports of that is outdated.
    resumed: Moment,
    sequence_in: u64,
    sequence_out: u64,
    /// When the last heartbeats were sent, the newest last.
    sent: VecDeque<Moment>,
    member: Option<Member>,
    report: Report,
    answer: Option<LastAnswer>,
    redirected: Option<Moment>,
    /// Up to which change the table was sent, and when.
    table_sent: Option<(u64, Moment)>,
    unneeded_since: Option<Moment>,
    /// Whether it confirmed this sensor's claim since the current recheck started.
    is_confirmed: bool,
    has_left: bool,
}

impl Link {
    pub(super) fn new(profile: Profile, rank: Rank, now: Moment) -> Link {
        Link {
            profile,
            rank,
            since: now,
            last_heard: None,
            resumed: now,
            sequence_in: 0,
            sequence_out: 0,
            sent: VecDeque::new(),
            member: None,
            report: Report {
                incarnation: 0,
                stretch: 1,
                may_stand: true,
                needs_link: true,
                load: Load::default(),
                view: View::default(),
                knows: 0,
                hears_us: None,
            },
            answer: None,
            redirected: None,
            table_sent: None,
            unneeded_since: None,
            is_confirmed: false,
            has_left: false,
        }
    }

    /// Whether its certificate lets it represent the domain.
    pub(super) fn may_represent(&self) -> bool {
        self.profile.may_represent
    }

    pub(super) fn priority(&self) -> u8 {
        self.profile.priority
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn since(&self) -> Moment {
        self.since
    }

    pub(super) fn last_heard(&self) -> Option<Moment> {
        self.last_heard
    }

    pub(super) fn sequence_in(&self) -> u64 {
        self.sequence_in
    }

    /// The peer as a row of the table, once it introduced itself.
    pub(super) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn view(&self) -> &View {
        &self.report.view
    }

    /// The last answer, if it is younger than `age`.
    pub(super) fn answer(&self, age: Duration, now: Moment) -> Option<&LastAnswer> {
        self.answer.as_ref().filter(|answer| now.since(answer.at) < age)
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether it obeys `claim`, by its last report.
    pub(super) fn obeys(&self, claim: Claim) -> bool {
        self.report.view.claim == Some(claim)
    }

    /// Whether it was heard within `span` and has not left.
    pub(super) fn is_fresh(&self, span: Duration, now: Moment) -> bool {
        !self.has_left && self.last_heard.is_some_and(|heard| now.since(heard) < span)
    }

    /// Silence to be borne: `own` patience, or what the peer's stretch of its timers requires.
    pub(super) fn patience(&self, own: Duration, suspicion: Duration) -> Duration {
        own.max(suspicion * u32::from(self.report.stretch))
    }

    /// Whether the peer is heard and does not hear this sensor: half a link carries no reports.
    pub(super) fn is_deaf(&self, patience: Duration, heartbeat: Duration, now: Moment) -> bool {
        let is_deaf = match self.report.hears_us {
            Some(ago) => ago >= patience && now.since(self.resumed) >= heartbeat * 2,
            None => now.since(self.since) >= patience * 2,
        };
        is_deaf && self.last_heard.is_some()
    }

    /// The sequence number of a heartbeat that is sent now.
    pub(super) fn next_sequence(&mut self, now: Moment) -> u64 {
        self.sequence_out += 1;
        if self.sent.len() >= SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        self.sequence_out
    }

    /// How long a heartbeat was in transit, together with the one that it acknowledges: what TCP held back
    /// while the network was cut, or what waited while this process was suspended, is old when it is read.
    /// Clocks are not compared.
    pub(super) fn lateness(&self, heartbeat: &Heartbeat, now: Moment) -> Duration {
        let Some(ago) = self.sequence_out.checked_sub(heartbeat.echo).filter(|_| heartbeat.echo > 0) else {
            return Duration::ZERO;
        };
        let at = usize::try_from(ago).ok().and_then(|ago| self.sent.len().checked_sub(ago + 1));
        // One that is no longer stored was sent before all that are.
        let sent = at.map_or(self.sent.front(), |at| self.sent.get(at)).copied().unwrap_or(now);
        let idle = Duration::from_millis(heartbeat.heard_ms.unwrap_or(0).into());
        now.since(sent).saturating_sub(idle)
    }

    /// Note the arrival of a heartbeat that is newer than the last one and was in transit for `lateness`.
    /// Returns how many before it did not arrive.
    pub(super) fn receive(
        &mut self,
        heartbeat: &Heartbeat,
        lateness: Duration,
        suspicion: Duration,
        now: Moment,
    ) -> u64 {
        if self.last_heard.is_some_and(|heard| now.since(heard) >= suspicion) {
            self.resumed = now;
        }
        let missed = if self.sequence_in == 0 { 0 } else { heartbeat.sequence - self.sequence_in - 1 };
        self.sequence_in = heartbeat.sequence;
        let sent = Moment(now.0.saturating_sub(lateness));
        self.last_heard = Some(self.last_heard.map_or(sent, |heard| heard.max(sent)));
        missed.min(MISSED_MAX)
    }

    /// Take over what a heartbeat reports.
    pub(super) fn update(&mut self, heartbeat: &Heartbeat) {
        self.report = Report {
            incarnation: heartbeat.incarnation,
            stretch: heartbeat.stretch.clamp(1, 8),
            may_stand: heartbeat.may_stand,
            needs_link: heartbeat.wanted,
            load: heartbeat.load,
            view: heartbeat.view,
            knows: heartbeat.knows,
            hears_us: heartbeat.heard_ms.map(|ms| Duration::from_millis(u64::from(ms))),
        };
    }

    /// The peer introduced itself; its certificate overrides what it says. Returns false if the row is
    /// refused.
    pub(super) fn introduce(&mut self, from: PeerKey, about: Member) -> bool {
        if !about.is_bounded() || about.key != from {
            return false;
        }
        let Profile { host, may_represent, priority } = self.profile.clone();
        self.member = Some(Member { host, may_represent, priority, ..about });
        true
    }

    /// The peer answered a question. Returns the best candidate it hears.
    pub(super) fn record_answer(&mut self, answer: Answer, now: Moment) -> Option<Member> {
        let best = answer.best.map(|best| *best).filter(Member::is_bounded);
        self.report.view = answer.view;
        self.answer = Some(LastAnswer { has_lost: answer.lost, best: best.clone(), at: now });
        best
    }

    /// The peer stops. Returns false if that was an earlier incarnation.
    pub(super) fn leave(&mut self, incarnation: u64) -> bool {
        let is_current = self.report.incarnation <= incarnation;
        if is_current {
            self.has_left = true;
            self.report.needs_link = false;
        }
        is_current
    }

    /// Whether a redirect may be sent again.
    pub(super) fn may_redirect(&self, now: Moment) -> bool {
        self.redirected.is_none_or(|at| now.since(at) >= REDIRECT_INTERVAL)
    }

    pub(super) fn note_redirect(&mut self, now: Moment) {
        self.redirected = Some(now);
    }

    /// Whether the table at `held` must be sent to this peer; then that is noted.
    pub(super) fn needs_table(&mut self, claim: Claim, held: TableVersion, now: Moment) -> bool {
        let is_behind = self.obeys(claim) && self.report.view.held != held;
        let is_sent = self
            .table_sent
            .is_some_and(|(version, at)| version == held.version && now.since(at) < TABLE_INTERVAL);
        if is_behind && !is_sent {
            self.table_sent = Some((held.version, now));
        }
        is_behind && !is_sent
    }

    /// Whether the link is to be closed: neither side has needed it for `linger`. True once per `linger`, if
    /// the caller does not close it.
    pub(super) fn is_unneeded(&mut self, is_needed: bool, linger: Duration, now: Moment) -> bool {
        if (is_needed && !self.has_left) || self.report.needs_link {
            self.unneeded_since = None;
            return false;
        }
        let since = *self.unneeded_since.get_or_insert(now);
        let is_due = now.since(since) >= linger;
        if is_due {
            self.unneeded_since = Some(now);
        }
        is_due
    }

    pub(super) fn set_confirmed(&mut self, is_confirmed: bool) {
        self.is_confirmed = is_confirmed;
    }
}
