//! Made-up answers of a daemon.

use history_files::table::{Finished, Part, Rows, Table, TableFile};
use jiff::civil::{Date, date};
use std::time::Duration;
use wire::api::calls::Call;
use wire::api::history::{History, HistorySeries, StepSummary, TierPart};
use wire::api::metrics::{Semantics, Value};
use wire::api::process_history::TopProcess;
use wire::api::{Named, UnixTime};
use wire::call::State;
use wire::event::Outcome;
use wire::sample::Number;
use wire::time::Time;

/// Start of the day of [`part`].
pub(crate) const START: Time = Time::from_micros(1_795_651_200_000_000);

pub(crate) const DATE: Date = date(2026, 11, 26);

pub(crate) fn part(table: Table) -> Part {
    Part { table, domain: "physics.example".to_owned(), date: DATE }
}

pub(crate) fn minute(number: u32) -> UnixTime {
    UnixTime(START.plus(Duration::from_secs(60) * number))
}

fn series(host: &str, mode: &str, summaries: Vec<StepSummary>) -> HistorySeries {
    HistorySeries {
        name: "node_cpu_seconds_total".into(),
        labels: Named(vec![("cpu".into(), "0".into()), ("mode".into(), mode.into())]),
        unit: "seconds".into(),
        semantics: Semantics::Counter,
        host: Some(host.into()),
        summaries,
        ..HistorySeries::default()
    }
}

/// Two hosts with two counters each: the first two hours are stored as hours, then ten minutes as minutes.
pub(crate) fn history() -> History {
    let of = |time, value: u64| {
        let whole = |value| Value(Number::Whole(value));
        StepSummary {
            time,
            count: 60,
            min: whole(value),
            max: whole(value + 59),
            sum: Value(Number::Real(60.0 * value as f64)),
            last: whole(value + 59),
            increase: Some(whole(60)),
            increase_secs: Some(59.5),
            rate: Some(60.0 / 59.5),
        }
    };
    let times = [0, 60].into_iter().chain(120..130);
    let summaries: Vec<StepSummary> =
        times.map(|number| of(minute(number), u64::from(number) * 60)).collect();
    let all = ["wn01", "wn02"].iter().flat_map(|host| ["idle", "user"].map(|mode| (*host, mode)));
    let tier = |tier: &str, since, until| TierPart { tier: tier.to_owned(), since, until };
    History {
        series: all.map(|(host, mode)| series(host, mode, summaries.clone())).collect(),
        tiers: vec![tier("1h", minute(0), minute(120)), tier("1m", minute(120), minute(1440))],
        ..History::default()
    }
}

pub(crate) fn call(number: u32, outcome: Outcome) -> Call {
    Call {
        id: format!("slurm:{number}"),
        job: number.to_string(),
        name: String::new(),
        user: "mrossi".to_owned(),
        from: String::new(),
        state: State::Ended,
        submitted: Some(minute(number)),
        offered: None,
        selected: None,
        started: Some(minute(number + 1)),
        ended: Some(minute(number + 9)),
        offers: Vec::new(),
        hosts: vec!["wn01".to_owned(), "wn02".to_owned()],
        outcome: Some(outcome),
        code: "1".to_owned(),
        signal: String::new(),
        reason: "quota \"exceeded\"\n".to_owned(),
        tries: 1,
        events: 4,
    }
}

/// A process that ended in the hour; what little is known of another.
pub(crate) fn processes() -> [TopProcess; 2] {
    let ended = TopProcess {
        pid: 4_194_304,
        start: minute(2),
        start_ns: u64::MAX >> 1,
        parent: 1,
        uid: u32::MAX,
        user: Some("mrossi".to_owned()),
        name: "relax \u{fc}".into(),
        command: Some("relax --hard".into()),
        job: Some("slurm:17".into()),
        minutes: 7,
        first: minute(3),
        last: minute(9),
        cpu_seconds: 410.25,
        cpu: 0.97,
        rss_max_bytes: 1 << 40,
        read_bytes: Some(0),
        written_bytes: Some(5),
        end: Some(minute(10)),
        exit_status: Some(0),
        signal: Some(9),
    };
    let little = TopProcess { pid: 2, name: "kthreadd".into(), minutes: 60, ..TopProcess::default() };
    [ended, little]
}

/// A file with these rows.
pub(crate) fn file(table: Table, rows: &Rows) -> Finished {
    TableFile::create(part(table), rows).expect("a temporary file").finish().expect("written")
}
