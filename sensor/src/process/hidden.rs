//! Hidden processes: processes that `/proc` lists but the walk over all tasks does not show, because some
//! hosts hide a process of their own from kernel programs. They are read from `/proc`.
//!
//! Shell. Rule: a process counts as hidden when two checks, [`LOOK_AFTER_NS`] apart, found it listed and not
//! shown; a single check would also find processes that started just after the walk.

use super::procfs::Procfs;
use super::table::Table;
use std::collections::BTreeSet;
use std::path::Path;

/// Time between two checks, in nanoseconds.
const LOOK_AFTER_NS: u64 = 2_000_000_000;

/// Ids of hidden processes, and the reader of `/proc`.
pub(super) struct Hidden {
    procfs: Procfs,
    looked_ns: u64,
    suspected: BTreeSet<u32>,
    hidden: BTreeSet<u32>,
}

impl Hidden {
    pub(super) fn new(proc: &Path) -> Hidden {
        Hidden {
            procfs: Procfs::new(proc),
            looked_ns: 0,
            suspected: BTreeSet::new(),
            hidden: BTreeSet::new(),
        }
    }

    /// Number of processes that `/proc` lists.
    pub(super) fn listed_len(&self) -> usize {
        self.procfs.list().map_or(0, |listed| listed.len())
    }

    /// Adds the hidden processes to a sweep over all processes, before its end.
    pub(super) fn add_to(&mut self, table: &mut Table) {
        let now_ns = table.sweep().begin_ns;
        if now_ns.saturating_sub(self.looked_ns) >= LOOK_AFTER_NS {
            self.looked_ns = now_ns;
            self.update(table);
        }
        // A process that is gone cannot be read.
        self.hidden.retain(|pid| match self.procfs.process(*pid, now_ns) {
            Some(process) => {
                table.set(process);
                true
            }
            None => false,
        });
    }

    fn update(&mut self, table: &Table) {
        // If `/proc` cannot be listed, nothing counts as hidden until the next check.
        let listed = self.procfs.list().unwrap_or_default();
        let missing: BTreeSet<u32> = listed.into_iter().filter(|pid| !table.has_seen(*pid)).collect();
        self.hidden = missing.intersection(&self.suspected).copied().collect();
        self.suspected = missing;
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Coverage;
    use super::*;

    #[test]
    fn what_is_listed_twice_and_never_shown_is_read() {
        let (mut hidden, mut table) = (Hidden::new(Path::new("/proc")), Table::default());
        let own = std::process::id();
        let mut sweep = |number: u64, at_ns: u64| {
            table.begin(number, at_ns, Coverage::All);
            hidden.add_to(&mut table);
            table.end(0);
            table.get(own).map(|process| process.key.pid)
        };
        assert_eq!(sweep(1, 10 * LOOK_AFTER_NS), None, "it may have started just now");
        assert_eq!(sweep(2, 10 * LOOK_AFTER_NS + 1), None);
        assert_eq!(sweep(3, 11 * LOOK_AFTER_NS), Some(own));
        assert_eq!(sweep(4, 11 * LOOK_AFTER_NS + 1), Some(own), "at every sweep from then on");
        assert_eq!(sweep(5, 12 * LOOK_AFTER_NS), Some(own));
    }
}
