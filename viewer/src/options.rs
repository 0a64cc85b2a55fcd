//! Command line: what is shown, and how.
//!
//! Rule: flags select what to show; the appearance is chosen in the window and stored there.

use crate::graphs::metric::Metric;
use crate::graphs::span::Span;
use crate::live::Plan;
use crate::live::via::{self, Proxy, Where};
use crate::picture::headless::{SCALE_MAX, SCALE_MIN, Size};
use client::proxy_address::ProxyAddress;
use jiff::tz::TimeZone;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Default address of a daemon.
pub const CONNECT_DEFAULT: &str = "127.0.0.1:7317";

/// File name extension of a saved grid.
pub const SAVED_ENDING: &str = ".visperf";

/// Source of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Logs,
    /// A saved grid.
    File(PathBuf),
    /// A daemon or a proxy, or the error in its specification.
    Daemon(Result<Plan, String>),
}

/// Show a grid: interaction map, graphs and tables, live or from a log
///
/// Without arguments it shows the grid of the daemon on this machine (`visperf up`).
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "visperf-viewer", version, max_term_width = 80)]
#[command(after_long_help = "Examples:
  visperf-viewer
  visperf-viewer UT-ICL K-JIST
  visperf-viewer --tab flock
  visperf-viewer --replay /var/log/slurm/slurmctld.log
  visperf-viewer --replay slurmctld.log jobcomp.log --search user:ada
  visperf-viewer --replay server.log --filter torque-server --zone UTC
  visperf-viewer --replay slurmctld.log --at 2026-11-20T12:30:00 \\
      --screenshot map.png --size 1280x800")]
pub struct Options {
    /// Domains to show [default: the domain of the daemon]; or a saved file (NAME.visperf)
    #[arg(value_name = "DOMAIN", conflicts_with = "replay")]
    pub domains: Vec<String>,
    /// Directory to query, on this machine; shows all its domains if none are named
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["connect", "replay"], value_parser = address)]
    pub directory: Option<SocketAddr>,
    /// Daemon to query, on this machine: HOST:PORT, or unix:PATH for a local socket, over which the daemon
    /// identifies the user [default: the daemon with a local socket, else 127.0.0.1:7317]
    #[arg(long, value_name = "ADDR", conflicts_with = "replay", value_parser = place)]
    pub connect: Option<Where>,
    /// State folder of the daemon to query, as passed to the daemon: its local socket is used
    #[arg(long, value_name = "DIR", env = "VISPERF_STATE")]
    pub state: Option<PathBuf>,
    /// Query through a proxy: HOST:PORT of its listener, then /d/DOMAIN (docs/firewalls.md)
    #[arg(long, value_name = "PROXY", env = "VISPERF_VIA", value_parser = via::door, requires = "account", conflicts_with_all = ["directory", "connect"])]
    pub via: Option<ProxyAddress>,
    /// Name of the account at the proxy
    #[arg(long, value_name = "NAME", env = "VISPERF_ACCOUNT", requires = "secret")]
    pub account: Option<String>,
    /// File with the secret of the account
    #[arg(long, value_name = "FILE", env = "VISPERF_SECRET")]
    pub secret: Option<PathBuf>,
    /// Certificate of the proxy, if no authority trusted by the system signed it
    #[arg(long, value_name = "FILE", env = "VISPERF_CERTIFICATE")]
    pub certificate: Option<PathBuf>,
    /// Show these logs of middleware instead of a grid
    #[arg(long, value_name = "LOG", num_args = 1..)]
    pub replay: Vec<PathBuf>,
    /// Filter for the logs: a name from `visperf filter list`, or a file
    ///
    /// Default: selected by each log's name and first lines.
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub filter: Option<String>,
    /// Time zone for display, and for timestamps without one [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    pub zone: Option<TimeZone>,
    /// Show only matching calls, as typed into the search field; with --tab jobs, matching jobs
    #[arg(long, value_name = "WORDS")]
    pub search: Option<String>,
    /// Start at this time: 2026-11-20T12:30:00, in the zone, or seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Write a picture (.png) instead of opening a window; needs no desktop
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub screenshot: Option<PathBuf>,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WxH", default_value = "1280x800", value_parser = size, requires = "screenshot")]
    pub size: (u32, u32),
    /// Pixels of the picture per point: 2 for high-resolution screens
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = scale, requires = "screenshot")]
    pub scale: f32,
    /// Use dark text on light background, whatever the desktop setting
    #[arg(long, conflicts_with = "dark")]
    pub light: bool,
    /// Use light text on dark background, whatever the desktop setting
    #[arg(long)]
    pub dark: bool,
    /// Open this tab: map, calls, graphs (or multiples: a small graph for each host), flock, sensors,
    /// jobs
    #[arg(long, value_name = "TAB", value_parser = ["map", "calls", "graphs", "multiples", "flock", "sensors", "jobs"])]
    pub tab: Option<String>,
    /// Metric to plot: cpu, disk, network, memory, load, or any metric by its name; * matches any characters;
    /// may be repeated
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse)]
    pub metric: Vec<Metric>,
    /// How much time the graphs show: 90s, 15m, 6h, 7d, 4w, up to 5y
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub span: Option<Duration>,
    /// Select this call, host, client or domain (in the tab of jobs, open this job); DOMAIN/HOST if several domains have a host of this name
    #[arg(long, value_name = "NAME")]
    pub select: Option<String>,
    /// Write the selection (else everything shown) to a file and exit: .csv, .json, or .visperf, which the
    /// viewer opens
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Print what is shown at that time as JSON and exit
    #[arg(long, conflicts_with = "screenshot")]
    pub tell: bool,
}

