//! Restart of the engine at any point: restored from its saved state, it finds what it would have found.
//!
//! For every filter, over its own logs and over generated ones: lines changed, swapped, repeated, mixed with
//! those of other logs. The saved state is in turn the snapshot, and all changes so far.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{HOST_OF_LOG, SEEN, registry};
use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use log_filters::found::{Change, Found};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// Stops tried in each recorded log, evenly spread, besides those of the generated logs.
const STOPS: usize = 40;
/// Longest part of a recorded log that is read for each.
const LINES_MAX: usize = 700;

/// A recorded log: its name, its filter, its lines.
struct Log {
    name: String,
    filter: Arc<Filter>,
    lines: Vec<Vec<u8>>,
}

fn logs() -> &'static [Log] {
    static LOGS: LazyLock<Vec<Log>> = LazyLock::new(|| {
        let mut folders = vec![collection::folder()];
        let mut files: Vec<PathBuf> = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        let log = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let filter = Arc::clone(registry().choose(&name, &bytes)?);
            let lines = bytes.split(|&b| b == b'\n').take(LINES_MAX).map(<[u8]>::to_vec).collect();
            Some(Log { name, filter, lines })
        };
        files.iter().filter_map(log).collect()
    });
    assert!(LOGS.len() > 40, "only {} logs were found", LOGS.len());
    &LOGS
}

fn engine(filter: &Arc<Filter>, name: &str) -> Engine {
    let source = Source {
        file_name: name.to_owned(),
        host: HOST_OF_LOG.to_owned(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    Engine::new(Arc::clone(filter), &source)
}

#[derive(Clone, Copy, Debug)]
enum StoredForm {
    Snapshot,
    Changes,
}

/// Read the lines, restarting before each line of `stops`, with changes taken every `batch` lines.
fn read(
    log: (&Arc<Filter>, &str),
    lines: &[Vec<u8>],
    stops: &[usize],
    batch: usize,
    kept: StoredForm,
) -> Vec<Found> {
    let (filter, name) = log;
    let mut starts = vec![0u64];
    starts.extend(lines.iter().scan(0, |at, line| {
        *at += line.len() as u64 + 1;
        Some(*at)
    }));
    let (mut found, mut changes): (Vec<Found>, Vec<Change>) = (Vec::new(), Vec::new());
    let mut running = engine(filter, name);
    let mut stops = stops.iter().copied().peekable();
    let mut at = 0;
    while at < lines.len() {
        if stops.next_if_eq(&at).is_some() {
            running.take_changes(&mut changes);
            let all = match kept {
                StoredForm::Snapshot => running.snapshot(),
                StoredForm::Changes => changes.clone(),
            };
            if let Some(resume) = running.resume_offset() {
                at = starts.binary_search(&resume).expect("a record begins where a line does");
            }
            running = engine(filter, name);
            all.into_iter().for_each(|change| running.apply(change));
        }
        running.line(&lines[at], starts[at], SEEN, &mut found);
        at += 1;
        if at % batch == 0 {
            running.take_changes(&mut changes);
        }
    }
    running.idle(SEEN, &mut found);
    found
}

fn check(log: (&Arc<Filter>, &str), lines: &[Vec<u8>], stops: &[usize], batch: usize) {
    let expected = read(log, lines, &[], batch, StoredForm::Snapshot);
    for kept in [StoredForm::Snapshot, StoredForm::Changes] {
        let found = read(log, lines, stops, batch, kept);
        let at = expected.iter().zip(&found).position(|(one, other)| one != other);
        let at = at.or((expected.len() != found.len()).then(|| expected.len().min(found.len())));
        if let Some(at) = at {
            let (name, filter) = (log.1, log.0.name());
            panic!(
                "{name} ({filter}), {kept:?}, stops {stops:?}, batch {batch}: event {at} is\n{:?}\nexpected\n{:?}",
                found.get(at),
                expected.get(at)
            );
        }
    }
}

#[test]
fn a_stop_at_any_line_of_a_recorded_log_changes_nothing() {
    let mut events = 0;
    for log in logs() {
        let step = (log.lines.len() / STOPS).max(1);
        for stop in (0..log.lines.len()).step_by(step) {
            check((&log.filter, &log.name), &log.lines, &[stop], 7);
        }
        // Restart at every line; a record of several lines then ends only by `idle`.
        let whole = read((&log.filter, &log.name), &log.lines, &[], 1, StoredForm::Snapshot);
        events += whole.len();
    }
    assert!(events > 4_000, "{events} events are too few to show anything");
}

#[test]
fn the_test_sees_what_a_stop_would_lose() {
    // Without the saved state, some log must give other events; else the tests here could not fail.
    let forgetful = |log: &Log| {
        let middle = log.lines.len() / 2;
        let whole = read((&log.filter, &log.name), &log.lines, &[], 1, StoredForm::Snapshot);
        let mut parts = read((&log.filter, &log.name), &log.lines[..middle], &[], 1, StoredForm::Snapshot);
        let offset: u64 = log.lines[..middle].iter().map(|line| line.len() as u64 + 1).sum();
        let rest = read((&log.filter, &log.name), &log.lines[middle..], &[], 1, StoredForm::Snapshot);
        parts.extend(rest.into_iter().map(|found| Found { offset: found.offset + offset, ..found }));
        whole != parts
    };
    assert!(logs().iter().filter(|log| forgetful(log)).count() >= 3);
}

/// Origin of a line of the generated log.
#[derive(Clone, Debug)]
enum Made {
    Next,
    Any(prop::sample::Index),
    Foreign(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index),
    Byte(prop::sample::Index, u8),
}

fn made() -> impl Strategy<Value = Made> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Made::Next),
        4 => index().prop_map(Made::Any),
        1 => (index(), index()).prop_map(|(log, line)| Made::Foreign(log, line)),
        1 => index().prop_map(Made::Cut),
        1 => (index(), any::<u8>()).prop_map(|(at, byte)| Made::Byte(at, byte)),
    ]
}

/// Lines of the generated log; none contains a newline.
fn make(log: &Log, start: usize, steps: &[Made]) -> Vec<Vec<u8>> {
    let mut next = start;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for step in steps {
        let line = match step {
            Made::Any(index) => index.get(&log.lines).clone(),
            Made::Foreign(other, line) => line.get(&other.get(logs()).lines).clone(),
            Made::Next | Made::Cut(_) | Made::Byte(..) => {
                next += 1;
                let mut line = log.lines[next % log.lines.len()].clone();
                match step {
                    Made::Cut(at) if !line.is_empty() => line.truncate(at.index(line.len())),
                    Made::Byte(at, byte) if !line.is_empty() && *byte != b'\n' => {
                        let at = at.index(line.len());
                        line[at] = *byte;
                    }
                    Made::Next | Made::Any(_) | Made::Foreign(..) | Made::Cut(_) | Made::Byte(..) => {}
                }
                line
            }
        };
        lines.push(line);
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 3_000, ..Default::default() })]

    #[test]
    fn stops_in_a_made_log_change_nothing(
        log in any::<prop::sample::Index>(),
        start in any::<prop::sample::Index>(),
        steps in prop::collection::vec(made(), 1..60),
        stops in prop::collection::btree_set(0usize..60, 1..8),
        batch in 1usize..20,
    ) {
        let log = log.get(logs());
        let lines = make(log, start.index(log.lines.len()), &steps);
        check((&log.filter, &log.name), &lines, &stops.into_iter().collect::<Vec<_>>(), batch);
    }
}
