//! Configuration of membership and election: every interval and limit, with its reason.
//!
//! Pure. Intervals are measured on each sensor's own monotonic clock; clocks may run at rates that differ by
//! some per cent (`lease_percent`).
//! Not here: addresses of the seeds (the shell resolves them).

use std::time::Duration;
use wire::id::DomainName;

/// Configuration of one sensor; all sensors of a domain use the same intervals.
#[derive(Clone, Debug)]
pub struct Config {
    /// The domain; its name is part of every rank.
    pub domain: DomainName,
    /// Whether to look for others before serving alone: seeds are configured, or this host admitted others to
    /// the domain.
    pub has_seeds: bool,
    /// Interval of heartbeats on a link. 400 ms: three fit into the suspicion, and a domain of 500 costs its
    /// representative 1,250 small messages a second in each direction.
    pub heartbeat: Duration,
    /// Interval of checks while a suspicion or a recheck is pending. 100 ms: a quarter of a heartbeat.
    pub look: Duration,
    /// Silence after which a representative is suspected. 1.2 s: three heartbeats; with the check, the
    /// question and the disk, a new one serves 1.5 s after a fault in the median.
    pub suspicion: Duration,
    /// How much longer each next place in the succession waits. 1 s: a promotion takes a round trip and an
    /// fsync, well below.
    pub next_rank: Duration,
    /// Interval of rounds of questions during a suspicion. 200 ms: a few round trips of a slow network.
    pub question: Duration,
    /// How long an answer counts. 1.5 s: about as long as the silence that it confirms.
    pub answer_kept: Duration,
    /// How long a sensor that hears no peer at all, but knows others besides the lost representative, waits
    /// before it serves itself. 10 s: it is rather cut off than the last one, and a link that comes back in 3
    /// s must cost nothing.
    pub alone: Duration,
    /// How long a sensor that starts with seeds looks for others before it serves itself. 5 s: two dials.
    pub first_alone: Duration,
    /// Silence after which a member is dead. 10 s: nothing requires haste.
    pub member_dead: Duration,
    /// How long dead members are stored and dialled. 24 h: a host repaired over night finds its domain even
    /// if every seed moved.
    pub dead_kept: Duration,
    /// How long members that left stay in the table. 10 min: until every copy has received that.
    pub left_kept: Duration,
    /// How long a healthy incumbent stays although a member of higher priority is there. 10 min: the
    /// operator's priority is followed, and a flapping host of high priority costs at most six changes an
    /// hour.
    pub sticky: Duration,
    /// How long a sensor that lost the role does not stand again, the first time. 60 s.
    pub cool_off: Duration,
    /// Longest such time; it doubles with every loss. 10 min; after as long without a loss it starts over.
    pub cool_off_max: Duration,
    /// How long a representative that was suspended asks whether it still is one before it steps down. 1 s.
    pub recheck: Duration,
    /// Share of the suspicion, in per cent, for which a representative serves without having run: below 100,
    /// since clocks differ by some per cent and a message takes time.
    pub lease_percent: u32,
    /// How long a higher claim whose holder is not heard is tolerated before the representative raises its
    /// own term above it. 1.5 s: its holder has that long to show up.
    pub reassert: Duration,
    /// Largest factor by which a lagging sensor stretches its timers (Lifeguard's local health).
    pub stretch_max: u32,
    /// Lag of the own event loop that adds one to that factor. 400 ms: one heartbeat.
    pub lag_unit: Duration,
    /// In what time a lag fades. 30 s: a starved process is starved again soon.
    pub lag_kept: Duration,
    /// Share of lost heartbeats, in thousandths, that adds one to that factor. 100: at 10 % loss three in a
    /// row are lost every 500 s on some link, six in a row every 6 days.
    pub loss_unit_permille: u32,
    /// Number of standbys. 2: the representative and one of them may fail together.
    pub standbys: usize,
    /// First wait before a peer is dialled again; it doubles. 500 ms.
    pub redial: Duration,
    /// Longest such wait: a healed partition must be one domain within 10 s. 4 s.
    pub redial_max: Duration,
    /// How long a dial may take before the next candidate is tried as well. 2 s.
    pub dial: Duration,
    /// Interval of dials of the seeds without a representative, or as a partial one. 3 s.
    pub seeds: Duration,
    /// The same for a representative that covers all members it knows: two parts of a domain that forgot each
    /// other still share their seeds. 30 s.
    pub seeds_idle: Duration,
    /// How long an unneeded link stays open. 5 s: needs change with a promotion.
    pub linger: Duration,
    /// How long any host that went missing makes the domain partial. 10 min.
    pub partial_recent: Duration,
    /// After that, the share of missing hosts that makes it partial, in per cent. 10: of 500 hosts some are
    /// always down, and a flag that is always set says nothing.
    pub partial_percent: usize,
    /// All on, except in tests that show what one is for.
    pub mechanisms: Mechanisms,
}

/// Mechanisms of the protocol. Tests switch one off to see the property fail that it ensures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Mechanisms {
    /// Timers are stretched by own lag and loss, and by what the representative reports of its own.
    pub local_health: bool,
    /// Half of the reachable sensors must have lost the representative too.
    pub confirmation: bool,
    /// A sensor that lost the role does not stand again for a while.
    pub cool_off: bool,
    /// A representative that was suspended asks its peers before it serves.
    pub recheck: bool,
    /// Only the highest claim is obeyed.
    pub fencing: bool,
    /// A term is on disk before it is used.
    pub durable_term: bool,
    /// Lost members and seeds are dialled again for ever.
    pub redial: bool,
    /// Of two representatives the one that covers fewer sensors yields, whatever the terms.
    pub larger_half: bool,
    /// A heartbeat that was long in transit changes nothing.
    pub lateness: bool,
}

impl Mechanisms {
    /// All of them.
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
    /// The defaults for `domain`.
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