fn usual() -> Where {
    Where::usual(CONNECT_DEFAULT.parse().expect("it is an address"))
}

impl Options {
    /// The source of the data.
    #[must_use]
    pub fn what(&self) -> What {
        if !self.replay.is_empty() {
            return What::Logs;
        }
        if let [only] = &self.domains[..]
            && only.ends_with(SAVED_ENDING)
        {
            return What::File(only.into());
        }
        What::Daemon(self.plan())
    }

    /// The daemon to query.
    fn plan(&self) -> Result<Plan, String> {
        let mut plan = Plan {
            address: match (self.directory, &self.connect, &self.state) {
                (Some(directory), ..) => Where::from(directory),
                (None, Some(daemon), _) => daemon.clone(),
                (None, None, Some(folder)) if self.via.is_none() => Where::of_folder(folder)?,
                (None, None, _) => usual(),
            },
            domains: self.domains.clone(),
            is_directory: self.directory.is_some(),
        };
        if let (Some(door), Some(name), Some(secret)) = (&self.via, &self.account, &self.secret) {
            let proxy = Proxy::open(door.clone(), name, secret, self.certificate.as_deref())?;
            plan.domains.extend(via::domain(door).map(str::to_owned));
            plan.address = Where::Proxy(Arc::new(proxy));
            if plan.domains.is_empty() {
                return Err(format!("expected a domain to ask the proxy for, such as --via {door}/d/UT-ICL"));
            }
        }
        Ok(plan)
    }

    /// Whether the sensors tab is selected.
    #[must_use]
    pub fn shows_sensors(&self) -> bool {
        self.tab.as_deref() == Some("sensors")
    }

    /// Whether the tab of jobs is selected.
    #[must_use]
    pub fn shows_jobs(&self) -> bool {
        self.tab.as_deref() == Some("jobs")
    }

    /// Whether a graphs tab is selected.
    #[must_use]
    pub fn shows_graphs(&self) -> bool {
        matches!(self.tab.as_deref(), Some("graphs" | "multiples"))
    }

