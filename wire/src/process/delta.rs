//! Sweeps of processes in few bytes: a whole one at first and now and then, in between only what changed.
//!
//! Pure. Each process has a place in a table that both ends keep; numbers are of variable length, seven bits a byte:
//!
//! ```text
//! whole    1 | number | begin | took | places | per process: gap, pid, start, fields that are not zero
//! changes  2 | +number | begin, against expected | took | gone: count, gaps | per process that changed:
//!              (gap + 1) << 1 | is another process, (pid, start,) which fields, per field the difference | 0
//! ```
//!
//! What is expected is one period after the last, the period being that between the last two; after a whole sweep none is
//! known, so that it can be the first of a new reader. A field that may be unknown is kept as 0 for unknown and
//! otherwise one more than its value.
//! Invariant: what is decoded is what was encoded, to the bit; a decoder gives an error, never a wrong table, on bytes
//! that are not the next frame, and holds at most [`PROCESSES_MAX`] processes.
//! Not here: which sweeps are sent where, and framing.

mod fields;
mod number;

use super::{Process, ProcessKey};
use fields::{Fields, NAME};
use number::Reader;

/// Most processes of a host: beyond what hosts have, and a hostile frame makes no larger table (24 MB).
pub const PROCESSES_MAX: usize = 1 << 17;

const WHOLE: u8 = 1;
const CHANGES: u8 = 2;

/// A pass over the processes of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Counts sweeps, those that were not made included.
    pub number: u64,
    /// When it began, in nanoseconds since boot.
    pub begin_ns: u64,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
}

/// Why bytes are not the next sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Fewer or more bytes than the sweep needs.
    #[error("sweep is cut short or too long")]
    Length,
    /// Not one of the two forms.
    #[error("sweep of form {found}; expected {WHOLE} or {CHANGES}")]
    Form {
        /// As written.
        found: u64,
    },
    /// Changes with no whole sweep before them.
    #[error("changes without a whole sweep before them")]
    Unfounded,
    /// A place beyond the table.
    #[error("place {found} of a process; expected below {PROCESSES_MAX}")]
    Place {
        /// As written.
        found: u64,
    },
    /// A change of a process that is not there.
    #[error("change of the process in place {place}, where there is none")]
    Missing {
        /// Which.
        place: u64,
    },
    /// A field that does not exist, or a value it cannot have.
    #[error("field {field} of the process in place {place} cannot be {found:#x}")]
    Field {
        /// Which process.
        place: u64,
        /// Which field, by number.
        field: u32,
        /// As written.
        found: u64,
    },
}

/// Writes sweeps against the last one it wrote.
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
    /// Write every process: `rows` are all places of the table.
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

    /// Write what is other than in the last sweep written. `changed` are the places at which something can be, in rising
    /// order (some may lie behind the end); what stands at the others is as it was. Returns how many processes were given. Before any whole sweep, one
    /// is written.
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
        let told_gone = self.put_gone(rows, changed.clone(), out);
        told_gone + self.put_changed(rows, changed, out)
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
        let (mut next, mut told) = (0, 0);
        for place in changed {
            let Some(process) = rows.get(place).and_then(Option::as_ref) else { continue };
            let fields = Fields::of(process);
            let known = self.rows[place].take();
            let is_another = known.as_ref().is_none_or(|known| known.key != process.key);
            if !is_another && known.as_ref().is_some_and(|known| known.fields == fields) {
                self.rows[place] = known;
                continue;
            }
            // Zero ends the list, so a gap is written as one more than it is.
            number::put(out, ((place - next) as u64 + 1) << 1 | u64::from(is_another));
            next = place + 1;
            told += 1;
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
        told
    }
}

/// Reads sweeps in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    rows: Vec<Option<Process>>,
    last: Option<Sweep>,
    period_ns: u64,
}

impl Decoder {
    /// The processes by place, as of the last sweep read.
    #[must_use]
    pub fn rows(&self) -> &[Option<Process>] {
        &self.rows
    }

    /// Read the next frame.
    ///
    /// # Errors
    /// If the bytes are not the next frame. The table is empty then, and only a whole sweep is read.
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
        // A process takes at least three bytes, so a short frame cannot ask for a large table.
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
