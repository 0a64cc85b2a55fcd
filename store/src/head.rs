//! Head: the newest samples of a host, not yet sealed into a block.
//!
//! Pure. Rows of the same metrics are packed together ([`crate::packed`]).

use crate::block::{HostNo, Rows, SeriesNo};
use crate::bytes::Cursor;
use crate::exact::Exact;
use crate::mark::Mark;
use crate::packed::Last;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wire::time::Time;

/// Metrics of a row: their numbers, and which of them are counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) series: Box<[SeriesNo]>,
    pub(crate) counters: Box<[bool]>,
}

/// Consecutive rows of the same shape.
#[derive(Clone, Debug)]
struct Run {
    shape: Arc<Shape>,
    times: Vec<Time>,
    packed: Vec<u8>,
    last: Last,
}

/// The rows of a host that are only in memory and in the log of the head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    host: HostNo,
    /// Number of the first row here.
    first_row: u64,
    runs: VecDeque<Run>,
    marks: Vec<Mark>,
}

impl Head {
    pub(crate) fn new(host: HostNo, first_row: u64) -> Head {
        Head { host, first_row, runs: VecDeque::new(), marks: Vec::new() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.times.len()).sum()
    }

    /// Number of the next row.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_row + self.rows() as u64
    }

    pub(crate) fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Latest time of a row, which need not be that of the newest.
    pub(crate) fn latest_of_all(&self) -> Option<Time> {
        self.runs.iter().flat_map(|run| &run.times).max().copied()
    }

    /// Time of the oldest row.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.runs.front().and_then(|run| run.times.first().copied())
    }

    /// Time of the newest row.
    pub(crate) fn latest(&self) -> Option<Time> {
        self.runs.iter().rev().find_map(|run| run.times.last().copied())
    }

    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    /// Adds a row; returns its packed bytes, and whether it is the first of its shape.
    pub(crate) fn push(
        &mut self,
        shape: &Arc<Shape>,
        time: Time,
        values: impl Iterator<Item = Exact>,
    ) -> (&[u8], bool) {
        if !self.runs.back().is_some_and(|run| Arc::ptr_eq(&run.shape, shape)) {
            let last = Last::new(shape.series.len());
            let shape = Arc::clone(shape);
            self.runs.push_back(Run { shape, times: Vec::new(), packed: Vec::new(), last });
        }
        let run = self.runs.back_mut().expect("pushed above");
        let is_new = run.times.is_empty();
        let start = run.packed.len();
        run.last.pack(time, values, &mut run.packed);
        run.times.push(time);
        (&run.packed[start..], is_new)
    }

    /// Starts a new run with the next row, so that it can be read without those before it.
    pub(crate) fn cut(&mut self) {
        if let Some(run) = self.runs.back()
            && !run.times.is_empty()
        {
            let shape = Arc::clone(&run.shape);
            let last = Last::new(shape.series.len());
            self.runs.push_back(Run { shape, times: Vec::new(), packed: Vec::new(), last });
        }
    }

    /// Drops the oldest rows, all of one run, if there is more than one run; returns their number.
    pub(crate) fn drop_oldest(&mut self) -> u64 {
        match self.runs.len() {
            0 | 1 => 0,
            _ => {
                let rows = self.runs.pop_front().map_or(0, |run| run.times.len() as u64);
                self.first_row += rows;
                rows
            }
        }
    }

    /// Drops the rows before the one with this number, which must be the first of a run.
    pub(crate) fn drop_before(&mut self, row: u64) {
        while let Some(run) = self.runs.front()
            && !run.times.is_empty()
            && self.first_row + run.times.len() as u64 <= row
        {
            self.first_row += run.times.len() as u64;
            self.runs.pop_front();
        }
        if self.rows() == 0 {
            self.marks.clear();
        }
    }

    /// Visits all rows, oldest first: number, time, series and values.
    pub(crate) fn each(&self, mut visit: impl FnMut(u64, Time, &Shape, &[Exact])) {
        let mut number = self.first_row;
        for run in &self.runs {
            let (mut last, mut from) = (Last::new(run.shape.series.len()), Cursor(&run.packed));
            for _ in &run.times {
                let time = last.unpack(&mut from).expect("packed here");
                visit(number, time, &run.shape, last.values());
                number += 1;
            }
        }
    }

    /// The rows, at least one, as columns.
    pub(crate) fn columns(&self) -> Rows<Exact> {
        let count = self.rows();
        let mut columns: BTreeMap<SeriesNo, Vec<Option<Exact>>> = BTreeMap::new();
        let mut times = Vec::with_capacity(count);
        self.each(|_, time, shape, values| {
            let row = times.len();
            times.push(time);
            for (series, value) in shape.series.iter().zip(values) {
                let column = columns.entry(*series).or_insert_with(|| Vec::with_capacity(count));
                column.resize(row, None);
                column.push(Some(*value));
            }
        });
        for column in columns.values_mut() {
            column.resize(times.len(), None);
        }
        Rows {
            host: self.host,
            first_row: self.first_row,
            finer_rows: self.first_row + times.len() as u64,
            marks: self.marks.clone(),
            times,
            columns: columns.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(series: &[SeriesNo]) -> Arc<Shape> {
        Arc::new(Shape { series: series.into(), counters: vec![false; series.len()].into() })
    }

    #[test]
    fn rows_of_changing_shapes_become_columns_with_gaps() {
        let mut head = Head::new(1, 10);
        let (both, second) = (shape(&[4, 2]), shape(&[2]));
        let at = Time::from_micros;
        assert!(head.push(&both, at(1), [1, 2].map(Exact::Whole).into_iter()).1);
        assert!(!head.push(&both, at(2), [1, 3].map(Exact::Whole).into_iter()).1);
        assert!(head.push(&second, at(3), std::iter::once(Exact::Whole(4))).1);
        assert_eq!((head.rows(), head.next_row(), head.latest()), (3, 13, Some(at(3))));
        let rows = head.columns();
        let whole = |value| Some(Exact::Whole(value));
        assert_eq!(rows.times, [at(1), at(2), at(3)]);
        assert_eq!(
            rows.columns,
            [(2, vec![whole(2), whole(3), whole(4)]), (4, vec![whole(1), whole(1), None]),]
        );
        assert_eq!(rows.part(0..1).columns[0].1, [whole(2)]);
    }

    #[test]
    fn sealed_rows_are_dropped_and_the_others_remain() {
        let mut head = Head::new(1, 0);
        let one = shape(&[1]);
        for row in 0..5u64 {
            head.push(&one, Time::from_micros(row.cast_signed()), std::iter::once(Exact::Whole(row)));
            if row == 2 {
                head.cut();
            }
        }
        head.drop_before(3);
        assert_eq!((head.first_row(), head.rows(), head.next_row()), (3, 2, 5));
        assert_eq!(head.columns().columns[0].1, [3, 4].map(|row| Some(Exact::Whole(row))));
        head.cut();
        head.drop_before(5);
        assert_eq!((head.rows(), head.next_row()), (0, 5));
    }
}
