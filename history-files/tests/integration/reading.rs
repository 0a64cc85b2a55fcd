//! Metrics of a day are read as they were, and only the groups of rows that can have what is wanted.

use crate::made::{START, call, file, history, minute, part, processes};
use history_files::destination::Destination;
use history_files::read::metrics::Wanted;
use history_files::table::{Table, TableFile};
use history_files::{calls, metrics, processes as table};
use std::sync::Arc;
use std::time::Duration;
use store::bucket::Bucket;
use wire::api::calls::Call;
use wire::event::Outcome;
use wire::id::HostName;
use wire::sample::{Number, Semantics};
use wire::time::Time;

/// Minutes and hours of each series.
const STEPS: usize = 12;

fn all() -> Wanted {
    Wanted {
        since: START,
        until: START.plus(Duration::from_secs(86_400)),
        host: None,
        name_start: String::new(),
        name: Arc::new(|_| true),
    }
}

fn named(start: &str) -> Wanted {
    let name = start.to_owned();
    Wanted { name_start: start.to_owned(), name: Arc::new(move |text| text == name), ..all() }
}

/// Host, mode, time and bucket of a row.
type Row = (String, String, Time, Bucket);

/// A folder with an exported file.
struct Place {
    folder: tempfile::TempDir,
    destination: Destination,
    file: history_files::day::DayFile,
}

impl Place {
    fn new(finished: history_files::table::Finished) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let destination = Destination::open(&folder.path().display().to_string(), true).expect("a folder");
        let file = destination.put(finished).expect("room");
        Place { folder, destination, file }
    }

    /// The rows, how many groups were read, and how many there are.
    fn read(&self, wanted: &Wanted) -> (Vec<Row>, (usize, usize)) {
        let mut rows = Vec::new();
        let groups = self.destination.metrics(&self.file, wanted, &mut |row| {
            assert_eq!(
                (row.metric.name.as_str(), row.metric.unit.as_str()),
                ("node_cpu_seconds_total", "seconds")
            );
            assert_eq!(row.metric.semantics, Semantics::Counter);
            let [(_, cpu), (_, mode)] = row.metric.labels.as_slice() else { panic!("{:?}", row.metric) };
            assert_eq!(cpu, "0");
            rows.push((row.host.as_str().to_owned(), mode.to_string(), row.time, row.bucket));
            true
        });
        (rows, groups.expect("a table of metrics"))
    }
}

fn exported() -> Place {
    Place::new(file(Table::Metrics, &metrics::rows(&history())))
}

#[test]
fn rows_are_read_as_they_were() {
    let place = exported();
    let (rows, groups) = place.read(&all());
    assert_eq!((rows.len(), groups), (4 * STEPS, (2, 2)), "a group for each host");
    let number = |value: f64| Number::Real(value).into();
    let bucket = Bucket {
        count: 60,
        min: number(7200.0),
        max: number(7259.0),
        sum: number(432_000.0),
        last: number(7259.0),
        increase: Some(number(60.0)),
        increase_millis: 59_500,
    };
    assert_eq!(rows[2], ("wn01".to_owned(), "idle".to_owned(), minute(120).0, bucket));
    assert_eq!((rows[STEPS].1.as_str(), rows[2 * STEPS].0.as_str()), ("user", "wn02"));
}

#[test]
fn only_groups_that_can_have_what_is_wanted_are_read() {
    let place = exported();
    let host = HostName::try_from("WN02.").expect("a name");
    let (rows, groups) = place.read(&Wanted { host: Some(host), ..all() });
    assert_eq!((rows.len(), groups), (2 * STEPS, (1, 2)));
    assert!(rows.iter().all(|row| row.0 == "wn02"));
    let found = |wanted: &Wanted| {
        let (rows, groups) = place.read(wanted);
        (rows.len(), groups.0)
    };
    assert_eq!(found(&named("node_cpu_seconds_total")), (4 * STEPS, 2));
    assert_eq!(found(&Wanted { name: Arc::new(|_| true), ..named("node_cpu") }), (4 * STEPS, 2));
    assert_eq!(found(&named("node_cpu")), (0, 2), "no metric has this name, but some could");
    assert_eq!((found(&named("node_a")), found(&named("node_d"))), ((0, 0), (0, 0)));
    assert_eq!(found(&Wanted { until: START, ..all() }), (0, 0));
    assert_eq!(found(&Wanted { since: minute(130).0, ..all() }), (0, 0));
    assert_eq!(found(&Wanted { since: minute(125).0, until: minute(127).0, ..all() }), (8, 2));
}

