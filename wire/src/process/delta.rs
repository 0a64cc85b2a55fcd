//! Delta encoding of process sweeps: a whole sweep first and from time to time, in between only the changes.
//!
//! Pure. Each process has a place in a table that both ends maintain; numbers have variable length, seven
//! bits per byte:
//!
//! ```text
//! whole    1 | number | begin | took | places | per process: gap, pid, start, fields that are not zero
//! changes  2 | +number | begin, against expected | took | gone: count, gaps | per process that changed:
//!              (gap + 1) << 1 | is another process, (pid, start,) which fields, per field the difference | 0
//! ```
//!
//! The expected start is one period after the last one, where the period is that between the last two sweeps;
//! after a whole sweep no period is known, so that it can be the first one of a new reader. A field that may
//! be unknown is encoded as 0 if it is unknown, and otherwise as its value plus one.
//! Invariant: decoding gives exactly what was encoded; for bytes that are not the next frame a decoder
//! returns an error, never a wrong table, and it stores at most [`PROCESSES_MAX`] processes.
//! Not here: which sweeps are sent where, and framing.

mod fields;
mod number;

use super::{Process, ProcessKey};
use fields::{Fields, NAME};
use number::Reader;

/// Most processes of a host: more than hosts have, and a hostile frame cannot create a larger table (24 MB).
pub const PROCESSES_MAX: usize = 1 << 17;

const WHOLE: u8 = 1;
const CHANGES: u8 = 2;

/// One pass over the processes of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Number of the sweep; skipped sweeps are counted, too.
    pub number: u64,
    /// Start of the sweep, in nanoseconds since boot.
    pub begin_ns: u64,
    /// Duration of the sweep, in nanoseconds.
    pub took_ns: u64,
}

/// Why bytes are not the next sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sweep needs fewer or more bytes.
    #[error("sweep is cut short or too long")]
    Length,
    /// The frame is of neither form.
    #[error("sweep of form {found}; expected {WHOLE} or {CHANGES}")]
    Form {
        /// The first number of the frame.
        found: u64,
    },
    /// Changes without a whole sweep before them.
    #[error("changes without a whole sweep before them")]
    Unfounded,
    /// A place is beyond the table.
    #[error("place {found} of a process; expected below {PROCESSES_MAX}")]
    Place {
        /// The place in the frame.
        found: u64,
    },
    /// A change of a process that does not exist.
    #[error("change of the process in place {place}, where there is none")]
    Missing {
        /// Place of the process.
        place: u64,
    },
    /// A field that does not exist, or an impossible value.
    #[error("field {field} of the process in place {place} cannot be {found:#x}")]
    Field {
        /// Place of the process.
        place: u64,
        /// Number of the field.
        field: u32,
        /// Value in the frame.
        found: u64,
    },
}

/// Encodes sweeps relative to the last one.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    rows: Vec<Option<Row>>,
    last: Option<Sweep>,
    period_ns: u64,
}

#[derive(Clone, Debug)]
struct Row {
    key: ProcessKey,
    fields: Fields,
}

impl Encoder {
    /// Encode every process; `rows` are all places of the table.
    pub fn whole(&mut self, sweep: Sweep, rows: &[Option<Process>], out: &mut Vec<u8>) {
        self.rows.clear();
        self.rows.extend(
            rows.iter().map(|row| row.as_ref().map(|row| Row { key: row.key, fields: Fields::of(row) })),
        );
        out.push(WHOLE);
        for number in [sweep.number, sweep.begin_ns, sweep.took_ns, rows.len() as u64] {
            number::put(out, number);
        }
        let mut next = 0;
        for (place, row) in self.rows.iter().enumerate() {
            if let Some(row) = row {
                number::put(out, (place - next) as u64);
                next = place + 1;
                number::put(out, row.key.pid.into());
                number::put(out, row.key.start_ns);
                row.fields.put_difference(&Fields::default(), out);
            }
        }
        self.last = Some(sweep);
        self.period_ns = 0;
    }

