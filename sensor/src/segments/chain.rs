//! Chained frames of a log: each carries the checksum of the frame before it.
//!
//! Pure. This is a format on disk: the body of a frame is an enum whose first variant is a batch of events,
//! and the first field of a batch is the number of its first event. So a scan skips batches without reading
//! their events. Not here: length, checksum and version of a frame (`wire::codec`).

use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::codec::{Error, HEADER_LEN_BYTES, decode};

/// Variant number of a batch in the body of a frame.
const BATCH_TAG: u8 = 0;

/// Appends a frame to `out`: the checksum of the frame before it, then the body. Returns the checksum of the
/// new frame.
///
/// # Errors
/// If the body is longer than the limit of a frame; `out` is then unchanged.
pub fn encode(previous: u32, body: impl Serialize, out: &mut Vec<u8>) -> Result<u32, Error> {
    let at = out.len();
    wire::codec::encode(&(previous, body), out)?;
    Ok(checksum(&out[at..]))
}

/// Returns the checksum in the header of a whole frame.
///
/// # Panics
/// If the frame is shorter than a header.
#[must_use]
pub fn checksum(frame: &[u8]) -> u32 {
    u32::from_le_bytes(frame[4..8].try_into().expect("a header is eight bytes"))
}

/// Returns the number of the first event of a whole frame; `None` if it is no batch.
///
/// # Errors
/// If the frame is damaged.
pub fn batch_first(frame: &[u8]) -> Result<Option<u64>, Error> {
    match decode::<(u32, u8)>(frame)? {
        Some(((_, BATCH_TAG), _)) => {
            let body = &frame[HEADER_LEN_BYTES + 1..];
            let (_, _, first): (u32, u8, u64) = postcard::from_bytes(body).map_err(Error::Body)?;
            Ok(Some(first))
        }
        Some(_) | None => Ok(None),
    }
}

/// Decodes the body of a whole frame; `None` if it is damaged.
#[must_use]
pub fn body<B: DeserializeOwned>(frame: &[u8]) -> Option<B> {
    decode::<(u32, B)>(frame).ok().flatten().map(|((_, body), _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: impl Serialize) -> Vec<u8> {
        let mut out = Vec::new();
        encode(u32::MAX, body, &mut out).expect("short");
        out
    }

    #[test]
    fn a_batch_is_known_by_its_number_alone() {
        let batch = frame((BATCH_TAG, 300_u64, "events that are not looked at"));
        assert_eq!(batch_first(&batch), Ok(Some(300)));
        assert_eq!(batch_first(&frame((1_u8, 300_u64))), Ok(None));
        let mut damaged = batch.clone();
        *damaged.last_mut().expect("long") ^= 1;
        assert!(batch_first(&damaged).is_err());
        assert_eq!(body::<(u8, u64)>(&damaged), None);
        assert_eq!(body::<(u8, u64)>(&batch), Some((BATCH_TAG, 300)));
    }
}
