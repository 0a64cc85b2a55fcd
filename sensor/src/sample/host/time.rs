//! Clock and uptime of the host, from the time of the sweep and `/proc/uptime`.
//!
//! Rule: it reads no clock; the sweep passes the time.

use super::fields::{self, Malformed};
use super::proc_file::ProcFile;
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use std::path::Path;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// Parses the seconds since boot.
///
/// # Errors
/// If the text does not start with a number.
pub fn parse(text: &[u8]) -> Result<f64, Malformed> {
    let uptime = fields::fields(text).next().and_then(fields::measure);
    uptime.ok_or_else(|| Malformed::new("seconds since boot", text))
}

/// Collector of clock and uptime.
#[derive(Debug)]
pub struct Clocks {
    file: ProcFile,
    time: Arc<Metric>,
    uptime: Arc<Metric>,
}

impl Clocks {
    /// Creates the collector; reads below `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> Clocks {
        let gauge = |name| metric(name, "seconds", Semantics::Gauge, &[]);
        Clocks {
            file: ProcFile::new(proc, "uptime"),
            time: gauge("node_time_seconds"),
            // node_exporter has no name for it; without it scripts would have to subtract the boot time.
            uptime: gauge("node_uptime_seconds"),
        }
    }
}

impl Collector for Clocks {
    fn name(&self) -> &'static str {
        "time"
    }

    fn collect(&mut self, now: Now, out: &mut Rows) -> Result<(), Error> {
        let uptime = parse(self.file.read()?).map_err(|malformed| self.file.malformed(malformed))?;
        out.push_real(&self.time, now.calendar.secs_f64());
        out.push_real(&self.uptime, uptime);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_read() {
        assert_eq!(parse(b"3508.61 6970.31\n"), Ok(3508.61));
        for bad in [&b""[..], b"x", b"-1 2"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
