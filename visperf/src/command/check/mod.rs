//! `visperf check`: a plugin for Nagios, Icinga and other programs that run Nagios plugins.
//!
//! Shell. Rule: standard output has one line, and the exit code is the state: 0 OK, 1 warning, 2 critical, 3
//! unknown, also for a wrong command line and for a daemon that does not answer.
//! Not here: the meaning of the answers (`subjects`), the line (`report`), ranges (`range`).

mod range;
mod report;
mod subjects;

use crate::client::Client;
use crate::client::target::Target;
use crate::command::query::LIMIT_MAX;
use crate::exit::{Failure, Level};
use crate::options::{OfDomain, chosen};
use crate::output::{Output, times};
use ::client::Error;
use ::client::Patience;
use compact_str::CompactString;
use overlay::clock;
use range::Range;
use report::Report;
use std::time::Duration;
use subjects::Thresholds;
use wire::api::domain::{HostsParams, SummaryParams};
use wire::api::metrics::{DomainMetricsParams, MetricsParams};
use wire::api::{Named, Request};
use wire::near_names;

/// Check hosts, sensors, the domain or a metric, as a plugin of Nagios or Icinga
///
/// Prints one line with performance data. Exit codes: 0 OK, 1 warning, 2 critical, 3 unknown. An unreachable
/// daemon is critical; a wrong command line or a fault of the daemon is unknown.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf check hosts                            critical if one does not report
  visperf check hosts --warning 0 --critical 5   warn for one, critical for six
  visperf check hosts --host se01 --host se02    these must be live
  visperf check sensors                          warn if one has a problem
  visperf check domain --domain UT-ICL --warning 1 --critical 5
  visperf check metric node_load1 --warning 32 --critical 64
  visperf check metric node_filesystem_avail_bytes --label mountpoint=/scratch \\
      --host se01 --critical 1073741824:

RANGE as in the Monitoring Plugins guidelines: 10 (alert below 0 or above 10),
10: (below 10), ~:10 (above 10), 10:20 (outside), @10:20 (inside).")]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

/// What is checked.
#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// Check hosts that do not report; RANGE is their number [default: --critical 0]
    Hosts {
        #[command(flatten)]
        common: Common,
        /// Only this host, which must be live; may be repeated [default: all hosts that should report]
        #[arg(long, value_name = "HOST", value_parser = chosen)]
        host: Vec<String>,
    },
    /// Check live sensors that report a problem; RANGE is their number [default: --warning 0]
    Sensors {
        #[command(flatten)]
        common: Common,
        /// Only the sensor of this host; may be repeated
        #[arg(long, value_name = "HOST", value_parser = chosen)]
        host: Vec<String>,
    },
    /// Check that the domain has a representative and complete data; RANGE is the response time in seconds
    Domain {
        #[command(flatten)]
        common: Common,
    },
    /// Check a metric of each host that has it; RANGE is its value
    Metric {
        #[command(flatten)]
        common: Common,
        /// Name of the metric, or a glob such as 'node_load*'
        #[arg(value_name = "NAME-GLOB")]
        name: String,
        /// Only the metric of this host
        #[arg(long, value_name = "HOST", value_parser = chosen)]
        host: Option<String>,
        /// Only metrics with this label, such as device=sda; may be repeated
        #[arg(long, value_name = "NAME=VALUE", value_parser = super::metrics::label)]
        label: Vec<(CompactString, CompactString)>,
        /// Maximum age of a value in seconds; older values are unknown
        #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
        max_age: f64,
    },
}

/// The options of every check.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    whose: OfDomain,
    /// Warning if outside this range
    #[arg(long, short, value_name = "RANGE", allow_hyphen_values = true)]
    warning: Option<Range>,
    /// Critical if outside this range
    #[arg(long, short, value_name = "RANGE", allow_hyphen_values = true)]
    critical: Option<Range>,
    /// Timeout of the query in seconds, 1 to 300
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

/// Print the state.
///
/// # Errors
/// Every state but OK.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = report(&args.subject).unwrap_or_else(|failure| failed(&failure));
    print(&report)
}

