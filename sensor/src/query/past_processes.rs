//! `sensor.past_processes`: all processes of this host sweep by sweep, from memory and recordings, as far
//! back as those reach.
//!
//! Rule: a client that applies the entries in order to its table knows all processes at each sweep, and knows
//! the gaps in which nothing is known. An answer has a bounded number of processes, and states where to
//! continue.
//! Not here: the content of memory and recordings (`recorder`), samples of single processes (`recordings`).

use super::samples;
use crate::process::boot_time::{boot_ns, booted};
use crate::process::visibility::Visibility;
use crate::recorder::store;
use crate::recorder::worker::Handle;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::api::samples::{PastEntry, PastKind, PastProcesses, PastProcessesParams, PastSpan};
use wire::api::{UnixTime, processes as api};
use wire::process::Process;
use wire::recording::Header;
use wire::recording::segment::{Item, Player, Segment, Swept};
use wire::time::Time;

/// Most recordings read for one answer: of those that overlap, those that start first.
const RECORDINGS_MAX: usize = 8;
/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;
/// Two sweeps have a gap between them if they are farther apart than this, and than this many periods.
const GAP_MIN: Duration = Duration::from_secs(3);
const GAP_PERIODS: u32 = 3;
/// Least time for which a sweep is valid where no later one is known.
const PERIOD_MIN: Duration = Duration::from_millis(50);

/// Creates the method; without a recorder it says so.
#[must_use]
pub fn method(recorder: Option<Handle>) -> Method {
    let pool = BlockingPool::new("reading past sweeps", AT_ONCE_MAX);
    // Read once, so that a sweep has the same time in all answers.
    let booted = booted();
    typed::method(move |caller, params: PastProcessesParams| {
        let (recorder, pool) = (recorder.clone(), pool.clone());
        let visibility = Visibility::of(caller.viewer);
        async move {
            let wanted = SweepQuery::new(&params, visibility)?;
            let recorder = super::recordings::needed(recorder.as_ref())?.clone();
            pool.run(move || Ok(answer(&recorder, &wanted, booted))).await
        }
    })
}

/// Requested sweeps.
#[derive(Clone, Copy, Debug)]
struct SweepQuery {
    from: Time,
    to: Time,
    every: Duration,
    limit: usize,
    visibility: Visibility,
}

impl SweepQuery {
    fn new(params: &PastProcessesParams, visibility: Visibility) -> Result<SweepQuery, Fault> {
        let (UnixTime(from), UnixTime(to)) = (params.from, params.to);
        if from > to {
            let (from, to) = (from.secs_f64(), to.secs_f64());
            return Err(Fault::invalid_params(format!(
                "to: expected a time not before from, {from}, found {to}"
            )));
        }
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        Ok(SweepQuery { from, to, every: samples::every(params.every)?, limit, visibility })
    }
}

/// Span of time with sweeps, and the recording that has them, if they are not in memory.
struct Span {
    from: Time,
    to: Time,
    /// Time of boot that its sweeps count from.
    base: Time,
    recording: Option<(String, PathBuf)>,
}

impl Span {
    fn overlaps(&self, wanted: &SweepQuery) -> bool {
        self.from <= wanted.to && self.to >= wanted.from
    }

    fn to_api(&self) -> PastSpan {
        let recording = self.recording.as_ref().map(|(id, _)| id.clone());
        PastSpan { from: UnixTime(self.from), to: UnixTime(self.to), recording }
    }
}

fn answer(recorder: &Handle, wanted: &SweepQuery, booted: Time) -> PastProcesses {
    let spans = spans(recorder, booted);
    let mut past = EntryBuilder::new(*wanted);
    // With `limit` 0 only the spans are requested.
    if wanted.limit > 0 {
        let (segments, cut) = segments(recorder, wanted, &spans, booted);
        past.wanted.to = cut.unwrap_or(wanted.to);
        segments.iter().for_each(|(_, base, segment)| past.play(segment, *base));
        past.end(cut);
    }
    PastProcesses {
        entries: past.entries,
        spans: spans.iter().map(Span::to_api).collect(),
        unreadable: past.unreadable,
        next: past.next.map(UnixTime),
    }
}

/// Start of a segment, the time of boot that it counts from, and the segment.
type TimedSegment = (Time, Time, Arc<Segment>);

