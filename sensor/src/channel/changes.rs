//! Difference between two samples, for a consumer that requested only changes: tracks what was sent to it,
//! and computes what to send next.
//!
//! Pure. Invariants: a consumer that applies the samples in order to the last whole sample has exactly the
//! processes that pass the filter, in their current state; after an entry was missed, the next sample is
//! whole.
//! Not here: which processes pass (`predicate`), when a sample is due (`subscription`).

use super::memory::PassedProcess;
use crate::process::table::Table;
use std::time::Duration;
use wire::process::ProcessKey;

/// Longest time between two whole samples: a consumer that lost an answer on the way is complete again after
/// it.
pub const WHOLE_EVERY: Duration = Duration::from_secs(10);

/// What the consumer has, by position in the table.
#[derive(Debug, Default)]
pub struct SentState {
    keys: Vec<Option<ProcessKey>>,
    /// The last sweep that was sent; 0 before the first, or when the next sample must be whole.
    sweep: u64,
    whole_at: Duration,
    missed_total: u64,
    revision: u64,
}

/// Changes to send.
#[derive(Debug, Default, PartialEq)]
pub struct Difference {
    /// Processes that pass the filter and have changed since they were last sent, or were not sent yet.
    pub records: Vec<PassedProcess>,
    /// Process ids that were sent and have since ended, or no longer pass the filter.
    pub gone: Vec<u32>,
}

impl SentState {
    /// Whether the sample at `now` must be whole. `missed_total` is the number of entries missed since the
    /// start, and `revision` counts the alterations of the subscription.
    #[must_use]
    pub fn must_be_whole(&self, now: Duration, missed_total: u64, revision: u64) -> bool {
        self.sweep == 0
            || now.saturating_sub(self.whole_at) >= WHOLE_EVERY
            || (missed_total, revision) != (self.missed_total, self.revision)
    }

    /// Records that all passing processes are sent.
    pub fn send_all(
        &mut self,
        table: &Table,
        passed: &[PassedProcess],
        now: Duration,
        missed_total: u64,
        revision: u64,
    ) {
        self.keys.clear();
        self.keys.resize(table.rows().len(), None);
        for (place, _) in passed {
            self.keys[*place] = table.rows()[*place].as_ref().map(|process| process.key);
        }
        (self.sweep, self.whole_at) = (table.sweep().number, now);
        (self.missed_total, self.revision) = (missed_total, revision);
    }

    /// Discards what was sent before: the next sample must be whole.
    pub fn forget(&mut self) {
        self.sweep = 0;
    }

