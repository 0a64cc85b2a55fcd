//! Samples of processes as rows of an answer: selection and encoding.
//!
//! Rule: an answer has at most `limit` rows, and `next` states where to continue. Samples are in the order of
//! their sweeps.
//! Not here: the source of the segments (`recordings`, `call_processes`).

use crate::process::visibility::Visibility;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::samples::{EndedProcess, Sample, SampleChoice};
use wire::api::{Span, UnixTime};
use wire::name_match;
use wire::process::{Life, Process, ProcessKey};
use wire::query::Viewer;
use wire::recording::Header;
use wire::recording::segment::{Item, Player, Segment, Swept};
use wire::time::Time;

/// Longest interval between sweeps that can be requested.
const EVERY_MAX: Duration = Duration::from_secs(3_600);
/// Two times of boot that differ by less are of the same boot.
const BOOT_SLACK: Duration = Duration::from_secs(30);
/// Most ended processes in an answer.
const LIVES_MAX: usize = 10_000;

/// Requested samples.
#[derive(Clone, Debug)]
pub(super) struct SampleQuery {
    choice: SampleChoice,
    every_ns: u64,
    /// If set, only these processes; each with whether every user may see that it is one of them, or only its
    /// own user.
    pub(super) keys: Option<BTreeMap<ProcessKey, bool>>,
    visibility: Visibility,
}

/// Checks the requested interval between sweeps.
pub(super) fn every(asked: Option<Span>) -> Result<Duration, Fault> {
    let every = asked.unwrap_or_default().0;
    if every > EVERY_MAX {
        let (most, found) = (EVERY_MAX.as_secs(), every.as_secs_f64());
        return Err(Fault::invalid_params(format!("every: expected 0 to {most} seconds, found {found}")));
    }
    Ok(every)
}

/// Returns whether two times of boot are of the same boot: the calendar may have been set a little in
/// between.
pub(super) fn is_one_boot(one: Time, other: Time) -> bool {
    one.since(other).max(other.since(one)) < BOOT_SLACK
}

impl SampleQuery {
    pub(super) fn new(choice: SampleChoice, viewer: Viewer) -> Result<SampleQuery, Fault> {
        let every_ns = u64::try_from(every(choice.every)?.as_nanos()).unwrap_or(u64::MAX);
        Ok(SampleQuery { choice, every_ns, keys: None, visibility: Visibility::of(viewer) })
    }

    fn fits(&self, key: ProcessKey, uid: u32, name: &str) -> bool {
        self.visibility.shows(uid)
            && self.choice.pid.is_none_or(|pid| pid == key.pid)
            && self.keys.as_ref().is_none_or(|keys| {
                keys.get(&key).is_some_and(|is_public| *is_public || self.visibility.inspects(uid))
            })
            && self.choice.name.as_ref().is_none_or(|wanted| name_match::matches(wanted, name))
    }
}

/// Builder of rows from segments.
pub(super) struct Samples<'a> {
    wanted: &'a SampleQuery,
    booted: Time,
    from_ns: u64,
    to_ns: u64,
    player: Player,
    /// No further sweep is used before this time.
    due_ns: u64,
    rows: Vec<Sample>,
    /// Number of rows that matched so far, including those outside the requested page.
    total: u64,
    ended: Vec<EndedProcess>,
    /// The processes of `keys`, each as of its last change of name.
    seen: BTreeMap<ProcessKey, Process>,
    unreadable: u64,
}

impl<'a> Samples<'a> {
    pub(super) fn new(header: &Header, wanted: &'a SampleQuery) -> Samples<'a> {
        let from_ns = wanted.choice.from.map_or(0, |UnixTime(from)| header.moment_ns(from));
        let to_ns = wanted.choice.to.map_or(u64::MAX, |UnixTime(to)| header.moment_ns(to));
        Samples::between(header.booted, from_ns, to_ns, wanted)
    }

    /// Collects samples between two times, in nanoseconds since boot.
    pub(super) fn between(booted: Time, from_ns: u64, to_ns: u64, wanted: &'a SampleQuery) -> Samples<'a> {
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

    /// Collects samples from this segment. The segment before the requested time may be played too: the first
    /// CPU shares are computed from it.
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
            let SampleChoice { offset, limit, .. } = self.wanted.choice;
            if (offset..offset.saturating_add(limit)).contains(&self.total) {
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

    fn time(&self, moment_ns: u64) -> UnixTime {
        UnixTime(self.booted.plus(Duration::from_nanos(moment_ns)))
    }

    fn row(&self, at_ns: u64, process: &Process, share: Option<f64>) -> Sample {
        let usage = &process.usage;
        let io = usage.io.filter(|_| self.wanted.visibility.inspects(process.uid));
        Sample {
            time: self.time(at_ns),
            pid: process.key.pid,
            start: self.time(process.key.start_ns),
            parent: process.parent,
            uid: process.uid,
            name: process.name.clone(),
            state: process.state,
            threads: process.threads,
            cpu_seconds: Duration::from_nanos(usage.cpu_ns).as_secs_f64(),
            rss_bytes: process.rss_kib << 10,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            cpu: share,
            cgroup: process.cgroup,
            read_bytes: io.map(|io| io.read_bytes),
            written_bytes: io.map(|io| io.written_bytes),
        }
    }

    fn life(&self, life: &Life) -> EndedProcess {
        EndedProcess {
            time: self.time(life.end_ns),
            pid: life.key.pid,
            start: self.time(life.key.start_ns),
            parent: life.parent,
            uid: life.uid,
            name: life.name.clone(),
            command: life.command.clone(),
            status: life.exit_status(),
            signal: life.signal(),
        }
    }

    /// Takes the processes of `keys` that were seen, each as of its last change of name.
    pub(super) fn take_seen(&mut self) -> BTreeMap<ProcessKey, Process> {
        std::mem::take(&mut self.seen)
    }

    /// Returns the result.
    pub(super) fn gathered(self) -> SamplePage {
        let next = self.wanted.choice.offset + self.rows.len() as u64;
        SamplePage {
            samples: self.rows,
            ended: self.ended,
            total: self.total,
            next: (next < self.total).then_some(next),
            unreadable: self.unreadable,
        }
    }
}

/// Samples of an answer.
pub(super) struct SamplePage {
    pub(super) samples: Vec<Sample>,
    pub(super) ended: Vec<EndedProcess>,
    /// Number of all rows that match.
    pub(super) total: u64,
    /// Offset to continue from.
    pub(super) next: Option<u64>,
    /// Number of segments that cannot be read.
    pub(super) unreadable: u64,
}