    #[must_use]
    pub fn picture_size(&self) -> Size {
        Size { width: self.size.0, height: self.size.1, scale: self.scale }
    }

    /// The time zone for display and for timestamps without one.
    #[must_use]
    pub fn zone(&self) -> TimeZone {
        self.zone.clone().unwrap_or_else(TimeZone::system)
    }

    /// The initial time.
    ///
    /// # Errors
    /// If it is no valid time; the text says what was expected.
    pub fn at(&self) -> Result<Option<Time>, String> {
        self.at.as_deref().map(|text| time(text, &self.zone())).transpose()
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .replace("localhost", "127.0.0.1")
        .parse()
        .map_err(|_| format!("expected HOST:PORT such as {CONNECT_DEFAULT}, found {text:?}"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "expected an address of this machine, found {text}: daemons answer queries on loopback only"
        )),
    }
}

/// Where a daemon of this machine is: its address, or its local socket.
fn place(text: &str) -> Result<Where, String> {
    match text.strip_prefix("unix:").map(PathBuf::from) {
        Some(path) if path.is_absolute() => Ok(Where::Local(path)),
        Some(path) => Err(format!(
            "expected the whole path of a socket after unix:, found {:?}",
            path.display().to_string()
        )),
        None => address(text).map(Where::from),
    }
}

fn zone(name: &str) -> Result<TimeZone, String> {
    match name {
        "local" => Ok(TimeZone::system()),
        _ => log_filters::calendar::zone(name),
    }
}

fn pair(text: &str) -> Result<(u32, u32), String> {
    let wrong =
        || format!("expected two numbers joined by an x, up to 16384 each (1280x800), found {text:?}");
    let (one, other) = text.split_once('x').ok_or_else(wrong)?;
    match (one.parse(), other.parse()) {
        (Ok(one), Ok(other)) if one <= 16_384 && other <= 16_384 => Ok((one, other)),
        _ => Err(wrong()),
    }
}

fn size(text: &str) -> Result<(u32, u32), String> {
    match pair(text)? {
        (0, _) | (_, 0) => Err(format!("expected a width and a height of 1 pixel or more, found {text:?}")),
        size => Ok(size),
    }
}

fn scale(text: &str) -> Result<f32, String> {
    let scale = text.parse().ok().filter(|scale| (SCALE_MIN..=SCALE_MAX).contains(scale));
    scale.ok_or_else(|| format!("expected a number from {SCALE_MIN} to {SCALE_MAX}, found {text:?}"))
}