/// Returns the segments of recordings and memory within the requested time, sorted by time; and the end of
/// the time covered, if there are too many recordings for one answer.
fn segments(
    recorder: &Handle,
    wanted: &SweepQuery,
    spans: &[Span],
    booted: Time,
) -> (Vec<TimedSegment>, Option<Time>) {
    let mut recorded: Vec<&Span> =
        spans.iter().filter(|span| span.recording.is_some() && span.overlaps(wanted)).collect();
    recorded.sort_by_key(|span| span.from);
    let cut = recorded.get(RECORDINGS_MAX).map(|next| next.from).filter(|next| *next > wanted.from);
    let mut held: Vec<TimedSegment> = Vec::new();
    let mut add = |base: Time, segment: Arc<Segment>| {
        held.push((base.plus(Duration::from_nanos(segment.first_ns)), base, segment));
    };
    for span in recorded.into_iter().take(RECORDINGS_MAX) {
        let path = span.recording.as_ref().map(|(_, path)| path);
        // A recording that was deleted meanwhile is skipped.
        let Some(recording) = path.and_then(|path| store::read(path).ok()) else { continue };
        recording.segments.into_iter().for_each(|segment| add(span.base, Arc::new(segment)));
    }
    let moment_ns = |time: Time| u64::try_from(time.since(booted).as_nanos()).unwrap_or(u64::MAX);
    // A sweep shortly before shows that sweeps surround a time within which there is none.
    let window = (moment_ns(wanted.from.minus(GAP_MIN)), moment_ns(wanted.to));
    recorder.ring().window(window.0, window.1).into_iter().for_each(|held| add(booted, held.segment));
    held.sort_by_key(|(first, ..)| *first);
    (held, cut)
}

/// Returns the spans of memory and of each recording, the newest first.
fn spans(recorder: &Handle, booted: Time) -> Vec<Span> {
    let mut spans = Vec::new();
    let reach = recorder.ring().reach();
    if reach.sweeps > 0 {
        let time = |moment_ns| booted.plus(Duration::from_nanos(moment_ns));
        let (from, to) = (time(reach.from_ns), time(reach.to_ns));
        spans.push(Span { from, to, base: booted, recording: None });
    }
    let mut base = booted;
    recorder.store(|store| {
        for kept in store.list().rev() {
            let header = &kept.header;
            base = of_boot(header, base);
            let time = |moment_ns| base.plus(Duration::from_nanos(moment_ns));
            let Some((_, path)) = store.get(&header.id) else { continue };
            spans.push(Span {
                from: time(header.from_ns),
                // A recording in progress reaches to the present.
                to: time(if kept.end.is_some() { header.to_ns } else { header.to_ns.min(boot_ns()) }),
                base,
                recording: Some((header.id.to_string(), path)),
            });
        }
    });
    spans
}

/// Returns the time of boot for a recording: a sweep that two recordings have must have one time.
fn of_boot(header: &Header, known: Time) -> Time {
    if samples::is_one_boot(header.booted, known) { known } else { header.booted }
}

/// Builder of the entries; the segments are played in the order of time.
struct EntryBuilder {
    wanted: SweepQuery,
    player: Player,
    /// Processes of the last entry by row; `None` before the first sweep and after a gap.
    last: Option<Vec<Option<Process>>>,
    /// Time of the last sweep played, reported or not, and its distance from the one before.
    played: Option<Time>,
    period: Duration,
    /// No further sweep is reported before this time.
    due: Time,
    named: usize,
    entries: Vec<PastEntry>,
    next: Option<Time>,
    unreadable: u64,
}

impl EntryBuilder {
    fn new(wanted: SweepQuery) -> EntryBuilder {
        EntryBuilder {
            wanted,
            player: Player::default(),
            last: None,
            played: None,
            period: Duration::ZERO,
            due: wanted.from,
            named: 0,
            entries: Vec::new(),
            next: None,
            unreadable: 0,
        }
    }

