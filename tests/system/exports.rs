//! Days that are over are exported as Parquet files, which say what the daemon says.
//!
//! A sensor begins with three days of its own past in its state folder, as after a restart, and logs of jobs and
//! transfers that ended in these days. Not here: what a file holds, value by value (`history-files/tests`).

mod asking;
#[cfg(feature = "s3")]
mod bucket;
#[cfg(feature = "clients")]
mod readers;

use super::past;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};
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
/// Transfers of each day.
const TRANSFERS: u32 = 3;
/// Calls of each day.
const CALLS: u32 = JOBS + TRANSFERS;
/// Rows of processes of each day: two in each of two hours.
const PROCESSES: u64 = 4;
/// Timeout for the log to be read and its calls to be stored.
const STORED: Duration = Duration::from_secs(30);

/// A sensor with a past.
struct Site {
    folder: tempfile::TempDir,
    daemon: Daemon,
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
        remember(&folder.path().join("state"), today, Time::default());
        let since = today.minus(DAY * DAYS);
        remember_processes(&folder.path().join("state"), since);
        let tails = [("slurm-jobcomp", jobs(since)), ("gridftp-transfer", transfers(since))];
        let tails = tails.map(|(filter, text)| {
            let log = folder.path().join(filter).with_extension("log");
            std::fs::write(&log, text).unwrap();
            format!("[[sensor.tail]]\npath = {log:?}\nfilter = {filter:?}\nstart = \"beginning\"\n")
        });
        let config = folder.path().join("visperf.toml");
        let text = format!(
            "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nzone = \"UTC\"\n\n{}",
            tails.concat()
        );
        std::fs::write(&config, text).unwrap();
        let (daemon, address) = run(&folder);
        let site = Site { folder, daemon, address, today };
        wait::until(STORED, "all calls", || {
            let calls = site.calls();
            Ok(if calls.len() == (DAYS * CALLS) as usize {
                Seen::Done(())
            } else {
                Seen::NotYet(calls.len().to_string())
            })
        })
        .unwrap();
        site
    }

    /// Ends the sensor, deletes its history but what is later than a time, and starts it with more configuration.
    fn forget(self, until: Option<Time>, more: &str) -> Site {
        let Site { folder, daemon, today, .. } = self;
        daemon.stop().unwrap();
        let state = folder.path().join("state");
        std::fs::remove_dir_all(state.join("sensor/history")).unwrap();
        if let Some(until) = until {
            remember(&state, today, until);
        }
        let config = folder.path().join("visperf.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text + more).unwrap();
        let (daemon, address) = run(&folder);
        Site { folder, daemon, address, today }
    }

    fn calls(&self) -> Vec<Value> {
        let params = json!({"state": "ended", "order": "oldest", "limit": 10_000});
        query::result(self.address, "domain.calls", &params).unwrap()["calls"].as_array().unwrap().clone()
    }

    #[cfg(feature = "clients")]
    fn events(&self) -> Vec<Value> {
        // Events that the sensor reports of itself have the time of this test.
        let params = json!({"limit": 10_000, "until": self.today.minus(Duration::from_micros(1)).micros() as f64 / 1e6});
        query::result(self.address, "domain.events", &params).unwrap()["events"].as_array().unwrap().clone()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
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
            command.arg("--state").arg(self.state());
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

/// Stores the past of the host from the first day on, or from `since`.
fn remember(state: &Path, today: Time, since: Time) {
    let now = overlay::clock::calendar();
    let times = std::iter::successors(Some(today.minus(DAY * DAYS)), |time| Some(time.plus(EVERY)));
    let times = times.take_while(|time| *time < now);
    let numbered = (0..).zip(times).filter(|(_, time)| *time >= since);
    past::store(state, ("trial-host", METRICS), 256 << 20, numbered);
}

/// Stores two hours of processes of each day: one of root that goes on, and one of a job, which ends.
fn remember_processes(state: &Path, since: Time) {
    let minutes = (0..DAYS).flat_map(|day| (180..300).map(move |minute| (day, minute)));
    let minutes = minutes.map(|(day, minute)| {
        let mut rows = vec![past::row(1, 0, "init"), past::row(70 + day, 1002, "relax")];
        rows[1].job = Some("slurm:1".into());
        rows[1].end = (minute == 299).then_some((DAY.as_nanos() as u64 * u64::from(day + 1), 9));
        (since.plus(DAY * day + Duration::from_secs(60) * minute), rows)
    });
    past::store_processes(state, since, minutes);
}

/// Starts the sensor.
fn run(folder: &tempfile::TempDir) -> (Daemon, SocketAddr) {
    let config = folder.path().join("visperf.toml");
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.path().join("state"), &arguments).unwrap()
}

/// A time in UTC, as `2026-11-26T00:00:00Z`.
fn shown(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros()).unwrap().to_string()
}

