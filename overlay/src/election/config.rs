//! The numbers of membership and election, each with its reason.
//!
//! Pure. Spans are reckoned on each sensor's own clock that never goes back; clocks that run some per cent
//! apart are allowed for (`lease_percent`).
//! Not here: where the seeds are (the shell resolves them).

use std::time::Duration;
use wire::id::DomainName;

/// How a sensor takes part in its domain.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which domain; part of every rank.
    pub domain: DomainName,
    /// Whether others are to be looked for before standing alone: seeds are known, or others were let into the domain here.
    pub has_seeds: bool,
    /// Between two heartbeats on a link. 400 ms: three fit into the suspicion, and a domain of 500 costs its
    /// representative 1,250 small messages a second each way.
    pub heartbeat: Duration,
    /// Between two looks while something is pending (a suspicion, a promotion). 100 ms: a fifth of a beat.
    pub look: Duration,
    /// Silence after which a representative is suspected. 1.2 s: three heartbeats; with the look, the question
    /// and the disk it leaves a new one serving 1.5 s after a fault in the median.
    pub suspicion: Duration,
    /// How much longer each next rank waits. 1 s: a promotion takes a round trip and an fsync, well below.
    pub next_rank: Duration,
    /// Between two rounds of questions about one suspicion. 200 ms: a few round trips of a slow network.
    pub question: Duration,
    /// How long an answer counts. 1.5 s: as long as the silence it is about.
    pub answer_kept: Duration,
    /// How long a sensor that hears no one at all, but knows two others or more, waits before it serves
    /// itself. 10 s: it is rather cut off than the last one, and a link that comes back in 3 s must cost
    /// nothing.
    pub alone: Duration,
    /// How long a sensor that starts with seeds looks for others before it serves itself. 5 s: two dials.
    pub first_alone: Duration,
    /// Silence after which a member is dead. 10 s: nothing depends on haste.
    pub member_dead: Duration,
    /// How long the dead are remembered and dialled again. 24 h: a host repaired over night finds its domain
    /// even if every seed moved.
    pub dead_kept: Duration,
    /// How long who left is told. 10 min: until every copy has heard it.
    pub left_kept: Duration,
    /// For how long a healthy incumbent stays though a member of higher priority is there. 10 min: an
    /// operator's wish is followed, a flapping favourite costs six changes an hour at most.
    pub sticky: Duration,
    /// For how long a sensor that lost the role may not stand again, at first. 60 s.
    pub cool_off: Duration,
    /// To how much that grows by doubling. 10 min; a sensor that kept out of it for so long starts over.
    pub cool_off_max: Duration,
    /// How long a representative that stood still asks whether it still is one before it gives up. 1 s.
    pub recheck: Duration,
    /// The share of the suspicion for which a representative serves without having run: below 100, since
    /// clocks differ by some per cent and a message takes its time.
    pub lease_percent: u32,
    /// How long a higher claim whose holder no one hears is borne before the representative raises its own
    /// term above it. 1.5 s: its holder has that long to show up.
    pub reassert: Duration,
    /// Most by which a lagging sensor stretches its timers (Lifeguard's local health).
    pub stretch_max: u32,
    /// Lag of the own event loop that adds one to the stretch. 400 ms: a heartbeat late.
    pub lag_unit: Duration,
    /// In what time a lag is forgotten. 30 s: a starved sensor is starved again soon.
    pub lag_kept: Duration,
    /// Share of lost heartbeats, in thousandths, that adds one to the stretch. 100: at 10 % loss three in a
    /// row are lost each 500 s on some link, six in a row each 6 days.
    pub loss_unit_permille: u32,
    /// Standbys of the representative. 2: it and one of them may die together.
    pub standbys: usize,
    /// First wait before a peer is dialled again; doubles. 500 ms.
    pub redial: Duration,
    /// Longest such wait: a healed split must be one domain within 10 s. 4 s.
    pub redial_max: Duration,
    /// How long a dial may take before the next candidate is tried as well. 2 s.
    pub dial: Duration,
    /// Between two dials of the seeds without a representative, or as a partial one. 3 s.
    pub seeds: Duration,
    /// The same for a representative that hears everybody: two islands that forgot each other still share
    /// their seeds. 30 s.
    pub seeds_idle: Duration,
    /// How long an unneeded link is kept. 5 s: needs change with a promotion.
    pub linger: Duration,
    /// For how long every host that is missing makes the domain partial. 10 min.
    pub partial_recent: Duration,
    /// Beyond that, what share of hosts missing makes it partial, in per cent. 10: of 500 hosts some are
    /// always down, and a flag that is always set says nothing.
    pub partial_percent: usize,
    /// Mechanisms; all on, but in a test that shows what one is for.
    pub mechanisms: Mechanisms,
}

/// Mechanisms that tests switch off to see the property fail that each is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Mechanisms {
    /// Timers stretched by own lag and loss, and by the representative's own word of it.
    pub local_health: bool,
    /// Half of the reachable sensors must have lost the representative too.
    pub confirmation: bool,
    /// Who lost the role does not stand again for a while.
    pub cool_off: bool,
    /// A representative that stood still asks before it serves.
    pub recheck: bool,
    /// Only the highest claim is obeyed.
    pub fencing: bool,
    /// A term is on disk before it is used.
    pub durable_term: bool,
    /// Lost members and seeds are dialled for ever.
    pub redial: bool,
    /// Of two halves the smaller gives way, whatever the terms.
    pub larger_half: bool,
    /// A heartbeat that was long under way is no news.
    pub lateness: bool,
}

impl Mechanisms {
    /// Everything on.
    pub const ALL: Mechanisms = Mechanisms {
        local_health: true,
        confirmation: true,
        cool_off: true,
        recheck: true,
        fencing: true,
        durable_term: true,
        redial: true,
        larger_half: true,
        lateness: true,
    };
}

impl Config {
    /// The numbers for `domain`.
    #[must_use]
    pub const fn new(domain: DomainName) -> Config {
        Config {
            domain,
            has_seeds: false,
            heartbeat: Duration::from_millis(400),
            look: Duration::from_millis(100),
            suspicion: Duration::from_millis(1200),
            next_rank: Duration::from_secs(1),
            question: Duration::from_millis(200),
            answer_kept: Duration::from_millis(1500),
            alone: Duration::from_secs(10),
            first_alone: Duration::from_secs(5),
            member_dead: Duration::from_secs(10),
            dead_kept: Duration::from_secs(24 * 3600),
            left_kept: Duration::from_secs(600),
            sticky: Duration::from_secs(600),
            cool_off: Duration::from_secs(60),
            cool_off_max: Duration::from_secs(600),
            recheck: Duration::from_secs(1),
            lease_percent: 85,
            reassert: Duration::from_millis(1500),
            stretch_max: 8,
            lag_unit: Duration::from_millis(400),
            lag_kept: Duration::from_secs(30),
            loss_unit_permille: 100,
            standbys: 2,
            redial: Duration::from_millis(500),
            redial_max: Duration::from_secs(4),
            dial: Duration::from_secs(2),
            seeds: Duration::from_secs(3),
            seeds_idle: Duration::from_secs(30),
            linger: Duration::from_secs(5),
            partial_recent: Duration::from_secs(600),
            partial_percent: 10,
            mechanisms: Mechanisms::ALL,
        }
    }
}
