//! Opening a store: its segments, and what a crash left to do.
//!
//! Rule: what is in memory while a store is open follows from its files: samples that are not sealed from the
//! log of the head, open minutes from the samples, open hours from the minutes. Each block says up to which
//! row of the finer tier it goes, so every row is counted once.

use crate::block::{HostNo, SeriesNo};
use crate::head::Shape;
use crate::head_log::{self, Found, HeadLog, Pending};
use crate::host::{Continue, Host};
use crate::names::Names;
use crate::reader::{Index, Shared, State};
use crate::rows::{HostBlock, each_last, each_minute, each_sweep};
use crate::tier::Tier;
use crate::tier_files::{Limit, TierFiles};
use crate::writer::{Logged, Writer};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::sample::Semantics;
use wire::time::Time;

/// Blocks of minutes that are searched for the previous values of counters.
const PREVIOUS_BLOCKS: usize = 3;

/// Samples before the minutes that are computed again, of a host that is sampled at the usual rate.
const PREVIOUS_ROWS: u64 = 60;

const MINUTE: Duration = Duration::from_secs(60);

impl Writer {
    /// Opens the store in this folder, which is created if it does not exist; `limits` of raw, minute and hour.
    ///
    /// # Errors
    /// If a folder cannot be created or read, or the log cannot be started. Damaged files are not an error:
    /// [`crate::reader::State`] counts them.
    pub fn open(folder: &Path, limits: [Limit; 3]) -> io::Result<Writer> {
        Writer::open_as(folder, limits, false)
    }

    pub(crate) fn open_as(folder: &Path, limits: [Limit; 3], is_copy: bool) -> io::Result<Writer> {
        daemon::state_folder::prepare_below(folder)?;
        let mut names = Names::default();
        let open = |tier, names: &mut Names| TierFiles::open(folder, tier, limits[tier as usize], names);
        let raw = open(Tier::Raw, &mut names)?;
        let minute = open(Tier::Minute, &mut names)?;
        let hour = open(Tier::Hour, &mut names)?;
        let mut tiers = [raw, minute, hour];
        let mut index = Index { names, is_copy, ..Index::default() };
        for (at, files) in tiers.iter().enumerate() {
            index.segments[at] = files.segments().clone();
        }
        restore_hosts(&mut index, &tiers);
        let logs = head_log::left(folder)?;
        for (_, path) in &logs {
            tiers[Tier::Raw.index()].counts.damaged_bytes += restore_log(&mut index, path)?;
        }
        let number = logs.last().map_or(1, |(number, _)| number + 1);
        let mut writer = Writer {
            log: HeadLog::start(folder, number)?,
            shared: Arc::new(Shared::new(index)),
            folder: folder.to_owned(),
            tiers,
            pending: Pending::default(),
            logged: Logged::default(),
            is_log_incomplete: false,
            starts: BTreeMap::new(),
            logged_minutes: BTreeMap::new(),
        };
        writer.continue_log(&logs)?;
        writer.show();
        Ok(writer)
    }