    /// Encode the changes since the last encoded sweep. `changed` are the places that may have changed,
    /// ascending (some may be beyond the end); all others are unchanged. Returns the number of processes
    /// encoded. Without a whole sweep before, one is encoded.
    pub fn changes(
        &mut self,
        sweep: Sweep,
        rows: &[Option<Process>],
        changed: impl Iterator<Item = usize> + Clone,
        out: &mut Vec<u8>,
    ) -> usize {
        let Some(last) = self.last else {
            self.whole(sweep, rows, out);
            return rows.iter().flatten().count();
        };
        self.rows.resize(self.rows.len().max(rows.len()), None);
        out.push(CHANGES);
        number::put(out, sweep.number.wrapping_sub(last.number));
        let expected_ns = last.begin_ns.wrapping_add(self.period_ns);
        number::put(out, number::fold(sweep.begin_ns.wrapping_sub(expected_ns)));
        number::put(out, sweep.took_ns);
        self.period_ns = sweep.begin_ns.wrapping_sub(last.begin_ns);
        self.last = Some(sweep);
        let gone = self.put_gone(rows, changed.clone(), out);
        gone + self.put_changed(rows, changed, out)
    }

    fn put_gone(
        &mut self,
        rows: &[Option<Process>],
        changed: impl Iterator<Item = usize> + Clone,
        out: &mut Vec<u8>,
    ) -> usize {
        let at = |place: usize| rows.get(place).and_then(Option::as_ref);
        let is_gone = |known: &[Option<Row>], place: usize| {
            known.get(place).is_some_and(Option::is_some) && at(place).is_none()
        };
        let gone = changed.clone().filter(|place| is_gone(&self.rows, *place)).count();
        number::put(out, gone as u64);
        let mut next = 0;
        for place in changed.filter(|_| gone > 0) {
            if is_gone(&self.rows, place) {
                self.rows[place] = None;
                number::put(out, (place - next) as u64);
                next = place + 1;
            }
        }
        gone
    }

    fn put_changed(
        &mut self,
        rows: &[Option<Process>],
        changed: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) -> usize {
        let (mut next, mut written) = (0, 0);
        for place in changed {
            let Some(process) = rows.get(place).and_then(Option::as_ref) else { continue };
            let fields = Fields::of(process);
            let known = self.rows[place].take();
            let is_another = known.as_ref().is_none_or(|known| known.key != process.key);
            if !is_another && known.as_ref().is_some_and(|known| known.fields == fields) {
                self.rows[place] = known;
                continue;
            }
            // Zero ends the list, so a gap is encoded plus one.
            number::put(out, ((place - next) as u64 + 1) << 1 | u64::from(is_another));
            next = place + 1;
            written += 1;
            if is_another {
                number::put(out, process.key.pid.into());
                number::put(out, process.key.start_ns);
                fields.put_difference(&Fields::default(), out);
            } else {
                let known = known.as_ref().expect("known, as it is not another");
                fields.put_difference(&known.fields, out);
            }
            self.rows[place] = Some(Row { key: process.key, fields });
        }
        number::put(out, 0);
        written
    }
}

/// Decodes sweeps in the order in which they were encoded.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    rows: Vec<Option<Process>>,
    last: Option<Sweep>,
    period_ns: u64,
}

impl Decoder {
    /// The processes by place, as of the last sweep.
    #[must_use]
    pub fn rows(&self) -> &[Option<Process>] {
        &self.rows
    }

