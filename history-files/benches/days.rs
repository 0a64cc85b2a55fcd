//! Exported metrics: how fast a day is written, how much space it takes, and how long questions of it take, beside DuckDB.
//!
//! `VISPERF_HOSTS=500` sets how many hosts the day has, 20 by default; `VISPERF_PYTHON` names an interpreter with DuckDB,
//! whose times are measured in the same run.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark")]

use fastrand::Rng;
use history_files::day::DayFile;
use history_files::destination::Destination;
use history_files::metrics;
use history_files::read::metrics::Wanted;
use history_files::table::{Part, Table, TableFile};
use jiff::civil::date;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::merge::Merge;
use store::query::By;
use wire::api::history::{History, HistorySeries, StepSummary, TierPart};
use wire::api::metrics::{Semantics, Value};
use wire::api::{Named, UnixTime};
use wire::id::HostName;
use wire::sample::Number;
use wire::time::Time;

/// Start of the day.
const START: Time = Time::from_micros(1_795_651_200_000_000);
const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
/// Metrics of a host.
const METRICS: u32 = 213;
/// Samples of a minute.
const SAMPLES: u64 = 60;
const ROUNDS: usize = 7;
/// The metric of the questions, one of those of each host.
const NAME: &str = "made_up_100";

/// A day of a metric: a third are counters, a third stay what they are, the others wander.
fn series(rng: &mut Rng, host: &str, number: u32) -> HistorySeries {
    let is_counter = number.is_multiple_of(3);
    let mut value = rng.f64() * 1e6;
    let mut minute = |at: u32| {
        let step = if number % 3 == 1 { 50.0 } else { rng.f64() * 100.0 };
        let before = value;
        value += if is_counter { step } else { step - 50.0 };
        let real = |value: f64| Value(Number::Real((value * 100.0).round() / 100.0));
        StepSummary {
            time: UnixTime(START.plus(MINUTE * at)),
            count: SAMPLES,
            min: real(before.min(value)),
            max: real(before.max(value)),
            sum: real((before + value) * 30.0),
            last: real(value),
            increase: is_counter.then(|| real(step)),
            increase_secs: is_counter.then_some(60.0),
            rate: is_counter.then_some(step / 60.0),
        }
    };
    HistorySeries {
        name: format!("made_up_{number:03}").into(),
        labels: Named(vec![("device".into(), "eth0".into())]),
        semantics: if is_counter { Semantics::Counter } else { Semantics::Gauge },
        host: Some(host.into()),
        summaries: (0..1440).map(&mut minute).collect(),
        ..HistorySeries::default()
    }
}

/// Writes the day; returns its file and the time for the columns and the file alone.
fn write(destination: &Destination, hosts: u32) -> (DayFile, Duration) {
    let mut rng = Rng::with_seed(7);
    let tiers =
        vec![TierPart { tier: "1m".into(), since: UnixTime(START), until: UnixTime(START.plus(DAY)) }];
    let part = Part { table: Table::Metrics, domain: "physics".into(), date: date(2026, 11, 26) };
    let (mut file, mut took) = (None, Duration::ZERO);
    for host in 0..hosts {
        let host = format!("wn{host:03}.site.org");
        let series = (0..METRICS).map(|number| series(&mut rng, &host, number)).collect();
        let page = History { series, tiers: tiers.clone(), ..History::default() };
        let begin = Instant::now();
        let rows = metrics::rows(&page);
        match &mut file {
            None => file = Some(TableFile::create(part.clone(), &rows).unwrap()),
            Some(file) => file.write(&rows).unwrap(),
        }
        took += begin.elapsed();
    }
    let begin = Instant::now();
    let finished = file.unwrap().finish().unwrap();
    took += begin.elapsed();
    (destination.put(finished).unwrap(), took)
}

