//! Memory and swap space, from `/proc/meminfo`: every line, named by the rule of node_exporter.
//!
//! Rule: a malformed line fails the collector for this sweep; no value is guessed.

use super::column::Raw;
use super::fields::{self, Malformed};
use super::metric_cache::MetricCache;
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use std::path::Path;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// Parsed line: a key, a value, and whether the value is in kibibytes or a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Name given by the kernel, such as `Active(anon)`.
    pub key: &'a [u8],
    pub value: u64,
    /// [`Raw::Kibibytes`] or [`Raw::Count`].
    pub raw: Raw,
}

/// Parses a line; `None` for an empty one.
///
/// # Errors
/// If it is not a key, a colon, a number and optionally `kB`.
pub fn parse(line: &[u8]) -> Result<Option<Line<'_>>, Malformed> {
    let malformed = || Malformed::new("a key, a colon, a whole number and perhaps kB", line);
    if line.is_empty() {
        return Ok(None);
    }
    let colon = memchr::memchr(b':', line).ok_or_else(malformed)?;
    let mut fields = fields::fields(&line[colon + 1..]);
    let value = fields.next().and_then(fields::whole).ok_or_else(malformed)?;
    let raw = match fields.next() {
        None => Raw::Count,
        Some(b"kB") => Raw::Kibibytes,
        Some(_) => return Err(malformed()),
    };
    Ok(Some(Line { key: &line[..colon], value, raw }))
}

/// Builds the metric of a line: `node_memory_Active_anon_bytes` for `Active(anon)` in kibibytes.
fn identity(line: Line<'_>) -> Arc<Metric> {
    let key = String::from_utf8_lossy(line.key).replace('(', "_").replace(')', "");
    if line.raw == Raw::Kibibytes {
        metric(&format!("node_memory_{key}_bytes"), "bytes", Semantics::Gauge, &[])
    } else {
        metric(&format!("node_memory_{key}"), "", Semantics::Gauge, &[])
    }
}

/// Collector of memory and swap space.
#[derive(Debug)]
pub struct MemInfo {
    file: ProcFile,
    metrics: MetricCache<Arc<Metric>>,
}

impl MemInfo {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> MemInfo {
        MemInfo { file: ProcFile::new(proc, "meminfo"), metrics: MetricCache::default() }
    }
}

impl Collector for MemInfo {
    fn name(&self) -> &'static str {
        "meminfo"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let MemInfo { file, metrics } = self;
        let result = add_rows(file.read()?, metrics, out);
        result.map_err(|malformed| file.malformed(malformed))
    }
}

fn add_rows(text: &[u8], metrics: &mut MetricCache<Arc<Metric>>, out: &mut Rows) -> Result<(), Malformed> {
    metrics.begin();
    for line in fields::lines(text) {
        let Some(line) = parse(line)? else { continue };
        if let Some(metric) = metrics.next(line.key, || identity(line)) {
            out.push(metric, line.raw.value(line.value));
        }
    }
    metrics.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_line_is_read_and_named() {
        for (text, value, raw, name) in [
            ("MemTotal:       24684096 kB", 24_684_096, Raw::Kibibytes, "node_memory_MemTotal_bytes"),
            ("Active(anon):     100 kB", 100, Raw::Kibibytes, "node_memory_Active_anon_bytes"),
            ("HugePages_Total:       7", 7, Raw::Count, "node_memory_HugePages_Total"),
        ] {
            let line = parse(text.as_bytes()).expect("well formed").expect("a line");
            assert_eq!((line.value, line.raw), (value, raw), "{text}");
            assert_eq!(identity(line).name, name);
        }
        assert_eq!(parse(b""), Ok(None));
        for bad in ["MemTotal 5 kB", "MemTotal: kB", "MemTotal: 5 MB", "MemTotal: -5 kB"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
