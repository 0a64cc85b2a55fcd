//! The loaded jobs, and their order in the table.
//!
//! Pure. Invariant: each job is there once, and the order names every row once. Rule: rows that arrive are merged into
//! the order, so that a page costs no sort of all.

use super::completion::Values;
use super::sort::Sort;
use super::{JobKey, ROWS_MAX, Row};
use std::collections::{BTreeMap, BTreeSet};
use wire::call::State;
use wire::time::Time;

/// The loaded jobs.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
    by_key: BTreeMap<JobKey, u32>,
    /// Numbers of rows, as they are shown.
    order: Vec<u32>,
    sort: Sort,
    values: Values,
    /// Rows that are reduced.
    reduced: usize,
}

impl Rows {
    /// No rows, sorted as before.
    #[must_use]
    pub fn cleared(&self) -> Rows {
        Rows { sort: self.sort, ..Rows::default() }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX
    }

    #[must_use]
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// The values that the rows have, for the completion.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Rows that belong to other users, and lack what only those may see.
    #[must_use]
    pub fn reduced(&self) -> usize {
        self.reduced
    }

    /// The row at a position of the table.
    #[must_use]
    pub fn at(&self, position: usize) -> Option<&Row> {
        self.rows.get(*self.order.get(position)? as usize)
    }

    #[must_use]
    pub fn get(&self, key: &JobKey) -> Option<&Row> {
        self.rows.get(*self.by_key.get(key)? as usize)
    }

    /// Position of a job in the table.
    #[must_use]
    pub fn position(&self, key: &JobKey) -> Option<usize> {
        let number = self.by_key.get(key)?;
        self.order.iter().position(|at| at == number)
    }

    /// The rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.order.iter().filter_map(|number| self.rows.get(*number as usize))
    }

    /// Sort by another column.
    pub fn set_sort(&mut self, sort: Sort, now: Time) {
        self.sort = sort;
        let rows = &self.rows;
        self.order
            .sort_unstable_by(|one, other| sort.compare(&rows[*one as usize], &rows[*other as usize], now));
    }

    /// Add jobs, or replace those that are there; of more than [`ROWS_MAX`] the first are stored.
    pub fn put(&mut self, rows: Vec<Row>, now: Time) {
        let mut changed: BTreeSet<u32> = BTreeSet::new();
        for row in rows {
            self.values.add(&row);
            let number = match self.by_key.get(&row.key) {
                Some(&number) => number,
                None if self.is_full() => continue,
                None => {
                    let number = u32::try_from(self.rows.len()).expect("it is bounded");
                    self.by_key.insert(row.key.clone(), number);
                    self.reduced += usize::from(row.is_reduced);
                    self.rows.push(row);
                    changed.insert(number);
                    continue;
                }
            };
            let known = &mut self.rows[number as usize];
            if *known != row {
                *known = row;
                changed.insert(number);
            }
        }
        self.merge(changed, now);
    }

    /// Remove jobs that wait or run, but for these: they are there no longer.
    pub fn retain_open(&mut self, open: &BTreeSet<JobKey>, now: Time) {
        let is_gone = |row: &Row| row.state != State::Ended && !open.contains(&row.key);
        if self.rows.iter().any(is_gone) {
            let mut remaining = self.cleared();
            let rows = std::mem::take(&mut self.rows);
            remaining.put(rows.into_iter().filter(|row| !is_gone(row)).collect(), now);
            *self = remaining;
        }
    }

    /// Put rows into their places in the order.
    fn merge(&mut self, changed: BTreeSet<u32>, now: Time) {
        if changed.is_empty() {
            return;
        }
        let (rows, sort) = (&self.rows, self.sort);
        let compare =
            |one: &u32, other: &u32| sort.compare(&rows[*one as usize], &rows[*other as usize], now);
        let mut new: Vec<u32> = changed.iter().copied().collect();
        new.sort_unstable_by(compare);
        let mut merged = Vec::with_capacity(rows.len());
        let mut new = new.into_iter().peekable();
        for number in self.order.iter().copied().filter(|number| !changed.contains(number)) {
            while let Some(next) = new.next_if(|next| compare(next, &number).is_lt()) {
                merged.push(next);
            }
            merged.push(number);
        }
        merged.extend(new);
        self.order = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::sort::Column;
    use wire::api::UnixTime;
    use wire::api::jobs::Job;

    const NOW: Time = Time::from_micros(9_000_000_000);

    fn row(number: u32, submitted: i64, state: State) -> Row {
        let submitted = Some(UnixTime(Time::from_micros(submitted * 1_000_000)));
        let (job, id) = (number.to_string(), format!("slurm:{number}"));
        Row::new(&"Alpha".into(), Job { id, job, submitted, state, ..Job::default() })
    }

    fn numbers(rows: &Rows) -> Vec<u64> {
        rows.iter().map(|row| row.number).collect()
    }

    #[test]
    fn pages_are_merged_into_the_order_and_jobs_are_there_once() {
        let mut rows = Rows::default();
        rows.put(vec![row(1, 10, State::Ended), row(3, 30, State::Running)], NOW);
        rows.put(vec![row(2, 20, State::Waiting), row(4, 40, State::Ended)], NOW);
        assert_eq!(numbers(&rows), [4, 3, 2, 1]);
        rows.put(vec![row(1, 35, State::Ended), row(3, 30, State::Running)], NOW);
        assert_eq!(numbers(&rows), [4, 1, 3, 2], "its place is another now");
        rows.set_sort(rows.sort().clicked(Column::Job), NOW);
        assert_eq!(numbers(&rows), [4, 3, 2, 1]);
        assert_eq!(rows.position(&JobKey::new("Alpha", "slurm:3")), Some(1));
        assert_eq!(rows.at(1).map(|row| row.number), Some(3));
        assert_eq!((rows.at(4), rows.len()), (None, 4));
    }

    #[test]
    fn an_order_by_merging_is_that_of_a_sort() {
        let (mut merged, mut sorted) = (Rows::default(), Rows::default());
        let numbered = |page: u32| {
            (0..50).map(move |at| row(page * 50 + at, i64::from((at * 37 + page * 11) % 64), State::Ended))
        };
        (0..8).for_each(|page| merged.put(numbered(page).collect(), NOW));
        sorted.put((0..8).flat_map(numbered).collect(), NOW);
        sorted.set_sort(sorted.sort(), NOW);
        assert_eq!(numbers(&merged), numbers(&sorted));
    }

    #[test]
    fn jobs_that_are_over_and_not_answered_any_more_are_removed() {
        let mut rows = Rows::default();
        rows.put(vec![row(1, 10, State::Ended), row(2, 20, State::Waiting), row(3, 30, State::Running)], NOW);
        rows.retain_open(&BTreeSet::from([JobKey::new("Alpha", "slurm:3")]), NOW);
        assert_eq!(numbers(&rows), [3, 1]);
        assert_eq!(rows.get(&JobKey::new("Alpha", "slurm:1")).map(|row| row.number), Some(1));
    }
}
