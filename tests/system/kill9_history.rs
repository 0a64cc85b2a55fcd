//! A sensor that is killed at arbitrary moments loses no stored sample older than ten seconds, and changes none.
//!
//! A log grows at 5,000 lines a second, while the sensor that tails it and samples its host ten times a second is
//! killed with SIGKILL again and again, at moments drawn from a seed, and restarted on the same state. Just before
//! each kill its samples are read. At the end each of them that was ten seconds old then is still there, and
//! none has another value. `VISPERF_STORED_KILLS` sets the number of kills, `VISPERF_SEED` the seed.
//! Not here: the same of the writer alone, with more kills (the tests of `store`), events ([`super::kill9`]).

use super::kill9::from_environment;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use system_tests::grid::{Daemon, member};
use system_tests::logs::{Growth, ROTATED_KEPT, Writer};
use system_tests::query::{self, Answer};
use system_tests::random::Random;
use system_tests::wait::{self, Seen};

/// Default number of kills.
const KILLS: u64 = 3;
/// Shortest life of a sensor before it is killed: its first samples are old enough then.
const LIFE_MIN: Duration = Duration::from_secs(11);
/// Random part of a life, in milliseconds: samples are written every 8 s.
const LIFE_SPAN_MS: u64 = 8_000;
/// What a kill may lose.
const LOST_MAX: Duration = Duration::from_secs(10);
/// Growth of the log.
const GROWTH: Growth = Growth {
    lines_per_sec: 5_000,
    rotate_every: Duration::from_secs(2),
    ahead_max: usize::MAX / 2,
    kept: ROTATED_KEPT,
};
/// The metrics that are read: some that change all the time.
const METRICS: &str = "node_cpu_*";
/// Time that is read at once, in seconds.
const WINDOW_SECS: f64 = 60.0;
/// Timeout for the history to be open.
const OPEN: Duration = Duration::from_secs(30);

/// Values by their series and time, in microseconds.
type Samples = BTreeMap<(String, i64), Value>;

fn configure(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder.join("logs"))?;
    let path = folder.join("visperf.toml");
    let log = folder.join("logs/slurmctld.log").display().to_string();
    let text = format!(
        "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nsample_hz = 10.0\n\n[[sensor.tail]]\npath = {log:?}\nfilter = \"slurmctld\"\nstart = \"beginning\"\n",
    );
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Read the samples of this time, in seconds.
fn read(address: SocketAddr, since: f64, until: f64) -> Result<Samples> {
    let params = json!({ "name": METRICS, "since": since, "until": until, "step": 0 });
    let answer = wait::until(OPEN, "a history that is open", || {
        Ok(match query::ask(address, "sensor.history", &params)? {
            Answer::Result(answer) => Seen::Done(answer),
            Answer::Fault { code, message, .. } => Seen::NotYet(format!("it gave fault {code}: {message}")),
        })
    })?;
    let items = |value: &Value, name: &str| -> Result<Vec<Value>> {
        Ok(member(value, name)?.as_array().with_context(|| format!("{name} is an array"))?.clone())
    };
    let mut samples = Samples::new();
    for series in items(&answer, "series")? {
        let name = format!("{}{}", member(&series, "name")?, member(&series, "labels")?);
        for sample in items(&series, "samples")? {
            let time = member(&sample, "time")?.as_f64().context("a time is a number")?;
            samples.insert((name.clone(), micros(time)), member(&sample, "value")?.clone());
        }
    }
    Ok(samples)
}

fn micros(secs: f64) -> i64 {
    (secs * 1e6).round() as i64
}

fn secs(micros: i64) -> f64 {
    micros as f64 / 1e6
}

fn newest(samples: &Samples) -> Result<i64> {
    samples.keys().map(|(_, time)| *time).max().context("expected samples, found none")
}

/// Result of a run.
struct Outcome {
    /// Samples that were old enough at a kill.
    due: usize,
    lost: usize,
    changed: usize,
}

/// Kill a sensor again and again; `between` is done after each kill.
fn story(kills: u64, seed: u64, between: impl Fn(&Path, u64)) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let (config, state) = (configure(folder.path())?, folder.path().join("state"));
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let mut random = Random::new(seed);
    let writer = Writer::start(&folder.path().join("logs/slurmctld.log"), GROWTH)?;
    let (mut seen, mut due) = (Samples::new(), BTreeSet::new());
    for number in 0..kills {
        let (daemon, address) = Daemon::start(&state, &arguments)?;
        std::thread::sleep(LIFE_MIN + Duration::from_millis(random.below(LIFE_SPAN_MS)));
        let now = clock();
        let samples = read(address, now - WINDOW_SECS, now)?;
        daemon.kill()?;
        let old = newest(&samples)? - LOST_MAX.as_micros() as i64;
        due.extend(samples.keys().filter(|(_, time)| *time < old).cloned());
        seen.extend(samples);
        between(&state, number);
    }
    writer.stop()?;
    let (_daemon, address) = Daemon::start(&state, &arguments)?;
    let mut stored = Samples::new();
    let mut from = secs(seen.keys().map(|(_, time)| *time).min().context("samples were seen")?);
    let end = secs(newest(&seen)?) + 1.0;
    while from < end {
        stored.extend(read(address, from, (from + WINDOW_SECS).min(end))?);
        from += WINDOW_SECS;
    }
    let lost = due.iter().filter(|key| !stored.contains_key(key)).count();
    let changed = seen.iter().filter(|(key, value)| stored.get(key).is_some_and(|now| now != *value));
    Ok(Outcome { due: due.len(), lost, changed: changed.count() })
}

/// Seconds since 1970.
#[allow(clippy::disallowed_methods)] // Times of a query are those of the calendar.
fn clock() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
#[allow(clippy::print_stdout)] // The figures of a test are read in its output.
fn a_killed_sensor_loses_no_stored_sample_older_than_ten_seconds_and_changes_none() {
    let (kills, seed) =
        (from_environment("VISPERF_STORED_KILLS", KILLS), from_environment("VISPERF_SEED", 1));
    let Outcome { due, lost, changed } = story(kills, seed, |_, _| ()).unwrap();
    println!("{kills} kills, seed {seed}: of {due} samples {lost} lost, {changed} changed");
    assert!(due > 0, "seed {seed}: no life was long enough");
    assert_eq!((lost, changed), (0, 0), "seed {seed}");
}

#[test]
fn a_sensor_that_loses_its_samples_is_found_out() {
    let delete = |state: &Path, number| {
        if number == 0 {
            std::fs::remove_dir_all(state.join("sensor/history")).unwrap();
        }
    };
    let Outcome { due, lost, .. } = story(1, 2, delete).unwrap();
    assert_eq!(lost, due, "all are lost");
    assert!(due > 0, "no life was long enough");
}
