//! Copying the newest samples from one store to another: those of a member to its representative, and of all to a
//! standby.
//!
//! Rule: as for minutes ([`crate::copy`]): a copy continues after the last row that it has, and each row is in it once.
//! Blocks are copied as they are, but for the numbers of their host and metrics, and where only some of their rows are
//! wanted. Not here: when is copied, and from where (`sensor`).

use crate::block::{Encoded, HostNo, Opened, Rows, SeriesNo};
use crate::copied_names::{Room, Sent};
use crate::copy::{From, Unreadable, copied_number};
use crate::exact::Exact;
use crate::head::Head;
use crate::host::{Continue, Host};
use crate::reader::{Index, Reader};
use crate::rows::HostBlock;
use crate::tier::Tier;
use crate::writer::{Part, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::id::HostName;
use wire::report::Packed;
use wire::report::minutes::{Fetch, Held, NewNames};
use wire::report::samples::{HostSamples, SampleBlock, Samples};
use wire::sample::Metric;
use wire::time::Time;

/// Longest block that is sent: it fits into a frame with the names of its metrics. One row of 16,384 metrics is shorter.
const BLOCK_LEN_MAX_BYTES: usize = 512 << 10;

/// Samples of a host that follow a position.
struct Following {
    from: From,
    since: Time,
    blocks: Vec<HostBlock>,
    /// Rows that are not sealed.
    head: Option<Rows<Exact>>,
}

impl Reader {
    /// How far the samples of each host are copied, by the numbers of the store that they were read from.
    #[must_use]
    pub fn held_samples(&self) -> Vec<Held> {
        let index = self.0.read();
        let held = |(number, host): (&HostNo, &Host)| {
            let copied = host.copied?;
            let name = index.names.host(*number)?.clone();
            Some(Held { host: name, next: copied.next, latest: copied.last })
        };
        index.hosts.iter().filter_map(held).collect()
    }

    /// Answers a fetch with samples of all hosts.
    #[must_use]
    pub fn samples_after(&self, fetch: &Fetch, sent: &mut Sent) -> Samples {
        let held: BTreeMap<&HostName, &Held> = fetch.held.iter().map(|held| (&held.host, held)).collect();
        let (names, following) = {
            let index = self.0.read();
            let names = index.names.metrics().map(|(number, metric)| (number, Arc::clone(metric))).collect();
            (names, following(&index, &held, fetch.since))
        };
        let mut room = Room::new(names, sent, fetch.len_bytes);
        let mut hosts = Vec::new();
        for (host, mut following, head) in following {
            following.head = head.map(|head| head.columns());
            if let Some(held) = held.get(&host) {
                following.from =
                    if following.is_exact(held) { From::Row(held.next) } else { From::After(held.latest) };
            }
            let mut of_host = HostSamples { host, names: NewNames::default(), blocks: Vec::new() };
            let is_whole = following.add_to(&mut of_host, &mut room);
            if !of_host.blocks.is_empty() || !of_host.names.metrics.is_empty() {
                of_host.names.is_fresh = room.take_fresh();
                hosts.push(of_host);
            }
            if !is_whole {
                return Samples { hosts, is_end: false };
            }
        }
        Samples { hosts, is_end: true }
    }
}

/// What may follow these positions, of each host that has something.
fn following(
    index: &Index,
    held: &BTreeMap<&HostName, &Held>,
    since: Time,
) -> Vec<(HostName, Following, Option<Head>)> {
    let mut found: BTreeMap<HostNo, Following> = BTreeMap::new();
    for (number, name) in index.names.hosts() {
        let Some(host) = index.hosts.get(&number) else { continue };
        let is_at = |held: &&Held| {
            host.copied.is_some_and(|copied| (copied.next, copied.last) == (held.next, held.latest))
        };
        let is_current = held.get(name).is_some_and(is_at);
        if !is_current {
            found.insert(number, Following { from: From::Row(0), since, blocks: Vec::new(), head: None });
        }
    }
    for segment in &index.segments[Tier::Raw.index()] {
        let entries = segment.entries(|extent| {
            let in_memory = index.hosts.get(&extent.host).map_or(u64::MAX, |host| host.head.first_row());
            let held = index.names.host(extent.host).and_then(|name| held.get(name));
            let may_follow = |held: &&Held| extent.next_row() >= held.next || extent.latest > held.latest;
            found.contains_key(&extent.host)
                && extent.latest >= since
                && (index.is_copy || extent.first_row < in_memory)
                && held.is_none_or(may_follow)
        });
        for entry in entries {
            if let Some(of_host) = found.get_mut(&entry.extent.host) {
                of_host.blocks.push((Arc::clone(segment), entry));
            }
        }
    }
    // Heads are copied in packed form, so that the lock is not held while they are read.
    let named = |(number, of_host): (HostNo, Following)| {
        let head = index.hosts.get(&number).map(|host| &host.head).filter(|head| head.rows() > 0);
        Some((index.names.host(number)?.clone(), of_host, head.cloned()))
    };
    found.into_iter().filter_map(named).collect()
}

impl Following {
    /// Whether the row before the position is the one that was copied last.
    fn is_exact(&self, held: &Held) -> bool {
        let Some(last) = held.next.checked_sub(1) else { return false };
        let is_last = |first: u64, times: &[Time]| {
            let at = last.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| times.get(at)) == Some(&held.latest)
        };
        self.head.as_ref().is_some_and(|rows| is_last(rows.first_row, &rows.times))
            || self.blocks.iter().any(|(segment, entry)| {
                let extent = &entry.extent;
                (extent.first_row..extent.next_row()).contains(&last)
                    && segment
                        .open_block(entry, |_| false)
                        .is_ok_and(|opened| is_last(extent.first_row, &opened.times))
            })
    }

    /// Adds the blocks that follow; returns false if there is no room for all of them.
    fn add_to(&self, of_host: &mut HostSamples, room: &mut Room<'_>) -> bool {
        for (segment, entry) in &self.blocks {
            let Ok((head, body)) = segment.parts(entry) else { continue };
            let Ok(opened) = Opened::new(&head, |_| true) else { continue };
            let Some(first) = self.first_of(opened.extent.first_row, &opened.times) else { continue };
            let is_whole = match first == 0 && head.len() + body.len() <= BLOCK_LEN_MAX_BYTES {
                true => {
                    let series = opened.places.iter().map(|place| place.series);
                    let next = opened.extent.next_row();
                    add_block(of_host, room, series, Prepared { next, times: &opened.times, head, body })
                }
                // A damaged block is missing in the copy too.
                false => {
                    Rows::of_block(&head, &body).ok().is_none_or(|rows| add_rows(of_host, room, &rows, first))
                }
            };
            if !is_whole {
                return false;
            }
        }
        let head =
            self.head.as_ref().and_then(|rows| Some((rows, self.first_of(rows.first_row, &rows.times)?)));
        head.is_none_or(|(rows, first)| add_rows(of_host, room, rows, first))
    }

    /// Place of the first row that follows; those after it are sent too.
    fn first_of(&self, first_row: u64, times: &[Time]) -> Option<usize> {
        let mut rows = (first_row..).zip(times);
        rows.position(|(number, time)| self.from.is_before(number, *time) && *time >= self.since)
    }
}

