//! Copying minutes from one store to another: those of a member to its representative, and of all to a standby.
//!
//! Rule: a copy continues after the last row that it has; rows are in the order of their origin, whose numbers
//! they keep from copy to copy, and each is in the copy once. Hours are merged from the copied minutes as from a host's own. Not here: when is copied, and
//! from where (`sensor`).

use crate::block::{HostNo, SeriesNo};
use crate::bucket::Bucket;
use crate::bucket_row::{Unpack, pack};
use crate::copied_names::{Room, Sent};
use crate::host::{Continue, Host};
use crate::reader::{Index, Reader};
use crate::rollup::ClosedRow;
use crate::rows::packed_rows;
use crate::segment::{Entry, Segment};
use crate::tier::Tier;
use crate::tier_files::Limit;
use crate::writer::{Writer, has_due};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use wire::id::HostName;
use wire::report::Packed;
use wire::report::minutes::{Fetch, Held, HostMinutes, MinuteRow, Minutes, NewNames};
use wire::sample::Metric;
use wire::time::Time;

/// Metrics of a store of copies, at most: further ones are left out. A domain has some thousand, unless
/// a host makes up new ones.
const NAMES_MAX: usize = 500_000;

/// Longest packed row: one of 16,384 metrics fits, and it fits into a frame.
const ROW_LEN_MAX_BYTES: usize = 768 << 10;

/// The bytes of a minute are not a row of buckets, or those of samples no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be read: {0}")]
pub struct Unreadable(pub(crate) &'static str);

/// Where a copy continues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    Row(u64),
    /// With the rows later than this time.
    After(Time),
}

/// Minutes of a host that follow a position.
struct Following {
    from: From,
    since: Time,
    /// Blocks, and the number that their first row has at its origin.
    blocks: Vec<(Arc<Segment>, Entry, u64)>,
    /// Rows that are not sealed, and their numbers.
    closed: Vec<(u64, ClosedRow)>,
}

/// Answer that is being collected.
struct Answer<'a> {
    room: Room<'a>,
    hosts: Vec<HostMinutes>,
}

impl Reader {
    /// How far the minutes of each host are stored, by the numbers of the store that they were read from.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        let index = self.0.read();
        let held = |(number, host): (&HostNo, &Host)| {
            let (next, latest) = host.minutes.newest()?;
            Some(Held { host: index.names.host(*number)?.clone(), next, latest })
        };
        index.hosts.iter().filter_map(held).collect()
    }

    /// Answers a fetch with the minutes of these hosts.
    #[must_use]
    pub fn minutes(&self, fetch: &Fetch, is_wanted: impl Fn(&HostName) -> bool, sent: &mut Sent) -> Minutes {
        let held: BTreeMap<&HostName, &Held> = fetch.held.iter().map(|held| (&held.host, held)).collect();
        let (names, hosts) = {
            let index = self.0.read();
            let names = index.names.metrics().map(|(number, metric)| (number, Arc::clone(metric))).collect();
            let behind = index.names.hosts().filter(|(number, host)| {
                let state = index.hosts.get(number).filter(|_| is_wanted(host));
                state.is_some_and(|state| !is_current(&index, state, held.get(host)))
            });
            (names, behind.map(|(number, host)| (number, host.clone())).collect::<Vec<_>>())
        };
        let mut answer = Answer { room: Room::new(names, sent, fetch.len_bytes), hosts: Vec::new() };
        for (number, host) in hosts {
            let following = self.following(number, held.get(&host).copied(), fetch.since);
            if !answer.add_host(host, &following) {
                return Minutes { hosts: answer.hosts, is_end: false };
            }
        }
        Minutes { hosts: answer.hosts, is_end: true }
    }

    fn following(&self, host: HostNo, held: Option<&Held>, since: Time) -> Following {
        let index = self.0.read();
        let state = index.hosts.get(&host);
        let closed = state.map_or(&[][..], |state| state.minutes.closed());
        let first = state.map_or(0, |state| state.minutes.first_row());
        let number =
            |at: u64, row: &ClosedRow| if index.is_copy { row.finer_end.saturating_sub(1) } else { at };
        let closed: Vec<_> = (first..).zip(closed).map(|(at, row)| (number(at, row), row.clone())).collect();
        let mut blocks = Vec::new();
        for segment in &index.segments[Tier::Minute.index()] {
            let entries = segment
                .entries(|extent| extent.host == host && extent.latest >= since && extent.first_row < first);
            let numbered = |entry: Entry| {
                let first = match index.is_copy {
                    true => entry.extent.finer_rows.saturating_sub(u64::from(entry.extent.rows)),
                    false => entry.extent.first_row,
                };
                (Arc::clone(segment), entry, first)
            };
            blocks.extend(entries.into_iter().map(numbered));
        }
        drop(index);
        let from = match held {
            Some(held) if is_exact(&blocks, &closed, held) => From::Row(held.next),
            Some(held) => From::After(held.latest),
            None => From::Row(0),
        };
        blocks.retain(|(_, entry, first)| match from {
            From::Row(row) => first + u64::from(entry.extent.rows) > row,
            From::After(time) => entry.extent.latest > time,
        });
        Following { from, since, blocks, closed }
    }
}

