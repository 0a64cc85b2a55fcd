//! Frame codec: length, checksum, version and a postcard body, for files and streams.
//!
//! Pure. A frame is
//!
//! ```text
//! length of what follows the checksum, u32 LE | CRC-32 of it, u32 LE | version, u8 | postcard body
//! ```
//!
//! Invariant: [`decode`] never reads past the frame, never allocates more than the length of the frame, and
//! distinguishes an incomplete frame from a damaged one.

use crate::version;
use serde::{Deserialize, Serialize};

/// Longest body, in bytes: enough for a batch of events with a large filter state. A length in damaged or
/// hostile bytes costs no more than this.
pub const BODY_LEN_MAX_BYTES: usize = 16 << 20;

/// Length of the header before the version byte, in bytes.
pub const HEADER_LEN_BYTES: usize = 8;

/// Error of encoding or decoding a frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The body would exceed [`BODY_LEN_MAX_BYTES`].
    #[error("frame of {len_bytes} bytes; at most {BODY_LEN_MAX_BYTES} are allowed")]
    TooLong {
        /// Length of the body.
        len_bytes: usize,
    },
    /// The checksum does not match.
    #[error("frame is damaged: checksum {found:08x}, expected {expected:08x}")]
    Damaged {
        /// Checksum of the body.
        found: u32,
        /// Checksum in the frame.
        expected: u32,
    },
    /// The frame has another version.
    #[error("frame has version {found}; this program knows {expected}", expected = version::FRAME)]
    Version {
        /// Version byte of the frame.
        found: u8,
    },
    /// The body is not of the requested type.
    #[error("frame body cannot be read as the expected type: {0}")]
    Body(postcard::Error),
}

/// Encode `value` as a frame and append it to `out`.
///
/// # Errors
/// If the body is too long or cannot be encoded; `out` is then unchanged.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN_BYTES]);
    out.push(version::FRAME);
    if let Err(error) = postcard::to_extend(value, Append(out)) {
        out.truncate(start);
        return Err(Error::Body(error));
    }
    let len_bytes = out.len() - start - HEADER_LEN_BYTES;
    if len_bytes > BODY_LEN_MAX_BYTES {
        out.truncate(start);
        return Err(Error::TooLong { len_bytes });
    }
    let sum = crc32fast::hash(&out[start + HEADER_LEN_BYTES..]);
    let len = u32::try_from(len_bytes).expect("capped above");
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// Lets postcard write to the end of a borrowed buffer.
struct Append<'a>(&'a mut Vec<u8>);

impl Extend<u8> for Append<'_> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.0.extend(bytes);
    }
}

/// Decode a frame at the start of `bytes`. Returns the value and the length of the frame, or `None` if more
/// bytes are needed.
///
/// # Errors
/// If the frame is damaged, of another version, too long, or not a `T`.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<Option<(T, usize)>, Error> {
    let Some((len, expected)) = header(bytes) else { return Ok(None) };
    if len > BODY_LEN_MAX_BYTES || len == 0 {
        return Err(Error::TooLong { len_bytes: len });
    }
    let Some(body) = bytes.get(HEADER_LEN_BYTES..HEADER_LEN_BYTES + len) else { return Ok(None) };
    let found = crc32fast::hash(body);
    if found != expected {
        return Err(Error::Damaged { found, expected });
    }
    if body[0] != version::FRAME {
        return Err(Error::Version { found: body[0] });
    }
    let value = postcard::from_bytes(&body[1..]).map_err(Error::Body)?;
    Ok(Some((value, HEADER_LEN_BYTES + len)))
}

/// Length of the frame at the start of `bytes`, according to its header; `None` if the length is impossible,
/// or more bytes are needed. It is used to skip a damaged frame.
#[must_use]
pub fn frame_len(bytes: &[u8]) -> Option<usize> {
    let (len, _) = header(bytes)?;
    (1..=BODY_LEN_MAX_BYTES).contains(&len).then_some(HEADER_LEN_BYTES + len)
}

fn header(bytes: &[u8]) -> Option<(usize, u32)> {
    let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Some((usize::try_from(word(0)?).ok()?, word(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(value: &(u32, String)) -> Vec<u8> {
        let mut out = b"before".to_vec();
        encode(value, &mut out).expect("short");
        out.split_off(6)
    }

    #[test]
    fn what_was_written_is_read() {
        let value = (7, "übung".to_owned());
        let frame = framed(&value);
        assert_eq!(decode(&frame), Ok(Some((value, frame.len()))));
    }

    #[test]
    fn a_cut_frame_is_not_yet_whole() {
        let frame = framed(&(7, "x".repeat(50)));
        for cut in 0..frame.len() {
            assert_eq!(decode::<(u32, String)>(&frame[..cut]), Ok(None), "{cut}");
        }
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_noticed() {
        let frame = framed(&(7, "x".repeat(20)));
        for bit in HEADER_LEN_BYTES * 8..frame.len() * 8 {
            let mut bad = frame.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode::<(u32, String)>(&bad), Err(Error::Damaged { .. })), "bit {bit}");
        }
    }

    #[test]
    fn a_hostile_length_is_refused_before_reading() {
        let mut frame = framed(&(7, String::new()));
        frame[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decode::<(u32, String)>(&frame), Err(Error::TooLong { .. })));
    }
}