fn median(mut ask: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            ask();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// Asks one question; returns its time, and how many groups of rows were read and are there.
fn ask(
    destination: &Destination,
    file: &DayFile,
    wanted: &Wanted,
    step: Duration,
) -> (Duration, (usize, usize)) {
    let mut groups = (0, 0);
    let took = median(|| {
        let mut merge = Merge::new(step, false, 1_000_000);
        let each = &mut |row: &history_files::read::metrics::MetricRow| {
            merge.add(row.host, row.metric, row.time, &row.bucket)
        };
        groups = destination.metrics(file, wanted, each).unwrap();
        assert!(!merge.finish(&By::Series).unwrap().is_empty());
    });
    (took, groups)
}

/// The same questions of DuckDB, in the order in which they are asked of visperf; milliseconds.
fn duckdb(python: &Path, file: &Path, questions: &[String]) -> Vec<f64> {
    let script = "
import duckdb, statistics, sys, time
duckdb.sql('SET enable_progress_bar = false')
for sql in sys.argv[2:]:
    times = []
    for _ in range(7):
        begin = time.monotonic()
        duckdb.sql(sql.replace('FILE', f\"read_parquet('{sys.argv[1]}')\")).fetchall()
        times.append(time.monotonic() - begin)
    print(statistics.median(times) * 1e3)
";
    let output = Command::new(python).arg("-c").arg(script).arg(file).args(questions).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

fn main() {
    let hosts = std::env::var("VISPERF_HOSTS").map_or(20, |hosts| hosts.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::open(&folder.path().display().to_string(), true).unwrap();
    let (file, took) = write(&destination, hosts);
    let rows_per_second = file.rows as f64 / took.as_secs_f64();
    println!(
        "{hosts} hosts with {METRICS} metrics, a day by minutes: {} rows, {} bytes, {:.2} bytes a row",
        file.rows,
        file.len_bytes,
        file.len_bytes as f64 / file.rows as f64
    );
    println!("columns and file: {rows_per_second:.0} rows/s");
    let all = Wanted {
        since: START,
        until: START.plus(DAY),
        host: None,
        name_start: NAME.to_owned(),
        name: Arc::new(|name| name == NAME),
    };
    let host = HostName::try_from(format!("wn{:03}.site.org", hosts / 2).as_str()).unwrap();
    let questions = [
        ("a metric of a host, minutes", Wanted { host: Some(host.clone()), ..all.clone() }, MINUTE),
        ("a metric of all hosts, hours", all.clone(), MINUTE * 60),
        (
            "all metrics of a host, the day",
            Wanted {
                host: Some(host.clone()),
                name_start: String::new(),
                name: Arc::new(|_| true),
                ..all.clone()
            },
            DAY,
        ),
        (
            "all metrics of all hosts, the day",
            Wanted { name_start: String::new(), name: Arc::new(|_| true), ..all },
            DAY,
        ),
    ];
    let of_host = format!("host = '{}'", host);
    let of_name = format!("name = '{NAME}'");
    let summed = |condition: &str, step: &str| {
        format!(
            "SELECT host, name, labels, date_trunc('{step}', time) AS step, sum(count), min(min), max(max), sum(sum), sum(increase) FROM FILE WHERE {condition} GROUP BY ALL"
        )
    };
    let sql = [
        summed(&format!("{of_host} AND {of_name}"), "minute"),
        summed(&of_name, "hour"),
        summed(&of_host, "day"),
        summed("true", "day"),
    ];
    let python = std::env::var_os("VISPERF_PYTHON");
    let of_duckdb = python.map(|python| duckdb(python.as_ref(), &folder.path().join(&file.path), &sql));
    for (at, (question, wanted, step)) in questions.iter().enumerate() {
        let (took, (read, there)) = ask(&destination, &file, wanted, *step);
        let beside =
            of_duckdb.as_ref().map(|times| format!(", DuckDB {:.1} ms", times[at])).unwrap_or_default();
        println!("{question}: {:.1} ms, {read} of {there} groups{beside}", took.as_secs_f64() * 1e3);
    }
}
