//! DuckDB and pyarrow read exported days, and find what the daemon says.
//!
//! Rule: the SQL questions of `docs/archive.md` are asked as they are printed there. Not here: a bucket (`bucket`).

use super::*;

/// The question about hosts whose memory grew.
const GROWN: usize = 4;

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
        let value_of = |name: &str| day.get(name).map_or(Value::Null, |value| json!(value.as_f64().unwrap()));
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

/// A time of an answer in microseconds, as `parquet.py` prints it.
fn micros(time: &Value) -> Value {
    time.as_f64().map_or(Value::Null, |secs| json!((secs * 1e6).round() as i64))
}

/// A text of an answer; null if it is empty.
fn known(text: &Value) -> Value {
    Some(text).filter(|text| **text != json!("")).cloned().unwrap_or_default()
}

fn event(event: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attribute = |value: &Value| match value.as_array() {
        Some(texts) => texts.iter().map(text).collect::<Vec<_>>().join(","),
        None => text(value),
    };
    let attributes = event["attributes"].as_object().unwrap().iter();
    let attributes: serde_json::Map<String, Value> =
        attributes.map(|(name, value)| (name.clone(), json!(attribute(value)))).collect();
    json!([
        event["id"],
        event["kind"],
        micros(&event["time"]),
        micros(&event["seen"]),
        known(&event["call"]),
        known(&event["job"]),
        known(&event["user"]),
        known(&event["from"]),
        known(&event["to"]),
        event["outcome"],
        micros(&event["submitted"]),
        micros(&event["started"]),
        micros(&event["ended"]),
        attributes,
        event["source"]["host"],
        event["source"]["file"],
        event["source"]["filter"],
        event["source"]["offset"]
    ])
}

fn call(call: &Value) -> Value {
    let micros = |name: &str| micros(&call[name]);
    let known = |name: &str| known(&call[name]);
    let id = call["id"].as_str().unwrap();
    json!([
        id,
        id.split(':').next(),
        call["job"],
        known("name"),
        known("user"),
        micros("submitted"),
        micros("started"),
        micros("ended"),
        call["outcome"],
        known("code"),
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
    expected
        .sort_by_key(|row| row.as_array().unwrap()[..4].iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(found["series"], json!(expected));
    let calls = found["calls"].as_array().unwrap();
    let of_daemon = site.calls();
    assert_eq!(calls.len(), of_daemon.len());
    for (found, expected) in calls.iter().zip(&of_daemon) {
        let ended = found[7].as_i64().unwrap();
        assert_eq!(found[13], json!(shown(Time::from_micros(ended))[..10]), "the day is that of the end");
        assert_eq!(found.as_array().unwrap()[..13], *call(expected).as_array().unwrap());
    }
    let events = found["events"].as_array().unwrap();
    let mut of_daemon: Vec<Value> = site.events().iter().map(event).collect();
    of_daemon.sort_by_key(|event| event[0].as_str().unwrap().to_owned());
    assert_eq!(events.len(), of_daemon.len());
    for (found, expected) in events.iter().zip(&of_daemon) {
        let time = Time::from_micros(found[2].as_i64().unwrap());
        assert_eq!(found[18], json!(shown(time)[..10]), "the day is that of the log");
        assert_eq!(found.as_array().unwrap()[..18], *expected.as_array().unwrap());
    }
    let process = |day: u32, (pid, name, job, signal): (u32, &str, Option<&str>, Option<u8>)| {
        json!(["trial-host", pid, name, job, site.day(day), 1800.0, 120, 1_u64 << 30, 120 * 4096, signal])
    };
    let init = (0..DAYS).map(|day| process(day, (1, "init", None, None)));
    let relax = (0..DAYS).map(|day| process(day, (70 + day, "relax", Some("slurm:1"), Some(9))));
    assert_eq!(found["processes"], json!(init.chain(relax).collect::<Vec<_>>()));
    let questions: Vec<u64> = serde_json::from_value(found["questions"].clone()).unwrap();
    // One asks about seven days; three are there.
    assert_eq!((questions.len(), questions[GROWN]), (8, 0), "{questions:?}");
    assert!(questions.iter().enumerate().all(|(at, rows)| at == GROWN || *rows > 0), "{questions:?}");
    assert_eq!(found["arrow"]["rows"], json!(ROWS * u64::from(DAYS)));
    assert_eq!(found["arrow"]["days"], json!([site.day(0), site.day(1), site.day(2)]));
}
