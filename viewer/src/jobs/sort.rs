//! Columns of the table of jobs, and the order of rows by one of them.
//!
//! Pure. Rule: rows without the value of a column come last, in both directions; equal ones by submission, the latest
//! first.

use super::Row;
use std::cmp::Ordering;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// A column by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Job,
    Name,
    User,
    Queue,
    State,
    Submitted,
    Waited,
    Ran,
    Cpus,
    CpuUsed,
    PeakMemory,
    Hosts,
    Findings,
}

/// Column and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub column: Column,
    /// Whether the largest, latest or last comes first.
    pub is_falling: bool,
}

impl Default for Sort {
    fn default() -> Sort {
        Sort { column: Column::Submitted, is_falling: true }
    }
}

impl Sort {
    /// The order after a click on the head of a column: the other direction if it is sorted by that already.
    #[must_use]
    pub fn clicked(self, column: Column) -> Sort {
        match column == self.column {
            true => Sort { column, is_falling: !self.is_falling },
            false => Sort { column, is_falling: column.starts_falling() },
        }
    }

    /// Which of two rows comes first.
    #[must_use]
    pub fn compare(self, one: &Row, other: &Row, now: Time) -> Ordering {
        let by_column = match (self.column.key(one, now), self.column.key(other, now)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(other)) if self.is_falling => other.compare(&one),
            (Some(one), Some(other)) => one.compare(&other),
        };
        let latest_first = || other.submitted.cmp(&one.submitted);
        by_column.then_with(latest_first).then_with(|| one.key.id.cmp(&other.key.id))
    }
}

/// Value by which rows are compared.
enum Key<'a> {
    Number(f64),
    Text(&'a str),
    Job(u64, &'a str),
}

impl Key<'_> {
    fn compare(&self, other: &Key<'_>) -> Ordering {
        match (self, other) {
            (Key::Number(one), Key::Number(other)) => one.total_cmp(other),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (Key::Job(one, id), Key::Job(other, other_id)) => one.cmp(other).then_with(|| id.cmp(other_id)),
            // A column has keys of one kind.
            (Key::Number(_) | Key::Text(_) | Key::Job(..), _) => Ordering::Equal,
        }
    }
}

impl Column {
    /// Whether its first click sorts the largest first.
    const fn starts_falling(self) -> bool {
        match self {
            Column::Name
            | Column::User
            | Column::Queue
            | Column::State
            | Column::Hosts
            | Column::Findings => false,
            Column::Job
            | Column::Submitted
            | Column::Waited
            | Column::Ran
            | Column::Cpus
            | Column::CpuUsed
            | Column::PeakMemory => true,
        }
    }

    #[allow(clippy::cast_precision_loss)] // Amounts are below 2^53.
    fn key(self, row: &Row, now: Time) -> Option<Key<'_>> {
        match self {
            Column::Job => Some(Key::Job(row.number, &row.key.id)),
            Column::Name => text(&row.name),
            Column::User => text(&row.user),
            Column::Queue => text(&row.queue),
            Column::State => Some(Key::Text(state_word(row))),
            Column::Submitted => row.submitted.map(|time| Key::Number(time.secs_f64())),
            Column::Waited => row.waited_secs(now).map(Key::Number),
            Column::Ran => row.ran_secs(now).map(Key::Number),
            Column::Cpus => row.cpus.map(|cpus| Key::Number(cpus as f64)),
            Column::CpuUsed => row.cpu_efficiency.map(Key::Number),
            Column::PeakMemory => row.peak_memory_bytes.map(|bytes| Key::Number(bytes as f64)),
            Column::Hosts => row.hosts.first().map(|host| Key::Text(host)),
            Column::Findings => text(&row.findings),
        }
    }
}

/// Key of a text; none of an empty one.
fn text(text: &str) -> Option<Key<'_>> {
    (!text.is_empty()).then_some(Key::Text(text))
}

/// Its outcome, or its state until it has one.
#[must_use]
pub fn state_word(row: &Row) -> &'static str {
    row.outcome.filter(|_| row.state == State::Ended).map_or(row.state.as_str(), Outcome::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;
    use wire::api::jobs::Job;

    fn row(number: u32, name: &str, submitted: Option<i64>) -> Row {
        let submitted = submitted.map(|secs| UnixTime(Time::from_micros(secs * 1_000_000)));
        let job = number.to_string();
        Row::new(
            &"Alpha".into(),
            Job { id: format!("slurm:{job}"), job, name: name.to_owned(), submitted, ..Job::default() },
        )
    }

    fn sorted(sort: Sort) -> Vec<u64> {
        let mut rows =
            [row(9, "b", Some(30)), row(10, "", Some(40)), row(2, "a", None), row(3, "b", Some(50))];
        rows.sort_by(|one, other| sort.compare(one, other, Time::from_micros(60_000_000)));
        rows.map(|row| row.number).to_vec()
    }

    #[test]
    fn rows_without_a_value_come_last_and_equal_ones_by_submission() {
        let by = |column, is_falling| sorted(Sort { column, is_falling });
        assert_eq!(sorted(Sort::default()), [3, 10, 9, 2]);
        assert_eq!(by(Column::Submitted, false), [9, 10, 3, 2]);
        assert_eq!(by(Column::Name, false), [2, 3, 9, 10]);
        assert_eq!(by(Column::Name, true), [3, 9, 2, 10]);
        assert_eq!(by(Column::Job, false), [2, 3, 9, 10], "as numbers");
        assert_eq!(by(Column::Waited, true), [9, 10, 3, 2], "so far");
    }

    #[test]
    fn a_second_click_sorts_the_other_way_round() {
        let sort = Sort::default().clicked(Column::Name);
        assert_eq!(sort, Sort { column: Column::Name, is_falling: false });
        assert!(sort.clicked(Column::Name).is_falling);
        assert!(sort.clicked(Column::Ran).is_falling, "the longest first");
    }
}