    /// Positions that may have to be sent: those that the table changed since the last sample.
    pub fn places<'a>(&self, table: &'a Table) -> impl Iterator<Item = usize> + Clone + use<'a> {
        table.changed_since(self.sweep)
    }

    /// Computes the changes from all processes that pass, in any order.
    pub fn differ_from_all(&mut self, table: &Table, passed: &[PassedProcess]) -> Difference {
        let mut passing = vec![None; self.keys.len().max(table.rows().len())];
        for one in passed {
            passing[one.0] = Some(*one);
        }
        let before = self.sweep;
        self.differ(table, passing.into_iter().enumerate(), |place| table.has_changed_since(before, place))
    }

    /// Computes the changes from the passing processes at changed positions, in ascending order. Whether the
    /// others pass must not have changed.
    pub fn differ_from_changed(&mut self, table: &Table, passed: &[PassedProcess]) -> Difference {
        let mut passed = passed.iter().copied().peekable();
        let passing =
            self.places(table).map(|place| (place, passed.next_if(|one| one.0 == place))).collect::<Vec<_>>();
        self.differ(table, passing.into_iter(), |_| true)
    }

    /// Computes the changes from each position with the process that passes there.
    fn differ(
        &mut self,
        table: &Table,
        places: impl Iterator<Item = (usize, Option<PassedProcess>)>,
        is_changed: impl Fn(usize) -> bool,
    ) -> Difference {
        let mut difference = Difference::default();
        for (place, passing) in places {
            if place >= self.keys.len() {
                self.keys.resize(place + 1, None);
            }
            let row = table.rows().get(place).and_then(Option::as_ref);
            let key = passing.and(row).map(|process| process.key);
            let before = std::mem::replace(&mut self.keys[place], key);
            if let Some(before) = before.filter(|before| key != Some(*before)) {
                difference.gone.push(before.pid);
            }
            if let Some(one) = passing.filter(|_| key != before || is_changed(place)) {
                difference.records.push(one);
            }
        }
        self.sweep = table.sweep().number;
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use wire::process::Process;

    /// Processes with an even memory size pass.
    fn passing(table: &Table, places: impl Iterator<Item = usize>) -> Vec<PassedProcess> {
        let passes = |place: &usize| {
            table.rows().get(*place).and_then(Option::as_ref).is_some_and(|one| one.rss_kib % 2 == 0)
        };
        places.filter(passes).map(|place| (place, None)).collect()
    }

    fn apply(known: &mut BTreeMap<u32, Process>, table: &Table, difference: &Difference) {
        for pid in &difference.gone {
            assert!(known.remove(pid).is_some(), "{pid} was not known");
        }
        for (place, _) in &difference.records {
            let process = table.rows()[*place].clone().expect("it passes");
            known.insert(process.key.pid, process);
        }
    }

    proptest! {
        #[test]
        fn applied_changes_give_the_records_that_pass(
            steps in prop::collection::vec((0..8_u32, 0..2_u64, 0..4_u64, 0..5_u8), 1..400),
        ) {
            let mut table = Table::default();
            let mut tellings = [SentState::default(), SentState::default()];
            let mut known = [BTreeMap::new(), BTreeMap::new()];
            table.begin(1, 1, Coverage::Changes);
            for (number, (pid, start_ns, rss_kib, what)) in (2..).zip(steps) {
                match what {
                    0 => table.remove_process(wire::process::ProcessKey { pid, start_ns }),
                    1..4 => {
                        let key = wire::process::ProcessKey { pid, start_ns };
                        table.set(Process { key, rss_kib, ..Process::default() });
                    }
                    _ => {
                        table.end(0);
                        let all = passing(&table, 0..table.rows().len());
                        if tellings[0].must_be_whole(Duration::ZERO, 0, 0) {
                            for (sent, known) in tellings.iter_mut().zip(&mut known) {
                                sent.send_all(&table, &all, Duration::ZERO, 0, 0);
                                apply(known, &table, &Difference { records: all.clone(), gone: Vec::new() });
                            }
                        } else {
                            let of_all = tellings[0].differ_from_all(&table, &all);
                            let changed = passing(&table, tellings[1].places(&table));
                            let of_changed = tellings[1].differ_from_changed(&table, &changed);
                            prop_assert_eq!(&of_all, &of_changed);
                            apply(&mut known[0], &table, &of_all);
                            apply(&mut known[1], &table, &of_changed);
                        }
                        let expected: BTreeMap<u32, Process> = all
                            .iter()
                            .filter_map(|(place, _)| table.rows()[*place].clone())
                            .map(|process| (process.key.pid, process))
                            .collect();
                        prop_assert_eq!(&known[0], &expected);
                        prop_assert_eq!(&known[1], &expected);
                        table.begin(number, number, Coverage::Changes);
                    }
                }
            }
        }
    }

    #[test]
    fn a_record_that_starts_to_pass_is_sent_though_it_is_as_it_was() {
        let mut table = Table::default();
        table.begin(1, 1, Coverage::All);
        for pid in [7, 8] {
            let key = wire::process::ProcessKey { pid, start_ns: 0 };
            table.set(Process { key, ..Process::default() });
        }
        table.end(0);
        let mut sent = SentState::default();
        sent.send_all(&table, &[(0, None)], Duration::ZERO, 0, 0);
        table.begin(2, 2, Coverage::Changes);
        table.end(0);
        let difference = sent.differ_from_all(&table, &[(1, None)]);
        assert_eq!(difference, Difference { records: vec![(1, None)], gone: vec![7] });
    }

    #[test]
    fn what_was_left_out_or_altered_makes_the_next_one_whole() {
        let mut table = Table::default();
        table.begin(1, 1, Coverage::All);
        table.end(0);
        let mut sent = SentState::default();
        let now = Duration::from_secs(5);
        assert!(sent.must_be_whole(now, 0, 0), "nothing is known");
        sent.send_all(&table, &[], now, 3, 1);
        assert!(!sent.must_be_whole(now, 3, 1));
        assert!(sent.must_be_whole(now, 4, 1), "one was missed");
        assert!(sent.must_be_whole(now, 3, 2), "it was altered");
        assert!(sent.must_be_whole(now + WHOLE_EVERY, 3, 1), "it is long ago");
        sent.forget();
        assert!(sent.must_be_whole(now, 3, 1));
    }
}
