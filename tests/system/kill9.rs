//! A sensor that is killed at arbitrary moments loses no event and reports none twice.
//!
//! A writer appends numbered lines and rotates the log, while the sensor that tails it is killed with SIGKILL
//! again and again, at moments drawn from a seed, and restarted on the same state. A reader continues from
//! its cursor throughout. At the end each line was received once, in one event.
//! `VISPERF_KILLS` sets the number of kills, `VISPERF_SEED` the seed.
//! Not here: files that are truncated, replaced or unreadable (the sensor's own tests).

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::grid::{Daemon, member};
use system_tests::ledger::{Ledger, Verdict};
use system_tests::logs::{Growth, ROTATED_KEPT, Writer};
use system_tests::query::{self, Answer};
use system_tests::random::Random;
use system_tests::wait;

/// Default number of kills: enough to hit each phase of a run, in half a minute.
const KILLS: u64 = 20;
/// Growth of the log.
const GROWTH: Growth = Growth {
    lines_per_sec: 5_000,
    rotate_every: Duration::from_secs(2),
    ahead_max: 50_000,
    kept: ROTATED_KEPT,
};
/// Longest life of a sensor before it is killed, in milliseconds.
const LIFE_MS: u64 = 700;
/// Timeout for a sensor to return what is on disk, without any progress.
const CATCH_UP: Duration = Duration::from_secs(60);
/// The same if it is known that some events are missing.
const CATCH_UP_IN_VAIN: Duration = Duration::from_secs(5);
/// Most events in one answer.
const PAGE: usize = 10_000;

struct Plan {
    kills: u64,
    seed: u64,
    /// The state is deleted before this start: then the test must detect an error.
    forget_before: Option<u64>,
}

/// Result of a run.
struct Outcome {
    verdict: Verdict,
    written: usize,
    cursors_refused: u32,
    /// Verdict on the journal read again from its start, if it still has everything.
    again: Option<Verdict>,
}

/// A client that reads all events, across any number of sensors.
struct Reader {
    cursor: String,
    ledger: Ledger,
    cursors_refused: u32,
    missed: u64,
}

impl Reader {
    fn new() -> Reader {
        Reader { cursor: String::new(), ledger: Ledger::default(), cursors_refused: 0, missed: 0 }
    }

    /// Read one page; returns its number of events.
    fn read(&mut self, address: SocketAddr) -> Result<usize> {
        let params = json!({ "cursor": self.cursor, "limit": PAGE });
        let page = match query::ask(address, "sensor.events", &params)? {
            Answer::Result(page) => page,
            Answer::Fault { code, message, .. } if self.cursor.is_empty() => {
                bail!("sensor.events from the beginning gave fault {code}: {message}")
            }
            Answer::Fault { .. } => {
                self.cursors_refused += 1;
                self.cursor.clear();
                return Ok(0);
            }
        };
        self.cursor = member(&page, "cursor")?.as_str().context("a cursor is a text")?.to_owned();
        self.missed += member(&page, "missed")?.as_u64().context("missed is a count")?;
        let events = member(&page, "events")?.as_array().context("events are an array")?;
        for event in events {
            self.enter(event)?;
        }
        Ok(events.len())
    }

    fn enter(&mut self, event: &Value) -> Result<()> {
        let text = |name| member(event, name).map(|value| value.as_str().unwrap_or_default().to_owned());
        let (id, kind, job) = (text("id")?, text("kind")?, text("job")?);
        // Anything but a submission (such as a gap) was not written, and is recorded as unexpected.
        let number = if kind == "job_submit" { job } else { event.to_string() };
        self.ledger.enter(&id, &number);
        Ok(())
    }

    /// Read until `count` numbers were received and no more arrive, or nothing has arrived for a long time.
    fn catch_up(&mut self, address: SocketAddr, count: usize, patience: Duration) -> Result<()> {
        let mut last = wait::now();
        loop {
            if self.read(address)? > 0 {
                last = wait::now();
            } else if self.ledger.count() >= count || wait::now() - last > patience {
                return Ok(());
            }
            std::thread::sleep(wait::PAUSE);
        }
    }
}

fn configure(folder: &Path) -> Result<PathBuf> {
    let log = folder.join("logs/slurmctld.log");
    std::fs::create_dir_all(folder.join("logs"))?;
    let path = folder.join("visperf.toml");
    let text = format!(
        "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nzone = \"UTC\"\n\n[[sensor.tail]]\npath = {:?}\nfilter = \"slurmctld\"\nstart = \"beginning\"\n",
        log.display().to_string()
    );
    std::fs::write(&path, text)?;
    Ok(path)
}

