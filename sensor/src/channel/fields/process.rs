//! The numbers and texts of a process, by name: what filters, conditions and scripts can speak of.
//!
//! Pure. Rule: names and units are those of `sensor.processes`.

use wire::process::Process;

/// A process as a subscription sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// As the sweep has it.
    pub process: &'a Process,
    /// The share of a core since the subscription's sample before.
    pub cpu: Option<f64>,
    /// Its arguments, where the source tells them.
    pub command: Option<&'a str>,
}

/// A number of a process.
#[derive(Debug)]
pub struct Number {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a plain count.
    pub unit: &'static str,
    /// What it is.
    pub help: &'static str,
    /// It; `None` where it is not known.
    pub get: fn(&Seen<'_>) -> Option<f64>,
}

/// A text of a process.
#[derive(Debug)]
pub struct Text {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// It; `None` where it is not known.
    pub get: for<'a> fn(&Seen<'a>) -> Option<&'a str>,
}

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}; known are {known}")]
pub struct Unknown {
    /// What was looked for.
    pub expected: &'static str,
    /// What was given.
    pub found: String,
    /// All names there are.
    pub known: String,
}

/// All numbers.
pub static NUMBERS: [Number; 20] = [
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
    number("read_bytes", "bytes", "read from storage", |seen| {
        seen.process.usage.io.and_then(|io| float(io.read_bytes))
    }),
    number("written_bytes", "bytes", "written to storage", |seen| {
        seen.process.usage.io.and_then(|io| float(io.written_bytes))
    }),
    number("read_chars", "bytes", "read by system calls", |seen| {
        seen.process.usage.io.and_then(|io| float(io.read_chars))
    }),
    number("written_chars", "bytes", "written by system calls", |seen| {
        seen.process.usage.io.and_then(|io| float(io.written_chars))
    }),
    number("start_seconds", "seconds", "its start after the host's boot", |seen| {
        secs(seen.process.key.start_ns)
    }),
    number("io_bytes", "bytes", "read from and written to storage", |seen| {
        seen.process.usage.io.and_then(|io| float(io.read_bytes.saturating_add(io.written_bytes)))
    }),
];

/// All texts.
pub static TEXTS: [Text; 3] = [
    Text { name: "name", help: "as the kernel calls it", get: |seen| Some(&seen.process.name) },
    Text {
        name: "state",
        help: "running, sleeping, disk ...",
        get: |seen| Some(seen.process.state.as_str()),
    },
    Text { name: "command", help: "its arguments, where the kernel told them", get: |seen| seen.command },
];

const fn number(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    get: fn(&Seen<'_>) -> Option<f64>,
) -> Number {
    Number { name, unit, help, get }
}

/// The number of this name.
///
/// # Errors
/// If there is none; tells all.
pub fn number_named(name: &str) -> Result<&'static Number, Unknown> {
    let known = || list(NUMBERS.iter().map(|number| number.name));
    let found = NUMBERS.iter().find(|number| number.name == name);
    found.ok_or_else(|| Unknown { expected: "a number of a process", found: name.to_owned(), known: known() })
}

/// The text of this name.
///
/// # Errors
/// If there is none; tells all.
pub fn text_named(name: &str) -> Result<&'static Text, Unknown> {
    let known = || list(TEXTS.iter().map(|text| text.name));
    let found = TEXTS.iter().find(|text| text.name == name);
    found.ok_or_else(|| Unknown { expected: "a text of a process", found: name.to_owned(), known: known() })
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[allow(clippy::cast_precision_loss)] // Filters compare doubles.
#[allow(clippy::unnecessary_wraps)] // Beside figures that may be unknown.
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
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_found_and_unknown_ones_told() {
        let names: BTreeSet<&str> =
            NUMBERS.iter().map(|number| number.name).chain(TEXTS.iter().map(|text| text.name)).collect();
        assert_eq!(names.len(), NUMBERS.len() + TEXTS.len(), "each once");
        let mut process = Process { rss_kib: 4, ..Process::default() };
        process.usage.cpu_ns = 2_500_000_000;
        let seen = Seen { process: &process, cpu: Some(0.5), command: None };
        let get = |name: &str| (number_named(name).expect("known").get)(&seen);
        assert_eq!((get("cpu"), get("cpu_seconds"), get("rss_bytes")), (Some(0.5), Some(2.5), Some(4096.0)));
        assert_eq!((get("read_bytes"), get("cgroup")), (None, None));
        let state = text_named("state").expect("known");
        assert_eq!((state.get)(&seen), Some("sleeping"));
        let error = number_named("rss").expect_err("none").to_string();
        assert!(
            error.starts_with("expected a number of a process, found \"rss\"; known are cpu, "),
            "{error}"
        );
        assert!(text_named("cpu").is_err());
    }
}
