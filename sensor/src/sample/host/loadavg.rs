//! Load averages, from `/proc/loadavg`.
//!
//! Rule: a line in another format is an error that quotes the line, never a wrong value.

use super::fields::{self, Malformed};
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use std::path::Path;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

const NAMES: [&str; 3] = ["node_load1", "node_load5", "node_load15"];

/// Parses the averages over 1, 5 and 15 minutes.
///
/// # Errors
/// If the text does not start with three numbers.
pub fn parse(text: &[u8]) -> Result<[f64; 3], Malformed> {
    let mut fields = fields::fields(text);
    let mut next = || fields.next().and_then(fields::measure);
    let (one, five, fifteen) = (next(), next(), next());
    match (one, five, fifteen) {
        (Some(one), Some(five), Some(fifteen)) => Ok([one, five, fifteen]),
        _ => Err(Malformed::new("three load averages", text)),
    }
}

/// Collector of load averages.
#[derive(Debug)]
pub struct LoadAverage {
    file: ProcFile,
    metrics: [Arc<Metric>; 3],
}

impl LoadAverage {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> LoadAverage {
        let metrics = NAMES.map(|name| metric(name, "", Semantics::Gauge, &[]));
        LoadAverage { file: ProcFile::new(proc, "loadavg"), metrics }
    }
}

impl Collector for LoadAverage {
    fn name(&self) -> &'static str {
        "loadavg"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let averages = parse(self.file.read()?).map_err(|malformed| self.file.malformed(malformed))?;
        for (metric, average) in self.metrics.iter().zip(averages) {
            out.push_real(metric, average);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_read() {
        assert_eq!(parse(b"0.52 12.00 3.07 2/512 4711\n"), Ok([0.52, 12.0, 3.07]));
        for bad in [&b""[..], b"0.52 1.0", b"a b c", b"0.1 nan 0.3"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
