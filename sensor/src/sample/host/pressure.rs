//! Pressure stall information: time that tasks waited for CPU, memory or I/O, from `/proc/pressure`.
//!
//! Rule: a kernel without it is logged once. Source: Documentation/accounting/psi.rst.

use super::column::{Column, Raw};
use super::fields::{self, Malformed};
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::Rows;
use std::path::Path;
use std::sync::Arc;
use wire::sample::Metric;

const fn seconds(name: &'static str) -> Column {
    Column::counter(name, "seconds", Raw::Micros)
}

/// For each file: the metrics of its `some` line (some tasks waited) and its `full` line (all tasks waited).
const RESOURCES: [(&str, Option<Column>, Option<Column>); 4] = [
    ("pressure/cpu", Some(seconds("node_pressure_cpu_waiting_seconds_total")), None),
    (
        "pressure/memory",
        Some(seconds("node_pressure_memory_waiting_seconds_total")),
        Some(seconds("node_pressure_memory_stalled_seconds_total")),
    ),
    (
        "pressure/io",
        Some(seconds("node_pressure_io_waiting_seconds_total")),
        Some(seconds("node_pressure_io_stalled_seconds_total")),
    ),
    ("pressure/irq", None, Some(seconds("node_pressure_irq_stalled_seconds_total"))),
];

/// Stall times since boot, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// Time that at least one task waited; `None` if the file has no such line.
    pub some: Option<u64>,
    /// Time that all tasks waited; `None` if the file has no such line.
    pub full: Option<u64>,
}

/// Parses the text of one resource.
///
/// # Errors
/// If a `some` or `full` line has no total.
pub fn parse(text: &[u8]) -> Result<Stalled, Malformed> {
    let mut stalled = Stalled::default();
    for line in fields::lines(text) {
        let mut fields = fields::fields(line);
        let place = match fields.next() {
            Some(b"some") => &mut stalled.some,
            Some(b"full") => &mut stalled.full,
            _ => continue,
        };
        let total = fields.find_map(|field| field.strip_prefix(b"total=")).and_then(fields::whole);
        *place = Some(total.ok_or_else(|| Malformed::new("total= and microseconds", line))?);
    }
    Ok(stalled)
}

/// Collector of pressure stall information.
#[derive(Debug)]
pub struct Pressure {
    resources: Vec<Resource>,
}

#[derive(Debug)]
struct Resource {
    file: ProcFile,
    some: Option<Arc<Metric>>,
    full: Option<Arc<Metric>>,
}

impl Pressure {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> Pressure {
        let resources = RESOURCES.iter().map(|(file, some, full)| Resource {
            file: ProcFile::new(proc, file),
            some: some.as_ref().map(|column| column.metric(&[])),
            full: full.as_ref().map(|column| column.metric(&[])),
        });
        Pressure { resources: resources.collect() }
    }
}

impl Collector for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let mut missing = None;
        // Kernels differ in the resources they report (IRQ is the newest). Only a kernel without any is
        // unavailable.
        self.resources.retain_mut(|resource| match resource.collect(out) {
            Err(reason @ Error::Unavailable(_)) => {
                missing = Some(Err(reason));
                false
            }
            Err(error) => {
                missing = Some(Err(error));
                true
            }
            Ok(()) => true,
        });
        match missing {
            Some(Err(Error::Unavailable(_))) if !self.resources.is_empty() => Ok(()),
            Some(outcome) => outcome,
            None => Ok(()),
        }
    }
}

impl Resource {
    fn collect(&mut self, out: &mut Rows) -> Result<(), Error> {
        let stalled = parse(self.file.read()?).map_err(|malformed| self.file.malformed(malformed))?;
        for (metric, micros) in [(&self.some, stalled.some), (&self.full, stalled.full)] {
            if let (Some(metric), Some(micros)) = (metric, micros) {
                out.push(metric, Raw::Micros.value(micros));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text = b"some avg10=0.12 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse(text), Ok(Stalled { some: Some(123), full: Some(7) }));
        assert_eq!(parse(b"some total=5"), Ok(Stalled { some: Some(5), full: None }));
        assert_eq!(parse(b""), Ok(Stalled::default()));
        assert!(parse(b"some avg10=0.12\n").is_err());
        assert!(parse(b"full total=x\n").is_err());
    }
}