fn story(plan: &Plan) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let config = configure(folder.path())?;
    let state = folder.path().join("state");
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let (mut random, mut reader) = (Random::new(plan.seed), Reader::new());
    // A sensor knows the log before it rotates: those killed at their birth may take longer on a busy machine,
    // and files that were rotated before a log is known are not read.
    let (first, _) = Daemon::start(&state, &arguments)?;
    let writer = Writer::start(&folder.path().join("logs/slurmctld.log"), GROWTH)?;
    read_beyond(1, first, &mut reader, &writer)?;
    for number in 0..plan.kills {
        if plan.forget_before == Some(number) {
            std::fs::remove_dir_all(&state)?;
            wait_for_unread_file(&reader, &writer)?;
        }
        let daemon = Daemon::spawn(&state, &arguments)?;
        live_and_die(daemon, &mut random, &mut reader, &writer)
            .with_context(|| format!("in life {number}"))?;
    }
    let written = writer.stop()?;
    let (daemon, address) = Daemon::start(&state, &arguments)?;
    let patience = if plan.forget_before.is_some() { CATCH_UP_IN_VAIN } else { CATCH_UP };
    reader.catch_up(address, written, patience)?;
    let ended = daemon.stop()?;
    anyhow::ensure!(ended.success(), "expected a clean exit of the sensor after SIGTERM, found {ended}");
    let (_daemon, address) = Daemon::start(&state, &arguments)?;
    let mut again = Reader::new();
    while again.read(address)? > 0 {}
    // After one more start nothing is left for the first reader.
    while reader.read(address)? > 0 {}
    Ok(Outcome {
        verdict: reader.ledger.verdict(written),
        written,
        cursors_refused: reader.cursors_refused,
        again: (again.missed == 0).then(|| again.ledger.verdict(written)),
    })
}

/// Read from a sensor until `count` lines of the log were received from all sensors, and kill it.
fn read_beyond(count: usize, mut daemon: Daemon, reader: &mut Reader, writer: &Writer) -> Result<()> {
    let address = daemon.ready(system_tests::grid::READY)?;
    let start = wait::now();
    while reader.ledger.count() < count {
        anyhow::ensure!(wait::now() - start < CATCH_UP, "{} lines came out", reader.ledger.count());
        if reader.read(address)? == 0 {
            std::thread::sleep(wait::PAUSE);
        }
        writer.report_read(reader.ledger.count());
    }
    daemon.kill()
}

/// Wait until the log has a rotated file that was not read: a sensor without its state does not know it.
fn wait_for_unread_file(reader: &Reader, writer: &Writer) -> Result<()> {
    let file = GROWTH.lines_per_sec * usize::try_from(GROWTH.rotate_every.as_secs())?;
    let (count, start) = (reader.ledger.count() + 2 * file, wait::now());
    while writer.written() <= count {
        anyhow::ensure!(wait::now() - start < CATCH_UP, "{} of {count} lines were written", writer.written());
        std::thread::sleep(wait::PAUSE);
    }
    Ok(())
}

/// Read from a sensor until it is due to be killed. One in three is killed at a time after its start, so that
/// startups are interrupted too; the others live for a while after they are ready.
fn live_and_die(mut daemon: Daemon, random: &mut Random, reader: &mut Reader, writer: &Writer) -> Result<()> {
    let from_birth = random.below(3) == 0;
    let life = Duration::from_millis(random.below(LIFE_MS));
    let born = wait::now();
    let mut address = if from_birth { None } else { Some(daemon.ready(system_tests::grid::READY)?) };
    let dies = if from_birth { born + life } else { wait::now() + life };
    while wait::now() < dies {
        match address {
            Some(address) => _ = reader.read(address)?,
            None => address = daemon.look()?,
        }
        writer.report_read(reader.ledger.count());
        std::thread::sleep(wait::PAUSE);
    }
    daemon.kill()
}

pub(crate) fn from_environment(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
}

#[test]
fn a_sensor_killed_again_and_again_sends_every_line_once() {
    let (kills, seed) = (from_environment("VISPERF_KILLS", KILLS), from_environment("VISPERF_SEED", 1));
    let outcome = story(&Plan { kills, seed, forget_before: None }).unwrap();
    println!("{kills} kills, seed {seed}, {} lines: {}", outcome.written, outcome.verdict);
    assert!(outcome.written > 0, "nothing was written");
    assert!(outcome.verdict.is_clean(), "seed {seed}, {} lines: {}", outcome.written, outcome.verdict);
    assert_eq!(outcome.cursors_refused, 0, "seed {seed}: a cursor did not survive");
    if let Some(again) = outcome.again {
        assert!(again.is_clean(), "seed {seed}, read again: {again}");
    }
}

#[test]
fn a_sensor_that_forgets_its_state_is_found_out() {
    let outcome = story(&Plan { kills: 4, seed: 2, forget_before: Some(3) }).unwrap();
    println!("state deleted, {} lines: {}", outcome.written, outcome.verdict);
    let found = !outcome.verdict.duplicated.is_empty() || !outcome.verdict.lost.is_empty();
    assert!(found, "the story would not see a loss: {}", outcome.verdict);
}
