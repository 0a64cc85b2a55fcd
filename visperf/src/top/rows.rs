//! The processes of a round: read from answers, with how much they read and write a second, chosen by words, sorted.
//!
//! Pure.

use crate::output::clean;
use crate::output::figures::{number_of, text_of};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::channel::stream::Record;
use wire::process::{self, ProcessKey};

/// By what the rows are sorted: the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// CPU of late.
    Cpu,
    /// Memory.
    Memory,
    /// Bytes of storage read and written a second.
    Io,
    /// CPU time since it began.
    Time,
}

impl Order {
    /// All of them, with their words.
    pub(crate) const WORDS: [&'static str; 4] = ["cpu", "memory", "io", "time"];

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Order::Cpu => "cpu",
            Order::Memory => "memory",
            Order::Io => "io",
            Order::Time => "time",
        }
    }

    /// The one of this word; by CPU if there is none.
    pub(crate) fn of(word: &str) -> Order {
        match word {
            "memory" => Order::Memory,
            "io" => Order::Io,
            "time" => Order::Time,
            _ => Order::Cpu,
        }
    }

    /// How a sensor calls the order that comes nearest.
    pub(crate) const fn of_sensor(self) -> &'static str {
        match self {
            Order::Cpu | Order::Time => "cpu",
            Order::Memory => "memory",
            Order::Io => "io",
        }
    }
}

/// Which host of which domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) domain: String,
    pub(crate) host: String,
}

/// Which process of which host.
pub(crate) type Id = (Place, ProcessKey);

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) id: Id,
    pub(crate) user: String,
    pub(crate) state: String,
    /// The share of a core of late.
    pub(crate) cpu: Option<f64>,
    pub(crate) cpu_secs: f64,
    pub(crate) rss_bytes: f64,
    /// Bytes of storage read and written since it began.
    pub(crate) io_bytes: Option<f64>,
    /// The same, a second since the round before.
    pub(crate) io_rate: Option<f64>,
    pub(crate) threads: f64,
    pub(crate) name: String,
    pub(crate) command: String,
    /// As the sensor told it, for filters.
    pub(crate) record: Record,
}

/// A process in the answer of a sensor as the sensor itself has it.
fn record(key: ProcessKey, value: &Value) -> Record {
    let whole = |name: &str| value[name].as_u64();
    let small = |name: &str| whole(name).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let nanos = |name: &str| {
        number_of(value, name)
            .and_then(|secs| Duration::try_from_secs_f64(secs).ok())
            .and_then(|time| u64::try_from(time.as_nanos()).ok())
            .unwrap_or(0)
    };
    let state = process::State::ALL.into_iter().find(|state| state.as_str() == text_of(value, "state"));
    let switches = whole("voluntary_switches").zip(whole("involuntary_switches"));
    let usage = process::Usage {
        cpu_ns: nanos("cpu_seconds"),
        user_ns: nanos("user_seconds"),
        system_ns: nanos("system_seconds"),
        minor_faults: whole("minor_faults").unwrap_or(0),
        major_faults: whole("major_faults").unwrap_or(0),
        switches: switches.map(|(voluntary, involuntary)| process::Switches { voluntary, involuntary }),
        io: whole("read_bytes").zip(whole("written_bytes")).map(|(read_bytes, written_bytes)| process::Io {
            read_bytes,
            written_bytes,
            read_chars: whole("read_chars").unwrap_or(0),
            written_chars: whole("written_chars").unwrap_or(0),
        }),
    };
    let process = process::Process {
        key,
        parent: small("parent"),
        uid: small("uid"),
        threads: small("threads"),
        state: state.unwrap_or_default(),
        cgroup: whole("cgroup"),
        rss_kib: whole("rss_bytes").unwrap_or(0) >> 10,
        usage,
        name: text_of(value, "name").into(),
    };
    Record { process, cpu: number_of(value, "cpu") }
}

impl Process {
    /// The process in this answer of a sensor of `place`; `None` if it has no number.
    pub(crate) fn read(place: &Place, value: &Value) -> Option<Process> {
        let figure = |name: &str| number_of(value, name);
        let text = |name: &str| clean(text_of(value, name)).into_owned();
        let pid = u32::try_from(value["pid"].as_u64()?).ok()?;
        let key = ProcessKey { pid, start_ns: value["start_ns"].as_u64().unwrap_or(0) };
        let user = match text("user") {
            user if user.is_empty() => figure("uid").map(|uid| uid.to_string()).unwrap_or_default(),
            user => user,
        };
        Some(Process {
            id: (place.clone(), key),
            user,
            state: text("state"),
            cpu: figure("cpu"),
            cpu_secs: figure("cpu_seconds").unwrap_or(0.0),
            rss_bytes: figure("rss_bytes").unwrap_or(0.0),
            io_bytes: figure("read_bytes").zip(figure("written_bytes")).map(|(read, written)| read + written),
            io_rate: None,
            threads: figure("threads").unwrap_or(0.0),
            name: text("name"),
            command: text("command"),
            record: record(key, value),
        })
    }

