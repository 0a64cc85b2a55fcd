//! CPU time by core and mode, from the `cpu` lines of `/proc/stat`.
//!
//! Pure. As in node_exporter, guest time has its own metric and is also part of `user` and `nice`. Kernels
//! let single modes go back a little (idle and I/O wait are estimates), and a core that is switched off and
//! on starts again from zero. A counter must not go back, so after a small step back the highest value is
//! reported.
//! Not here: reading the file (`stat`).

use super::column::{Column, Raw};
use super::fields::{self, Malformed};
use super::metric_cache::MetricCache;
use crate::sample::table::Rows;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// The modes in the kernel's order; the guest modes follow them.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const GUEST_MODES: [&str; 2] = ["user", "nice"];
/// Numbers in a line.
pub const COLUMNS: usize = MODES.len() + GUEST_MODES.len();

const SECONDS: Column = Column::counter("node_cpu_seconds_total", "seconds", Raw::Ticks);
const GUEST_SECONDS: Column = Column::counter("node_cpu_guest_seconds_total", "seconds", Raw::Ticks);

/// Largest step back, in ticks, that counts as inaccuracy of the kernel; a larger one means that the core
/// restarted.
const STEP_BACK_MAX_TICKS: u64 = 300;

/// Time of one core by mode, in ticks since boot: `MODES`, then `GUEST_MODES`.
pub type Ticks = [u64; COLUMNS];

/// Parses the line of a single core (`cpu3 …`) into its number and times; `None` for other lines. Modes that
/// an old kernel does not have are 0.
///
/// # Errors
/// If the line starts like that of a core but is malformed.
pub fn parse(line: &[u8]) -> Result<Option<(&[u8], Ticks)>, Malformed> {
    let Some(rest) = line.strip_prefix(b"cpu") else { return Ok(None) };
    let mut fields = fields::fields(rest);
    let is_total = rest.first().is_none_or(u8::is_ascii_whitespace);
    let (false, Some(core)) = (is_total, fields.next()) else { return Ok(None) };
    let malformed = || Malformed::new("a core's number and its times in ticks", line);
    fields::whole(core).ok_or_else(malformed)?;
    let mut ticks = [0; COLUMNS];
    let mut found = 0;
    // A newer kernel may add columns; they are skipped.
    for (tick, field) in ticks.iter_mut().zip(fields) {
        *tick = fields::whole(field).ok_or_else(malformed)?;
        found += 1;
    }
    // Every kernel has user, nice, system and idle.
    if found < 4 { Err(malformed()) } else { Ok(Some((core, ticks))) }
}

/// The cores of the last sweep.
#[derive(Debug, Default)]
pub struct Cores(MetricCache<Core>);

#[derive(Debug)]
struct Core {
    metrics: [Arc<Metric>; COLUMNS],
    highest: Ticks,
}

impl Cores {
    /// Starts a listing of cores.
    pub fn begin(&mut self) {
        self.0.begin();
    }

    /// Ends the listing; forgets the cores that were not listed.
    pub fn end(&mut self) {
        self.0.end();
    }

    /// Adds the times of a core to `out`.
    pub fn add_rows(&mut self, core: &[u8], ticks: Ticks, out: &mut Rows) {
        let Some(cached) = self.0.next(core, || Core::new(&String::from_utf8_lossy(core))) else { return };
        cached.highest = onward(cached.highest, ticks);
        for (metric, ticks) in cached.metrics.iter().zip(cached.highest) {
            out.push(metric, Raw::Ticks.value(ticks));
        }
    }
}

impl Core {
    fn new(core: &str) -> Core {
        debug_assert_eq!(SECONDS.semantics, Semantics::Counter);
        let metrics = std::array::from_fn(|at| match MODES.get(at) {
            Some(mode) => SECONDS.metric(&[("cpu", core), ("mode", mode)]),
            None => GUEST_SECONDS.metric(&[("cpu", core), ("mode", GUEST_MODES[at - MODES.len()])]),
        });
        Core { metrics, highest: [0; COLUMNS] }
    }
}

/// Returns the ticks to report after `before` when the kernel reports `now`.
fn onward(before: Ticks, now: Ticks) -> Ticks {
    let restarted =
        before.iter().zip(now).any(|(before, now)| before.saturating_sub(now) > STEP_BACK_MAX_TICKS);
    if restarted { now } else { std::array::from_fn(|at| before[at].max(now[at])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cores_are_read() {
        let check = |line: &str, expected: Option<(&str, Ticks)>| {
            let read = parse(line.as_bytes()).expect("well formed");
            assert_eq!(read, expected.map(|(core, ticks)| (core.as_bytes(), ticks)), "{line}");
        };
        check("cpu0 1 2 3 4 5 6 7 8 9 10", Some(("0", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])));
        check("cpu127 1 2 3 4 5 6 7 8 9 10 11", Some(("127", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])));
        check("cpu1 1 2 3 4", Some(("1", [1, 2, 3, 4, 0, 0, 0, 0, 0, 0])));
        check("cpu  1 2 3 4 5 6 7 8 9 10", None);
        check("cpu", None);
        check("intr 1 2 3", None);
        for bad in ["cpu0", "cpu0 1 2 3", "cpux 1 2 3 4", "cpu0 1 2 3 -4", "cpu0 1 2 3 18446744073709551616"]
        {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_small_step_back_is_held_and_a_large_one_is_a_new_beginning() {
        let ticks = |idle: u64, iowait: u64| [10, 0, 0, idle, iowait, 0, 0, 0, 0, 0];
        assert_eq!(onward(ticks(1000, 50), ticks(1010, 49)), ticks(1010, 50));
        assert_eq!(onward(ticks(1000, 50), ticks(900, 51)), ticks(1000, 51));
        assert_eq!(onward(ticks(1000, 50), ticks(3, 1)), ticks(3, 1));
    }
}
