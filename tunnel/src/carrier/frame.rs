//! Wire format of a carrier: an opening, and then frames in sequence, split into pieces of any size by the
//! path.
//!
//! ```text
//! opening  16, version, token or zeros, received     from the dialling end: which carrier, how far it has received
//! answer   17, version, token, received              or 18 and the reason of the refusal
//! data      1, offset, length, bytes                 numbers are big-endian: 8 bytes, lengths 4
//! ack       2, received, taken
//! close     3, offset of the end
//! ```
//! Pure. Rules: the length of a frame is checked before it is parsed; a frame that is too long, unknown or
//! truncated is an error and closes the path, not the carrier.
//! Not here: the effect of a frame (`carrier`).

use wire::version::CARRIER;

/// Version of the protocol.
pub const VERSION: u8 = CARRIER.written.to_le_bytes()[0];

/// Most bytes in one data frame, so that an acknowledgement is never delayed for long.
pub const DATA_LEN_MAX_BYTES: usize = 64 << 10;

/// Length of an opening and of its answer, in bytes.
pub const OPENING_LEN_BYTES: usize = 26;

/// Length of the header of a data frame, in bytes.
pub const DATA_HEAD_LEN_BYTES: usize = 13;

/// Length of a token, in bytes: long enough that it cannot be guessed.
pub const TOKEN_LEN_BYTES: usize = 16;

const DATA: u8 = 1;
const ACK: u8 = 2;
const CLOSE: u8 = 3;
const OPEN: u8 = 16;
const OPENED: u8 = 17;
const REFUSED: u8 = 18;

/// Identifier of a carrier at the end that was dialled; a client that knows it may resume the carrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub [u8; TOKEN_LEN_BYTES]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Why bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end within a frame.
    #[error("expected a whole frame, found a part of one")]
    Cut,
    /// Unknown kind of frame.
    #[error("expected a frame of data, an acknowledgement or an end, found kind {0}")]
    Kind(u8),
    /// The length is zero or above [`DATA_LEN_MAX_BYTES`].
    #[error("expected 1 to {DATA_LEN_MAX_BYTES} bytes of data in a frame, found {0}")]
    Length(u32),
    /// Another version of the protocol.
    #[error("expected version {expected} of a carrier, found {0}", expected = CARRIER.expected())]
    Version(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the stream.
    Data {
        /// Offset of the first byte in the stream.
        offset: u64,
        bytes: &'a [u8],
    },
    /// Position of the receiver.
    Ack {
        /// All bytes below this offset were received.
        received: u64,
        /// All bytes below this offset were read by the application.
        taken: u64,
    },
    /// End of the stream.
    Close {
        /// Length of the stream in bytes.
        offset: u64,
    },
}

impl Frame<'_> {
    /// Append the frame to `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        match *self {
            Frame::Data { offset, bytes } => {
                into.push(DATA);
                into.extend_from_slice(&offset.to_be_bytes());
                let length = u32::try_from(bytes.len()).expect("cut to DATA_LEN_MAX_BYTES");
                into.extend_from_slice(&length.to_be_bytes());
                into.extend_from_slice(bytes);
            }
            Frame::Ack { received, taken } => {
                into.push(ACK);
                into.extend_from_slice(&received.to_be_bytes());
                into.extend_from_slice(&taken.to_be_bytes());
            }
            Frame::Close { offset } => {
                into.push(CLOSE);
                into.extend_from_slice(&offset.to_be_bytes());
            }
        }
    }
}

/// Parser of the frames in one piece from a path.
#[derive(Clone, Debug)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// Parse the frames in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Frames<'a> {
        Frames(bytes)
    }

    /// The next frame; `None` after the last.
    ///
    /// # Errors
    /// If the next bytes are not a valid frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'a>>, Error> {
        let Some((&kind, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        let frame = match kind {
            DATA => {
                let offset = self.number()?;
                let length = u32::from_be_bytes(*self.array::<4>()?);
                let len_bytes = usize::try_from(length).map_err(|_| Error::Length(length))?;
                if len_bytes == 0 || len_bytes > DATA_LEN_MAX_BYTES {
                    return Err(Error::Length(length));
                }
                let (bytes, rest) = self.0.split_at_checked(len_bytes).ok_or(Error::Cut)?;
                self.0 = rest;
                Frame::Data { offset, bytes }
            }
            ACK => Frame::Ack { received: self.number()?, taken: self.number()? },
            CLOSE => Frame::Close { offset: self.number()? },
            other => return Err(Error::Kind(other)),
        };
        Ok(Some(frame))
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.array::<8>().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(Error::Cut)?;
        self.0 = rest;
        Ok(array)
    }
}

/// Why a carrier is not opened or not resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The table of carriers is full.
    #[error("the proxy carries as many streams as it may, in all or of this address; try again later")]
    Full,
    /// There is no carrier with this token.
    #[error("the proxy no longer knows the stream that was to be carried on")]
    Unknown,
    /// The message is not an opening.
    #[error("the proxy did not understand the opening of a stream; are both of one version?")]
    Form,
}

impl Refused {
    const ALL: [(u8, Refused); 3] = [(1, Refused::Full), (2, Refused::Unknown), (3, Refused::Form)];
}