    /// Decode the next frame.
    ///
    /// # Errors
    /// If the bytes are not the next frame. The table is then empty, and only a whole sweep is accepted.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Sweep, Error> {
        let read = self.read_frame(&mut Reader::new(bytes));
        match read {
            Ok(sweep) => {
                self.last = Some(sweep);
                Ok(sweep)
            }
            Err(error) => {
                *self = Decoder::default();
                Err(error)
            }
        }
    }

    fn read_frame(&mut self, reader: &mut Reader<'_>) -> Result<Sweep, Error> {
        let sweep = match reader.byte()? {
            WHOLE => self.read_whole(reader)?,
            CHANGES => self.read_changes(reader)?,
            found => return Err(Error::Form { found: found.into() }),
        };
        if reader.is_at_end() { Ok(sweep) } else { Err(Error::Length) }
    }

    fn read_whole(&mut self, reader: &mut Reader<'_>) -> Result<Sweep, Error> {
        let sweep = Sweep { number: reader.number()?, begin_ns: reader.number()?, took_ns: reader.number()? };
        let places = place_within(reader.number()?, PROCESSES_MAX as u64 + 1)?;
        self.rows.clear();
        self.period_ns = 0;
        // A process takes at least three bytes, so a short frame cannot request a large table.
        let mut next = 0_u64;
        while !reader.is_at_end() {
            let place = place_within(next.saturating_add(reader.number()?), places as u64)?;
            next = place as u64 + 1;
            let row = new_row(reader, place)?;
            self.set(place, row);
        }
        Ok(sweep)
    }

    fn read_changes(&mut self, reader: &mut Reader<'_>) -> Result<Sweep, Error> {
        let last = self.last.ok_or(Error::Unfounded)?;
        let number = last.number.wrapping_add(reader.number()?);
        let expected_ns = last.begin_ns.wrapping_add(self.period_ns);
        let begin_ns = expected_ns.wrapping_add(number::unfold(reader.number()?));
        let sweep = Sweep { number, begin_ns, took_ns: reader.number()? };
        self.period_ns = begin_ns.wrapping_sub(last.begin_ns);
        let mut next = 0_u64;
        for _ in 0..reader.number()? {
            let place = place_within(next.saturating_add(reader.number()?), PROCESSES_MAX as u64)?;
            next = place as u64 + 1;
            let row = self.rows.get_mut(place).and_then(Option::take);
            row.ok_or(Error::Missing { place: place as u64 })?;
        }
        next = 0;
        loop {
            let head = reader.number()?;
            if head == 0 {
                return Ok(sweep);
            }
            let gap = (head >> 1).checked_sub(1).ok_or(Error::Place { found: head })?;
            let place = place_within(next.saturating_add(gap), PROCESSES_MAX as u64)?;
            next = place as u64 + 1;
            if head & 1 == 1 {
                let row = new_row(reader, place)?;
                self.set(place, row);
            } else {
                self.change(reader, place)?;
            }
        }
    }

    fn set(&mut self, place: usize, row: Process) {
        if place >= self.rows.len() {
            self.rows.resize(place + 1, None);
        }
        self.rows[place] = Some(row);
    }

    fn change(&mut self, reader: &mut Reader<'_>, place: usize) -> Result<(), Error> {
        let row = self.rows.get_mut(place).and_then(Option::as_mut);
        let row = row.ok_or(Error::Missing { place: place as u64 })?;
        let mut fields = Fields::of(row);
        fields.add_difference(reader, place as u64)?;
        *row = fields.process(row.key, place as u64)?;
        Ok(())
    }
}

fn new_row(reader: &mut Reader<'_>, place: usize) -> Result<Process, Error> {
    let pid = reader.number()?;
    let wrong = Error::Field { place: place as u64, field: NAME + 1, found: pid };
    let key = ProcessKey { pid: u32::try_from(pid).map_err(|_| wrong)?, start_ns: reader.number()? };
    let mut fields = Fields::default();
    fields.add_difference(reader, place as u64)?;
    fields.process(key, place as u64)
}

fn place_within(found: u64, end: u64) -> Result<usize, Error> {
    if found < end && found <= PROCESSES_MAX as u64 {
        usize::try_from(found).map_err(|_| Error::Place { found })
    } else {
        Err(Error::Place { found })
    }
}
