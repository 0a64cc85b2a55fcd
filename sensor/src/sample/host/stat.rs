//! Collector of `/proc/stat`: CPU times, interrupts, context switches, forks, running and blocked processes,
//! and boot time. There is one collector for all of them, because the kernel adds up every interrupt of every
//! core to write this file, and once per sweep is enough.

use super::column::{Column, Raw};
use super::cpu::{self, Cores};
use super::fields::{self, Malformed};
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::Rows;
use std::path::Path;
use std::sync::Arc;
use wire::sample::Metric;

/// The keyword of each line with a single number that is reported.
const LINES: [(&[u8], Column); 6] = [
    (b"intr", Column::counter("node_intr_total", "", Raw::Count)),
    (b"ctxt", Column::counter("node_context_switches_total", "", Raw::Count)),
    (b"btime", Column::gauge("node_boot_time_seconds", "seconds", Raw::Count)),
    (b"processes", Column::counter("node_forks_total", "", Raw::Count)),
    (b"procs_running", Column::gauge("node_procs_running", "", Raw::Count)),
    (b"procs_blocked", Column::gauge("node_procs_blocked", "", Raw::Count)),
];

/// Parses a line of `LINES`: its index and its number; `None` for other lines.
///
/// # Errors
/// If the line starts with a keyword but has no number.
pub fn parse(line: &[u8]) -> Result<Option<(usize, u64)>, Malformed> {
    // Only the first number is parsed: the interrupt line has thousands of them.
    let Some(space) = line.iter().take(16).position(|b| *b == b' ') else { return Ok(None) };
    let Some(at) = LINES.iter().position(|(word, _)| *word == &line[..space]) else { return Ok(None) };
    let number = fields::fields(&line[space..]).next().and_then(fields::whole);
    number.map(|number| Some((at, number))).ok_or_else(|| Malformed::new("a word and a whole number", line))
}

/// Collector of `/proc/stat`.
#[derive(Debug)]
pub struct Stat {
    file: ProcFile,
    cores: Cores,
    metrics: [Arc<Metric>; LINES.len()],
}

impl Stat {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> Stat {
        let metrics = LINES.map(|(_, column)| column.metric(&[]));
        Stat { file: ProcFile::new(proc, "stat"), cores: Cores::default(), metrics }
    }
}

impl Collector for Stat {
    fn name(&self) -> &'static str {
        "stat"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let Stat { file, cores, metrics } = self;
        let result = add_rows(file.read()?, cores, metrics, out);
        result.map_err(|malformed| file.malformed(malformed))
    }
}

fn add_rows(
    text: &[u8],
    cores: &mut Cores,
    metrics: &[Arc<Metric>; LINES.len()],
    out: &mut Rows,
) -> Result<(), Malformed> {
    cores.begin();
    for line in fields::lines(text) {
        if let Some((core, ticks)) = cpu::parse(line)? {
            cores.add_rows(core, ticks, out);
        } else if let Some((at, number)) = parse(line)? {
            out.push(&metrics[at], LINES[at].1.raw.value(number));
        }
    }
    cores.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_one_number_are_read() {
        for (line, expected) in [
            ("intr 9007199254740993 0 9 0", Some((0, 9_007_199_254_740_993))),
            ("ctxt 5", Some((1, 5))),
            ("btime 1795178489", Some((2, 1_795_178_489))),
            ("procs_blocked 0", Some((5, 0))),
            ("softirq 1 2 3", None),
            ("page 1", None),
            ("", None),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(expected), "{line}");
        }
        for bad in ["ctxt x", "intr ", "btime -5"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
