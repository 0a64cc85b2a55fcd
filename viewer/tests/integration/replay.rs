//! A real log of Slurm as the map draws it: the calls given by joining, each at its time, and the same
//! picture for the same time on every route to it.

use std::path::{Path, PathBuf};
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed::Update;
use viewer::grid::place::{HostState, Part};
use viewer::model::TimeChange;
use viewer::picture::headless::{Headless, Size};
use viewer::replay::{Plan, Reader};
use wire::time::Time;

const NOW: Time = Time::from_micros(1_795_300_000_000_000);

fn plan(names: &[&str]) -> Plan {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../log-filters/logs/slurm/22.05.8-alpha");
    let logs: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    Plan { logs, filter: None, zone: jiff::tz::TimeZone::UTC }
}

fn app() -> App {
    let mut reader =
        Reader::open(&plan(&["slurmctld.log", "jobcomp.log"]), NOW).expect("the logs are in the tree");
    reader.read(true, NOW).expect("they can be read");
    let mut app = App::new(
        Source::Log("slurmctld.log".into()),
        None,
        Settings::default(),
        jiff::tz::TimeZone::UTC,
        NOW,
    );
    app.take(NOW, Update::grid(reader.grid()));
    app
}

fn at(secs: f64) -> Time {
    // 2026-11-20T12:24:17Z, the start of the log.
    Time::from_secs_f64(1_795_177_457.0 + secs)
}

#[test]
fn a_real_log_is_drawn_whole() {
    let mut app = app();
    app.apply(TimeChange::StopAt(Time::from_micros(i64::MAX)));
    app.update(NOW, 0.0);
    let json = app.to_json();
    let calls = json["calls"].as_array().unwrap();
    // The completion record has a line for each job, and nothing is refused.
    let record = std::fs::read_to_string(&plan(&["jobcomp.log"]).logs[0]).unwrap();
    assert_eq!(calls.len(), record.lines().count());
    assert_eq!(json["refused"].as_array().unwrap().len(), 0);
    let outcomes = ["ok", "failed", "ended"].map(|word| json[word].as_u64().unwrap());
    let states = |words: &[&str]| {
        let fits = |line: &&str| words.iter().any(|word| line.contains(&format!("JobState={word} ")));
        record.lines().filter(fits).count() as u64
    };
    let expected =
        [states(&["COMPLETED"]), states(&["FAILED", "TIMEOUT", "NODE_FAIL"]), states(&["CANCELLED"])];
    assert_eq!(outcomes, expected);
    let hosts: Vec<&str> = app
        .model()
        .grid()
        .places
        .iter()
        .filter(|place| place.part == Part::Server)
        .map(|place| place.name.as_str())
        .collect();
    assert_eq!(hosts, ["wn01", "wn02", "wn03", "wn04"]);
}

/// Calls joined from logs by an independent loop in this test, and the number of lines with more than one
/// event.
fn joined(plan: &Plan) -> (std::collections::BTreeMap<String, wire::call::Call>, usize) {
    use log_filters::engine::{Engine, Source as Log};
    use wire::id::{Generation, SensorKey};
    let registry = log_filters::registry::Registry::shipped();
    let mut joiner = log_filters::join::Joiner::new(10_000);
    let mut several = 0;
    for (generation, path) in (1..).zip(&plan.logs) {
        let bytes = std::fs::read(path).expect("the logs are in the tree");
        let file_name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let Ok(choice) = registry.choice(&file_name, &bytes) else { panic!("no filter knows {file_name}") };
        let filter = choice.filter;
        let (host, cluster, zone) = ("localhost".to_owned(), String::new(), jiff::tz::TimeZone::UTC);
        let mut engine = Engine::new(std::sync::Arc::clone(filter), &Log { file_name, host, cluster, zone });
        let (mut offset, mut found) = (0, Vec::new());
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            engine.line(line.strip_suffix(b"\n").unwrap_or(line), offset, NOW, &mut found);
            offset += line.len() as u64;
        }
        engine.idle(NOW, &mut found);
        several += found.windows(2).filter(|pair| pair[0].offset == pair[1].offset).count();
        for one in &found {
            let (sensor, generation) = (SensorKey(0), Generation(generation));
            let id = wire::event::Id { sensor, generation, offset: one.offset, number: one.number };
            joiner.join(one, id);
        }
    }
    (joiner.calls().map(|call| (call.id.to_string(), call)).collect(), several)
}

#[test]
fn every_event_of_every_line_is_in_its_call() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../log-filters/logs/torque/2.4.16-delta");
    let logs = ["server_log.20261120", "accounting.20261120"].map(|name| folder.join(name)).into();
    let torque = Plan { logs, ..plan(&[]) };
    let mut several = 0;
    for plan in [plan(&["slurmctld.log", "jobcomp.log"]), torque] {
        let mut reader = Reader::open(&plan, NOW).unwrap();
        reader.read(true, NOW).unwrap();
        let (grid, (joined, lines)) = (reader.grid(), joined(&plan));
        several += lines;
        assert_eq!(grid.calls.len(), joined.len());
        for call in &grid.calls {
            let expected = &joined[&call.id];
            let facts =
                (expected.events, expected.tries, expected.submitted, expected.outcome, expected.state);
            assert_eq!(
                (call.events, call.tries, call.submitted, call.outcome, call.state),
                facts,
                "{}",
                call.id
            );
        }
    }
    assert!(several > 0, "no line of these logs has several events");
}

#[test]
fn hosts_are_as_the_log_says_at_each_time() {
    let app = app();
    let changed = app.model().grid().places.iter().flat_map(|place| &place.changes);
    let states: Vec<HostState> = changed.map(|&(_, state)| state).collect();
    for state in [HostState::Down, HostState::Draining, HostState::Live] {
        assert!(states.contains(&state), "one is {state:?} at some time");
    }
}