fn note(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A log of jobs; every third failed, and some lost their host.
fn jobs(since: Time) -> String {
    let second = |time: Time| shown(time)[..19].to_owned();
    let line = |number: u32| {
        let (day, place) = (number / JOBS, number % JOBS);
        let submit = since.plus(DAY * day + Duration::from_secs(60) * (place * 36));
        let (start, end) = (submit.plus(Duration::from_secs(90)), submit.plus(Duration::from_secs(600)));
        let (state, code) = match number {
            number if number.is_multiple_of(3) => ("FAILED", "1:0"),
            number if number % 12 == 5 => ("NODE_FAIL", "0:0"),
            _ => ("COMPLETED", "0:0"),
        };
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

/// A log of transfers, each to another site than the one before.
fn transfers(since: Time) -> String {
    let digits = |time: Time| shown(time)[..19].replace(['-', 'T', ':'], "");
    let line = |number: u32| {
        let start = since.plus(DAY * (number / TRANSFERS) + Duration::from_secs(3600) * (number % TRANSFERS));
        format!(
            "DATE={}.000000 HOST=se01.alpha.example PROG=globus-gridftp-server NL.EVNT=FTP_INFO START={}.000000 USER=belle7 FILE=/srv/data/f{number}.dat BUFFER=131072 BLOCK=262144 NBYTES=83886080 VOLUME=/ STREAMS=4 STRIPES=1 DEST=[wn01.site{}.example] TYPE=RETR CODE=226\n",
            digits(start.plus(Duration::from_secs(20 + u64::from(number)))),
            digits(start),
            number % TRANSFERS,
        )
    };
    (0..DAYS * TRANSFERS).map(line).collect()
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
        assert_eq!((rows(day, "calls"), &day["behind"]), (u64::from(CALLS), &json!([])));
        assert_eq!((rows(day, "processes"), &day["silent"]), (PROCESSES, &Value::Null));
        assert!(rows(day, "events") >= u64::from(CALLS), "{day}");
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
    assert!(listed.status.success() && note(&listed).contains("12 of 12 files are as they were exported"));

    // A record that cannot be read stops no other day.
    let records =
        [0, 2].map(|day| site.place().join(format!("_visperf/domain=trial/date={}.json", site.day(day))));
    std::fs::write(&records[0], "{").unwrap();
    std::fs::remove_file(&records[1]).unwrap();
    let broken = site.history("export", &[]);
    assert_eq!(broken.status.code(), Some(1), "{}", note(&broken));
    assert!(note(&broken).contains("1 day exported") && note(&broken).contains("delete the file"));
    assert_eq!(site.export(&["--again", "--until", &site.day(0)]).len(), 1, "it is written again");
    assert!(site.export(&[]).is_empty());

    let file = site.place().join(again[0]["files"][0]["path"].as_str().unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let listed = site.history("list", &["--verify"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(note(&listed).contains("11 of 12 files are") && note(&listed).contains("metrics.parquet"));
    assert_eq!(site.export(&["--again", "--since", &site.day(1), "--until", &site.day(1)]).len(), 1);
    assert!(site.history("list", &["--verify"]).status.success());
}

#[test]
fn calls_of_all_replace_own_ones_and_not_the_other_way_round() {
    let site = Site::start();
    let anonymous = |more: &[&str]| {
        let address = site.address.to_string();
        let mut command = program::command(program::visperf().unwrap());
        command.args(["history", "export", "--json", "--connect", &address]).arg(site.place()).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", note(&output));
        output
    };
    let of_others = "stored calls and processes of other users are left out";
    assert!(note(&anonymous(&[])).contains(of_others));
    let listed = site.history("list", &[]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("own calls only, own processes only"));
    assert_eq!(site.export(&[]).len(), DAYS as usize, "by one who sees all");
    assert!(site.export(&[]).is_empty());
    let kept = anonymous(&["--again"]);
    assert!(
        ["calls", "processes"].iter().all(|table| note(&kept).contains(&format!("{table}.parquet: kept")))
            && !note(&kept).contains("of other users"),
        "{}",
        note(&kept)
    );
    let listed = site.history("list", &["--verify"]);
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("own calls only"));
    assert!(note(&listed).contains("12 of 12 files"), "{}", note(&listed));
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
    // As if minutes had expired since, of a day that was not over.
    exported["files"][0]["rows"] = json!(ROWS + 1);
    exported["until"] = json!(site.today.micros() as f64 / 1e6 - 3600.0);
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
    assert_eq!(
        listed["until"].as_f64(),
        exported["until"].as_f64(),
        "what is kept is still not of the whole day"
    );

    let file = site.place().join(listed["files"][0]["path"].as_str().unwrap());
    std::fs::write(file, "damaged").unwrap();
    let replaced = site.export(&one).remove(0);
    assert_eq!((rows(&replaced, "metrics"), &replaced["until"]), (ROWS, &Value::Null));
    assert!(site.history("list", &["--verify"]).status.success());
}

#[test]
fn an_export_waits_for_another_one_to_the_same_folder() {
    let site = Site::start();
    std::fs::create_dir_all(site.place().join("_visperf")).unwrap();
    let lock = std::fs::File::create(site.place().join("_visperf/lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = program::command(program::visperf().unwrap())
        .args(["history", "export"])
        .arg(site.place())
        .arg("--state")
        .arg(site.state())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(waiting.stderr.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("waiting for another export"));
    assert!(!site.place().join("metrics").exists());
    drop(lock);
    let last = lines.map(Result::unwrap).last();
    assert!(last.is_some_and(|last| last.contains("3 days exported")));
    assert!(waiting.wait().unwrap().success());
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
