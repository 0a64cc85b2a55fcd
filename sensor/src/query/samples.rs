//! Samples of processes as rows of an answer: which are wanted, and how one is shown.
//!
//! Rule: an answer holds at most `limit` rows, and `next` says where to go on. Samples come in the order of their sweeps.
//! Not here: where the segments come from (`recordings`, `call_processes`).

use super::shape;
use crate::likeness;
use crate::process::sight::Sight;
use rpc::fault::Fault;
use rpc::method::Declaration;
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::process::{Life, Process, ProcessKey};
use wire::query::Viewer;
use wire::recording::Header;
use wire::recording::segment::{Item, Player, Segment, Swept};
use wire::time::Time;

/// Most rows of an answer: about 5 MB of XML.
const ROWS_MAX: i64 = 10_000;
/// Longest time between two sweeps that can be asked for, in seconds.
const EVERY_MAX_SECS: f64 = 3_600.0;
/// How far two moments of boot may be apart and be one boot.
const BOOT_SLACK: Duration = Duration::from_secs(30);
/// Most lives that ended in an answer.
const LIVES_MAX: usize = 10_000;

/// Which samples are wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    from: Option<Time>,
    to: Option<Time>,
    pid: Option<u32>,
    name: Option<String>,
    /// Only these processes, if some are named: each with whether every user may know that it is one of them, or its own alone.
    pub(super) keys: Option<BTreeMap<ProcessKey, bool>>,
    every_ns: u64,
    offset: u64,
    limit: u64,
    sight: Sight,
}

/// With the parameters of [`Wanted`].
pub(super) fn parameters(declaration: Declaration) -> Declaration {
    declaration
        .parameter(Parameter::new("from", Type::Time, "only samples of this time or later"))
        .parameter(Parameter::new("to", Type::Time, "only samples of this time or earlier"))
        .parameter(Parameter::new(
            "pid",
            Type::Whole { min: 1, max: 1 << 22 },
            "only the process of this number",
        ))
        .parameter(Parameter::new(
            "name",
            Type::Text,
            "only processes of this name; * stands for any characters",
        ))
        .parameter(every_parameter())
        .parameter(
            Parameter::new("offset", Type::Whole { min: 0, max: i64::MAX }, "leave out so many samples")
                .default(0),
        )
        .parameter(
            Parameter::new("limit", Type::Whole { min: 0, max: ROWS_MAX }, "at most so many").default(1000),
        )
}

/// How far apart sweeps that are told have to be.
pub(super) fn every_parameter() -> Parameter {
    Parameter::new("every", Type::Span, "only one sweep in so long; all unless given")
}

/// The same, as it is asked for.
pub(super) fn every(params: &Params) -> Result<Duration, Fault> {
    let every = params.number("every")?.unwrap_or(0.0);
    if !(0.0..=EVERY_MAX_SECS).contains(&every) {
        let told = format!("every: expected 0 to {EVERY_MAX_SECS} seconds, found {every}");
        return Err(Fault::invalid_params(told));
    }
    Ok(Duration::from_secs_f64(every))
}

/// Whether two moments of boot are of one boot: the calendar may have been set a little since.
pub(super) fn is_one_boot(one: Time, other: Time) -> bool {
    one.since(other).max(other.since(one)) < BOOT_SLACK
}

impl Wanted {
    pub(super) fn new(params: &Params, viewer: Viewer) -> Result<Wanted, Fault> {
        Ok(Wanted {
            from: params.time("from")?,
            to: params.time("to")?,
            pid: params.whole("pid")?.and_then(|pid| u32::try_from(pid).ok()),
            name: params.text("name")?.map(ToOwned::to_owned),
            keys: None,
            every_ns: u64::try_from(every(params)?.as_nanos()).unwrap_or(u64::MAX),
            offset: u64::try_from(params.need_whole("offset")?).unwrap_or(0),
            limit: u64::try_from(params.need_whole("limit")?).unwrap_or(0),
            sight: Sight::of(viewer),
        })
    }

    fn fits(&self, key: ProcessKey, uid: u32, name: &str) -> bool {
        self.sight.shows(uid)
            && self.pid.is_none_or(|pid| pid == key.pid)
            && self.keys.as_ref().is_none_or(|keys| {
                keys.get(&key).is_some_and(|is_public| *is_public || self.sight.inspects(uid))
            })
            && self.name.as_ref().is_none_or(|wanted| likeness::means(wanted, name))
    }
}

/// Rows that are gathered from segments.
pub(super) struct Samples<'a> {
    wanted: &'a Wanted,
    booted: Time,
    from_ns: u64,
    to_ns: u64,
    player: Player,
    /// Before this moment no further sweep is wanted.
    due_ns: u64,
    rows: Vec<Value>,
    /// Rows that fit so far, those that were not wanted in this answer included.
    total: u64,
    ended: Vec<Value>,
    /// Of the processes that are named, as they were last.
    seen: BTreeMap<ProcessKey, Process>,
    unreadable: u64,
}

