//! Days that are over are exported as Parquet files, which say what the daemon says.
//!
//! A sensor begins with three days of its own past in its state folder, as after a restart, and a log of jobs that ended
//! in these days. Not here: what a file holds, value by value (`history-files/tests`).

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

const DAY: Duration = Duration::from_secs(86_400);
/// A day is over this time after its end.
const COPIED_AFTER: Duration = Duration::from_secs(300);
/// Days that are over.
const DAYS: u32 = 3;
/// Samples are so far apart: three a minute.
const EVERY: Duration = Duration::from_secs(20);
/// Metrics of the host: more than one page of a day.
const METRICS: usize = 34;
/// Rows of a day: a minute each.
const ROWS: u64 = METRICS as u64 * 1440;
/// Jobs of each day.
const JOBS: u32 = 40;
/// Timeout for the log to be read and its calls to be stored.
const STORED: Duration = Duration::from_secs(30);

/// A sensor with a past.
struct Site {
    folder: tempfile::TempDir,
    _daemon: Daemon,
    address: SocketAddr,
    /// Start of the first day that is not over.
    today: Time,
}

impl Site {
    fn start() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let now = overlay::clock::calendar();
        let over = now.minus(COPIED_AFTER).micros();
        let today = Time::from_micros(over - over % DAY.as_micros() as i64);
        remember(&folder.path().join("state/sensor"), today.minus(DAY * DAYS), now);
        let log = folder.path().join("jobcomp.log");
        std::fs::write(&log, jobs(today.minus(DAY * DAYS))).unwrap();
        let config = folder.path().join("visperf.toml");
        let text = format!(
            "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nzone = \"UTC\"\n\n[[sensor.tail]]\npath = {:?}\nfilter = \"slurm-jobcomp\"\nstart = \"beginning\"\n",
            log.display().to_string()
        );
        std::fs::write(&config, text).unwrap();
        let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
        let (daemon, address) = Daemon::start(&folder.path().join("state"), &arguments).unwrap();
        let site = Site { folder, _daemon: daemon, address, today };
        wait::until(STORED, "all calls", || {
            let calls = site.calls();
            Ok(if calls.len() == (DAYS * JOBS) as usize {
                Seen::Done(())
            } else {
                Seen::NotYet(calls.len().to_string())
            })
        })
        .unwrap();
        site
    }

    fn calls(&self) -> Vec<Value> {
        let params = json!({"state": "ended", "order": "oldest", "limit": 10_000});
        query::result(self.address, "domain.calls", &params).unwrap()["calls"].as_array().unwrap().clone()
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("exported")
    }

    fn day(&self, number: u32) -> String {
        shown(self.today.minus(DAY * DAYS).plus(DAY * number))[..10].to_owned()
    }

    /// `visperf history ACTION PLACE …` as the user of the sensor.
    fn history(&self, action: &str, more: &[&str]) -> Output {
        self.history_of(action, self.place().as_ref(), more, &[])
    }

    fn history_of(&self, action: &str, place: &OsStr, more: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = program::command(program::visperf().unwrap());
        command.args(["history", action]).arg(place).args(more);
        if action != "list" {
            command.arg("--state").arg(self.folder.path().join("state"));
        }
        command.env("TMPDIR", self.folder.path()).envs(environment.iter().copied()).output().unwrap()
    }

    /// The records of the days that an export wrote.
    fn export(&self, more: &[&str]) -> Vec<Value> {
        let output = self.history("export", &[&["--json"], more].concat());
        assert!(output.status.success(), "{}", note(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A time in UTC, as `2026-11-26T00:00:00Z`.
fn shown(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros()).unwrap().to_string()
}

fn note(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Stores the metrics of a host from this time on.
fn remember(folder: &Path, since: Time, until: Time) {
    std::fs::create_dir_all(folder).unwrap();
    let limit = Limit { bytes: 256 << 20, age: DAY * 30 };
    let mut writer = Writer::open(&folder.join("history"), [limit; 3]).unwrap();
    let metric = |name: &str, unit: &str, semantics, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Arc::new(Metric { name: name.into(), labels, unit: unit.into(), semantics })
    };
    let cpu = |mode| {
        metric("node_cpu_seconds_total", "seconds", Semantics::Counter, &[("cpu", "0"), ("mode", mode)])
    };
    let mut metrics = vec![
        cpu("idle"),
        cpu("user"),
        metric("node_load1", "", Semantics::Gauge, &[]),
        metric("node_memory_MemAvailable_bytes", "bytes", Semantics::Gauge, &[]),
    ];
    let made_up = |number: usize| metric("made_up", "", Semantics::State, &[("number", &number.to_string())]);
    metrics.extend((metrics.len()..METRICS).map(made_up));
    let metrics: Arc<[Arc<Metric>]> = metrics.into();
    let host = HostName::try_from("trial-host").unwrap();
    let (mut time, mut number) = (since, 0u64);
    while time < until {
        let mut values = vec![
            Number::Real(number as f64 * 15.25),
            Number::Real(number as f64 * 4.75),
            Number::Real((number % 97) as f64 / 8.0),
            Number::Whole((1 << 34) - number * 4096),
        ];
        values.resize(METRICS, Number::Whole(number % 7));
        writer.push(&host, Sweep { time, metrics: &metrics, values: &values });
        (time, number) = (time.plus(EVERY), number + 1);
    }
    writer.close();
}

/// A log of jobs; every third failed.
fn jobs(since: Time) -> String {
    let second = |time: Time| shown(time)[..19].to_owned();
    let line = |number: u32| {
        let (day, place) = (number / JOBS, number % JOBS);
        let submit = since.plus(DAY * day + Duration::from_secs(60) * (place * 36));
        let (start, end) = (submit.plus(Duration::from_secs(90)), submit.plus(Duration::from_secs(600)));
        let (state, code) = if number.is_multiple_of(3) { ("FAILED", "1:0") } else { ("COMPLETED", "0:0") };
        let user = ["aliu", "mrossi"][number as usize % 2];
        format!(
            "JobId={} UserId={user}(1002) GroupId={user}(1002) Name=relax JobState={state} Partition=short TimeLimit=60 StartTime={} EndTime={} NodeList=trial-host NodeCnt=1 ProcCnt=1 WorkDir=/home/{user} ReservationName= Tres= Account= QOS= WcKey= Cluster=unknown SubmitTime={} EligibleTime={} DerivedExitCode=0:0 ExitCode={code} \n",
            number + 1,
            second(start),
            second(end),
            second(submit),
            second(submit)
        )
    };
    (0..DAYS * JOBS).map(line).collect()
}

fn rows(day: &Value, table: &str) -> u64 {
    let files = day["files"].as_array().unwrap();
    files.iter().find(|file| file["table"] == *table).unwrap()["rows"].as_u64().unwrap()
}

#[test]
fn every_day_that_is_over_is_exported_once() {
    let site = Site::start();
    let status = site.history("status", &[]);
    assert!(note(&status).contains("No such file"), "{}", note(&status));
    let exported = site.export(&["--until", &site.day(0)]);
    assert_eq!(exported.len(), 1, "{exported:?}");
    let status = site.history("status", &[]);
    let expected = format!("of 3 days that are over, 2 are not exported to {}", site.place().display());
    assert!(note(&status).contains(&expected), "{}", note(&status));
    let exported = site.export(&[]);
    let days: Vec<&str> = exported.iter().map(|day| day["date"].as_str().unwrap()).collect();
    assert_eq!(days, [site.day(1), site.day(2)]);
    for day in &exported {
        assert_eq!(rows(day, "metrics"), ROWS, "{day}");
        assert_eq!((rows(day, "calls"), &day["behind"]), (u64::from(JOBS), &json!([])));
    }
    assert!(site.export(&[]).is_empty());
    let none = site.history("export", &[]);
    assert!(note(&none).contains("nothing to do: 3 days in "), "{}", note(&none));

    // An export that was interrupted has no record of its last day.
    let record = format!("_visperf/domain=trial/date={}.json", site.day(1));
    std::fs::remove_file(site.place().join(record)).unwrap();
    let again = site.export(&[]);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0]["files"], exported[0]["files"], "the same bytes");
    let listed = site.history("list", &["--verify"]);
    assert!(listed.status.success() && note(&listed).contains("6 of 6 files are as they were exported"));

    // A record that cannot be read stops no other day.
    let records =
        [0, 2].map(|day| site.place().join(format!("_visperf/domain=trial/date={}.json", site.day(day))));
    std::fs::write(&records[0], "{").unwrap();
    std::fs::remove_file(&records[1]).unwrap();
    let broken = site.history("export", &[]);
    assert_eq!(broken.status.code(), Some(1), "{}", note(&broken));
    assert!(note(&broken).contains("1 day exported") && note(&broken).contains("delete the file"));
    std::fs::remove_file(&records[0]).unwrap();
    assert_eq!(site.export(&[]).len(), 1);

    let file = site.place().join(again[0]["files"][0]["path"].as_str().unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let listed = site.history("list", &["--verify"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(note(&listed).contains("5 of 6 files are") && note(&listed).contains("metrics.parquet"));
    assert_eq!(site.export(&["--again", "--since", &site.day(1), "--until", &site.day(1)]).len(), 1);
    assert!(site.history("list", &["--verify"]).status.success());
}

#[test]
fn a_day_that_is_not_over_is_written_again() {
    let site = Site::start();
    let today = site.day(DAYS);
    let export = || site.export(&["--today", "--since", &today, "--until", &today]);
    let [first, second] = [export(), export()];
    let until = |days: &[Value]| days[0]["until"].as_f64().unwrap();
    assert_eq!((first.len(), first[0]["date"].as_str()), (1, Some(today.as_str())));
    assert!(until(&second) > until(&first));
    let listed = site.history("list", &["--verify"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("not over") && listed.status.success());
    let status = site.history("status", &[]);
    assert!(note(&status).contains("of 3 days that are over, 3 are not exported"), "{}", note(&status));
}

#[test]
fn more_rows_are_not_replaced_by_fewer() {
    let site = Site::start();
    let day = [site.day(2), site.day(2)];
    let one = ["--again", "--since", &day[0], "--until", &day[1]];
    let mut exported = site.export(&one).remove(0);
    // As if minutes had expired since.
    exported["files"][0]["rows"] = json!(ROWS + 1);
    let record = site.place().join(format!("_visperf/domain=trial/date={}.json", site.day(2)));
    std::fs::write(record, exported.to_string()).unwrap();
    let kept = site.history("export", &one);
    assert!(
        note(&kept).contains("metrics.parquet: kept, as only 48960 rows of it are stored and seen now"),
        "{}",
        note(&kept)
    );
    let listed = site.history("list", &["--json", "--verify"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["files"], exported["files"]);
}

#[cfg(feature = "clients")]
mod readers {
    use super::*;

    /// Series of the daemon: sums of a day, as `parquet.py` prints them.
    fn series(site: &Site, number: u32) -> Vec<Value> {
        let since = site.today.minus(DAY * DAYS).plus(DAY * number);
        let secs = |time: Time| time.micros() / 1_000_000;
        let params = json!({
            "since": secs(since), "until": secs(since.plus(DAY)), "step": 86_400, "aggregate": "summary",
        });
        let answer = query::result(site.address, "domain.history", &params).unwrap();
        let row = |series: &Value| {
            let summaries = series["summaries"].as_array().unwrap();
            let [day] = summaries.as_slice() else { panic!("{series}") };
            let labels: Vec<String> = series["labels"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
                .collect();
            let labels = format!("{{{}}}", labels.join(", "));
            let value_of =
                |name: &str| day.get(name).map_or(Value::Null, |value| json!(value.as_f64().unwrap()));
            json!([
                series["host"],
                series["name"],
                labels,
                site.day(number),
                1440,
                day["count"],
                value_of("min"),
                value_of("max"),
                value_of("sum"),
                value_of("last"),
                value_of("increase"),
                since.micros(),
                60
            ])
        };
        answer["series"].as_array().unwrap().iter().map(row).collect()
    }

    fn call(call: &Value) -> Value {
        let micros = |name: &str| json!((call[name].as_f64().unwrap() * 1e6).round() as i64);
        let id = call["id"].as_str().unwrap();
        json!([
            id,
            id.split(':').next(),
            call["job"],
            call["name"],
            call["user"],
            micros("submitted"),
            micros("started"),
            micros("ended"),
            call["outcome"],
            call["code"],
            call["hosts"],
            call["tries"],
            call["events"]
        ])
    }

    /// The interpreter with DuckDB and pyarrow: `VISPERF_PYTHON`, else the one that `.ci/run` makes.
    pub(super) fn python() -> PathBuf {
        let otherwise = || program::workspace().join("target/clients/python/bin/python").into_os_string();
        std::env::var_os("VISPERF_PYTHON").unwrap_or_else(otherwise).into()
    }

    #[test]
    fn duckdb_and_pyarrow_read_what_the_daemon_answers() {
        let site = Site::start();
        assert_eq!(site.export(&[]).len(), DAYS as usize);
        let workspace = program::workspace();
        let output = program::command(python())
            .arg(workspace.join("tests/clients/parquet.py"))
            .arg(site.place())
            .arg(workspace.join("docs/archive.md"))
            .output()
            .unwrap_or_else(|error| panic!("{} must be installed: {error}", python().display()));
        assert!(output.status.success(), "{}", note(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut expected: Vec<Value> = (0..DAYS).flat_map(|number| series(&site, number)).collect();
        expected.sort_by_key(|row| {
            row.as_array().unwrap()[..4].iter().map(ToString::to_string).collect::<Vec<_>>()
        });
        assert_eq!(found["series"], json!(expected));
        let calls = found["calls"].as_array().unwrap();
        let of_daemon = site.calls();
        assert_eq!(calls.len(), of_daemon.len());
        for (found, expected) in calls.iter().zip(&of_daemon) {
            let ended = found[7].as_i64().unwrap();
            assert_eq!(found[13], json!(shown(Time::from_micros(ended))[..10]), "the day is that of the end");
            assert_eq!(found.as_array().unwrap()[..13], *call(expected).as_array().unwrap());
        }
        let questions: Vec<u64> = serde_json::from_value(found["questions"].clone()).unwrap();
        // The last two ask about a week and about a job that is there.
        assert_eq!((questions.len(), questions[3]), (5, 0), "{questions:?}");
        assert!(questions.iter().enumerate().all(|(at, rows)| at == 3 || *rows > 0), "{questions:?}");
        assert_eq!(found["arrow"]["rows"], json!(ROWS * u64::from(DAYS)));
        assert_eq!(found["arrow"]["days"], json!([site.day(0), site.day(1), site.day(2)]));
    }
}

#[test]
fn an_object_store_that_does_not_answer_is_said() {
    let site = Site::start();
    let place = OsStr::new("s3://bucket/prefix");
    let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    let unset = [endpoint, ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    let no_keys = site.history_of("export", place, &[], &unset);
    assert_eq!(no_keys.status.code(), Some(2), "{}", note(&no_keys));
    assert!(note(&no_keys).contains("found no AWS_ACCESS_KEY_ID"), "{}", note(&no_keys));
    let keys = [endpoint, ("AWS_ACCESS_KEY_ID", "public-id"), ("AWS_SECRET_ACCESS_KEY", "not-to-be-shown")];
    let silent = site.history_of("export", place, &[], &keys);
    assert_eq!(silent.status.code(), Some(1), "{}", note(&silent));
    assert!(note(&silent).contains("s3://bucket/prefix/_visperf/domain=trial/"), "{}", note(&silent));
    assert!(note(&silent).contains("Connection refused") && !note(&silent).contains("not-to-be-shown"));
    let wrong =
        site.history_of("export", place, &[], &[("AWS_ENDPOINT_URL", "127.0.0.1:9"), keys[1], keys[2]]);
    assert_eq!(wrong.status.code(), Some(2), "{}", note(&wrong));
}

/// An export to Garage, which speaks S3.
#[cfg(feature = "s3")]
mod bucket {
    use super::readers::python;
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::Child;

    const BUCKET: &str = "grid-history";
    const PLACE: &str = "s3://grid-history/physics";
    const KEY: &str = "GK0123456789abcdef01234567";
    const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// A server of one node in a folder.
    struct Garage {
        child: Child,
        port: u16,
    }

    impl Drop for Garage {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    impl Garage {
        fn start(folder: &Path, port: u16) -> Garage {
            let config = folder.join("garage.toml");
            let (data, metadata) = (folder.join("data"), folder.join("metadata"));
            let text = format!(
                "metadata_dir = {metadata:?}\ndata_dir = {data:?}\ndb_engine = \"sqlite\"\nreplication_factor = 1\nrpc_bind_addr = \"127.0.0.1:{}\"\nrpc_secret = \"{SECRET}\"\n[s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"127.0.0.1:{port}\"\n",
                free_port()
            );
            std::fs::write(&config, text).unwrap();
            let program = std::env::var_os("VISPERF_GARAGE").unwrap_or_else(|| "garage".into());
            let child = program::command(&program)
                .args(["server", "--single-node", "--default-bucket"])
                .env("GARAGE_CONFIG_FILE", &config)
                .envs([("GARAGE_DEFAULT_ACCESS_KEY", KEY), ("GARAGE_DEFAULT_SECRET_KEY", SECRET)])
                .env("GARAGE_DEFAULT_BUCKET", BUCKET)
                .stderr(std::fs::File::create(folder.join("garage.log")).unwrap())
                .spawn()
                .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
            let garage = Garage { child, port };
            wait::until(STORED, "a bucket", || {
                let log = std::fs::read_to_string(folder.join("garage.log")).unwrap();
                let is_there = TcpStream::connect(("127.0.0.1", port)).is_ok();
                Ok(if is_there { Seen::Done(()) } else { Seen::NotYet(log) })
            })
            .unwrap();
            garage
        }

        fn environment(&self) -> [(&'static str, String); 4] {
            [
                ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
                ("AWS_REGION", "garage".to_owned()),
                ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ]
        }
    }

    #[test]
    fn days_are_exported_to_an_object_store_and_go_on_after_it_was_away() {
        let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
        let garage = Garage::start(folder.path(), free_port());
        let port = garage.port;
        let environment = garage.environment();
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let history = |action, more: &[&str]| site.history_of(action, PLACE.as_ref(), more, &environment);
        let first = history("export", &["--until", &site.day(1)]);
        assert!(first.status.success(), "{}", note(&first));
        drop(garage);
        let away = history("export", &[]);
        assert_eq!(away.status.code(), Some(1), "{}", note(&away));
        let _garage = Garage::start(folder.path(), port);
        let rest = history("export", &[]);
        assert!(note(&rest).contains("1 day exported to s3://grid-history/physics"), "{}", note(&rest));
        let listed = history("list", &["--verify"]);
        assert!(note(&listed).contains("6 of 6 files"), "{}", note(&listed));
        let output = program::command(python())
            .arg(program::workspace().join("tests/clients/parquet_s3.py"))
            .args([format!("127.0.0.1:{port}"), PLACE["s3://".len()..].to_owned()])
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", note(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found, json!({"metrics": ROWS * u64::from(DAYS), "calls": JOBS * DAYS}));
    }
}