fn print(report: &Report) -> Result<(), Failure> {
    let mut output = Output::stdout().whole();
    output.line(&report.line())?;
    output.flush()?;
    match report.level {
        Level::Ok => Ok(()),
        level @ (Level::Warning | Level::Critical | Level::Unknown) => Err(Failure::Check(level)),
    }
}

fn report(subject: &Subject) -> Result<Report, Failure> {
    match subject {
        Subject::Hosts { common, host } => {
            let answer = common.request(&HostsParams {})?;
            Ok(subjects::hosts(&answer.hosts, host, &common.thresholds()))
        }
        Subject::Sensors { common, host } => {
            let answer = common.request(&HostsParams {})?;
            Ok(subjects::sensors(&answer.hosts, host, &common.thresholds()))
        }
        Subject::Domain { common } => {
            let before = clock::now();
            let answer = common.request(&SummaryParams {})?;
            let took = clock::now().since(before).as_secs_f64();
            Ok(subjects::domain(&answer, took, &common.thresholds()))
        }
        Subject::Metric { common, name, host, label, max_age } => {
            let wanted = MetricsParams {
                name: Some(name.clone()),
                labels: Named(label.clone()),
                ..MetricsParams::default()
            };
            let params = DomainMetricsParams { metrics: wanted, host: host.clone() };
            let found = common.request(&params)?.metrics;
            if found.is_empty() {
                return Ok(subjects::unknown_metric(name, &common.near_metrics(name, host.as_deref())?));
            }
            let now = times::now().secs_f64();
            Ok(subjects::metric(&found, name, &common.thresholds(), (now, *max_age)))
        }
    }
}

impl Common {
    fn thresholds(&self) -> Thresholds<'_> {
        Thresholds { warning: self.warning.as_ref(), critical: self.critical.as_ref() }
    }

    /// Addition to the error for a metric that no answer has: `; did you mean node_load1?`, or that its
    /// labels match none.
    fn near_metrics(&self, name: &str, host: Option<&str>) -> Result<String, Failure> {
        let all = MetricsParams { limit: LIMIT_MAX, ..MetricsParams::default() };
        let params = DomainMetricsParams { metrics: all, host: host.map(ToOwned::to_owned) };
        let all = self.request(&params)?.metrics;
        let known = || all.iter().map(|metric| metric.name.as_str());
        Ok(match known().any(|known| known == name) {
            true => " with these labels".to_owned(),
            false => near_names::suggestion(name, known()),
        })
    }

    fn request<R: Request>(&self, request: &R) -> Result<R::Answer, Failure> {
        let mut client = Client::new(&self.target);
        let answer = client.request(request, &self.whose.about(), self.patience());
        answer.map(|answer| answer.typed).map_err(|error| explain(&mut client, R::METHOD, error))
    }

    fn patience(&self) -> Patience {
        Patience::of(Duration::from_secs(self.timeout))
    }
}

fn explain(client: &mut Client, method: &str, error: Error) -> Failure {
    if error.is_lost() {
        return Failure::Unreachable(error.to_string());
    }
    client.explain(method, error)
}

/// Subject of a status line that belongs to no particular check.
const PLUGIN: &str = "VISPERF";

/// Faults of a service that exists but cannot answer now: unavailable, timeout, busy.
const NOT_NOW: [i64; 3] = [-32011, -32004, -32005];

/// Report for a query without an answer.
fn failed(failure: &Failure) -> Report {
    let is_down = matches!(failure, Failure::Unreachable(_))
        || matches!(failure, Failure::Fault { code, .. } if NOT_NOW.contains(code));
    Report::new(PLUGIN, if is_down { Level::Critical } else { Level::Unknown }, text_of(failure.message()))
}

/// Print the state UNKNOWN for a wrong command line, with clap's message.
pub(crate) fn mistaken(message: &str) -> Failure {
    crate::output::report(message.trim_end());
    let first = message.lines().next().map(str::to_owned);
    print(&Report::new(PLUGIN, Level::Unknown, text_of(first))).err().unwrap_or(Failure::Closed)
}

fn text_of(message: Option<String>) -> String {
    let text = message.unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}
