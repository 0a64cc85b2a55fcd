//! Frames of the files: a small head with a checksum, and a body that is read only when it is needed.
//!
//! Pure.
//! ```text
//! magic, 4 bytes | kind, u8 | length of head, u32 LE | length of body, u32 LE | CRC-32 of kind, lengths and head | head | body
//! ```
//! Invariant: after damage, the next frame is found by its magic and its checksum; only what is damaged is lost.

use crate::bytes::Damaged;
use serde::Serialize;

/// Starts every frame.
const MAGIC: [u8; 4] = *b"\xf5vp\n";

/// Length of what precedes the head.
pub(crate) const PREFIX_LEN: usize = 17;

/// Longest head or body: enough for the values of the widest block.
pub(crate) const PART_LEN_MAX: u32 = 64 << 20;

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// First frame of a file: its format and version as text.
    Purpose = 1,
    /// Names of numbers that later frames use.
    Names = 2,
    /// A block.
    Block = 3,
    /// Index of a file that is complete.
    Index = 4,
    /// Metrics of the following sweeps of a host.
    Shape = 5,
    /// Sweeps of a host.
    Sweeps = 6,
    /// A minute of a host that was copied from another store.
    Minute = 7,
    /// A record of a log by the day.
    Record = 8,
}

const KINDS: [Kind; 8] = [
    Kind::Purpose,
    Kind::Names,
    Kind::Block,
    Kind::Index,
    Kind::Shape,
    Kind::Sweeps,
    Kind::Minute,
    Kind::Record,
];

/// What a prefix says of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) kind: Kind,
    pub(crate) head_len: u32,
    pub(crate) body_len: u32,
    checksum: u32,
}

impl Prefix {
    /// Length of the whole frame.
    pub(crate) fn len(&self) -> u64 {
        PREFIX_LEN as u64 + u64::from(self.head_len) + u64::from(self.body_len)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Prefix, Damaged> {
        let bytes: &[u8; PREFIX_LEN] = bytes.first_chunk().ok_or(Damaged("a frame that is cut off"))?;
        if bytes[..4] != MAGIC {
            return Err(Damaged("no frame where one is expected"));
        }
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[4]);
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let prefix = Prefix {
            kind: kind.ok_or(Damaged("a frame of an unknown kind"))?,
            head_len: number(5),
            body_len: number(9),
            checksum: number(13),
        };
        match prefix.head_len.max(prefix.body_len) <= PART_LEN_MAX {
            true => Ok(prefix),
            false => Err(Damaged("a frame beyond its greatest length")),
        }
    }

    /// Checks the head that belongs to this prefix.
    pub(crate) fn check(&self, head: &[u8]) -> Result<(), Damaged> {
        let sum = checksum(self.kind, self.head_len, self.body_len, head);
        if sum == self.checksum { Ok(()) } else { Err(Damaged("a head whose checksum does not match")) }
    }
}

/// Appends a frame; head and body are at most [`PART_LEN_MAX`] long.
pub(crate) fn put(kind: Kind, head: &[u8], body: &[u8], out: &mut Vec<u8>) {
    let len = |part: &[u8]| u32::try_from(part.len()).expect("bounded by the rows and columns of a block");
    out.extend_from_slice(&MAGIC);
    out.push(kind as u8);
    out.extend_from_slice(&len(head).to_le_bytes());
    out.extend_from_slice(&len(body).to_le_bytes());
    out.extend_from_slice(&checksum(kind, len(head), len(body), head).to_le_bytes());
    out.extend_from_slice(head);
    out.extend_from_slice(body);
}

/// Appends a frame without a body.
pub(crate) fn put_value<T: Serialize>(kind: Kind, value: &T, out: &mut Vec<u8>) {
    let head = postcard::to_stdvec(value).expect("writing to memory does not fail");
    put(kind, &head, &[], out);
}

/// Place of the next magic from `from` on.
pub(crate) fn next_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(MAGIC.len()).position(|window| window == MAGIC).map(|at| from + at)
}

fn checksum(kind: Kind, head_len: u32, body_len: u32, head: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind as u8]);
    sum.update(&head_len.to_le_bytes());
    sum.update(&body_len.to_le_bytes());
    sum.update(head);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written_and_damage_is_found() {
        let mut bytes = b"..".to_vec();
        put(Kind::Block, b"head", b"body of it", &mut bytes);
        let at = next_magic(&bytes, 0).expect("there is one");
        assert_eq!((at, next_magic(&bytes, at + 1)), (2, None));
        let prefix = Prefix::parse(&bytes[at..]).expect("just written");
        assert_eq!((prefix.kind, prefix.head_len, prefix.body_len), (Kind::Block, 4, 10));
        assert_eq!(prefix.len() as usize, bytes.len() - 2);
        prefix.check(b"head").expect("its own head");
        assert!(prefix.check(b"heap").is_err());
        for at in 2..2 + PREFIX_LEN {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = Prefix::parse(&flipped[2..]).and_then(|prefix| prefix.check(b"head"));
            assert!(read.is_err(), "byte {at}");
        }
    }
}