/// A block to be sent.
struct Prepared<'a> {
    next: u64,
    times: &'a [Time],
    head: Vec<u8>,
    body: Vec<u8>,
}

/// Adds a block; returns false if there is no room for it.
fn add_block(
    of_host: &mut HostSamples,
    room: &mut Room<'_>,
    series: impl Iterator<Item = SeriesNo>,
    Prepared { next, times, head, body }: Prepared<'_>,
) -> bool {
    if !room.name(series, &mut of_host.names) {
        return false;
    }
    room.take(head.len() + body.len() + 32);
    let (last, latest) =
        (times.last().copied().unwrap_or_default(), times.iter().max().copied().unwrap_or_default());
    of_host.blocks.push(SampleBlock { next, last, latest, head: Packed(head), body: Packed(body) });
    true
}

/// Adds the rows from this one on, in blocks that are short enough; returns false if there is no room for all of them.
fn add_rows(of_host: &mut HostSamples, room: &mut Room<'_>, rows: &Rows<Exact>, first: usize) -> bool {
    let len = rows.times.len() - first;
    let part = rows.part(first..rows.times.len());
    let Encoded { extent, head, body } = part.encode();
    if len > 1 && head.len() + body.len() > BLOCK_LEN_MAX_BYTES {
        let half = part.part(0..len / 2);
        return add_rows(of_host, room, &half, 0) && add_rows(of_host, room, &part, len / 2);
    }
    let series = part.columns.iter().map(|(series, _)| *series);
    add_block(of_host, room, series, Prepared { next: extent.next_row(), times: &part.times, head, body })
}

