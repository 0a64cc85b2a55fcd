//! Frames on a stream: one value after another, each within a size limit.
//!
//! Rule: a length above the limit is refused before memory of that length is allocated, so a stream costs at
//! most one frame of the largest size. The frame is that of `wire::codec`.
//! Not here: the types of the values, and timeouts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use wire::codec::{self, HEADER_LEN_BYTES};

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream broke.
    #[error("the stream broke: {0}")]
    Broken(#[from] std::io::Error),
    #[error("the stream ended within a frame")]
    Cut,
    #[error("a frame of {len_bytes} bytes; at most {max_bytes} are taken here")]
    TooLong {
        /// The length in its header.
        len_bytes: usize,
        /// The limit of this stream.
        max_bytes: usize,
    },
    /// Damaged, of another version, or of another type.
    #[error(transparent)]
    Codec(#[from] codec::Error),
}

/// Reader of frames. It buffers bytes that arrived after the frame that was requested.
#[derive(Debug)]
pub struct Reader<R> {
    stream: R,
    /// Its length is the room for reading; the bytes after `filled` have no meaning.
    buffer: Vec<u8>,
    /// Start of the next frame in `buffer`.
    start: usize,
    /// End of the bytes that were read.
    filled: usize,
    max_bytes: usize,
}

/// Bytes to read at a time while no header has arrived: thousands of streams wait like this.
const CHUNK_BYTES: usize = 4 << 10;

/// A buffer larger than this is shrunk between two frames.
const SPARE_BYTES: usize = 4 * CHUNK_BYTES;

/// Least bytes to read at a time for the rest of a longer frame, so that a page of a thousand events is read
/// in one piece. Above it, at most as much is allocated as has already arrived, so a peer that only announces
/// a long frame costs little.
const REST_BYTES: usize = 512 << 10;

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Frames of at most `max_bytes` from `stream`.
    pub fn new(stream: R, max_bytes: usize) -> Reader<R> {
        Reader { stream, buffer: Vec::new(), start: 0, filled: 0, max_bytes }
    }

    /// The next value; `None` if the stream ends between two frames. Cancel-safe: if the future is dropped,
    /// no byte is lost.
    ///
    /// # Errors
    /// If the stream breaks or the bytes are no frame of a `T`; the stream must not be used any more.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        loop {
            let held = &self.buffer[self.start..self.filled];
            if let Some(len_bytes) = announced(held)
                && len_bytes > self.max_bytes
            {
                return Err(Error::TooLong { len_bytes, max_bytes: self.max_bytes });
            }
            if let Some((value, len_bytes)) = codec::decode(held)? {
                self.start += len_bytes;
                if self.start == self.filled {
                    self.reset();
                }
                return Ok(Some(value));
            }
            if !self.fill().await? {
                let is_between = self.filled == self.start;
                return if is_between { Ok(None) } else { Err(Error::Cut) };
            }
        }
    }

    /// The buffer is empty: free the memory of a long frame, since a stream may wait for days after it.
    fn reset(&mut self) {
        (self.start, self.filled) = (0, 0);
        if self.buffer.capacity() > SPARE_BYTES {
            self.buffer.truncate(CHUNK_BYTES);
            self.buffer.shrink_to_fit();
        }
    }

    async fn fill(&mut self) -> Result<bool, Error> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let frame =
            announced(&self.buffer[..self.filled]).map_or(0, |len_bytes| HEADER_LEN_BYTES + len_bytes);
        let rest = frame.saturating_sub(self.filled).min(self.filled.max(REST_BYTES));
        let end = self.filled + rest.max(CHUNK_BYTES);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        let count = self.stream.read(&mut self.buffer[self.filled..]).await?;
        self.filled += count;
        Ok(count > 0)
    }
}

fn announced(bytes: &[u8]) -> Option<usize> {
    let head: [u8; 4] = bytes.get(..HEADER_LEN_BYTES)?[..4].try_into().ok()?;
    usize::try_from(u32::from_le_bytes(head)).ok()
}

