//! Fields of a process, for filters, conditions and scripts.
//!
//! Pure. Rule: names and units are those of `sensor.processes`. Not here: finding a field by name (`fields`).

use super::{Number, Subject, Text};
use crate::process::table::Table;
use crate::process::visibility::Visibility;
use std::borrow::Cow;
use wire::channel::stream::Record;
use wire::process::{Io, Process, State};

/// A process as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessView<'a> {
    /// The process as of the sweep.
    pub process: &'a Process,
    /// CPU usage in cores since the subscription's previous sample.
    pub cpu: Option<f64>,
    /// Command line, where the source reports it.
    pub command: Option<&'a str>,
    /// What the viewer may see of the process.
    pub visibility: Visibility,
}

impl ProcessView<'_> {
    fn io(&self) -> Option<Io> {
        self.process.usage.io.filter(|_| self.visibility.inspects(self.process.uid))
    }
}

/// The processes of a host.
#[derive(Debug)]
pub struct Processes;

impl Subject for Processes {
    const ONE: &'static str = "a process";
    const HAS_PAST: bool = true;
    const HAS_FAMILY: bool = true;
    type Record = Record;
    type View<'a> = ProcessView<'a>;
    type Context = Table;

    fn numbers() -> &'static [Number<Processes>] {
        &NUMBERS
    }

    fn texts() -> &'static [Text<Processes>] {
        &TEXTS
    }

    fn view(record: &Record) -> ProcessView<'_> {
        // A record holds only what the viewer may see.
        ProcessView { process: &record.process, cpu: record.cpu, command: None, visibility: Visibility::ALL }
    }

    fn is_parent_of(seen: &ProcessView<'_>, pid: u32, around: &Table) -> bool {
        around.get(pid).is_some_and(|child| child.parent == seen.process.key.pid)
    }

    fn is_child_of(seen: &ProcessView<'_>, pid: u32) -> bool {
        seen.process.parent == pid
    }
}

pub static NUMBERS: [Number<Processes>; 20] = [
    number("cpu", "cores", "the share of one core since the sample before; 2 are two cores", |seen| seen.cpu),
    number("cpu_seconds", "seconds", "CPU time since its start", |seen| secs(seen.process.usage.cpu_ns)),
    number("user_seconds", "seconds", "of it, in the program", |seen| {
        secs(seen.process.usage.shared_out().0)
    }),
    number("system_seconds", "seconds", "of it, in the kernel", |seen| {
        secs(seen.process.usage.shared_out().1)
    }),
    number("rss_bytes", "bytes", "resident memory", |seen| float(seen.process.rss_kib << 10)),
    number("threads", "", "live threads", |seen| Some(seen.process.threads.into())),
    number("pid", "", "its number", |seen| Some(seen.process.key.pid.into())),
    number("parent", "", "the number of its parent", |seen| Some(seen.process.parent.into())),
    number("uid", "", "the number of its user", |seen| Some(seen.process.uid.into())),
    number("cgroup", "", "the number of its control group", |seen| seen.process.cgroup.and_then(float)),
    number("minor_faults", "", "pages given without a device", |seen| float(seen.process.usage.minor_faults)),
    number("major_faults", "", "pages that had to be read", |seen| float(seen.process.usage.major_faults)),
    number("voluntary_switches", "", "how often it waited", |seen| {
        seen.process.usage.switches.and_then(|switches| float(switches.voluntary))
    }),
    number("involuntary_switches", "", "how often the scheduler took it off", |seen| {
        seen.process.usage.switches.and_then(|switches| float(switches.involuntary))
    }),
    number("read_bytes", "bytes", "read from storage", |seen| seen.io().and_then(|io| float(io.read_bytes))),
    number("written_bytes", "bytes", "written to storage", |seen| {
        seen.io().and_then(|io| float(io.written_bytes))
    }),
    number("read_chars", "bytes", "read by system calls", |seen| {
        seen.io().and_then(|io| float(io.read_chars))
    }),
    number("written_chars", "bytes", "written by system calls", |seen| {
        seen.io().and_then(|io| float(io.written_chars))
    }),
    number("start_seconds", "seconds", "its start after the host's boot", |seen| {
        secs(seen.process.key.start_ns)
    }),
    number("io_bytes", "bytes", "read from and written to storage", |seen| {
        seen.io().and_then(|io| float(io.read_bytes.saturating_add(io.written_bytes)))
    }),
];

pub static TEXTS: [Text<Processes>; 3] = [
    Text {
        name: "name",
        help: "as the kernel calls it",
        words: &[],
        get: |seen| Some(Cow::Borrowed(&seen.process.name)),
    },
    Text {
        name: "state",
        help: "running, sleeping, disk ...",
        words: &STATES,
        get: |seen| Some(Cow::Borrowed(seen.process.state.as_str())),
    },
    Text {
        name: "command",
        help: "its arguments, where the kernel shows them",
        words: &[],
        get: |seen| seen.command.map(Cow::Borrowed),
    },
];

/// All values of the state.
static STATES: [&str; State::ALL.len()] = {
    let mut words = [""; State::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = State::ALL[at].as_str();
        at += 1;
    }
    words
};

const fn number(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    get: fn(&ProcessView<'_>) -> Option<f64>,
) -> Number<Processes> {
    Number { name, unit, help, get }
}

#[allow(clippy::cast_precision_loss)] // Filters compare doubles.
#[allow(clippy::unnecessary_wraps)] // The type of a getter, which may return `None`.
fn float(whole: u64) -> Option<f64> {
    Some(whole as f64)
}

#[allow(clippy::cast_precision_loss)]
#[allow(clippy::unnecessary_wraps)]
fn secs(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::super::{number_named, text_named};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_found_and_unknown_ones_reported() {
        let names: BTreeSet<&str> =
            NUMBERS.iter().map(|number| number.name).chain(TEXTS.iter().map(|text| text.name)).collect();
        assert_eq!(names.len(), NUMBERS.len() + TEXTS.len(), "each once");
        let mut process = Process { rss_kib: 4, ..Process::default() };
        process.usage.cpu_ns = 2_500_000_000;
        let seen =
            ProcessView { process: &process, cpu: Some(0.5), command: None, visibility: Visibility::ALL };
        let get = |name: &str| (number_named::<Processes>(name).expect("known").get)(&seen);
        assert_eq!((get("cpu"), get("cpu_seconds"), get("rss_bytes")), (Some(0.5), Some(2.5), Some(4096.0)));
        assert_eq!((get("read_bytes"), get("cgroup")), (None, None));
        let state = text_named::<Processes>("state").expect("known");
        assert_eq!((state.get)(&seen).as_deref(), Some("sleeping"));
        let error = number_named::<Processes>("rss").expect_err("none").to_string();
        assert!(
            error.starts_with(
                "expected a number of a process, found \"rss\"; did you mean rss_bytes?; known are cpu, "
            ),
            "{error}"
        );
        assert!(text_named::<Processes>("cpu").is_err());
    }
}
