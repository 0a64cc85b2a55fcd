//! Encoding of tables of samples as frames: names once, then shapes, then sweeps.
//!
//! Pure. Metrics are numbered for the lifetime of a connection. A table of another shape costs only the names
//! that are new and the ranges of their numbers.
//! Not here: whether a sweep is sent ([`super::sender`]), how it is encoded (`wire::report::sweep`).

use crate::sample::table::Table;
use std::collections::HashMap;
use std::sync::Arc;
use wire::report::sweep::Encoder;
use wire::report::{
    FromMember, METRICS_LEN_MAX_BYTES, METRICS_MAX, Metrics, Packed, Shape, Sweep, metric_len_bytes,
};
use wire::sample::Metric;

/// Metrics named in one frame: well below the longest frame.
const METRICS_AT_ONCE: usize = 256;

/// Metrics that the other end of a connection knows.
#[derive(Debug, Default)]
pub struct Columns {
    numbers: HashMap<Arc<Metric>, u32>,
    /// Length in bytes of the numbered metrics' names and labels.
    len: usize,
    /// Metrics of the last table, in the shared list that the table holds.
    shape: Option<crate::sample::table::Metrics>,
    width: usize,
    encoder: Encoder,
}

impl Columns {
    /// Encodes this table; the last frame is the sweep. Rows beyond the limits of a connection
    /// ([`METRICS_MAX`], [`METRICS_LEN_MAX_BYTES`]) are left out: returns how many.
    pub fn frames(&mut self, table: &Table, thinned: u64, mut put: impl FnMut(FromMember)) -> u64 {
        let is_known = self.shape.as_ref().is_some_and(|known| Arc::ptr_eq(known, table.metrics()));
        if !is_known {
            self.reshape(table, &mut put);
        }
        let values = &table.values()[..self.width];
        let mut packed = Vec::with_capacity(values.len() / 2 + 64);
        self.encoder.encode(table.time(), values, &mut packed);
        put(FromMember::Sweep(Sweep { thinned, packed: Packed(packed) }));
        (table.values().len() - self.width) as u64
    }

    fn reshape(&mut self, table: &Table, put: &mut impl FnMut(FromMember)) {
        self.encoder.restart();
        let mut len = 0;
        let fits = |metric: &&Arc<Metric>| {
            len += metric_len_bytes(metric);
            len <= METRICS_LEN_MAX_BYTES
        };
        self.width = table.metrics().iter().take(METRICS_MAX).take_while(fits).count();
        let columns = &table.metrics()[..self.width];
        let fresh = columns.iter().filter(|metric| !self.numbers.contains_key(*metric));
        let (fresh, fresh_len) =
            fresh.fold((0, 0), |(n, len), metric| (n + 1, len + metric_len_bytes(metric)));
        if self.numbers.len() + fresh > METRICS_MAX || self.len + fresh_len > METRICS_LEN_MAX_BYTES {
            // Labels that come and go have used up the numbers: numbering starts over.
            self.numbers.clear();
            self.len = 0;
        }
        let mut first = u32::try_from(self.numbers.len()).expect("at most METRICS_MAX");
        let mut fresh = Vec::new();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for metric in columns {
            let next = u32::try_from(self.numbers.len()).expect("at most METRICS_MAX");
            let number = *self.numbers.entry(Arc::clone(metric)).or_insert_with(|| {
                fresh.push(Metric::clone(metric));
                self.len += metric_len_bytes(metric);
                next
            });
            match runs.last_mut() {
                Some((from, len)) if *from + *len == number => *len += 1,
                _ => runs.push((number, 1)),
            }
        }
        for some in fresh.chunks(METRICS_AT_ONCE) {
            put(FromMember::Metrics(Metrics { first, metrics: some.to_vec() }));
            first += u32::try_from(some.len()).expect("a chunk");
        }
        put(FromMember::Shape(Shape { runs }));
        self.shape = Some(Arc::clone(table.metrics()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::table::{Rows, metric};
    use wire::sample::Semantics;
    use wire::time::Time;

    fn table(rows: &mut Rows, names: &[&str]) -> Table {
        for name in names {
            rows.push_whole(&metric(name, "", Semantics::Gauge, &[]), 1);
        }
        rows.finish(Time::default())
    }

    fn sent(columns: &mut Columns, table: &Table) -> Vec<String> {
        let mut sent = Vec::new();
        columns.frames(table, 0, |frame| match frame {
            FromMember::Metrics(Metrics { first, metrics }) => {
                sent.push(format!("{first}+{}", metrics.len()))
            }
            FromMember::Shape(Shape { runs }) => sent.push(format!("{runs:?}")),
            FromMember::Sweep(_) => sent.push("Sweep".to_owned()),
            FromMember::Hello(_)
            | FromMember::Events(_)
            | FromMember::State(_)
            | FromMember::Leave
            | FromMember::Minutes(_)
            | FromMember::Fetch(_)
            | FromMember::FetchCalls(_)
            | FromMember::Samples(_)
            | FromMember::FetchSamples(_) => sent.push("other".to_owned()),
        });
        sent
    }

    #[test]
    fn names_travel_once() {
        let (mut rows, mut columns) = (Rows::default(), Columns::default());
        let first = table(&mut rows, &["a", "b", "c"]);
        assert_eq!(sent(&mut columns, &first), ["0+3", "[(0, 3)]", "Sweep"]);
        assert_eq!(sent(&mut columns, &first), ["Sweep"]);
        let other = table(&mut rows, &["a", "c", "d", "b"]);
        assert_eq!(sent(&mut columns, &other), ["3+1", "[(0, 1), (2, 2), (1, 1)]", "Sweep"]);
        assert_eq!(sent(&mut columns, &first), ["[(0, 3)]", "Sweep"], "all names are known");
    }

    #[test]
    fn names_of_absurd_length_cost_the_last_columns_only() {
        let (mut rows, mut columns) = (Rows::default(), Columns::default());
        let all: Vec<String> = (0..100).map(|n| format!("{n}").repeat(100_000)).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let long = table(&mut rows, &all);
        let left_out = columns.frames(&long, 0, |_| {});
        assert!((60..100).contains(&left_out), "{left_out}");
        assert!(columns.len <= METRICS_LEN_MAX_BYTES);
    }

    #[test]
    fn labels_that_come_and_go_start_again() {
        let (mut rows, mut columns) = (Rows::default(), Columns::default());
        let all: Vec<String> = (0..METRICS_MAX).map(|n| format!("m{n}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let full = table(&mut rows, &all);
        assert_eq!(sent(&mut columns, &full).len(), METRICS_MAX / METRICS_AT_ONCE + 2);
        let other = table(&mut rows, &["new", "m1"]);
        assert_eq!(sent(&mut columns, &other), ["0+2", "[(0, 2)]", "Sweep"]);
    }
}