#[test]
fn pictures_of_one_time_are_the_same_bit_for_bit() {
    let size = Size { width: 900, height: 600, scale: 1.0 };
    let came_by = |ways: &[f64]| {
        let mut app = app();
        ways.iter().for_each(|&secs| app.apply(TimeChange::StopAt(at(secs))));
        Headless::new(size, NOW).picture(&mut app)
    };
    let direct = came_by(&[21.0]);
    assert_eq!(came_by(&[300.0, 3.0, 21.0]), direct);
    assert_ne!(came_by(&[22.0]), direct, "something moves");
    // Something is drawn: there are many colours.
    let colors: std::collections::BTreeSet<[u8; 3]> =
        (0..600).flat_map(|y| (0..900).map(move |x| (x, y))).map(|(x, y)| direct.pixel(x, y)).collect();
    assert!(colors.len() > 100, "{} colours", colors.len());
}

#[test]
fn a_log_that_grows_is_followed_and_one_that_is_no_log_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slurmctld.log");
    let whole = std::fs::read(&plan(&["slurmctld.log"]).logs[0]).unwrap();
    let (half, rest) = whole.split_at(whole.len() / 2);
    std::fs::write(&log, half).unwrap();
    let plan_of = |path: &Path| Plan { logs: vec![path.to_owned()], ..plan(&[]) };
    let mut reader = Reader::open(&plan_of(&log), NOW).unwrap();
    reader.read(false, NOW).unwrap();
    let before = reader.grid().calls.len();
    std::fs::OpenOptions::new()
        .append(true)
        .open(&log)
        .and_then(|mut file| std::io::Write::write_all(&mut file, rest))
        .unwrap();
    assert_eq!(reader.read(false, NOW).unwrap(), rest.len() as u64);
    let mut at_once = Reader::open(&plan(&["slurmctld.log"]), NOW).unwrap();
    at_once.read(false, NOW).unwrap();
    assert!(before > 0 && before < at_once.grid().calls.len());
    assert_eq!(reader.grid(), at_once.grid());

    let refused = |path: &Path| Reader::open(&plan_of(path), NOW).err().unwrap().to_string();
    assert!(refused(folder.path()).contains("found a folder"));
    assert!(refused(&folder.path().join("none")).contains("cannot read the log"));
    let other = folder.path().join("letter.txt");
    std::fs::write(&other, "Dear reader,\nnothing of this is a log.\n").unwrap();
    assert!(refused(&other).contains("--filter"), "{}", refused(&other));
    let named = Plan { filter: Some("slurmctl".into()), ..plan(&["slurmctld.log"]) };
    let text = Reader::open(&named, NOW).err().unwrap().to_string();
    assert!(text.contains("\"slurmctl\"; did you mean slurmctld"), "{text}");
}

#[test]
fn a_log_that_is_rotated_or_started_again_is_read_on_and_what_it_reported_stays() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slurmctld.log");
    let whole = std::fs::read(&plan(&["slurmctld.log"]).logs[0]).unwrap();
    let cut = |at: usize| at + whole[at..].iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let (one, other) = (cut(whole.len() / 4), cut(whole.len() * 3 / 4));
    let mut reader_of_all = Reader::open(&plan(&["slurmctld.log"]), NOW).unwrap();
    reader_of_all.read(true, NOW).unwrap();
    let ids = |reader: &Reader| reader.grid().calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>();

    std::fs::write(&log, &whole[..one]).unwrap();
    let mut reader = Reader::open(&Plan { logs: vec![log.clone()], ..plan(&[]) }, NOW).unwrap();
    reader.read(false, NOW).unwrap();
    assert!(reader.renew(NOW).unwrap().is_empty(), "it is the same file");
    // As logrotate does: the file is renamed, and a new one started, which is longer than what was read.
    std::fs::rename(&log, folder.path().join("slurmctld.log.1")).unwrap();
    assert!(reader.renew(NOW).unwrap().is_empty(), "there is none yet");
    std::fs::write(&log, &whole[one..other]).unwrap();
    assert_eq!(reader.renew(NOW).unwrap(), std::slice::from_ref(&log));
    reader.read(false, NOW).unwrap();
    // As copytruncate does: the file is truncated, and written on.
    std::fs::OpenOptions::new().write(true).truncate(true).open(&log).unwrap();
    assert_eq!(reader.renew(NOW).unwrap(), std::slice::from_ref(&log));
    std::fs::OpenOptions::new()
        .append(true)
        .open(&log)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &whole[other..]))
        .unwrap();
    reader.read(true, NOW).unwrap();
    assert_eq!(ids(&reader), ids(&reader_of_all));
    assert_eq!(reader.lines(), reader_of_all.lines());
}

#[test]
fn each_call_has_its_events_of_all_logs() {
    let mut reader = Reader::open(&plan(&["slurmctld.log", "jobcomp.log"]), NOW).unwrap();
    reader.read(false, NOW).unwrap();
    let grid = reader.grid();
    assert!(grid.calls.len() > 50);
    for call in &grid.calls {
        let events = reader.events_of(&call.id, NOW).unwrap();
        assert_eq!(events.len(), usize::try_from(call.events).unwrap().min(100), "{}", call.id);
        assert!(events.is_sorted_by_key(|event| event.time));
        let sources = |name: &str| events.iter().filter(|event| event.source == name).count();
        assert_eq!(sources("slurmctld.log") + sources("jobcomp.log"), events.len());
        assert_eq!(
            sources("jobcomp.log") > 0,
            call.ended.is_some(),
            "a record of each that is over: {}",
            call.id
        );
    }
    assert_eq!(reader.events_of("slurm:none", NOW).unwrap(), []);
}