#[test]
fn reading_ends_when_no_more_is_wanted() {
    let place = exported();
    let mut rows = 0;
    let mut end = |_: &history_files::read::metrics::MetricRow| {
        rows += 1;
        rows < 5
    };
    place.destination.metrics(&place.file, &all(), &mut end).expect("a table of metrics");
    assert_eq!(rows, 5);
}

#[test]
fn calls_are_read_as_they_were() {
    let calls = [call(7, Outcome::Failed), call(8, Outcome::Finished)];
    let place = Place::new(file(Table::Calls, &calls::rows(&calls)));
    let mut found = Vec::new();
    place
        .destination
        .calls(&place.file, &mut |call| found.push(Call::from(&call)))
        .expect("a table of calls");
    assert_eq!(found, calls);
    let error = exported();
    let error = error.destination.calls(&error.file, &mut |_| ()).expect_err("a table of metrics");
    assert!(error.to_string().contains("metrics.parquet: expected the columns of "), "{error}");
}

#[test]
fn processes_are_read_as_they_were_and_only_those_of_a_host() {
    let of = |host: &str, hour: u32| table::rows(host, minute(60 * hour).0, &processes());
    let mut growing = TableFile::create(part(Table::Processes), &of("wn01", 0)).expect("a temporary file");
    for (host, hour) in [("wn01", 1), ("wn02", 0)] {
        growing.write(&of(host, hour)).expect("room");
    }
    let place = Place::new(growing.finish().expect("written"));
    let read = |host: Option<&str>| {
        let (host, mut found) = (host.map(|host| HostName::try_from(host).expect("a name")), Vec::new());
        place
            .destination
            .processes(&place.file, host.as_ref(), &mut |row| found.push((row.host, row.time, row.process)))
            .expect("a table of processes");
        found
    };
    let rows =
        |host: &str, hour: u32| processes().map(|process| (host.to_owned(), minute(60 * hour).0, process));
    assert_eq!(read(None), [rows("wn01", 0), rows("wn01", 1), rows("wn02", 0)].concat());
    assert_eq!(read(Some("WN02.")), rows("wn02", 0));
    assert!(read(Some("wn03")).is_empty());
    let error = exported();
    let error = error.destination.processes(&error.file, None, &mut |_| ()).expect_err("a table of metrics");
    assert!(error.to_string().contains("metrics.parquet: expected the columns of "), "{error}");
}

#[test]
fn what_is_no_table_of_metrics_is_named() {
    let of_calls = Place::new(file(Table::Calls, &calls::rows(&[call(7, Outcome::Failed)])));
    let error = of_calls.destination.metrics(&of_calls.file, &all(), &mut |_| true).expect_err("calls");
    assert!(error.to_string().contains("calls.parquet: expected the columns of "), "{error}");
    let place = exported();
    let path = place.folder.path().join(&place.file.path);
    let whole = std::fs::read(&path).expect("stored");
    for damaged in [&whole[..whole.len() - 7], b"", b"PAR1"] {
        std::fs::write(&path, damaged).expect("room");
        let error = place.destination.metrics(&place.file, &all(), &mut |_| true).expect_err("damaged");
        assert!(error.to_string().contains("metrics.parquet: "), "{error}");
    }
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, damaged).expect("room");
        for checksums in [place.file.checksums.clone(), String::new()] {
            let file = history_files::day::DayFile { checksums, ..place.file.clone() };
            let error = place.destination.metrics(&file, &all(), &mut |_| true).expect_err("damaged");
            assert!(error.to_string().contains("damaged"), "{at}: {error}");
        }
    }
}
