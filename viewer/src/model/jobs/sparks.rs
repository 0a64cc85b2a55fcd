//! Curves of the visible rows, and which are requested.
//!
//! Pure. Rule: only visible rows are requested, each once, and while a job runs again every ten seconds; the number of
//! stored curves is bounded.

use crate::jobs::curves::Spark;
use crate::jobs::{JobKey, Row, SeriesRequest};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::time::Time;

/// Most curves that are stored.
const STORED_MAX: usize = 1_000;
/// Most curves that are requested at once: as many as rows are visible on a large screen.
const REQUESTED_MAX: usize = 128;
/// How often the curve of a job that runs is requested, in seconds.
const INTERVAL_SECS: f64 = 10.0;
/// The last points of a job have arrived this long after its end, in seconds.
const SETTLED_SECS: f64 = 15.0;
/// What was requested and did not arrive is requested again after so many seconds.
const RETRY_SECS: f64 = 20.0;

/// The stored curves.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparks {
    stored: BTreeMap<JobKey, Stored>,
    requested: Vec<JobKey>,
    requested_at: Option<Time>,
}

/// A curve; `None` if no host has one.
#[derive(Clone, Debug)]
struct Stored {
    spark: Option<Arc<Spark>>,
    at: Time,
}

impl Sparks {
    pub(super) fn get(&self, key: &JobKey) -> Option<&Arc<Spark>> {
        self.stored.get(key)?.spark.as_ref()
    }

    /// Whether the hosts of a job answered, with a curve or without.
    pub(super) fn is_known(&self, key: &JobKey) -> bool {
        self.stored.contains_key(key)
    }

    /// The curves that the visible rows lack, from top to bottom, if they are to be requested now.
    pub(super) fn request<'a>(
        &self,
        visible: impl Iterator<Item = &'a Row>,
        now: Time,
    ) -> Option<Vec<SeriesRequest>> {
        let missing = visible.filter(|row| self.is_due(row, now)).filter_map(Row::series_request);
        let missing: Vec<SeriesRequest> = missing.take(REQUESTED_MAX).collect();
        let is_late = self.requested_at.is_none_or(|at| now.since(at).as_secs_f64() > RETRY_SECS);
        let is_new = missing.iter().any(|request| !self.requested.contains(&request.key));
        (!missing.is_empty() && (is_new || is_late)).then_some(missing)
    }

    fn is_due(&self, row: &Row, now: Time) -> bool {
        let Some(stored) = self.stored.get(&row.key) else { return true };
        let is_settled = row.ended.is_some_and(|ended| stored.at.since(ended).as_secs_f64() > SETTLED_SECS);
        !is_settled && now.since(stored.at).as_secs_f64() > INTERVAL_SECS
    }

    pub(super) fn requested(&mut self, requests: &[SeriesRequest], now: Time) {
        self.requested = requests.iter().map(|request| request.key.clone()).collect();
        self.requested_at = Some(now);
    }

    pub(super) fn take(&mut self, key: JobKey, spark: Option<Arc<Spark>>, now: Time) {
        self.requested.retain(|known| *known != key);
        self.stored.insert(key, Stored { spark, at: now });
        if self.stored.len() > STORED_MAX {
            let oldest = self.stored.iter().min_by_key(|(_, stored)| stored.at).map(|(key, _)| key.clone());
            oldest.into_iter().for_each(|key| drop(self.stored.remove(&key)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;
    use wire::api::jobs::Job;
    use wire::call::State;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn row(number: u32, state: State) -> Row {
        let ended = (state == State::Ended).then_some(UnixTime(at(50)));
        let started = (state != State::Waiting).then_some(UnixTime(at(10)));
        let (id, hosts) = (format!("slurm:{number}"), vec!["wn01".to_owned()]);
        Row::new(&"Alpha".into(), Job { id, state, started, ended, hosts, ..Job::default() })
    }

    fn requested(sparks: &mut Sparks, rows: &[Row], secs: i64) -> Vec<String> {
        let requests = sparks.request(rows.iter(), at(secs)).unwrap_or_default();
        if !requests.is_empty() {
            sparks.requested(&requests, at(secs));
        }
        requests.iter().map(|request| request.key.id.to_string()).collect()
    }

    #[test]
    fn visible_rows_are_requested_once_and_running_ones_again() {
        let rows = [row(1, State::Ended), row(2, State::Running), row(3, State::Waiting)];
        let mut sparks = Sparks::default();
        assert_eq!(requested(&mut sparks, &rows, 100), ["slurm:1", "slurm:2"]);
        assert!(requested(&mut sparks, &rows, 101).is_empty(), "they are waited for");
        assert_eq!(
            requested(&mut sparks, &rows, 130),
            ["slurm:1", "slurm:2"],
            "and requested again if they are lost"
        );
        for row in &rows[..2] {
            sparks.take(row.key.clone(), None, at(131));
        }
        assert!(sparks.is_known(&rows[0].key) && sparks.get(&rows[0].key).is_none());
        assert!(requested(&mut sparks, &rows, 135).is_empty());
        assert_eq!(requested(&mut sparks, &rows, 160), ["slurm:2"], "the other has ended");
        let others = [row(1, State::Ended), row(4, State::Running), row(2, State::Running)];
        assert_eq!(requested(&mut sparks, &others, 161), ["slurm:4", "slurm:2"], "rows that come into view");
    }

    #[test]
    fn the_number_of_curves_is_bounded_and_the_oldest_are_dropped() {
        let mut sparks = Sparks::default();
        (0..2_000).for_each(|number| sparks.take(row(number, State::Ended).key, None, at(i64::from(number))));
        assert_eq!(sparks.stored.len(), STORED_MAX);
        assert!(
            sparks.is_known(&row(1_999, State::Ended).key) && !sparks.is_known(&row(3, State::Ended).key)
        );
    }
}
