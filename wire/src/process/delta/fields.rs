//! Fields of a process as numbers, the most variable first, so that the set of changed fields fits in a byte.
//!
//! Pure. Rule: a set of fields that no process can have is an error, not another process.

use super::super::{Io, NAME_LEN_MAX_BYTES, Process, ProcessKey, State, Switches, Usage};
use super::Error;
use super::number::{self, Reader, fold, unfold};
use compact_str::CompactString;

/// Index of each number; the name follows them.
const CPU: usize = 0;
const VOLUNTARY: usize = 1;
const STATE: usize = 2;
const MINOR_FAULTS: usize = 3;
const RSS: usize = 4;
const INVOLUNTARY: usize = 5;
const USER: usize = 6;
const SYSTEM: usize = 7;
const THREADS: usize = 8;
const READ_CHARS: usize = 9;
const WRITTEN_CHARS: usize = 10;
const READ_BYTES: usize = 11;
const WRITTEN_BYTES: usize = 12;
const MAJOR_FAULTS: usize = 13;
const PARENT: usize = 14;
const UID: usize = 15;
const CGROUP: usize = 16;
const NUMBERS: usize = 17;
/// Index of the name among the fields.
pub(super) const NAME: u32 = 17;

/// Fields that are known together or not at all.
const SWITCHES: [usize; 2] = [VOLUNTARY, INVOLUNTARY];
const IO: [usize; 4] = [READ_CHARS, WRITTEN_CHARS, READ_BYTES, WRITTEN_BYTES];

/// The fields of a process except its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    numbers: [u64; NUMBERS],
    name: CompactString,
}

impl Fields {
    pub(super) fn of(process: &Process) -> Fields {
        let usage = &process.usage;
        let mut numbers = [0; NUMBERS];
        numbers[CPU] = usage.cpu_ns;
        numbers[STATE] = process.state as u64;
        numbers[MINOR_FAULTS] = usage.minor_faults;
        numbers[RSS] = process.rss_kib;
        numbers[USER] = usage.user_ns;
        numbers[SYSTEM] = usage.system_ns;
        numbers[THREADS] = process.threads.into();
        numbers[MAJOR_FAULTS] = usage.major_faults;
        numbers[PARENT] = process.parent.into();
        numbers[UID] = process.uid.into();
        numbers[CGROUP] = known(process.cgroup);
        numbers[VOLUNTARY] = known(usage.switches.map(|switches| switches.voluntary));
        numbers[INVOLUNTARY] = known(usage.switches.map(|switches| switches.involuntary));
        numbers[READ_CHARS] = known(usage.io.map(|io| io.read_chars));
        numbers[WRITTEN_CHARS] = known(usage.io.map(|io| io.written_chars));
        numbers[READ_BYTES] = known(usage.io.map(|io| io.read_bytes));
        numbers[WRITTEN_BYTES] = known(usage.io.map(|io| io.written_bytes));
        Fields { numbers, name: process.name.clone() }
    }

    /// Encode which fields differ from those of `known`, and by how much.
    pub(super) fn put_difference(&self, known: &Fields, out: &mut Vec<u8>) {
        let mut which = u64::from(self.name != known.name) << NAME;
        for (field, (new, old)) in self.numbers.iter().zip(&known.numbers).enumerate() {
            which |= u64::from(new != old) << field;
        }
        number::put(out, which);
        for field in set_bits(which) {
            number::put(out, fold(self.numbers[field].wrapping_sub(known.numbers[field])));
        }
        if which >> NAME != 0 {
            let cut = self.name.floor_char_boundary(NAME_LEN_MAX_BYTES);
            number::put(out, cut as u64);
            out.extend_from_slice(&self.name.as_bytes()[..cut]);
        }
    }

    /// Decode the output of [`Fields::put_difference`].
    pub(super) fn add_difference(&mut self, reader: &mut Reader<'_>, place: u64) -> Result<(), Error> {
        let which = reader.number()?;
        if which >> (NAME + 1) != 0 {
            return Err(Error::Field { place, field: which.ilog2(), found: which });
        }
        for field in set_bits(which) {
            self.numbers[field] = self.numbers[field].wrapping_add(unfold(reader.number()?));
        }
        if which >> NAME != 0 {
            let found = reader.number()?;
            let wrong = Error::Field { place, field: NAME, found };
            let len = usize::try_from(found).ok().filter(|len| *len <= NAME_LEN_MAX_BYTES);
            let name = reader.bytes(len.ok_or(wrong)?)?;
            self.name = CompactString::from_utf8(name).map_err(|_| wrong)?;
        }
        Ok(())
    }

    /// The process with these fields.
    pub(super) fn process(self, key: ProcessKey, place: u64) -> Result<Process, Error> {
        let numbers = &self.numbers;
        let wrong = |field: usize| Error::Field { place, field: field as u32, found: numbers[field] };
        let small = |field: usize| u32::try_from(numbers[field]).map_err(|_| wrong(field));
        let group = |fields: &[usize]| {
            let known = fields.iter().filter(|field| numbers[**field] != 0).count();
            if known == 0 || known == fields.len() { Ok(known > 0) } else { Err(wrong(fields[0])) }
        };
        let state = usize::try_from(numbers[STATE]).ok().and_then(|state| State::ALL.get(state));
        let switches = group(&SWITCHES)?
            .then(|| Switches { voluntary: numbers[VOLUNTARY] - 1, involuntary: numbers[INVOLUNTARY] - 1 });
        let io = group(&IO)?.then(|| Io {
            read_chars: numbers[READ_CHARS] - 1,
            written_chars: numbers[WRITTEN_CHARS] - 1,
            read_bytes: numbers[READ_BYTES] - 1,
            written_bytes: numbers[WRITTEN_BYTES] - 1,
        });
        let usage = Usage {
            cpu_ns: numbers[CPU],
            user_ns: numbers[USER],
            system_ns: numbers[SYSTEM],
            minor_faults: numbers[MINOR_FAULTS],
            major_faults: numbers[MAJOR_FAULTS],
            switches,
            io,
        };
        Ok(Process {
            key,
            parent: small(PARENT)?,
            uid: small(UID)?,
            threads: small(THREADS)?,
            state: *state.ok_or_else(|| wrong(STATE))?,
            cgroup: numbers[CGROUP].checked_sub(1),
            rss_kib: numbers[RSS],
            usage,
            name: self.name,
        })
    }
}

/// 0 for an unknown value; no counter reaches the largest number.
fn known(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

/// Indexes of the fields in `which`, without the name.
fn set_bits(which: u64) -> impl Iterator<Item = usize> {
    let mut left = which & ((1 << NAME) - 1);
    std::iter::from_fn(move || {
        let field = left.trailing_zeros() as usize;
        left &= left.checked_sub(1)?;
        Some(field)
    })
}
