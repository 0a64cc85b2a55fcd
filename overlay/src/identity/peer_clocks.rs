//! Clock readings received from members: every hello carries the time of its sender.
//!
//! Pure. A reading is carried forward by this host's monotonic clock, so that it stays valid when this host's
//! calendar clock is set. Rule: a clock counts as wrong only if more than half of the clocks, this host's own
//! included, differ from it in the same direction, so that one member with a wrong or forged time decides
//! nothing.
//! Not here: what an issuer does about it (`issuer_clock`), which hellos are read (`authenticator`).

use super::certificate::SKEW_MAX;
use super::shown_time::{At, Span};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{HostName, PeerKey};
use wire::time::{Moment, Time};

/// Difference beyond which an issuer does not sign: far more than clocks drift, far less than a certificate's
/// life.
pub const DIFFERENCE_MAX: Duration = Duration::from_secs(3600);

/// Age at which readings are dropped; connected members send one at least twice in this time.
pub const RECENT: Duration = Duration::from_secs(13 * 3600);

/// Members that have shown a time for this long are right, even if this host's clock was set together with
/// theirs.
pub const SETTLED_AFTER: Duration = Duration::from_secs(3600);

/// Most readings: those of a domain; the oldest makes room.
pub const READINGS_MAX: usize = 2048;

/// How many hosts with wrong clocks a message names.
const SHOWN_MAX: usize = 3;

const HOUR_MICROS: i64 = 3_600_000_000;
const SKEW_MICROS: i64 = 300_000_000;

#[derive(Clone, Debug)]
struct Reading {
    host: HostName,
    time: Time,
    at: Moment,
    /// When the first reading arrived that agrees with this one.
    since: Moment,
}

impl Reading {
    fn carried(&self, at: Moment) -> Time {
        self.time.plus(at.since(self.at))
    }

    /// How far its clock is ahead of `now`; negative if behind.
    fn ahead_micros(&self, now: Time, at: Moment) -> i64 {
        self.carried(at).micros().saturating_sub(now.micros())
    }
}

/// What the members' clocks say about this host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Members {
    /// Nothing: fewer than two were read.
    #[default]
    Unknown,
    /// It is right.
    Agree {
        /// Whether they have agreed for [`SETTLED_AFTER`].
        settled: bool,
    },
    /// It is wrong by more than [`DIFFERENCE_MAX`].
    Differ {
        /// The time by the median of the clocks.
        time: Time,
        /// How many members differ in that direction.
        members: usize,
    },
}

/// The last reading of each member.
#[derive(Clone, Debug, Default)]
pub struct PeerClocks {
    readings: BTreeMap<PeerKey, Reading>,
}

impl PeerClocks {
    /// Store a reading: `peer`, a member on `host`, says that its clock is at `time`.
    pub fn note(&mut self, peer: PeerKey, host: HostName, time: Time, at: Moment) {
        self.readings.retain(|_, reading| at.since(reading.at) < RECENT);
        let before = self.readings.get(&peer);
        let agrees = before.filter(|before| before.ahead_micros(time, at).saturating_abs() <= SKEW_MICROS);
        let since = agrees.map_or(at, |before| before.since);
        if before.is_none() && self.readings.len() >= READINGS_MAX {
            let oldest = self.readings.iter().min_by_key(|(_, reading)| reading.at).map(|(peer, _)| *peer);
            oldest.map(|peer| self.readings.remove(&peer));
        }
        self.readings.insert(peer, Reading { host, time, at, since });
    }

