//! Collectors: sources of metrics, run together in a sweep.
//!
//! Rule: a collector that fails or panics reports that in its own metrics and stops no other. Each sweep
//! reports the duration and the success of every collector, under node_exporter's names.
//! Not here: what is collected (`host`), when (`schedule`).

use super::host::fields::Malformed;
use super::table::{self, Rows, Table};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::sample::{Metric, Semantics};
use wire::time::Time;

/// Both clocks at the start of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Calendar time.
    pub calendar: Time,
    /// Time since a fixed start; never goes back.
    pub running: Duration,
}

/// Why a collector returned no values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This host does not have the source (an older kernel, a container). The collector is not run again.
    #[error("not available on this host: {0}")]
    Unavailable(String),
    /// The operating system refused to read the file.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        error: io::Error,
    },
    /// The text of the kernel has an unexpected format.
    #[error("{}: {malformed}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        malformed: Malformed,
    },
}

/// A source of metrics.
pub trait Collector: Send {
    /// Its name in the metrics about collectors; unique.
    fn name(&self) -> &'static str;

    /// Adds the current values to `out`. A collector adds the same metrics in the same order at every sweep,
    /// as far as the host allows: that makes a sweep cheap.
    ///
    /// # Errors
    /// If a source cannot be read or parsed. The caller then removes the values added before.
    fn collect(&mut self, now: Now, out: &mut Rows) -> Result<(), Error>;
}

/// All collectors of a host, with the metrics about them.
pub struct Collectors {
    slots: Vec<Slot>,
    rows: Rows,
}

struct Slot {
    collector: Box<dyn Collector>,
    state: State,
    duration: Arc<Metric>,
    success: Arc<Metric>,
}

/// Outcome of a collector's last run; logged when it changes, not at every sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Untried,
    Good,
    Failing,
    /// Never run again: this host does not have the source, or the collector panicked and its state cannot be
    /// trusted.
    Retired,
}

impl Collectors {
    /// Creates the set; collectors run in this order.
    #[must_use]
    pub fn new(collectors: Vec<Box<dyn Collector>>) -> Collectors {
        Collectors { slots: collectors.into_iter().map(Slot::new).collect(), rows: Rows::default() }
    }

    /// Runs one sweep that started at `now`; `running` reads the clock of [`Now::running`].
    pub fn sweep(&mut self, now: Now, running: impl Fn() -> Duration) -> Table {
        let mut began = running();
        let mut durations = [Duration::ZERO; COLLECTORS_MAX];
        for (slot, duration) in self.slots.iter_mut().zip(&mut durations) {
            slot.collect(now, &mut self.rows);
            let ended = running();
            *duration = ended.saturating_sub(began);
            began = ended;
        }
        for (slot, duration) in self.slots.iter().zip(durations) {
            // Whole microseconds: more digits are noise and cost space in the history.
            self.rows.push_real(&slot.duration, Duration::from_micros(micros(duration)).as_secs_f64());
            self.rows.push_whole(&slot.success, u64::from(slot.state == State::Good));
        }
        self.rows.finish(now.calendar)
    }

    /// Number of values dropped because a table was full, since the start.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.rows.refused_total()
    }
}