/// Read one value and not a byte more, so that the stream can be passed on; `None` if it ends before.
///
/// # Errors
/// As [`Reader::next`].
pub async fn read_exactly_one<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
) -> Result<Option<T>, Error> {
    let mut bytes = vec![0; HEADER_LEN_BYTES];
    if stream.read(&mut bytes[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut bytes[1..]).await.map_err(cut)?;
    let len_bytes = announced(&bytes).unwrap_or(0);
    if len_bytes > max_bytes {
        return Err(Error::TooLong { len_bytes, max_bytes });
    }
    bytes.resize(HEADER_LEN_BYTES + len_bytes, 0);
    stream.read_exact(&mut bytes[HEADER_LEN_BYTES..]).await.map_err(cut)?;
    codec::decode(&bytes)?.map_or(Err(Error::Cut), |(value, _)| Ok(Some(value)))
}

fn cut(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::UnexpectedEof { Error::Cut } else { Error::Broken(error) }
}

/// Write `value` as one frame and flush.
///
/// # Errors
/// If it is longer than `max_bytes`, which leaves the stream as it was, or the stream breaks.
pub async fn write<T: Serialize>(
    stream: &mut (impl AsyncWrite + Unpin),
    value: &T,
    max_bytes: usize,
) -> Result<(), Error> {
    let mut bytes = Vec::new();
    codec::encode(value, &mut bytes)?;
    let len_bytes = bytes.len() - HEADER_LEN_BYTES;
    if len_bytes > max_bytes {
        return Err(Error::TooLong { len_bytes, max_bytes });
    }
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(values: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in values {
            codec::encode(value, &mut bytes).expect("short");
        }
        bytes
    }

    #[tokio::test]
    async fn frames_come_one_by_one_however_the_bytes_come() {
        let bytes = framed(&["one", "two", ""]);
        for chunk_len in [1, 3, bytes.len()] {
            let mut stream = tokio_test_stream(&bytes, chunk_len);
            let mut reader = Reader::new(&mut stream, 100);
            for expected in ["one", "two", ""] {
                assert_eq!(reader.next::<String>().await.expect("whole").as_deref(), Some(expected));
            }
            assert!(reader.next::<String>().await.expect("the end").is_none());
        }
    }

    fn tokio_test_stream(bytes: &[u8], chunk_len: usize) -> tokio::io::DuplexStream {
        let (mut near, far) = tokio::io::duplex(chunk_len);
        let bytes = bytes.to_vec();
        tokio::spawn(async move { near.write_all(&bytes).await });
        far
    }

    #[tokio::test]
    async fn a_long_frame_comes_in_few_pieces_and_one_that_is_only_announced_takes_little() {
        let long = framed(&["x".repeat(1 << 20).as_str(), "behind it"]);
        let mut reader = Reader::new(&long[..], 2 << 20);
        assert_eq!(reader.next::<String>().await.expect("whole").map(|text| text.len()), Some(1 << 20));
        assert_eq!(reader.next::<String>().await.expect("whole").as_deref(), Some("behind it"));
        assert!(reader.next::<String>().await.expect("the end").is_none());
        assert!(reader.buffer.capacity() <= SPARE_BYTES, "{}", reader.buffer.capacity());
        let mut announcing = Reader::new(&long[..HEADER_LEN_BYTES], 2 << 20);
        assert!(matches!(announcing.next::<String>().await, Err(Error::Cut)));
        assert!(announcing.buffer.len() <= 2 * REST_BYTES, "{}", announcing.buffer.len());
    }

    #[tokio::test]
    async fn a_long_a_cut_and_a_damaged_frame_are_distinguished() {
        let long = framed(&["0123456789"]);
        let mut reader = Reader::new(&long[..], 5);
        assert!(matches!(reader.next::<String>().await, Err(Error::TooLong { max_bytes: 5, .. })));
        let mut reader = Reader::new(&long[..long.len() - 1], 100);
        assert!(matches!(reader.next::<String>().await, Err(Error::Cut)));
        let mut damaged = long.clone();
        *damaged.last_mut().expect("not empty") ^= 1;
        let mut reader = Reader::new(&damaged[..], 100);
        assert!(matches!(reader.next::<String>().await, Err(Error::Codec(_))));
        let mut out = Vec::new();
        assert!(matches!(write(&mut out, &"0123456789", 5).await, Err(Error::TooLong { .. })));
        assert!(out.is_empty());
    }
}
