//! Evaluation of a subscription to the metrics of a host: makes a sample of each sweep that is due.
//!
//! Pure. Rules: a sample is of one sweep; while sweeps have the same metrics, the selection is applied to
//! them only once; a metric that was absent has no past.
//! Not here: sampling (`sample`).

use super::fields::metric::{MetricView, Metrics};
use super::outcome::Outcome;
use super::parts::Parts;
use super::predicate::keep_top;
use crate::sample::glob::Glob;
use crate::sample::table::{self, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::channel::ChannelRequest;
use wire::channel::stream::{Body, RECORDS_MAX, Reading};
use wire::sample::{Metric, Number};

/// A sweep over the host.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    pub number: u64,
    /// When it started, in nanoseconds since boot.
    pub at_ns: u64,
    pub table: &'a Table,
}

/// The compiled parts and their memory.
#[derive(Debug)]
pub struct Evaluation {
    parts: Parts<Metrics>,
    name: Option<Glob>,
    /// Metrics of the previous sweep.
    shape: table::Metrics,
    /// Positions of the selected metrics.
    selected: Vec<usize>,
    /// Values that the filter remembers: as many per selected metric as it has slots.
    past: Vec<f64>,
    at_ns: u64,
}

impl Evaluation {
    /// Creates an evaluation of the metrics whose names match the glob, or of all.
    #[must_use]
    pub fn new(parts: Parts<Metrics>, name: Option<Glob>) -> Evaluation {
        let shape: table::Metrics = Arc::new([]);
        Evaluation { parts, name, shape, selected: Vec::new(), past: Vec::new(), at_ns: 0 }
    }

    /// Takes over the memory of `before`, which this evaluation replaces.
    pub fn go_on(
        &mut self,
        mut before: Evaluation,
        was: &ChannelRequest,
        is: &ChannelRequest,
        is_stopped: bool,
    ) {
        let is_same = self.parts.go_on(&mut before.parts, was, is, is_stopped);
        if is_same && was.selection == is.selection {
            (self.shape, self.selected, self.past) = (before.shape, before.selected, before.past);
            self.at_ns = before.at_ns;
        }
    }

    /// Whether its condition is true; `None` without a condition.
    #[must_use]
    pub fn is_true(&self) -> Option<bool> {
        self.parts.condition.as_ref().map(super::condition::State::is_true)
    }

    /// Makes a sample of this sweep.
    pub fn sample(&mut self, outcome: &mut Outcome, sweep: &Sweep<'_>, now: Duration) {
        let passed = self.choose(sweep);
        self.parts.signal(outcome, passed.iter().map(|(_, view)| *view), sweep.at_ns, now);
        if outcome.wanted.only_signals {
            return;
        }
        let left_out = u32::try_from(passed.len().saturating_sub(RECORDS_MAX)).unwrap_or(u32::MAX);
        let readings = passed.iter().take(RECORDS_MAX);
        let readings = readings.map(|(_, view)| Reading { metric: view.metric.clone(), value: view.value });
        match self.parts.scripted(readings.collect(), sweep.at_ns) {
            Ok((readings, figures)) if readings.is_empty() && figures.is_empty() => {
                outcome.empty += 1;
            }
            Ok((readings, figures)) => {
                let body = Body::Readings { sweep: sweep.number, readings, left_out, figures };
                outcome.push_budgeted(sweep.at_ns, body);
            }
            Err(error) => outcome.stop(error.to_string(), sweep.at_ns),
        }
    }

    /// The selected metrics that pass, with their positions among the selected.
    fn choose<'a>(&mut self, sweep: &Sweep<'a>) -> Vec<(usize, MetricView<'a>)> {
        self.take_shape(sweep.table.metrics());
        #[allow(clippy::cast_precision_loss)] // A time between two samples.
        let secs = sweep.at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        self.at_ns = sweep.at_ns;
        let (filter, slots) = (&self.parts.filter, self.parts.filter.slots());
        let mut passed = Vec::new();
        for (nth, place) in self.selected.iter().enumerate() {
            let view = view(sweep.table, *place);
            let past = &mut self.past[nth * slots..(nth + 1) * slots];
            if filter.passes(&view, past, secs, &()) {
                passed.push((nth, view));
            }
            filter.note_seen(&view, past);
        }
        if let Some((count, number)) = filter.top() {
            passed = keep_top(passed, count, |(_, view)| (number.get)(view));
        }
        for (nth, view) in &passed {
            filter.note_sent(view, &mut self.past[nth * slots..(nth + 1) * slots]);
        }
        passed
    }

    /// Applies the selection again if the metrics are not those of the previous sweep.
    fn take_shape(&mut self, metrics: &table::Metrics) {
        if Arc::ptr_eq(&self.shape, metrics) {
            return;
        }
        let slots = self.parts.filter.slots();
        let known: BTreeMap<&Metric, &[f64]> = match slots {
            0 => BTreeMap::new(),
            _ => {
                let before = self.selected.iter().map(|place| &*self.shape[*place]);
                before.zip(self.past.chunks_exact(slots)).collect()
            }
        };
        let is_meant = |metric: &Metric| self.name.as_ref().is_none_or(|name| name.matches(&metric.name));
        let selected: Vec<usize> = metrics
            .iter()
            .enumerate()
            .filter(|(_, metric)| is_meant(metric))
            .map(|(place, _)| place)
            .collect();
        let mut past = Vec::with_capacity(selected.len() * slots);
        for place in &selected {
            match known.get(&*metrics[*place]) {
                Some(values) => past.extend_from_slice(values),
                None => past.extend(std::iter::repeat_n(f64::NAN, slots)),
            }
        }
        (self.selected, self.past, self.shape) = (selected, past, Arc::clone(metrics));
    }
}