    /// Compare the members' clocks with this host's, which shows `now`.
    #[must_use]
    pub fn members(&self, now: Time, at: Moment) -> Members {
        let Some(ahead) = self.common_ahead(now, at) else { return Members::Unknown };
        if ahead.saturating_abs() > HOUR_MICROS {
            let members = self.differing(ahead.signum(), HOUR_MICROS, now, at);
            return Members::Differ { time: moved(now, ahead), members };
        }
        let recent: Vec<&Reading> = self.recent(at).collect();
        let has_settled = |reading: &&&Reading| {
            reading.ahead_micros(now, at).saturating_abs() <= HOUR_MICROS
                && at.since(reading.since) >= SETTLED_AFTER
        };
        let settled = recent.iter().filter(has_settled).count() * 2 > recent.len();
        Members::Agree { settled }
    }

    /// Messages about wrong clocks, of this host or of members.
    #[must_use]
    pub fn health(&self, now: Time, at: Moment) -> Vec<String> {
        let own = match self.common_ahead(now, at) {
            Some(ahead) if ahead.saturating_abs() > SKEW_MICROS => {
                let members = self.differing(ahead.signum(), SKEW_MICROS, now, at);
                let read = self.recent(at).count();
                format!(
                    "the clock of this host is wrong: it says {}, {members} of {read} members say {}; set it; the \
                     certificate of this host need not be replaced",
                    At(now),
                    At(moved(now, ahead))
                )
            }
            Some(_) => return self.wrong_members(now, at),
            None => match self.recent(at).next() {
                Some(only) if only.ahead_micros(now, at).saturating_abs() > SKEW_MICROS => format!(
                    "the clocks of this host and of {} differ by {}: it is {} here and {} there; set the one that is \
                     wrong",
                    only.host,
                    Span(Duration::from_micros(only.ahead_micros(now, at).unsigned_abs())),
                    At(now),
                    At(only.carried(at))
                ),
                Some(_) | None => return Vec::new(),
            },
        };
        vec![own]
    }

    /// Messages about members with wrong clocks, for a host whose own clock is right.
    fn wrong_members(&self, now: Time, at: Moment) -> Vec<String> {
        let wrong = |reading: &&Reading| reading.ahead_micros(now, at).saturating_abs() > SKEW_MICROS;
        let all: Vec<&Reading> = self.recent(at).filter(wrong).collect();
        let shown = |reading: &&Reading| {
            format!(
                "the clock of {} is wrong: it is {} there and {} here; set it",
                reading.host,
                At(reading.carried(at)),
                At(now)
            )
        };
        let mut shown: Vec<String> = all.iter().take(SHOWN_MAX).map(shown).collect();
        if all.len() > SHOWN_MAX {
            shown.push(format!("the clocks of {} more hosts are wrong", all.len() - SHOWN_MAX));
        }
        shown
    }

    fn recent(&self, at: Moment) -> impl Iterator<Item = &Reading> {
        self.readings.values().filter(move |reading| at.since(reading.at) < RECENT)
    }

    /// How many readings are ahead by more than `least_micros`; behind, for a negative `side`.
    fn differing(&self, side: i64, least_micros: i64, now: Time, at: Moment) -> usize {
        self.recent(at)
            .filter(|reading| reading.ahead_micros(now, at).saturating_mul(side) > least_micros)
            .count()
    }

    /// Median of all clocks, this host's own included, as the time that it is ahead of this host's; of two
    /// middle values, the one nearer to zero. `None` if fewer than two members were read.
    fn common_ahead(&self, now: Time, at: Moment) -> Option<i64> {
        let mut all: Vec<i64> = self.recent(at).map(|reading| reading.ahead_micros(now, at)).collect();
        if all.len() < 2 {
            return None;
        }
        all.push(0);
        all.sort_unstable();
        let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
        Some(if low.saturating_abs() < high.saturating_abs() { low } else { high })
    }
}

fn moved(now: Time, micros: i64) -> Time {
    let span = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { now.minus(span) } else { now.plus(span) }
}

