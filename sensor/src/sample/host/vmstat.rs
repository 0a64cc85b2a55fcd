//! Paging, swapping, page faults and out-of-memory kills, from `/proc/vmstat`.
//!
//! As in node_exporter by default, only the lines whose names start with `oom_kill`, `pgpg` or `pswp`, or
//! start with `pg` and contain `fault`: the file has two hundred lines, mostly for kernel developers.

use super::fields::{self, Malformed};
use super::metric_cache::MetricCache;
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use std::path::Path;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// Parses a line: its name and number; `None` for a line that is not reported.
///
/// # Errors
/// If the line is one of those reported and has no number.
pub fn parse(line: &[u8]) -> Result<Option<(&[u8], u64)>, Malformed> {
    if !is_included(line) {
        return Ok(None);
    }
    let mut fields = fields::fields(line);
    let (name, number) = (fields.next(), fields.next().and_then(fields::whole));
    name.zip(number).map(Some).ok_or_else(|| Malformed::new("a name and a whole number", line))
}

fn is_included(line: &[u8]) -> bool {
    match line.first() {
        Some(b'p') => {
            line.starts_with(b"pgpg")
                || line.starts_with(b"pswp")
                || (line.starts_with(b"pg") && line.windows(5).any(|part| part == b"fault"))
        }
        Some(b'o') => line.starts_with(b"oom_kill"),
        _ => false,
    }
}

/// Collector of `/proc/vmstat`.
#[derive(Debug)]
pub struct VmStat {
    file: ProcFile,
    metrics: MetricCache<Arc<Metric>>,
}

impl VmStat {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> VmStat {
        VmStat { file: ProcFile::new(proc, "vmstat"), metrics: MetricCache::default() }
    }
}

impl Collector for VmStat {
    fn name(&self) -> &'static str {
        "vmstat"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let VmStat { file, metrics } = self;
        let result = add_rows(file.read()?, metrics, out);
        result.map_err(|malformed| file.malformed(malformed))
    }
}

fn add_rows(text: &[u8], metrics: &mut MetricCache<Arc<Metric>>, out: &mut Rows) -> Result<(), Malformed> {
    metrics.begin();
    for line in fields::lines(text) {
        let Some((name, number)) = parse(line)? else { continue };
        let identity = || {
            let name = format!("node_vmstat_{}", String::from_utf8_lossy(name));
            metric(&name, "", Semantics::Counter, &[])
        };
        if let Some(metric) = metrics.next(name, identity) {
            out.push_whole(metric, number);
        }
    }
    metrics.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_relevant_lines_are_read() {
        for (line, expected) in [
            ("pswpin 12", Some(("pswpin", 12))),
            ("pgmajfault 18446744073709551615", Some(("pgmajfault", u64::MAX))),
            ("pgfault 3", Some(("pgfault", 3))),
            ("oom_kill 0", Some(("oom_kill", 0))),
            ("pgpgout 4", Some(("pgpgout", 4))),
            ("pgscan_kswapd 5", None),
            ("nr_free_pages 1", None),
            ("thp_fault_alloc 1", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, number)| (name.as_bytes(), number));
            assert_eq!(parse(line.as_bytes()), Ok(expected), "{line}");
        }
        assert!(parse(b"pgfault many").is_err());
        assert!(parse(b"pswpin").is_err());
    }
}
