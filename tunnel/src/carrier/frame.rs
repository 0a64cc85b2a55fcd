//! What the two ends of a carrier say, as bytes: an opening, and then frames one after the other in whatever pieces the
//! path takes.
//!
//! ```text
//! opening  16, version, token or zeros, received     who carries on, and from where
//! answer   17, version, token, received              or 18, why not
//! data      1, offset, length, bytes                 numbers are big-endian: 8 bytes, lengths 4
//! ack       2, received, taken
//! close     3, offset of the end
//! ```
//! Pure. Rules: a frame says how long it is before anything is made of it; what is too long, unknown or cut is an error and
//! ends the path, not the carrier.
//! Not here: what follows from a frame (`carrier`).

use wire::version::CARRIER;

/// Version of the exchange.
pub const VERSION: u8 = CARRIER.written.to_le_bytes()[0];

/// Most bytes in one frame of data, so that an acknowledgement is never far behind.
pub const DATA_LEN_MAX_BYTES: usize = 64 << 10;

/// Length of an opening and of its answer, in bytes.
pub const OPENING_LEN_BYTES: usize = 26;

/// Length of the head of a frame of data, in bytes.
pub const DATA_HEAD_LEN_BYTES: usize = 13;

/// Length of a token, in bytes: too long to guess.
pub const TOKEN_LEN_BYTES: usize = 16;

const DATA: u8 = 1;
const ACK: u8 = 2;
const CLOSE: u8 = 3;
const OPEN: u8 = 16;
const OPENED: u8 = 17;
const REFUSED: u8 = 18;

/// What names a carrier at the end that was dialled; a client that knows it may resume it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub [u8; TOKEN_LEN_BYTES]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Why bytes are no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end within one.
    #[error("expected a whole frame, found a part of one")]
    Cut,
    /// Of no kind.
    #[error("expected a frame of data, an acknowledgement or an end, found kind {0}")]
    Kind(u8),
    /// More than [`DATA_LEN_MAX_BYTES`], or nothing.
    #[error("expected 1 to {DATA_LEN_MAX_BYTES} bytes of data in a frame, found {0}")]
    Length(u32),
    /// Of another version.
    #[error("expected version {expected} of a carrier, found {0}", expected = CARRIER.expected())]
    Version(u8),
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the stream.
    Data {
        /// How many came before them.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// How far the other end is.
    Ack {
        /// It has every byte before this one.
        received: u64,
        /// Its reader has taken every byte before this one.
        taken: u64,
    },
    /// Nothing follows.
    Close {
        /// How many bytes there were in all.
        offset: u64,
    },
}

impl Frame<'_> {
    /// Write it behind what is there.
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

/// The frames in a piece that a path brought.
#[derive(Clone, Debug)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// Of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Frames<'a> {
        Frames(bytes)
    }

    /// The next; none after the last.
    ///
    /// # Errors
    /// If what follows is no frame.
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

/// Why a carrier is not opened or not carried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There are as many as there may be.
    #[error("the proxy carries as many streams as it may, in all or of this address; try again later")]
    Full,
    /// No carrier of that token, or not from there.
    #[error("the proxy no longer knows the stream that was to be carried on")]
    Unknown,
    /// What was said is no opening.
    #[error("the proxy did not understand the opening of a stream; are both of one version?")]
    Form,
}

impl Refused {
    const ALL: [(u8, Refused); 3] = [(1, Refused::Full), (2, Refused::Unknown), (3, Refused::Form)];
}

/// What who dials says first on each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The carrier to carry on; none for a new one.
    pub token: Option<Token>,
    /// This end has every byte before this one.
    pub received: u64,
}

/// What is answered to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Go on.
    Here {
        /// By which it can be carried on.
        token: Token,
        /// The other end has every byte before this one.
        received: u64,
    },
    /// No.
    Refused(Refused),
}

impl Opening {
    /// As it travels.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        greeting(OPEN, self.token.unwrap_or(Token([0; TOKEN_LEN_BYTES])), self.received)
    }

    /// From what came.
    ///
    /// # Errors
    /// If that is none.
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
    /// As it travels.
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

    /// From what came.
    ///
    /// # Errors
    /// If that is none.
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
    fn what_is_no_frame_is_told() {
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
