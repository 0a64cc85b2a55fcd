//! Log of usages: a line for each job that is over on this host, and for those that run for long.
//!
//! Pure. The format is that of [`wire::call::usage`]; names of jobs have no blanks and no control characters
//! (`serving::job_names`), and a user's name is replaced by its number if it has.
//! Not here: how a line becomes an event (`log-filters/filters/visperf-usage.toml`), writing (`own_log`).

use super::meter::Report;
use crate::tail::Spec;
use jiff::Timestamp;
use std::fmt;
use std::path::{Path, PathBuf};
use wire::call::failed_process;
use wire::call::usage::{NAMES_MAX, figures_text};
use wire::id::HostName;
use wire::time::Time;

/// Name of the log filter of the log.
pub const FILTER: &str = "visperf-usage";

/// Name of the file.
pub const NAME: &str = "usage.log";

/// Length after which the file is followed by a new one: some thirty thousand jobs.
pub const LEN_MAX_BYTES: u64 = 8 << 20;

/// A line, without its line end.
pub(super) struct Line<'a> {
    pub(super) report: &'a Report,
    pub(super) host: &'a HostName,
    /// Name of its user, if the host knows it.
    pub(super) user: Option<&'a str>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { measured, is_over, .. } = self.report;
        let at = |time: Time| Timestamp::from_microsecond(time.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
        let jobs: Vec<&str> = measured.jobs.iter().take(NAMES_MAX).map(|job| job.as_str()).collect();
        let user = self.user.filter(|user| is_plain(user));
        write!(f, "{:.6} {}", at(measured.until), if *is_over { "over" } else { "running" })?;
        write!(f, " jobs={} host={} uid={} user=", jobs.join(","), self.host, measured.uid)?;
        match user {
            Some(user) => f.write_str(user)?,
            None => write!(f, "{}", measured.uid)?,
        }
        write!(f, " evidence={}", if measured.is_proved { "cgroup" } else { "environment" })?;
        write!(f, " by={} started={:.6}", measured.by(), at(measured.started))?;
        write!(f, " figures={}", figures_text(&measured.figures()))?;
        match measured.failures.stated().as_slice() {
            [] => Ok(()),
            failed => write!(f, " failed={}", failed_process::text(failed)),
        }
    }
}

fn is_plain(user: &str) -> bool {
    !user.is_empty() && user.len() <= 256 && user.chars().all(|c| !c.is_whitespace() && !c.is_control())
}

/// Folder of the log.
pub(super) fn folder(state: &Path) -> PathBuf {
    state.join("job-usage")
}

/// Returns how a sensor with this state folder follows the log.
#[must_use]
pub fn spec(state: &Path) -> Spec {
    Spec::of_own_log(&folder(state), "usage", FILTER)
}

#[cfg(test)]
mod tests {
    use super::super::measurement::{Counters, Measurement};
    use super::*;

    #[test]
    fn a_line_has_the_form_that_its_filter_reads() {
        let measured = Measurement {
            jobs: vec!["slurm:94_1".into(), "slurm:95".into()],
            uid: 1000,
            started: Time::from_micros(1_796_032_682_120_000),
            until: Time::from_micros(1_796_032_807_000_000),
            processes: 3,
            total: Counters { cpu_ns: 84_120_331_500, ..Counters::default() },
            ..Measurement::default()
        };
        let whose = std::sync::Arc::new(crate::job_series::piece::tests::whose("slurm:95", 1000));
        let report = Report { measured, is_over: false, whose };
        let host = HostName::try_from("wn01").expect("a name");
        let text = |user: Option<&str>| Line { report: &report, host: &host, user }.to_string();
        let line = text(Some("ann"));
        let start = "2026-11-30T10:00:07.000000Z running jobs=slurm:94_1,slurm:95 host=wn01 uid=1000 user=ann \
                     evidence=environment by=processes started=2026-11-30T09:58:02.120000Z figures=cpu_time=84120331,";
        assert!(line.starts_with(start), "{line}");
        for odd in ["a b", "", "a\nb"] {
            assert!(text(Some(odd)).contains(" user=1000 "), "{odd:?}");
        }
        assert!(text(None).contains(" user=1000 "));
    }
}