fn view(table: &Table, place: usize) -> MetricView<'_> {
    let value = table.values().get(place).copied().unwrap_or(Number::Real(f64::NAN));
    MetricView { metric: &table.metrics()[place], value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::subscription::{CompiledRequest, Subscription};
    use crate::sample::table::{Rows, metric};
    use wire::channel::{Kind, Selection, expression};
    use wire::sample::Semantics;
    use wire::time::Time;

    /// Sweeps of a second each over a host that has these metrics.
    struct Story {
        subscription: Subscription,
        rows: Rows,
        known: BTreeMap<String, Arc<Metric>>,
        swept: u64,
    }

    impl Story {
        fn new(name: Option<&str>, filter: &str, condition: Option<&str>) -> Story {
            let wanted = ChannelRequest {
                kind: Kind::Host,
                selection: Selection { metric: name.map(Into::into), ..Selection::default() },
                filter: expression::filter(filter).expect("understood"),
                condition: condition.map(|text| expression::condition(text).expect("understood")),
                ..ChannelRequest::default()
            };
            let compiled = CompiledRequest::new(wanted, || Duration::ZERO).expect("it can be used");
            let subscription = Subscription::new(compiled, Duration::ZERO);
            Story { subscription, rows: Rows::default(), known: BTreeMap::new(), swept: 0 }
        }

        /// Makes a sweep; returns the names of the metrics sent, and `true` or `false` for a signal.
        fn sweep(&mut self, values: &[(&str, f64)]) -> Vec<String> {
            self.swept += 1;
            for (name, value) in values {
                let known = self.known.entry((*name).to_owned());
                let metric = known.or_insert_with(|| metric(name, "", Semantics::Gauge, &[("of", "a")]));
                self.rows.push_real(metric, *value);
            }
            let table = self.rows.finish(Time::default());
            let now = Duration::from_secs(self.swept);
            let sweep = Sweep { number: self.swept, at_ns: self.swept * 1_000_000_000, table: &table };
            assert!(self.subscription.is_due(now));
            self.subscription.sample_host(&sweep, now);
            let of = |body: Body| -> Vec<String> {
                match body {
                    Body::Readings { readings, sweep, .. } => {
                        assert_eq!(sweep, self.swept);
                        readings.into_iter().map(|one| one.metric.name.to_string()).collect()
                    }
                    Body::Signal { is_true, .. } => vec![is_true.to_string()],
                    other @ (Body::Sample { .. }
                    | Body::Missed(_)
                    | Body::Quarantined(_)
                    | Body::Event(_)
                    | Body::Call(_)
                    | Body::Figures(_)) => panic!("{other:?}"),
                }
            };
            self.subscription.take(usize::MAX).entries().flat_map(|entry| of(entry.body)).collect()
        }
    }

    #[test]
    fn a_metric_is_chosen_by_its_name_and_compared_with_what_it_was() {
        let mut story = Story::new(Some("load?"), "value changes by 1", None);
        assert_eq!(story.sweep(&[("load1", 1.0), ("load5", 1.0), ("load15", 9.0)]), ["load1", "load5"]);
        assert_eq!(story.sweep(&[("load1", 1.5), ("load5", 3.0), ("load15", 1.0)]), ["load5"]);
        assert_eq!(story.sweep(&[("load1", 2.5), ("load5", 3.0), ("load15", 1.0)]), ["load1"], "it adds up");
        let mut story = Story::new(None, "rate of value >= 2", None);
        assert!(story.sweep(&[("a", 1.0), ("b", 1.0)]).is_empty());
        assert_eq!(story.sweep(&[("a", 3.0), ("b", 2.0)]), ["a"]);
        let mut story = Story::new(None, "labels = \"of=a\" top 2 by value", None);
        assert_eq!(story.sweep(&[("a", 1.0), ("b", 3.0), ("c", 2.0)]), ["b", "c"]);
    }

    #[test]
    fn what_stays_keeps_its_past_though_others_come_and_go() {
        let mut story = Story::new(None, "rate of value >= 2", None);
        story.sweep(&[("a", 1.0), ("b", 1.0)]);
        assert_eq!(story.sweep(&[("b", 5.0), ("c", 9.0)]), ["b"], "c has no past");
        assert_eq!(story.sweep(&[("a", 9.0), ("b", 5.0), ("c", 12.0)]), ["c"], "a has lost its own");
    }

    #[test]
    fn a_condition_is_of_what_passed() {
        let mut story = Story::new(None, "name ~ \"^a\" and value > 1", Some("sum value > 5 until 3"));
        assert_eq!(story.sweep(&[("a1", 2.0), ("a2", 2.0), ("b", 9.0)]), ["a1", "a2"]);
        assert_eq!(story.sweep(&[("a1", 4.0), ("a2", 2.0), ("b", 9.0)]), ["true", "a1", "a2"]);
        assert_eq!(story.sweep(&[("a1", 4.0), ("a2", 1.0), ("b", 9.0)]), ["a1"], "above where it ends");
        assert_eq!(story.sweep(&[("a1", 1.0), ("a2", 1.0), ("b", 9.0)]), ["false"]);
    }
}