impl<'a> Samples<'a> {
    pub(super) fn new(header: &Header, wanted: &'a Wanted) -> Samples<'a> {
        let from_ns = wanted.from.map_or(0, |from| header.moment_ns(from));
        let to_ns = wanted.to.map_or(u64::MAX, |to| header.moment_ns(to));
        Samples::between(header.booted, from_ns, to_ns, wanted)
    }

    /// Those between two moments, in nanoseconds since boot.
    pub(super) fn between(booted: Time, from_ns: u64, to_ns: u64, wanted: &'a Wanted) -> Samples<'a> {
        let (rows, ended) = (Vec::new(), Vec::new());
        let (player, seen) = (Player::default(), BTreeMap::new());
        Samples {
            wanted,
            booted,
            from_ns,
            to_ns,
            player,
            due_ns: 0,
            rows,
            total: 0,
            ended,
            seen,
            unreadable: 0,
        }
    }

    /// Gather from this segment. The one before those that are wanted may be given too: from it the first shares come.
    pub(super) fn play(&mut self, segment: &Segment) {
        if segment.first_ns > self.to_ns {
            return;
        }
        let mut player = std::mem::take(&mut self.player);
        let read = player.play(segment, |item| {
            match item {
                Item::Swept(swept) => self.swept(swept),
                Item::Ended(life) => self.ended(life),
            }
            true
        });
        self.unreadable += u64::from(read.is_err());
        self.player = player;
    }

    fn swept(&mut self, swept: &Swept<'_>) {
        let at_ns = swept.sweep.begin_ns;
        if at_ns < self.from_ns.max(self.due_ns) || at_ns > self.to_ns {
            return;
        }
        self.due_ns = at_ns.saturating_add(self.wanted.every_ns);
        let rows = swept.rows.iter().enumerate();
        for (place, row) in rows.filter_map(|(place, row)| Some((place, row.as_ref()?))) {
            if !self.wanted.fits(row.key, row.uid, &row.name) {
                continue;
            }
            if self.wanted.keys.is_some() && self.seen.get(&row.key).is_none_or(|seen| seen.name != row.name)
            {
                self.seen.insert(row.key, row.clone());
            }
            let end = self.wanted.offset.saturating_add(self.wanted.limit);
            if (self.wanted.offset..end).contains(&self.total) {
                self.rows.push(self.row(at_ns, row, swept.share(place)));
            }
            self.total += 1;
        }
    }

    fn ended(&mut self, life: &Life) {
        let is_within = (self.from_ns..=self.to_ns).contains(&life.end_ns);
        if is_within && self.wanted.fits(life.key, life.uid, &life.name) && self.ended.len() < LIVES_MAX {
            self.ended.push(self.life(life));
        }
    }

    fn time(&self, moment_ns: u64) -> Value {
        shape::time(self.booted.plus(Duration::from_nanos(moment_ns)))
    }

    fn row(&self, at_ns: u64, process: &Process, share: Option<f64>) -> Value {
        let usage = &process.usage;
        let mut members: Vec<(Name, Value)> = vec![
            ("time".into(), self.time(at_ns)),
            ("pid".into(), Value::UInt(process.key.pid.into())),
            ("start".into(), self.time(process.key.start_ns)),
            ("parent".into(), Value::UInt(process.parent.into())),
            ("uid".into(), Value::UInt(process.uid.into())),
            ("name".into(), Value::Text(process.name.to_string())),
            ("state".into(), Value::Text(process.state.as_str().to_owned())),
            ("threads".into(), Value::UInt(process.threads.into())),
            ("cpu_seconds".into(), Value::Double(Duration::from_nanos(usage.cpu_ns).as_secs_f64())),
            ("rss_bytes".into(), Value::UInt(process.rss_kib << 10)),
            ("minor_faults".into(), Value::UInt(usage.minor_faults)),
            ("major_faults".into(), Value::UInt(usage.major_faults)),
        ];
        let mut maybe = |name: &'static str, value: Option<Value>| {
            members.extend(value.map(|value| (Name::Borrowed(name), value)));
        };
        maybe("cpu", share.map(Value::Double));
        maybe("cgroup", process.cgroup.map(Value::UInt));
        let io = usage.io.filter(|_| self.wanted.sight.inspects(process.uid));
        maybe("read_bytes", io.map(|io| Value::UInt(io.read_bytes)));
        maybe("written_bytes", io.map(|io| Value::UInt(io.written_bytes)));
        Value::Struct(members)
    }

    fn life(&self, life: &Life) -> Value {
        let mut members: Vec<(Name, Value)> = vec![
            ("time".into(), self.time(life.end_ns)),
            ("pid".into(), Value::UInt(life.key.pid.into())),
            ("start".into(), self.time(life.key.start_ns)),
            ("parent".into(), Value::UInt(life.parent.into())),
            ("uid".into(), Value::UInt(life.uid.into())),
            ("name".into(), Value::Text(life.name.to_string())),
            ("command".into(), Value::Text(life.command.to_string())),
        ];
        let status = life.exit_status().map(|status| ("status".into(), Value::UInt(status.into())));
        let signal = life.signal().map(|signal| ("signal".into(), Value::UInt(signal.into())));
        members.extend(status.into_iter().chain(signal));
        Value::Struct(members)
    }

    /// The processes that were named, as they were when they last had another name.
    pub(super) fn take_seen(&mut self) -> BTreeMap<ProcessKey, Process> {
        std::mem::take(&mut self.seen)
    }

    /// What was gathered.
    pub(super) fn shown(self) -> Vec<(Name, Value)> {
        let next = self.wanted.offset + self.rows.len() as u64;
        let mut members: Vec<(Name, Value)> = vec![
            ("samples".into(), Value::Array(self.rows)),
            ("ended".into(), Value::Array(self.ended)),
            ("total".into(), Value::UInt(self.total)),
            ("unreadable".into(), Value::UInt(self.unreadable)),
        ];
        if next < self.total {
            members.push(("next".into(), Value::UInt(next)));
        }
        members
    }
}