impl Following {
    fn has(&self, number: u64, start: Time) -> bool {
        self.from.is_before(number, start) && start >= self.since
    }
}

impl From {
    /// Whether a row of this number and time follows.
    pub(crate) fn is_before(self, number: u64, time: Time) -> bool {
        match self {
            From::Row(row) => number >= row,
            From::After(last) => time > last,
        }
    }
}

/// Whether nothing follows this position.
fn is_current(index: &Index, host: &Host, held: Option<&&Held>) -> bool {
    let next = |end| if index.is_copy { end } else { host.minutes.next_row() };
    let newest = host.minutes.newest().map(|(end, start)| (next(end), start));
    newest.is_none() || newest == held.map(|held| (held.next, held.latest))
}

/// Whether the row before the position is the one that was copied last.
fn is_exact(blocks: &[(Arc<Segment>, Entry, u64)], closed: &[(u64, ClosedRow)], held: &Held) -> bool {
    let Some(last) = held.next.checked_sub(1) else { return false };
    if let Some((_, row)) = closed.iter().find(|(number, _)| *number == last) {
        return row.start == held.latest;
    }
    blocks.iter().any(|(segment, entry, first)| {
        let at = last.checked_sub(*first).filter(|at| *at < u64::from(entry.extent.rows));
        let at = at.map(|at| usize::try_from(at).expect("within a block"));
        let start = |at: usize| segment.open_block(entry, |_| false).ok()?.times.get(at).copied();
        at.and_then(start) == Some(held.latest)
    })
}

impl Answer<'_> {
    /// Adds rows of a host; returns false if there is no room for all of them.
    fn add_host(&mut self, host: HostName, following: &Following) -> bool {
        let mut minutes = HostMinutes { host, names: NewNames::default(), rows: Vec::new() };
        let is_whole = self.add_rows(&mut minutes, following);
        if !minutes.rows.is_empty() || !minutes.names.metrics.is_empty() {
            minutes.names.is_fresh = self.room.take_fresh();
            self.hosts.push(minutes);
        }
        is_whole
    }

    fn add_rows(&mut self, minutes: &mut HostMinutes, following: &Following) -> bool {
        for (segment, entry, first) in &following.blocks {
            // A damaged block is missing in the copy too.
            let number = |at: usize| first + at as u64;
            let rows = packed_rows(segment, entry, |at, start| following.has(number(at), start));
            for (at, start, packed) in rows.unwrap_or_default() {
                if !self.add_row(minutes, number(at), start, &packed) {
                    return false;
                }
            }
        }
        let mut closed = following.closed.iter().filter(|(number, row)| following.has(*number, row.start));
        closed.all(|(number, row)| self.add_row(minutes, *number, row.start, &row.packed))
    }

    /// Adds the names that a row needs, and the row; returns false if there is no room for all of it.
    fn add_row(&mut self, minutes: &mut HostMinutes, number: u64, start: Time, packed: &[u8]) -> bool {
        let series = Unpack::new(packed).flatten().map(|(series, _)| series);
        if !self.room.name(series, &mut minutes.names) {
            return false;
        }
        self.room.take(packed.len() + 16);
        minutes.rows.push(MinuteRow { number, start, packed: Packed(packed.to_vec()) });
        true
    }
}