    /// Moves the rows of earlier logs to the new one, and deletes the earlier ones.
    fn continue_log(&mut self, logs: &[(u64, PathBuf)]) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        if shared.read().hosts.values().any(|host| host.head.rows() > 0) {
            // Sealed at once: the rows may be of many runs, each with values in full.
            self.seal();
        }
        for (number, host) in &mut shared.write().hosts {
            host.skip_lost(*number);
        }
        self.flush();
        let is_stored = shared.read().state.errors.iter().all(Option::is_none);
        if is_stored {
            for (_, path) in logs {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Restores the state of every host that has blocks.
fn restore_hosts(index: &mut Index, tiers: &[TierFiles; 3]) {
    let blocks = tiers.each_ref().map(TierFiles::by_host);
    let numbers: Vec<HostNo> = index.names.hosts().map(|(number, _)| number).collect();
    for number in numbers {
        let of_host = blocks.each_ref().map(|blocks| blocks.get(&number).map_or(&[][..], Vec::as_slice));
        let host = restore_host(index, number, of_host);
        index.hosts.insert(number, host);
    }
}

/// Restores the state of a host from its blocks of each tier.
fn restore_host(index: &mut Index, number: HostNo, [samples, minutes, hours]: [&[HostBlock]; 3]) -> Host {
    let [raw, minute, hour] = [samples, minutes, hours].map(ends);
    // Without any minutes, as after they expired, numbers go on.
    let next_minute = if minute.0 == 0 { hour.1 } else { minute.0 };
    let next = [raw.0, next_minute, hour.0];
    let in_hours = latest(hours).map(|latest| (hour.1, latest));
    let mut host = Host::new(number, Continue { next, rolled_up: minute.1, in_hours });
    host.minutes.set_newest(newest_row(minutes), latest(minutes));
    match index.is_copy {
        true => restore_copied(&mut host, number, samples),
        false => restore_previous(&mut host, minutes),
    }
    // Copied minutes do not follow from copied samples.
    let samples = if index.is_copy { &[] } else { samples };
    let damaged = each_minute(minutes, hour.1, |start, row, buckets| {
        host.add_to_hour(start, row, buckets.iter().map(|(series, bucket)| (*series, bucket)));
    });
    let mut newest = shape(&index.names, std::iter::empty());
    // A minute's samples before the first that counts, for the times of the previous values.
    let from = minute.1.saturating_sub(PREVIOUS_ROWS);
    let damaged_samples = each_sweep(samples, from, |time, row, samples| {
        let series = || samples.iter().map(|(series, _)| *series);
        if !newest.series.iter().copied().eq(series()) {
            newest = shape(&index.names, series());
        }
        let values = samples.iter().map(|(_, value)| *value);
        match row >= minute.1 {
            true => host.roll_up(&newest, time, row, values),
            false => host.pass(&newest, time, values),
        }
    });
    index.state.damaged_chunks += damaged + damaged_samples;
    host
}

/// Row numbers that blocks end with: the next row, and the rows of the finer tier.
fn ends(blocks: &[HostBlock]) -> (u64, u64) {
    let end = |(_, entry): &HostBlock| (entry.extent.next_row(), entry.extent.finer_rows);
    blocks.iter().map(end).fold((0, 0), |ends, end| (ends.0.max(end.0), ends.1.max(end.1)))
}

/// Latest time of a row.
fn latest(blocks: &[HostBlock]) -> Option<Time> {
    blocks.iter().map(|(_, entry)| entry.extent.latest).max()
}

/// End and start of the newest row.
fn newest_row(blocks: &[HostBlock]) -> Option<(u64, Time)> {
    let (segment, entry) = blocks.last()?;
    // After the clock was set back the newest row is not the latest.
    let start = segment.open_block(entry, |_| false).ok().and_then(|opened| opened.times.last().copied());
    Some((entry.extent.finer_rows, start.unwrap_or(entry.extent.latest)))
}

/// Restores up to which row samples were copied.
fn restore_copied(host: &mut Host, number: HostNo, samples: &[HostBlock]) {
    let Some((segment, entry)) = samples.last() else { return };
    let opened = segment.open_block(entry, |_| false);
    if let Some(last) = opened.ok().and_then(|opened| opened.times.last().copied()) {
        host.set_copied(number, entry.extent.next_row(), last, latest(samples).unwrap_or(last));
    }
}

/// Restores the previous values of counters from the newest minutes.
fn restore_previous(host: &mut Host, minutes: &[HostBlock]) {
    for (segment, entry) in &minutes[minutes.len().saturating_sub(PREVIOUS_BLOCKS)..] {
        // The exact time follows from the samples of that minute, where these are stored. A damaged block has none.
        let _ = each_last(segment, entry, |series, bucket, start| {
            host.set_previous(series, bucket.last, start.plus(MINUTE));
        });
    }
}

fn shape(names: &Names, series: impl Iterator<Item = SeriesNo>) -> Shape {
    let series: Box<[SeriesNo]> = series.collect();
    let is_counter = |series: &SeriesNo| {
        names.metric(*series).is_some_and(|metric| metric.semantics == Semantics::Counter)
    };
    let counters = series.iter().map(is_counter).collect();
    Shape { series, counters }
}

/// Adds the rows of a log that are not sealed. Returns its damaged bytes.
fn restore_log(index: &mut Index, path: &Path) -> io::Result<u64> {
    let index = std::cell::RefCell::new(index);
    let mut shapes: BTreeMap<HostNo, Arc<Shape>> = BTreeMap::new();
    let found = |found: Found<'_>| {
        let mut index = index.borrow_mut();
        match found {
            Found::Names(names) => index.names.add(&names),
            Found::Row(row) => {
                let host = row.host;
                if shapes.get(&host).is_none_or(|shape| *shape.series != *row.series) {
                    shapes.insert(host, Arc::new(shape(&index.names, row.series.iter().copied())));
                }
                let state = index.hosts.entry(host).or_insert_with(|| Host::new(host, Continue::default()));
                // Rows that are sealed are in blocks.
                if row.number >= state.head.next_row() {
                    state.push(&shapes[&host], row.time, row.values.iter().copied());
                    row.marks.iter().for_each(|mark| state.head.mark(*mark));
                }
            }
            Found::Minute { host, number, row } => {
                let state = index.hosts.entry(host).or_insert_with(|| Host::new(host, Continue::default()));
                if number >= state.minutes.next_row() {
                    state.append_minute(row);
                }
            }
        }
    };
    head_log::read(path, found)
}

impl State {
    /// Why something is not stored at the moment, if so.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.errors.iter().flatten().map(String::as_str).next()
    }
}