fn picture(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_lowercase().as_str() {
        "png" => Ok(file),
        _ => Err(format!("expected a file that ends in .png, found {text:?}")),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("expected a number and a unit, such as 90s, 15m, 6h, 7d, 4w or 5y, found {text:?}");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let secs = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3_600.0,
        'd' => 86_400.0,
        'w' => 7.0 * 86_400.0,
        // Leap years fit: five years are the most.
        'y' => 366.0 * 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match number * secs {
        secs if Span::WIDTH_SECS.contains(&secs) => Ok(Duration::from_secs_f64(secs)),
        _ => Err(format!("expected a span of 2s to 5y, found {text:?}")),
    }
}

fn time(text: &str, zone: &TimeZone) -> Result<Time, String> {
    if let Ok(secs) = text.parse::<f64>()
        && secs.is_finite()
    {
        return Ok(Time::from_secs_f64(secs));
    }
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return Ok(Time::from_micros(stamp.as_microsecond()));
    }
    let day: jiff::civil::DateTime = text
        .parse()
        .map_err(|_| format!("expected --at with a time such as 2026-11-20T12:30:00, found {text:?}"))?;
    let zoned = day.to_zoned(zone.clone()).map_err(|error| format!("--at {text}: {error}"))?;
    Ok(Time::from_micros(zoned.timestamp().as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn the_command_line_is_sound_and_narrow() {
        Options::command().debug_assert();
        let help = Options::command().render_long_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn pictures_that_cannot_be_are_refused() {
        let check = |words: &str, expected: &str| {
            let line = ["visperf-viewer", "--screenshot"].into_iter().chain(words.split(' '));
            let text =
                Options::try_parse_from(line).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{words}: {text}");
        };
        check("map.png --size 1x1 --scale 0.25", "");
        check("map.PNG --scale 8", "");
        check("map.svg", "ends in .png, found \"map.svg\"");
        check("map.SVG", "ends in .png, found \"map.SVG\"");
        check("map", "ends in .png, found \"map\"");
        check("map.png --size 0x10", "1 pixel or more");
        check("map.png --size 99999x10", "up to 16384");
        check("map.png --scale 0", "from 0.25 to 8");
        check("map.png --scale NaN", "from 0.25 to 8");
    }

    #[test]
    fn times_are_read_in_their_zone() {
        let rome = TimeZone::fixed(jiff::tz::offset(1));
        let secs = |text: &str| time(text, &rome).map(Time::secs_f64);
        assert_eq!(secs("2026-11-20T12:30:00"), Ok(1_795_174_200.0));
        assert_eq!(secs("2026-11-20T12:30:00Z"), Ok(1_795_177_800.0));
        assert_eq!(secs("1795174200.5"), Ok(1_795_174_200.5));
        assert!(secs("noon").is_err() && secs("NaN").is_err());
    }

    #[test]
    fn a_state_folder_names_its_socket_and_one_without_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |rest: &str| format!("v --state {} {rest}", folder.path().display());
        let address = |line: &str| {
            let options =
                Options::try_parse_from(line.split(' ').filter(|word| !word.is_empty())).expect("valid");
            match options.what() {
                What::Daemon(plan) => plan.map(|plan| plan.address.to_string()),
                What::Logs | What::File(_) => panic!("{line}"),
            }
        };
        let refused = address(&line("")).expect_err("no daemon runs there");
        assert!(refused.contains("no daemon with a local socket runs"), "{refused}");
        std::fs::write(folder.path().join("listen"), "127.0.0.1:7317\nunix:/run/own.sock\n")
            .expect("written");
        assert_eq!(address(&line("")), Ok("/run/own.sock".to_owned()), "made by --socket");
        let socket = folder.path().join("sensor.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        assert_eq!(address(&line("")), Ok(socket.display().to_string()));
        assert_eq!(address(&line("--connect 127.0.0.1:99")), Ok("127.0.0.1:99".to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let parse = |line: &str| Options::try_parse_from(line.split(' ')).is_ok();
        assert!(parse("v UT-ICL K-JIST --directory localhost:7317"));
        assert!(parse("v --via proxy.example/d/UT-ICL --account ana --secret s"));
        assert!(parse("v --tab graphs --span 1.5h --at 2026-11-20T12:30:00"));
        assert!(parse("v --connect unix:/run/visperf/sensor.sock") && parse("v --state /tmp"));
        assert!(parse("v") && parse("v --connect localhost:99") && parse("v --replay a --screenshot a.png"));
        for wrong in [
            "v --connect 10.0.0.1:7317",
            "v --connect here",
            "v --connect unix:sensor.sock",
            "v --filter slurmctld",
            "v --size 10x10",
            "v --invent 20x500",
            "v --screenshot a.png --size 99999x1",
            "v --replay a --connect 127.0.0.1:1",
            "v --directory 127.0.0.1:1 --connect 127.0.0.1:1",
            "v UT-ICL --replay a",
            "v --via proxy.example",
            "v --via proxy.example --account ana",
            "v --via http://proxy.example --account ana --secret s",
            "v --via p.example --account ana --secret s --connect 127.0.0.1:1",
            "v --dark --light",
            "v --tab graphs --span 7",
            "v --tab graphs --span 9999d",
            "v --tab graphs --span é",
        ] {
            assert!(!parse(wrong), "{wrong}");
        }
    }
}
