//! Series: values of metrics over time, collected from sweeps.
//!
//! Pure. Not here: the sweeps (`table`), storage (`crate::history`, `crate::representative::recent`).

use std::collections::HashMap;
use std::sync::Arc;
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Values of a metric over time, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub metric: Arc<Metric>,
    /// Time and value of each point.
    pub points: Vec<(Time, Number)>,
}

/// Whether a result has all requested points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All stored points.
    Whole,
    /// Older points are missing.
    Cut,
}

/// The series found so far, and the index of each metric's series.
#[derive(Default)]
pub(crate) struct SeriesSet {
    series: Vec<Series>,
    places: HashMap<Arc<Metric>, usize>,
}

impl SeriesSet {
    /// Returns the index of the series of this metric, and adds the series if it is new. A metric that
    /// disappeared and came back is the same metric: it is compared by name and labels, not by pointer.
    pub(crate) fn place(&mut self, metric: &Arc<Metric>) -> usize {
        if let Some(&place) = self.places.get(metric) {
            return place;
        }
        let place = self.series.len();
        self.series.push(Series { metric: Arc::clone(metric), points: Vec::new() });
        self.places.insert(Arc::clone(metric), place);
        place
    }

    /// Adds a value to the series at this index.
    pub(crate) fn push(&mut self, place: usize, time: Time, value: Number) {
        self.series[place].points.push((time, value));
    }

    pub(crate) fn oldest_first(mut self) -> Vec<Series> {
        for series in &mut self.series {
            series.points.sort_by_key(|(time, _)| *time);
        }
        self.series
    }
}
