//! Rows of the process table: read from answers, with I/O rates, search and sorting.
//!
//! Pure.

use crate::harmless::clean;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::processes::{self as api, ProcessOrder};
use wire::channel::stream::Record;
use wire::process::{self, ProcessKey};

/// Sort order, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Recent CPU use.
    Cpu,
    Memory,
    /// Bytes read from and written to storage per second.
    Io,
    /// CPU time since the start.
    Time,
}

impl Order {
    /// All keywords.
    pub(crate) const WORDS: [&'static str; 4] = ["cpu", "memory", "io", "time"];

    /// Its keyword.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Order::Cpu => "cpu",
            Order::Memory => "memory",
            Order::Io => "io",
            Order::Time => "time",
        }
    }

    /// The order of this keyword; by CPU if there is none.
    pub(crate) fn of(word: &str) -> Order {
        match word {
            "memory" => Order::Memory,
            "io" => Order::Io,
            "time" => Order::Time,
            _ => Order::Cpu,
        }
    }

    /// The closest order that a sensor supports.
    pub(crate) const fn of_sensor(self) -> ProcessOrder {
        match self {
            Order::Cpu | Order::Time => ProcessOrder::Cpu,
            Order::Memory => ProcessOrder::Memory,
            Order::Io => ProcessOrder::Io,
        }
    }
}

/// A host of a domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) domain: String,
    pub(crate) host: String,
}

/// A process of a host.
pub(crate) type Id = (Place, ProcessKey);

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) id: Id,
    pub(crate) user: String,
    pub(crate) state: String,
    /// Recent CPU use, as a share of a core.
    pub(crate) cpu: Option<f64>,
    pub(crate) cpu_secs: f64,
    pub(crate) rss_bytes: f64,
    /// Bytes read from and written to storage since the start.
    pub(crate) io_bytes: Option<f64>,
    /// The same per second, since the previous round.
    pub(crate) io_rate: Option<f64>,
    pub(crate) threads: f64,
    pub(crate) name: String,
    pub(crate) command: String,
    /// The process as the sensor's own type, for filters.
    pub(crate) record: Record,
}

/// Convert a process of an answer to the sensor's own type.
fn record(answered: &api::Process) -> Record {
    let nanos = |secs: f64| {
        let time = Duration::try_from_secs_f64(secs).ok();
        time.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0)
    };
    let switches = answered.voluntary_switches.zip(answered.involuntary_switches);
    let usage = process::Usage {
        cpu_ns: nanos(answered.cpu_seconds),
        user_ns: nanos(answered.user_seconds),
        system_ns: nanos(answered.system_seconds),
        minor_faults: answered.minor_faults,
        major_faults: answered.major_faults,
        switches: switches.map(|(voluntary, involuntary)| process::Switches { voluntary, involuntary }),
        io: answered.read_bytes.zip(answered.written_bytes).map(|(read_bytes, written_bytes)| process::Io {
            read_bytes,
            written_bytes,
            read_chars: answered.read_chars.unwrap_or(0),
            written_chars: answered.written_chars.unwrap_or(0),
        }),
    };
    let process = process::Process {
        key: answered.key(),
        parent: answered.parent,
        uid: answered.uid,
        threads: answered.threads,
        state: answered.state,
        cgroup: answered.cgroup,
        rss_kib: answered.rss_bytes >> 10,
        usage,
        name: answered.name.clone(),
    };
    Record { process, cpu: answered.cpu }
}

impl Process {
    /// A row for a process of the host `place`.
    #[allow(clippy::cast_precision_loss)] // amounts of bytes are shown with two digits
    pub(crate) fn of(place: &Place, answered: &api::Process) -> Process {
        let text = |text: Option<&str>| clean(text.unwrap_or_default()).into_owned();
        Process {
            id: (place.clone(), answered.key()),
            user: answered.user.as_deref().map_or_else(|| answered.uid.to_string(), |user| text(Some(user))),
            state: answered.state.as_str().to_owned(),
            cpu: answered.cpu,
            cpu_secs: answered.cpu_seconds,
            rss_bytes: answered.rss_bytes as f64,
            io_bytes: answered.io_bytes().map(|bytes| bytes as f64),
            io_rate: None,
            threads: answered.threads.into(),
            name: text(Some(&answered.name)),
            command: text(answered.command.as_deref()),
            record: record(answered),
        }
    }

    /// Whether each of these words, in lower case, is part of its name, command, PID, user, host or domain.
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

/// Sort, highest first; equal rows by CPU time, then by id, so that idle rows keep their place.
pub(crate) fn sort(processes: &mut [Process], order: Order) {
    let by = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
    processes.sort_by(|a, b| {
        by(a.figure(order), b.figure(order))
            .then_with(|| by(a.cpu_secs, b.cpu_secs))
            .then_with(|| a.id.cmp(&b.id))
    });
}

/// I/O totals of each process in the previous round.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    before: BTreeMap<Id, f64>,
    at: Option<Duration>,
}

impl Totals {
    /// Set each process's I/O rate since the previous round; this round is at `at`.
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

    fn place() -> Place {
        Place { domain: "d".to_owned(), host: "wn01".to_owned() }
    }

    fn process(pid: u32, cpu: f64, rss: u64, io: u64) -> Process {
        let answered = api::Process {
            pid,
            start_ns: 5,
            cpu: Some(cpu),
            rss_bytes: rss,
            read_bytes: Some(io),
            written_bytes: Some(0),
            cpu_seconds: 0.5,
            name: format!("p{pid}").into(),
            user: Some("ada".to_owned()),
            ..api::Process::default()
        };
        Process::of(&place(), &answered)
    }

    fn sorted(order: Order) -> Vec<u32> {
        let mut all = vec![process(1, 0.1, 300, 0), process(2, 0.3, 100, 0), process(3, 0.1, 200, 0)];
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
        let mut first = [process(1, 0.0, 0, 1000)];
        totals.rate(&mut first, Duration::from_secs(1));
        assert_eq!(first[0].io_rate, None);
        let mut second = [process(1, 0.0, 0, 3000), process(2, 0.0, 0, 9)];
        totals.rate(&mut second, Duration::from_secs(3));
        assert_eq!((second[0].io_rate, second[1].io_rate), (Some(1000.0), None));
        // The PID belongs to another process now.
        let mut third = [process(1, 0.0, 0, 9000)];
        third[0].id.1.start_ns = 6;
        totals.rate(&mut third, Duration::from_secs(4));
        assert_eq!(third[0].io_rate, None);
    }

    #[test]
    fn words_are_looked_for_in_all_that_names_it() {
        let fits = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            process(42, 0.0, 0, 0).fits(&words)
        };
        assert!(fits(&[]) && fits(&["p4"]) && fits(&["ada", "wn01"]) && fits(&["42"]));
        assert!(!fits(&["ada", "wn02"]));
        let odd = api::Process { name: "a\u{1b}[2J".into(), uid: 7, ..api::Process::default() };
        let odd = Process::of(&place(), &odd);
        assert_eq!((odd.name.as_str(), odd.user.as_str()), ("a\\u{1b}[2J", "7"));
    }
}
