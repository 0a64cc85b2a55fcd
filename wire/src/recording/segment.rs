//! Segment: some seconds of sweeps that can be decoded independently, with the processes that ended
//! meanwhile.
//!
//! ```text
//! items, each: length, u32 LE | 1, 2: a sweep of `process::delta` (the first is whole) | 3: a life that ended, postcard
//! ```
//!
//! Pure. Rule: unreadable data end the segment, and that is reported; the items before them are used.
//! Not here: the length of segments, and their storage.

use crate::process::delta::{self, Decoder, Sweep};
use crate::process::{Life, Process, ProcessKey};
use serde::{Deserialize, Serialize};

/// The first byte of a life item; those of sweeps are lower.
const LIFE: u8 = 3;
const LENGTH_LEN_BYTES: usize = 4;

/// Some seconds of sweeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Start of its span, in nanoseconds since boot: the start of a sweep or the end of a life.
    pub first_ns: u64,
    /// End of its span, in nanoseconds since boot.
    pub last_ns: u64,
    /// Number of sweeps.
    pub sweeps: u32,
    /// Number of processes, summed over the sweeps.
    pub samples: u64,
    items: Vec<u8>,
}

/// Item of a segment.
#[derive(Debug)]
pub enum Item<'a> {
    /// A pass over the processes.
    Swept(Swept<'a>),
    /// A process that ended since the previous item.
    Ended(Life),
}

/// A pass over the processes.
#[derive(Debug)]
pub struct Swept<'a> {
    /// Number and time of the sweep.
    pub sweep: Sweep,
    /// The processes by place.
    pub rows: &'a [Option<Process>],
    before: &'a [Option<(ProcessKey, u64)>],
    before_ns: Option<u64>,
}

/// Plays segments in order. Processes keep their places from one to the next.
#[derive(Debug, Default)]
pub struct Player {
    decoder: Decoder,
    /// CPU times in the previous sweep, by place.
    before: Vec<Option<(ProcessKey, u64)>>,
    before_ns: Option<u64>,
}

impl Segment {
    /// Append a sweep, which `write` encodes; the first sweep must be a whole one.
    pub fn push_sweep(&mut self, begin_ns: u64, processes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.push(begin_ns, write);
        self.sweeps += 1;
        self.samples += processes as u64;
    }

    /// Append a process that ended.
    pub fn push_life(&mut self, life: &Life) {
        self.push(life.end_ns, |out| {
            out.push(LIFE);
            let whole = postcard::to_allocvec(life).expect("a life can be written to memory");
            out.extend_from_slice(&whole);
        });
    }

    fn push(&mut self, moment_ns: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.items.len();
        self.first_ns = if start == 0 { moment_ns } else { self.first_ns.min(moment_ns) };
        self.last_ns = self.last_ns.max(moment_ns);
        self.items.extend_from_slice(&[0; LENGTH_LEN_BYTES]);
        write(&mut self.items);
        let len = self.items.len() - start - LENGTH_LEN_BYTES;
        let len = u32::try_from(len).expect("an item is far below 4 GiB: the processes of one sweep");
        self.items[start..start + LENGTH_LEN_BYTES].copy_from_slice(&len.to_le_bytes());
    }

    /// Memory usage, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Segment>() + self.items.capacity()
    }

    /// Length of its items, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.items.len()
    }

    /// Release memory that is reserved but unused.
    pub fn shrink(&mut self) {
        self.items.shrink_to_fit();
    }

    /// Whether it has data at or after `from_ns` and at or before `to_ns`.
    #[must_use]
    pub fn overlaps(&self, from_ns: u64, to_ns: u64) -> bool {
        !self.items.is_empty() && self.last_ns >= from_ns && self.first_ns <= to_ns
    }
}

impl Player {
    /// Call `each` for each item, until it requests to stop.
    ///
    /// # Errors
    /// If an item cannot be decoded; `each` was called for those before it.
    pub fn play(
        &mut self,
        segment: &Segment,
        mut each: impl FnMut(&Item<'_>) -> bool,
    ) -> Result<(), delta::Error> {
        let mut rest = segment.items.as_slice();
        while !rest.is_empty() {
            let (item, after) = split(rest).ok_or(delta::Error::Length)?;
            rest = after;
            let goes_on = match item.first() {
                Some(&LIFE) => {
                    let life = postcard::from_bytes(&item[1..]).map_err(|_| delta::Error::Length)?;
                    each(&Item::Ended(life))
                }
                _ => self.swept(item, &mut each)?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn swept(&mut self, item: &[u8], each: &mut impl FnMut(&Item<'_>) -> bool) -> Result<bool, delta::Error> {
        let sweep = self.decoder.read(item)?;
        let rows = self.decoder.rows();
        let goes_on =
            each(&Item::Swept(Swept { sweep, rows, before: &self.before, before_ns: self.before_ns }));
        self.before.clear();
        self.before.extend(rows.iter().map(|row| row.as_ref().map(|row| (row.key, row.usage.cpu_ns))));
        self.before_ns = Some(sweep.begin_ns);
        Ok(goes_on)
    }
}

impl Swept<'_> {
    /// Share of a core that the process at this place used since the previous sweep, where 1 is a whole core;
    /// for a process that started since then, since its start. `None` in the first sweep.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // A span between two sweeps is far below 2^53 ns.
    pub fn share(&self, place: usize) -> Option<f64> {
        let row = self.rows.get(place)?.as_ref()?;
        let before_ns = self.before_ns?;
        let before = self.before.get(place).copied().flatten().filter(|(key, _)| *key == row.key);
        let (from_ns, cpu_ns) = match before {
            Some((_, cpu_ns)) => (before_ns, cpu_ns),
            None if row.key.start_ns >= before_ns => (row.key.start_ns, 0),
            // Some sources report its start in hundredths of a second.
            None => (before_ns, 0),
        };
        let span_ns = self.sweep.begin_ns.checked_sub(from_ns).filter(|span_ns| *span_ns > 0)?;
        Some(row.usage.cpu_ns.saturating_sub(cpu_ns) as f64 / span_ns as f64)
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_LEN_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}