/// First message of the dialling end on each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Carrier to resume; `None` for a new one.
    pub token: Option<Token>,
    /// All bytes below this offset were received by the dialling end.
    pub received: u64,
}

/// Answer to an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Accepted.
    Here {
        /// Token with which the carrier can be resumed.
        token: Token,
        /// All bytes below this offset were received by the answering end.
        received: u64,
    },
    /// Rejected.
    Refused(Refused),
}

impl Opening {
    /// Encode the opening.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        greeting(OPEN, self.token.unwrap_or(Token([0; TOKEN_LEN_BYTES])), self.received)
    }

    /// Decode an opening.
    ///
    /// # Errors
    /// If the bytes are not a valid opening.
    pub fn read(bytes: &[u8]) -> Result<Opening, Error> {
        let (kind, token, received) = read_greeting(bytes)?;
        if kind != OPEN {
            return Err(Error::Kind(kind));
        }
        let token = (token.0 != [0; TOKEN_LEN_BYTES]).then_some(token);
        Ok(Opening { token, received })
    }
}

impl Opened {
    /// Encode the answer.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Opened::Here { token, received } => greeting(OPENED, *token, *received),
            Opened::Refused(refused) => {
                let code =
                    Refused::ALL.iter().find(|(_, known)| known == refused).map_or(0, |(code, _)| *code);
                greeting(REFUSED, Token([0; TOKEN_LEN_BYTES]), u64::from(code))
            }
        }
    }

    /// Decode an answer.
    ///
    /// # Errors
    /// If the bytes are not a valid answer.
    pub fn read(bytes: &[u8]) -> Result<Opened, Error> {
        let (kind, token, number) = read_greeting(bytes)?;
        match kind {
            OPENED => Ok(Opened::Here { token, received: number }),
            REFUSED => {
                let known = Refused::ALL.iter().find(|(code, _)| u64::from(*code) == number);
                Ok(Opened::Refused(known.map_or(Refused::Form, |(_, refused)| *refused)))
            }
            other => Err(Error::Kind(other)),
        }
    }
}

fn greeting(kind: u8, token: Token, number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OPENING_LEN_BYTES);
    bytes.extend_from_slice(&[kind, VERSION]);
    bytes.extend_from_slice(&token.0);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes
}

fn read_greeting(bytes: &[u8]) -> Result<(u8, Token, u64), Error> {
    let &[kind, version, ref rest @ ..] = bytes else { return Err(Error::Cut) };
    if !CARRIER.reads(u16::from(version)) {
        return Err(Error::Version(version));
    }
    let (token, rest) = rest.split_first_chunk::<TOKEN_LEN_BYTES>().ok_or(Error::Cut)?;
    let number: &[u8; 8] = rest.try_into().map_err(|_| Error::Cut)?;
    Ok((kind, Token(*token), u64::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Error) {
        let mut frames = Frames::new(bytes);
        let found = loop {
            match frames.next_frame() {
                Ok(Some(_)) => {}
                other => break other,
            }
        };
        assert_eq!(found, Err(expected), "{bytes:?}");
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let all = [
            Frame::Data { offset: 7, bytes: b"hello" },
            Frame::Ack { received: 1 << 40, taken: 3 },
            Frame::Close { offset: 12 },
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|frame| frame.write(&mut bytes));
        let mut frames = Frames::new(&bytes);
        for frame in all {
            assert_eq!(frames.next_frame(), Ok(Some(frame)));
        }
        assert_eq!(frames.next_frame(), Ok(None));
        for length in 1..bytes.len() {
            let mut frames = Frames::new(&bytes[..length]);
            while let Ok(Some(_)) = frames.next_frame() {}
        }
    }

    #[test]
    fn what_is_no_frame_is_reported() {
        check(&[9], Error::Kind(9));
        check(&[DATA, 0, 0], Error::Cut);
        check(&[DATA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Error::Length(0));
        check(&[DATA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1], Error::Length(65_537));
        check(&[DATA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1], Error::Cut);
        check(&[ACK, 0, 0, 0, 0, 0, 0, 0, 1, 0], Error::Cut);
    }

    #[test]
    fn openings_and_their_answers_are_read_as_they_were_written() {
        for token in [None, Some(Token([7; TOKEN_LEN_BYTES]))] {
            let opening = Opening { token, received: 99 };
            assert_eq!(Opening::read(&opening.bytes()), Ok(opening));
            assert_eq!(opening.bytes().len(), OPENING_LEN_BYTES);
        }
        let here = Opened::Here { token: Token([7; TOKEN_LEN_BYTES]), received: 3 };
        let refused = Refused::ALL.map(|(_, refused)| Opened::Refused(refused));
        for opened in refused.into_iter().chain([here]) {
            assert_eq!(Opened::read(&opened.bytes()), Ok(opened));
            assert!(Opening::read(&opened.bytes()).is_err(), "an answer is no opening");
        }
        assert_eq!(Opening::read(&[OPEN, 2, 0]), Err(Error::Version(2)));
        assert_eq!(Opening::read(b"GET / HTTP/1.1\r\n\r\n and more"), Err(Error::Version(b'E')));
        assert_eq!(Opened::read(&here.bytes()[1..]), Err(Error::Version(7)));
        assert_eq!(Opened::read(&[OPENED]), Err(Error::Cut));
    }
}