impl Writer {
    /// Adds a block of samples that was read from another store, where its metrics have these numbers; metrics without
    /// a name are left out. Rows that are here are not added again.
    ///
    /// # Errors
    /// If the bytes are not the block that they are said to be.
    pub fn copy_samples(
        &mut self,
        name: &HostName,
        metrics: &BTreeMap<SeriesNo, Arc<Metric>>,
        block: &SampleBlock,
    ) -> Result<(), Unreadable> {
        let opened = check(block)?;
        let shared = Arc::clone(&self.shared);
        let mut index = shared.write();
        let number = index.names.host_number(name);
        let host = index.hosts.entry(number).or_insert_with(|| Host::new(number, Continue::default()));
        let is_new = |(at, time): (u64, &Time)| {
            host.copied.is_none_or(|copied| at >= copied.next || *time > copied.latest)
        };
        let Some(first) = (opened.extent.first_row..).zip(&opened.times).position(is_new) else {
            return Ok(());
        };
        let rest;
        let (head, body) = match first {
            0 => (&block.head.0, &block.body.0),
            _ => {
                let rows = Rows::<Exact>::of_block(&block.head.0, &block.body.0).map_err(unreadable)?;
                rest = rows.part(first..rows.times.len()).encode();
                (&rest.head, &rest.body)
            }
        };
        let numbers: BTreeMap<SeriesNo, SeriesNo> = opened
            .places
            .iter()
            .filter_map(|place| Some((place.series, copied_number(&mut index, metrics.get(&place.series)?)?)))
            .collect();
        let of = |series: SeriesNo| numbers.get(&series).copied();
        let (block, series) = Encoded::renumbered(head, body, number, of).map_err(unreadable)?;
        drop(index);
        self.append_copied(number, &block, &series, opened.times.last().copied().unwrap_or_default());
        Ok(())
    }

    fn append_copied(&mut self, number: HostNo, block: &Encoded, series: &[SeriesNo], last: Time) {
        let shared = Arc::clone(&self.shared);
        let appended = self.tiers[Tier::Raw.index()].append(block, series, &shared.read().names);
        let mut index = shared.write();
        if appended.is_ok()
            && let Some(host) = index.hosts.get_mut(&number)
        {
            host.set_copied(number, block.extent.next_row(), last, block.extent.latest);
        }
        index.segments[Tier::Raw.index()] = self.tiers[Tier::Raw.index()].segments().clone();
        drop(index);
        self.outcome(Part::Tier(Tier::Raw), appended);
    }
}

/// Checks what is said beside a block.
fn check(block: &SampleBlock) -> Result<Opened, Unreadable> {
    let opened = Opened::new(&block.head.0, |_| true).map_err(unreadable)?;
    let is_said = opened.extent.first_row.checked_add(opened.times.len() as u64) == Some(block.next)
        && opened.times.last() == Some(&block.last)
        && opened.times.iter().max() == Some(&block.latest)
        && opened.extent.rows as usize == opened.times.len();
    if is_said { Ok(opened) } else { Err(Unreadable("a block of other rows than it is said to have")) }
}

fn unreadable(damaged: crate::bytes::Damaged) -> Unreadable {
    Unreadable(damaged.0)
}