const _: () = assert!(SKEW_MAX.as_micros() == SKEW_MICROS.unsigned_abs() as u128);
const _: () = assert!(DIFFERENCE_MAX.as_micros() == HOUR_MICROS.unsigned_abs() as u128);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_795_240_800_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    /// Readings of members that showed these times at second 0.
    fn read(times: &[Time]) -> PeerClocks {
        let mut clocks = PeerClocks::default();
        for (number, time) in (1..).zip(times) {
            let host = HostName::try_from(format!("wn{number:02}").as_str()).expect("a name");
            clocks.note(PeerKey([number; 32]), host, *time, at(0));
        }
        clocks
    }

    #[test]
    fn one_member_decides_nothing_whatever_it_says() {
        let ahead = NOW.plus(16 * DAY);
        assert_eq!(read(&[]).members(NOW, at(0)), Members::Unknown);
        assert_eq!(read(&[ahead]).members(NOW, at(0)), Members::Unknown);
        for others in 1..6 {
            let mut times = vec![NOW; others];
            times.push(ahead);
            assert_eq!(read(&times).members(NOW, at(0)), Members::Agree { settled: false }, "{others}");
        }
        let behind = Time::from_micros(i64::MIN);
        assert_eq!(read(&[behind, NOW]).members(NOW, at(0)), Members::Agree { settled: false });
    }

    #[test]
    fn more_than_half_of_the_clocks_decide_and_both_times_are_given() {
        let clocks = read(&[NOW, NOW, NOW]);
        let ahead = NOW.plus(16 * DAY);
        assert_eq!(clocks.members(ahead, at(0)), Members::Differ { time: NOW, members: 3 });
        let health = clocks.health(ahead, at(0)).concat();
        for part in ["this host is wrong", "2026-12-07T06:00:00Z", "3 of 3 members say 2026-11-21T06:00:00Z"]
        {
            assert!(health.contains(part), "{part} in {health}");
        }
        let split = read(&[NOW, NOW, ahead]);
        assert_eq!(split.members(ahead, at(0)), Members::Agree { settled: false }, "two against two");
    }

    #[test]
    fn a_reading_is_carried_forward_and_forgotten() {
        let clocks = read(&[NOW, NOW]);
        let later = NOW.plus(Duration::from_secs(7200));
        assert_eq!(clocks.members(later, at(7200)), Members::Agree { settled: true });
        assert_eq!(clocks.members(NOW, at(7200)), Members::Differ { time: later, members: 2 });
        let end = RECENT.as_secs();
        assert_eq!(clocks.members(NOW, at(end)), Members::Unknown);
        assert_eq!(clocks.health(NOW, at(end)), [""; 0]);
    }

    #[test]
    fn members_whose_clocks_were_set_are_not_settled_at_once() {
        let mut clocks = read(&[NOW, NOW]);
        let ahead = NOW.plus(16 * DAY);
        for number in [1, 2] {
            let host = HostName::try_from("wn").expect("a name");
            clocks.note(PeerKey([number; 32]), host, ahead, at(4000));
        }
        assert_eq!(clocks.members(ahead, at(4000)), Members::Agree { settled: false });
        let later = SETTLED_AFTER.as_secs();
        assert_eq!(
            clocks.members(ahead.plus(SETTLED_AFTER), at(4000 + later)),
            Members::Agree { settled: true }
        );
    }

    #[test]
    fn a_wrong_member_is_named_where_this_host_is_right_and_small_differences_are_not() {
        let clocks = read(&[NOW, NOW, NOW.minus(16 * DAY)]);
        let health = clocks.health(NOW, at(0)).concat();
        assert!(health.contains("clock of wn03 is wrong: it is 2026-11-05T06:00:00Z there"), "{health}");
        let clocks = read(&[NOW.plus(SKEW_MAX), NOW.minus(SKEW_MAX)]);
        assert_eq!(clocks.health(NOW, at(0)), [""; 0]);
        let health = read(&[NOW.plus(16 * DAY)]).health(NOW, at(0)).concat();
        assert!(health.contains("of this host and of wn01 differ by 16 days"), "{health}");
    }
}