    fn play(&mut self, segment: &Segment, base: Time) {
        let time = |moment_ns| base.plus(Duration::from_nanos(moment_ns));
        let is_behind = self.played.is_some_and(|played| time(segment.last_ns) <= played);
        if self.next.is_some() || is_behind || time(segment.first_ns) > self.wanted.to {
            return;
        }
        if time(segment.last_ns) < self.wanted.from {
            // There were sweeps until then.
            self.played = Some(time(segment.last_ns));
            return;
        }
        let mut player = std::mem::take(&mut self.player);
        let read = player.play(segment, |item| match item {
            Item::Swept(swept) => self.swept(swept, time(swept.sweep.begin_ns), base),
            Item::Ended(_) => true,
        });
        self.unreadable += u64::from(read.is_err());
        self.player = player;
    }

    /// Handles a sweep; returns whether to continue.
    fn swept(&mut self, swept: &Swept<'_>, time: Time, base: Time) -> bool {
        if self.played.is_some_and(|played| time <= played) {
            return true;
        }
        if time > self.wanted.to {
            return false;
        }
        let before = self.played.replace(time);
        match before.filter(|before| !self.is_gap(*before, time)) {
            Some(before) => self.period = time.since(before),
            None => self.gap_after(before),
        }
        if time < self.due {
            return true;
        }
        if self.last.is_none() && time.since(self.wanted.from) > GAP_MIN && self.entries.is_empty() {
            self.entries.push(gap(self.wanted.from));
        }
        self.add_entry(swept, time, base)
    }

    fn is_gap(&self, before: Time, time: Time) -> bool {
        time.since(before) > GAP_MIN.max(self.period * GAP_PERIODS)
    }

    /// Adds a gap that starts one period after the sweep at `before`.
    fn gap_after(&mut self, before: Option<Time>) {
        if let Some(before) = before.filter(|_| self.last.is_some()) {
            self.entries.push(gap(before.plus(self.period.clamp(PERIOD_MIN, GAP_MIN))));
        }
        (self.last, self.period) = (None, Duration::ZERO);
    }

    /// Adds an entry for a sweep; returns whether there is room for more.
    fn add_entry(&mut self, swept: &Swept<'_>, time: Time, base: Time) -> bool {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        let known = self.last.as_deref().unwrap_or_default();
        for place in 0..swept.rows.len().max(known.len()) {
            let visibility = self.wanted.visibility;
            let shown = |row: &&Process| visibility.shows(row.uid);
            let is = swept.rows.get(place).and_then(Option::as_ref).filter(shown);
            let was = known.get(place).and_then(Option::as_ref).filter(shown);
            let goes_on = is.zip(was).is_some_and(|(is, was)| is.key == was.key);
            gone.extend(was.filter(|_| !goes_on).map(|was| was.key.pid));
            let record = |process: Process| api::Process {
                cpu: swept.share(place),
                ..api::Process::of(&process, base)
            };
            // A change only in fields that the viewer may not see is no change.
            let seen = |row: Option<&Process>| row.and_then(|row| visibility.redact(row));
            let is_other = is != was && (visibility.is_all() || seen(is) != seen(was));
            changed.extend(is.filter(|_| is_other).and_then(|is| visibility.redact(is)).map(record));
        }
        if self.named + changed.len() > self.wanted.limit && self.named > 0 {
            // The calendar may have changed a little by the next query.
            self.next = Some(time.minus(self.period / 2));
            return false;
        }
        self.named += changed.len().max(1);
        self.entries.push(PastEntry {
            time: UnixTime(time),
            what: PastKind::Sample,
            gone: self.last.is_some().then_some(gone),
            processes: Some(changed),
        });
        self.last = Some(swept.rows.to_vec());
        let every = self.wanted.every;
        self.due = self.due.plus(every).max(time.plus(every / 2));
        true
    }

    /// Ends the entries: adds a gap if the sweeps do not reach the requested end, or sets `next` if there is
    /// more from `cut` on.
    fn end(&mut self, cut: Option<Time>) {
        self.next = self.next.or(cut);
        if self.next.is_some() {
            return;
        }
        let is_silent = self.played.is_none_or(|played| self.is_gap(played, self.wanted.to));
        match is_silent {
            true if self.last.is_some() => self.gap_after(self.played),
            true if self.entries.is_empty() => self.entries.push(gap(self.wanted.from)),
            true | false => {}
        }
    }
}

/// Creates an entry that states that nothing is known from this time to the next entry.
fn gap(from: Time) -> PastEntry {
    PastEntry { time: UnixTime(from), ..PastEntry::default() }
}

#[cfg(test)]
mod tests;