impl Writer {
    /// Opens a store of copies: its minutes come from other stores ([`Writer::copy`]), and no samples are added.
    ///
    /// # Errors
    /// As [`Writer::open`].
    pub fn open_copies(folder: &Path, limits: [Limit; 3]) -> io::Result<Writer> {
        Writer::open_as(folder, limits, true)
    }

    /// Adds a minute that was read from another store, where its metrics have these numbers; metrics without a
    /// name are left out. Rows that are here are not added again.
    ///
    /// # Errors
    /// If the bytes are not a row.
    pub fn copy(
        &mut self,
        name: &HostName,
        metrics: &BTreeMap<SeriesNo, Arc<Metric>>,
        row: &MinuteRow,
    ) -> Result<(), Unreadable> {
        if row.packed.0.len() > ROW_LEN_MAX_BYTES {
            return Err(Unreadable("a row of too many bytes"));
        }
        let shared = Arc::clone(&self.shared);
        let mut index = shared.write();
        let mut buckets: BTreeMap<SeriesNo, Bucket> = BTreeMap::new();
        for bucket in Unpack::new(&row.packed.0) {
            let (series, bucket) = bucket.map_err(|damaged| Unreadable(damaged.0))?;
            let number = metrics.get(&series).and_then(|metric| copied_number(&mut index, metric));
            if let Some(number) = number {
                buckets.insert(number, bucket);
            }
        }
        let number = index.names.host_number(name);
        let host = index.hosts.entry(number).or_insert_with(|| Host::new(number, Continue::default()));
        let end = row.number.saturating_add(1);
        if host.minutes.has(end, row.start) {
            return Ok(());
        }
        let packed = pack(buckets.iter().map(|(series, bucket)| (*series, bucket)));
        host.append_minute(ClosedRow { start: row.start, finer_end: end, packed: packed.into() });
        let is_due = has_due(host);
        drop(index);
        if is_due {
            self.seal_buckets();
            self.bound_memory();
        }
        Ok(())
    }

    /// Adds the copied minutes to the log that it lacks and that are not sealed.
    pub(crate) fn log_minutes(&mut self) {
        let shared = Arc::clone(&self.shared);
        let index = shared.read();
        for (number, host) in index.hosts.iter().filter(|_| index.is_copy) {
            let logged = self.logged_minutes.get(number).copied().unwrap_or_default();
            let rows = (host.minutes.first_row()..).zip(host.minutes.closed());
            for (at, row) in rows.filter(|(at, _)| *at >= logged) {
                let series: Vec<SeriesNo> = row.buckets().map(|(series, _)| series).collect();
                self.log_names(&index, *number, &series);
                self.pending.minute(*number, at, row);
            }
            self.logged_minutes.insert(*number, host.minutes.next_row());
        }
    }

    /// Seals all copied minutes, and hours with them, if those minutes that are in memory take more than `len_max`
    /// bytes. Without the hours all minutes of a day would be read at the next start.
    pub(crate) fn seal_copied(&mut self, len_max: u64) {
        let len: usize = {
            let index = self.shared.read();
            let copied = index.hosts.values().filter(|_| index.is_copy);
            copied.flat_map(|host| host.minutes.closed()).map(|row| row.packed.len()).sum()
        };
        if len as u64 > len_max {
            self.seal_buckets_of(|_| true, |_| true);
        }
    }
}

/// Number of a metric that was copied, unless there are too many.
pub(crate) fn copied_number(index: &mut Index, metric: &Arc<Metric>) -> Option<SeriesNo> {
    let is_room = index.names.metrics_len() < NAMES_MAX;
    match is_room {
        true => Some(index.names.series_number(metric)),
        false => index.names.known_series(metric),
    }
}