    /// Whether every one of these words, in lower case, is in what it is called, its number, its user or its host.
    pub(crate) fn fits(&self, words: &[String]) -> bool {
        let (place, key) = &self.id;
        let texts = [&self.name, &self.command, &self.user, &place.host, &place.domain, &key.pid.to_string()]
            .map(|text| text.to_lowercase());
        words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }

    fn figure(&self, order: Order) -> f64 {
        match order {
            Order::Cpu => self.cpu.unwrap_or(0.0),
            Order::Memory => self.rss_bytes,
            Order::Io => self.io_rate.unwrap_or(0.0),
            Order::Time => self.cpu_secs,
        }
    }
}

/// The most first; what is equal by what it has used, then by its number, so that idle rows stand still.
pub(crate) fn sort(processes: &mut [Process], order: Order) {
    let by = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
    processes.sort_by(|a, b| {
        by(a.figure(order), b.figure(order))
            .then_with(|| by(a.cpu_secs, b.cpu_secs))
            .then_with(|| a.id.cmp(&b.id))
    });
}

/// What each process had read and written in the round before.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    before: BTreeMap<Id, f64>,
    at: Option<Duration>,
}

impl Totals {
    /// Give each process its rate since the round before; this round is at `at`.
    pub(crate) fn rate(&mut self, processes: &mut [Process], at: Duration) {
        let since = self.at.map(|before| at.saturating_sub(before).as_secs_f64()).filter(|secs| *secs > 0.0);
        for process in &mut *processes {
            let before = self.before.get(&process.id);
            process.io_rate = process
                .io_bytes
                .zip(before)
                .zip(since)
                .map(|((now, before), secs)| (now - before).max(0.0) / secs);
        }
        self.at = Some(at);
        self.before =
            processes.iter().filter_map(|process| Some((process.id.clone(), process.io_bytes?))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place() -> Place {
        Place { domain: "d".to_owned(), host: "wn01".to_owned() }
    }

    fn process(pid: u32, cpu: f64, rss: f64, io: f64) -> Process {
        let value = json!({"pid": pid, "start_ns": 5, "cpu": cpu, "rss_bytes": rss, "read_bytes": io,
            "written_bytes": 0, "cpu_seconds": 0.5, "name": format!("p{pid}"), "user": "ada"});
        Process::read(&place(), &value).expect("a process")
    }

    fn sorted(order: Order) -> Vec<u32> {
        let mut all =
            vec![process(1, 0.1, 300.0, 0.0), process(2, 0.3, 100.0, 0.0), process(3, 0.1, 200.0, 0.0)];
        let mut totals = Totals::default();
        totals.rate(&mut all, Duration::from_secs(10));
        all[2].io_bytes = Some(4096.0);
        totals.rate(&mut all, Duration::from_secs(12));
        sort(&mut all, order);
        all.iter().map(|process| process.id.1.pid).collect()
    }

    #[test]
    fn the_most_comes_first_and_equals_stand_still() {
        assert_eq!(sorted(Order::Cpu), [2, 1, 3]);
        assert_eq!(sorted(Order::Memory), [1, 3, 2]);
        assert_eq!(sorted(Order::Io), [3, 1, 2]);
        assert_eq!(sorted(Order::Time), [1, 2, 3]);
        for word in Order::WORDS {
            assert_eq!(Order::of(word).as_str(), word);
        }
    }

    #[test]
    fn a_rate_needs_two_rounds_of_the_same_process() {
        let mut totals = Totals::default();
        let mut first = [process(1, 0.0, 0.0, 1000.0)];
        totals.rate(&mut first, Duration::from_secs(1));
        assert_eq!(first[0].io_rate, None);
        let mut second = [process(1, 0.0, 0.0, 3000.0), process(2, 0.0, 0.0, 9.0)];
        totals.rate(&mut second, Duration::from_secs(3));
        assert_eq!((second[0].io_rate, second[1].io_rate), (Some(1000.0), None));
        // The number belongs to another one now.
        let mut third = [process(1, 0.0, 0.0, 9000.0)];
        third[0].id.1.start_ns = 6;
        totals.rate(&mut third, Duration::from_secs(4));
        assert_eq!(third[0].io_rate, None);
    }

    #[test]
    fn words_are_looked_for_in_all_that_names_it() {
        let fits = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            process(42, 0.0, 0.0, 0.0).fits(&words)
        };
        assert!(fits(&[]) && fits(&["p4"]) && fits(&["ada", "wn01"]) && fits(&["42"]));
        assert!(!fits(&["ada", "wn02"]));
        assert!(Process::read(&place(), &json!({"name": "x"})).is_none());
        let odd =
            Process::read(&place(), &json!({"pid": 1, "name": "a\u{1b}[2J", "uid": 7})).expect("a process");
        assert_eq!((odd.name.as_str(), odd.user.as_str()), ("a\\u{1b}[2J", "7"));
    }
}