/// Limit on the collectors whose duration is reported: more than exist.
const COLLECTORS_MAX: usize = 32;

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Slot {
    fn new(collector: Box<dyn Collector>) -> Slot {
        let labels = [("collector", collector.name())];
        Slot {
            duration: table::metric(
                "node_scrape_collector_duration_seconds",
                "seconds",
                Semantics::Gauge,
                &labels,
            ),
            success: table::metric("node_scrape_collector_success", "", Semantics::State, &labels),
            collector,
            state: State::Untried,
        }
    }

    fn collect(&mut self, now: Now, rows: &mut Rows) {
        if self.state == State::Retired {
            return;
        }
        let before = rows.len();
        let collector = &mut self.collector;
        // A collector is not used again after a panic, so a broken state does no harm; the rows are truncated
        // to their length before the run.
        let outcome = catch_unwind(AssertUnwindSafe(|| collector.collect(now, rows)));
        let state = match &outcome {
            Ok(Ok(())) => State::Good,
            Ok(Err(Error::Unavailable(_))) | Err(_) => State::Retired,
            Ok(Err(Error::Read { .. } | Error::Malformed { .. })) => State::Failing,
        };
        if state != State::Good {
            rows.truncate(before);
        }
        if state != self.state {
            self.log_outcome(outcome.as_ref().map_err(|_| ()));
        }
        self.state = state;
    }

    fn log_outcome(&self, outcome: Result<&Result<(), Error>, ()>) {
        let collector = self.collector.name();
        match outcome {
            Ok(Ok(())) if self.state == State::Untried => {}
            Ok(Ok(())) => tracing::info!(collector, "collector works again"),
            Ok(Err(reason @ Error::Unavailable(_))) => {
                tracing::info!(collector, %reason, "collector left out")
            }
            Ok(Err(error)) => {
                tracing::warn!(collector, %error, "collector failed; tried again at every sweep")
            }
            Err(()) => tracing::error!(collector, "collector panicked; left out until the next start"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::Number;

    struct Scripted {
        name: &'static str,
        metric: Arc<Metric>,
        sweeps: u64,
        act: fn(u64) -> Result<(), Error>,
    }

    impl Collector for Scripted {
        fn name(&self) -> &'static str {
            self.name
        }
        fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
            out.push_whole(&self.metric, self.sweeps);
            self.sweeps += 1;
            (self.act)(self.sweeps)
        }
    }

    fn scripted(name: &'static str, act: fn(u64) -> Result<(), Error>) -> Box<dyn Collector> {
        let metric = table::metric(name, "", Semantics::Gauge, &[]);
        Box::new(Scripted { name, metric, sweeps: 0, act })
    }

    fn success(table: &Table, name: &str) -> Option<Number> {
        table.get("node_scrape_collector_success", &[("collector", name)])
    }

    #[test]
    fn a_failing_collector_reports_itself_and_stops_no_other() {
        let mut collectors = Collectors::new(vec![
            scripted("first", |_| Ok(())),
            scripted("broken", |sweep| match sweep {
                2 => Ok(()),
                _ => Err(Error::Read { path: "/x".into(), error: io::ErrorKind::PermissionDenied.into() }),
            }),
            scripted("wild", |_| panic!("not my day")),
            scripted("absent", |_| Err(Error::Unavailable("no such file".into()))),
            scripted("last", |_| Ok(())),
        ]);
        for (sweep, broken) in [(0, 0), (1, 1), (2, 0)] {
            let table = collectors.sweep(Now::default(), Duration::default);
            assert_eq!(table.get("first", &[]), Some(Number::Whole(sweep)));
            assert_eq!(table.get("last", &[]), Some(Number::Whole(sweep)));
            assert_eq!(table.get("broken", &[]), (broken == 1).then_some(Number::Whole(sweep)));
            assert_eq!((table.get("wild", &[]), table.get("absent", &[])), (None, None));
            assert_eq!(success(&table, "broken"), Some(Number::Whole(broken)));
            for (name, good) in [("first", 1), ("wild", 0), ("absent", 0), ("last", 1)] {
                assert_eq!(success(&table, name), Some(Number::Whole(good)), "{name}");
            }
        }
    }

    #[test]
    fn each_collector_reports_how_long_it_took() {
        let mut collectors = Collectors::new(vec![scripted("a", |_| Ok(())), scripted("b", |_| Ok(()))]);
        let readings = std::cell::Cell::new(0);
        let clock = || Duration::from_millis(readings.replace(readings.get() + 10));
        let table = collectors.sweep(Now::default(), clock);
        for name in ["a", "b"] {
            let duration = table.get("node_scrape_collector_duration_seconds", &[("collector", name)]);
            assert_eq!(duration, Some(Number::Real(0.01)), "{name}");
        }
    }
}
