//! Recent CPU usage of each process: its CPU time now compared with that about a second ago.
//!
//! Pure. Rule: the usage is over at least [`SPAN_MIN_NS`], whatever the rate, so that it does not depend on a
//! single tick; for a younger process it is over its lifetime.
//! Not here: CPU usage at the full rate (subscriptions compute it from the sweeps).

use super::table::Table;
use wire::process::{Process, ProcessKey};

/// Shortest time over which CPU usage is computed, in nanoseconds.
pub const SPAN_MIN_NS: u64 = 1_000_000_000;

/// CPU times of two earlier sweeps.
#[derive(Debug, Default)]
pub struct Recent {
    /// The sweep to compare with.
    base: Snapshot,
    /// The next base, once it is old enough.
    next: Snapshot,
}

#[derive(Debug, Default)]
struct Snapshot {
    at_ns: u64,
    /// Process and CPU time, by position in the table.
    times: Vec<(ProcessKey, u64)>,
}

impl Recent {
    /// Takes in a sweep that has ended.
    pub fn update(&mut self, table: &Table) {
        let now_ns = table.sweep().begin_ns;
        if now_ns.saturating_sub(self.next.at_ns) < SPAN_MIN_NS {
            return;
        }
        std::mem::swap(&mut self.base, &mut self.next);
        self.next.at_ns = now_ns;
        self.next.times.clear();
        let time = |row: &Option<Process>| {
            row.as_ref().map_or_else(Default::default, |row| (row.key, row.usage.cpu_ns))
        };
        self.next.times.extend(table.rows().iter().map(time));
    }

    /// CPU usage of the process at this position, in cores; `None` while it is unknown.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn share(&self, table: &Table, place: usize) -> Option<f64> {
        let row = table.rows().get(place)?.as_ref()?;
        let now_ns = table.sweep().begin_ns;
        // Just after the bases were swapped, the newer one is too recent.
        let base =
            if now_ns.saturating_sub(self.next.at_ns) >= SPAN_MIN_NS { &self.next } else { &self.base };
        let then = base.times.get(place).filter(|(key, _)| *key == row.key);
        let (from_ns, cpu_ns) = then.map_or((row.key.start_ns, 0), |(_, cpu_ns)| (base.at_ns, *cpu_ns));
        // The process is older than what is known of it, so its recent usage is unknown.
        if then.is_none() && row.key.start_ns < base.at_ns.saturating_sub(SPAN_MIN_NS) || base.at_ns == 0 {
            return None;
        }
        let span_ns = now_ns.checked_sub(from_ns).filter(|span| *span > 0)?;
        Some(row.usage.cpu_ns.saturating_sub(cpu_ns) as f64 / span_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Coverage;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sweep(table: &mut Table, recent: &mut Recent, at_ns: u64, times: &[(u32, u64, u64)]) {
        table.begin(at_ns / 1_000_000, at_ns, Coverage::All);
        for (pid, start_ns, cpu_ns) in times {
            let mut process =
                Process { key: ProcessKey { pid: *pid, start_ns: *start_ns }, ..Process::default() };
            process.usage.cpu_ns = *cpu_ns;
            table.set(process);
        }
        table.end(0);
        recent.update(table);
    }

    #[test]
    fn a_share_is_of_at_least_a_second() {
        let (mut table, mut recent) = (Table::default(), Recent::default());
        for step in 0..64 * 5 {
            // Half of a core, in bursts: a single sweep sees all or nothing of one.
            let at_ns = 100 * SECOND + step * SECOND / 64;
            sweep(
                &mut table,
                &mut recent,
                at_ns,
                &[(1, 0, step / 8 % 2 * (SECOND / 8) + step / 16 * (SECOND / 8))],
            );
            if let Some(share) = recent.share(&table, 0) {
                assert!((share - 0.5).abs() < 0.15, "{share} at step {step}");
                assert!(step > 60);
            }
        }
        assert!(recent.share(&table, 0).is_some());
    }

    #[test]
    fn of_a_young_process_it_is_its_life() {
        let (mut table, mut recent) = (Table::default(), Recent::default());
        for second in 10..13 {
            sweep(&mut table, &mut recent, second * SECOND, &[(1, 0, 0)]);
        }
        let born_ns = 12 * SECOND + SECOND / 4;
        sweep(&mut table, &mut recent, 12 * SECOND + SECOND / 2, &[(1, 0, 0), (2, born_ns, SECOND / 4)]);
        assert_eq!(recent.share(&table, 1), Some(1.0));
        assert_eq!(recent.share(&table, 2), None, "no such place");
    }
}
