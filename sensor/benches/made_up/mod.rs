//! Simulated host with two hundred metrics: a third is constant, a third grows evenly and a third is noisy.
//!
//! Pure. A real host is quieter: most of its metrics are constant most of the time, so a measurement with
//! this host is no less than the cost of a real domain.
//! Not here: when it is swept (the benchmarks).

use sensor::sample::table::{Rows, Table, metric};
use std::sync::Arc;
use wire::sample::{Metric, Semantics};
use wire::time::Time;

/// Metrics of a host.
pub(crate) const METRICS: u64 = 200;

/// Names shared by all simulated hosts of a process.
#[derive(Clone)]
pub(crate) struct Names(Arc<[Arc<Metric>]>);

impl Default for Names {
    fn default() -> Names {
        let name = |at| format!("node_metric_{at}_total");
        let metrics =
            (0..METRICS).map(|at| metric(&name(at), "bytes", Semantics::Counter, &[("device", "d0")]));
        Names(metrics.collect())
    }
}

/// One host.
pub(crate) struct Host {
    names: Names,
    rows: Rows,
    nth: u64,
}

impl Host {
    /// Creates the host with this number; each number has its own noise.
    pub(crate) fn new(names: &Names, nth: u64) -> Host {
        Host { names: names.clone(), rows: Rows::default(), nth }
    }

    /// Sweeps the host after `second` seconds, at `time`.
    pub(crate) fn sweep(&mut self, second: u64, time: Time) -> Table {
        for (at, metric) in (0u64..).zip(self.names.0.iter()) {
            let value = match at % 3 {
                0 => at * 1000,
                1 => second * at,
                _ => second * 100_000 + (second * 7919 + at * 104_729 + self.nth * 1_299_709) % 65_536,
            };
            self.rows.push_whole(metric, value);
        }
        self.rows.finish(time)
    }
}
