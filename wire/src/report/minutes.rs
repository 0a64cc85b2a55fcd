//! Copies of stored minutes: a representative fetches them from the members, and a standby from it. What members
//! have copied of hosts that are down is fetched by a representative that does not have it.
//!
//! ```text
//! who copies                       who has the minutes
//!   Fetch: what it has of each host →
//!                                  ←   Minutes: rows that follow, and whether these are all
//! ```
//! Pure. Rows have the numbers of the store that they are read from, so a copy continues where it ended. Names
//! of metrics are sent once per connection. A sensor sends these frames only to one that has said that it knows
//! them. Not here: the packed buckets of a row (`store`).

use super::{METRICS_LEN_MAX_BYTES, METRICS_MAX, Packed, metric_len_bytes};
use crate::at_end::AtEnd;
use crate::id::HostName;
use crate::sample::Metric;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most hosts of a fetch.
pub const HELD_MAX: usize = 8192;
/// Length of the answer that is requested, in bytes.
pub const FETCH_LEN_BYTES: u32 = 128 << 10;

/// How far the minutes or the samples of a host are copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Their host.
    pub host: HostName,
    /// Number of the row after the last one that was copied, in the store that it was read from.
    pub next: u64,
    /// Start of the last minute that was copied, or time of the last sample. If the row before `next` is another one, the rows later than
    /// this time follow: so after a host was installed again, and after another sensor was read from.
    pub latest: Time,
}

/// Request for minutes or samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// What is copied already; of other hosts everything is requested.
    pub held: Vec<Held>,
    /// Only what is from this time on.
    pub since: Time,
    /// Approximate length of the answer, in bytes.
    pub len_bytes: u32,
    /// If it is given, what is copied of all other hosts than these is requested too, of a member. An older version
    /// ignores it.
    pub connected: AtEnd<Vec<HostName>>,
}

/// Minutes that follow what was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minutes {
    /// Rows of each host.
    pub hosts: Vec<HostMinutes>,
    /// Nothing follows at the moment.
    pub is_end: bool,
}

/// Minutes of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMinutes {
    /// Host of the minutes.
    pub host: HostName,
    /// Names of the numbers in the rows.
    pub names: NewNames,
    /// Rows, in their order.
    pub rows: Vec<MinuteRow>,
}

/// Names of metrics that were not sent before on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewNames {
    /// Numbers of metrics were sent in earlier answers, and are to be forgotten.
    pub is_fresh: bool,
    /// Metrics by their numbers.
    pub metrics: Vec<(u32, Metric)>,
}

/// The summaries of all metrics of a host in a minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteRow {
    /// Number of the row in the store that it was read from.
    pub number: u64,
    /// Start of the minute.
    pub start: Time,
    /// Buckets, by the numbers of the metrics.
    pub packed: Packed,
}

/// Numbers of metrics that were received on a connection.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    metrics: Arc<BTreeMap<u32, Arc<Metric>>>,
    len_bytes: usize,
}

/// The names of metrics exceed what a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {METRICS_MAX} metrics, or more than {METRICS_LEN_MAX_BYTES} bytes of names")]
pub struct TooManyNames;

impl Numbered {
    /// Adds the names in an answer; returns all that it may use.
    ///
    /// # Errors
    /// If there are too many.
    pub fn learn(&mut self, names: NewNames) -> Result<Arc<BTreeMap<u32, Arc<Metric>>>, TooManyNames> {
        self.learn_with(names, Arc::new)
    }

    /// As [`Numbered::learn`]; who has many connections with the same metrics shares them.
    ///
    /// # Errors
    /// If there are too many.
    pub fn learn_with(
        &mut self,
        names: NewNames,
        mut shared: impl FnMut(Metric) -> Arc<Metric>,
    ) -> Result<Arc<BTreeMap<u32, Arc<Metric>>>, TooManyNames> {
        if names.is_fresh {
            *self = Numbered::default();
        }
        let fresh = names.metrics;
        self.len_bytes += fresh.iter().map(|(_, metric)| metric_len_bytes(metric)).sum::<usize>();
        if !fresh.is_empty() {
            let metrics = Arc::make_mut(&mut self.metrics);
            metrics.extend(fresh.into_iter().map(|(number, metric)| (number, shared(metric))));
        }
        let is_too_many = self.metrics.len() > METRICS_MAX || self.len_bytes > METRICS_LEN_MAX_BYTES;
        if is_too_many { Err(TooManyNames) } else { Ok(Arc::clone(&self.metrics)) }
    }
}

/// How far the minutes or the samples of each host are copied.
#[derive(Clone, Debug, Default)]
pub struct Positions(BTreeMap<HostName, (u64, Time)>);

impl Positions {
    /// Positions of a store.
    #[must_use]
    pub fn new(held: Vec<Held>) -> Positions {
        Positions(held.into_iter().map(|held| (held.host, (held.next, held.latest))).collect())
    }

    /// Notes that what was received of a host ends before this row, with a row of this time.
    pub fn note(&mut self, host: &HostName, next: u64, latest: Time) {
        self.0.insert(host.clone(), (next, latest));
    }

    /// Whether one more host has room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.0.len() < HELD_MAX
    }

    /// The position of a host.
    #[must_use]
    pub fn of(&self, host: &HostName) -> Option<Held> {
        self.0.get(host).map(|(next, latest)| Held { host: host.clone(), next: *next, latest: *latest })
    }

    /// The positions of all hosts.
    #[must_use]
    pub fn all(&self) -> Vec<Held> {
        self.0.keys().filter_map(|host| self.of(host)).take(HELD_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Semantics;

    fn names(is_fresh: bool, numbers: std::ops::Range<u32>) -> NewNames {
        let (labels, unit) = (Vec::new(), "".into());
        let metric = Metric { name: "node_load1".into(), labels, unit, semantics: Semantics::Gauge };
        NewNames { is_fresh, metrics: numbers.map(|number| (number, metric.clone())).collect() }
    }

    #[test]
    fn names_are_known_until_they_are_sent_afresh_and_are_bounded() {
        let mut numbered = Numbered::default();
        numbered.learn(names(false, 0..2)).expect("two");
        let both = numbered.learn(names(false, 5..6)).expect("one more");
        assert_eq!(both.keys().copied().collect::<Vec<_>>(), [0, 1, 5]);
        let fresh = numbered.learn(names(true, 9..10)).expect("one");
        assert_eq!((fresh.len(), both.len()), (1, 3), "rows before keep their names");
        assert_eq!(numbered.learn(names(false, 10..20_000)), Err(TooManyNames));
    }

    #[test]
    fn a_copy_continues_after_the_last_row() {
        let mut positions = Positions::default();
        assert_eq!(positions.all(), []);
        let host = HostName::try_from("wn01").expect("a name");
        positions.note(&host, 8, Time::from_micros(60));
        let held = Held { host: host.clone(), next: 8, latest: Time::from_micros(60) };
        assert_eq!((positions.of(&host), positions.all()), (Some(held.clone()), vec![held]));
    }
}
