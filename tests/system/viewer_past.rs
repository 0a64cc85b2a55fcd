//! The graphs of the viewer over the whole past of a sensor: the same values as its command line shows.

use super::past;
use std::process::{Command, Output};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program;
use wire::time::Time;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_MICROS: i64 = 3_600_000_000;
/// The past: until so long ago, samples so far apart.
const PARTS: [(Duration, Duration); 3] = [
    (Duration::from_secs(86_400), Duration::from_secs(300)),
    (Duration::from_secs(7_200), Duration::from_secs(20)),
    (Duration::ZERO, Duration::from_secs(1)),
];
/// Start of the past.
const AGO: Duration = Duration::from_secs(800 * 86_400);
const METRICS: usize = 8;
/// With these steps rates are compared too.
const WITH_RATES: [&str; 3] = ["1d", "10m", "1s"];
/// About what the minutes of 150 days need.
const TIER_BYTES: u64 = 4 << 20;

/// A sensor with a past of more than two years.
struct Site {
    folder: tempfile::TempDir,
    _daemon: Daemon,
    address: String,
    now: Time,
}

impl Site {
    fn start() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let now = overlay::clock::calendar();
        let state = folder.path().join("state");
        past::store(&state, ("wn01", METRICS), TIER_BYTES, (0..).zip(times(now)));
        let config = folder.path().join("visperf.toml");
        std::fs::write(&config, "[sensor]\ndomain = \"trial\"\nhost = \"wn01\"\n").unwrap();
        let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
        let (daemon, address) = Daemon::start(&state, &arguments).unwrap();
        Site { folder, _daemon: daemon, address: address.to_string(), now }
    }

    fn output(&self, mut command: Command, arguments: &[&str]) -> Output {
        command.args(arguments).args(["--connect", &self.address]);
        command.env("HOME", self.folder.path()).output().unwrap()
    }

    /// What the viewer draws of a metric until a time, over a span: times and values.
    fn drawn(&self, metric: &str, until: Time, span: &str, line: &str) -> Vec<(f64, f64)> {
        let file = self.folder.path().join("drawn.csv");
        let at = until.secs_f64().to_string();
        let arguments = ["--tab", "graphs", "--metric", metric, "--at", &at, "--span", span];
        let output = self.output(
            program::command(program::viewer().unwrap()),
            &[&arguments[..], &["--export", file.to_str().unwrap()]].concat(),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&file).unwrap();
        let rows = text.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|fields| fields[2] == line);
        rows.map(|fields| (fields[3].parse().unwrap(), fields[4].parse().unwrap())).collect()
    }

    /// What the command line shows of the same.
    fn shown(&self, metric: &[&str], (since, until): (Time, Time), step: &str) -> Vec<(f64, f64)> {
        let (since, until) = (since.secs_f64().to_string(), until.secs_f64().to_string());
        let mut command = program::command(program::visperf().unwrap());
        command.arg("metrics").args(metric);
        command.args(["--since", &since, "--until", &until, "--step", step, "--json"]);
        let output = self.output(command, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let is_wanted = |mode: Option<&str>| mode.is_none_or(|mode| mode == "user");
        let line = lines.find(|line| is_wanted(line["labels"]["mode"].as_str())).expect("a series");
        let samples = line["samples"].as_array().expect("samples").iter();
        samples.map(|sample| (sample["time"].as_f64().unwrap(), sample["value"].as_f64().unwrap())).collect()
    }

    /// Compare a line of the viewer with what the command line shows.
    fn compare(
        &self,
        (metric, line): (&str, &str),
        arguments: &[&str],
        (until, long, span): (Time, Duration, &str),
        step: &str,
    ) {
        let drawn = self.drawn(metric, until, span, line);
        let shown = self.shown(arguments, (until.minus(long), until), step);
        let within = |values: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let (from, to) = (until.minus(long).secs_f64(), until.secs_f64());
            values.iter().copied().filter(|(time, _)| *time >= from && *time < to).collect()
        };
        let (drawn, shown) = (within(&drawn), within(&shown));
        assert!(!drawn.is_empty(), "{metric} {span}");
        assert_eq!(drawn.len(), shown.len(), "{metric} {span}");
        for (one, other) in drawn.iter().zip(&shown) {
            let is_same = (one.1 - other.1).abs() <= other.1.abs() * 1e-12 && (one.0 - other.0).abs() < 1.0;
            assert!(is_same, "{metric} {span}: {one:?} {other:?}");
        }
    }
}

fn times(now: Time) -> impl Iterator<Item = Time> {
    let mut from = now.minus(AGO);
    PARTS.into_iter().flat_map(move |(until_ago, every)| {
        let (start, until) = (from, now.minus(until_ago));
        from = until;
        std::iter::successors(Some(start), move |time| Some(time.plus(every)))
            .take_while(move |time| *time < until)
    })
}

#[test]
fn graphs_of_any_time_have_the_values_of_the_history() {
    let site = Site::start();
    let ago = |time: Duration| site.now.minus(time);
    let a_year_ago = Time::from_micros(ago(DAY * 366).micros() / HOUR_MICROS * HOUR_MICROS + 60_000_000);
    // Samples are there of 14 days, minutes of 90: before that only hours answer.
    let cases = [
        (ago(DAY * 300), "366d", DAY * 366, "1d"),
        (ago(DAY * 100), "30d", DAY * 30, "1h"),
        (ago(DAY * 200), "7d", DAY * 7, "1h"),
        (a_year_ago, "5m", Duration::from_secs(300), "1h"),
        (ago(DAY * 20), "7d", DAY * 7, "10m"),
        (ago(DAY * 60), "5m", Duration::from_secs(300), "1m"),
        (ago(HOUR * 10), "6h", HOUR * 6, "1m"),
        (ago(Duration::from_secs(4_000)), "5s", Duration::from_secs(5), "1s"),
    ];
    for (until, span, long, step) in cases {
        site.compare(("load", "load of 1 minute"), &["node_load1"], (until, long, span), step);
        if !WITH_RATES.contains(&step) {
            continue;
        }
        let rates = ["node_cpu_seconds_total", "--agg", "rate", "--by", "mode"];
        site.compare(("cpu", "user"), &rates, (until, long, span), step);
    }
}
