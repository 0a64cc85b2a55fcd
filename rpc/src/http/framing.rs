//! HTTP/1 framing: finds the start and end of each request on a connection, and refuses ambiguous ones.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! hyper accepts several forms that other programs in between may parse differently, and repairs them
//! silently: a bare line feed, `Transfer-Encoding` with `Content-Length`, equal lengths given twice. This
//! code checks the bytes first and refuses such forms, so hyper sees only complete, unambiguous headers.
//! Invariant: bytes are admitted in order and once; none is admitted after a refusal.
//! Not here: sockets and deadlines (`guarded_stream`), routing (`router`).

use crate::limits::Limits;

/// Why the bytes of a connection are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    /// HTTP status of the answer.
    pub(crate) status: u16,
    /// What was expected and found.
    pub(crate) message: &'static str,
    /// Whether it is within the body of a request; the answer to that request then reports it.
    pub(crate) is_in_body: bool,
}

/// Position within a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No request was received yet.
    Fresh,
    /// Between two requests.
    Idle,
    /// Within a header.
    Head,
    /// Within a body.
    Body,
    /// The connection was refused.
    Refused,
}

/// Framing state of one connection.
#[derive(Debug)]
pub(crate) struct Framing {
    state: State,
    requests: u64,
    /// For the header in the buffer: bytes scanned, start of its current line, number of its lines.
    scanned: usize,
    line_start: usize,
    lines: usize,
    /// Empty lines before the header; one is tolerated, as HTTP recommends.
    blank_lines: usize,
    max_head_bytes: usize,
    max_headers: usize,
    max_target_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Sized(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    LastChunkEnd,
    Refused(Refusal),
}

/// How the end of the body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Sized(u64),
    Chunked,
}

impl Framing {
    pub(crate) fn new(limits: &Limits) -> Framing {
        Framing {
            state: State::Head,
            requests: 0,
            scanned: 0,
            line_start: 0,
            lines: 0,
            blank_lines: 0,
            max_head_bytes: limits.head_bytes,
            max_headers: limits.headers,
            max_target_bytes: limits.target_bytes,
        }
    }

    /// The present position; `waiting` is the number of bytes that are not admitted yet.
    pub(crate) fn phase(&self, waiting: usize) -> Phase {
        match self.state {
            State::Head if waiting > 0 => Phase::Head,
            State::Head if self.requests == 0 => Phase::Fresh,
            State::Head => Phase::Idle,
            State::Refused(_) => Phase::Refused,
            State::Sized(_)
            | State::ChunkSize
            | State::ChunkData(_)
            | State::ChunkEnd
            | State::LastChunkEnd => Phase::Body,
        }
    }

    /// Number of admitted headers.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Number of leading bytes of `buffer` that may be processed; 0 means that more bytes are needed. The
    /// next call gets the buffer without the admitted bytes.
    pub(crate) fn admit(&mut self, buffer: &[u8]) -> Result<usize, Refusal> {
        let is_in_body = self.phase(buffer.len()) == Phase::Body;
        let admitted = match self.state {
            State::Head => self.admit_head(buffer),
            State::Sized(left) => {
                let (admitted, left) = take(buffer, left);
                self.state = if left == 0 { State::Head } else { State::Sized(left) };
                Ok(admitted)
            }
            State::ChunkSize => self.admit_chunk_size(buffer),
            State::ChunkData(left) => {
                let (admitted, left) = take(buffer, left);
                self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData(left) };
                Ok(admitted)
            }
            State::ChunkEnd => self.admit_line_end(buffer, State::ChunkSize),
            State::LastChunkEnd => self.admit_line_end(buffer, State::Head),
            State::Refused(refusal) => return Err(refusal),
        };
        admitted.map_err(|refusal| {
            let refusal = Refusal { is_in_body, ..refusal };
            self.state = State::Refused(refusal);
            refusal
        })
    }

    /// Refuse all further bytes, for an external reason (a deadline).
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.state = State::Refused(refusal);
    }

    fn admit_head(&mut self, buffer: &[u8]) -> Result<usize, Refusal> {
        if buffer == b"\r" {
            return Ok(0);
        }
        if buffer.starts_with(b"\r\n") {
            self.blank_lines += 1;
            return if self.blank_lines > 1 {
                Err(bad("a request line after one empty line, found more"))
            } else {
                Ok(2)
            };
        }
        while let Some(byte) = buffer.get(self.scanned) {
            if self.scanned >= self.max_head_bytes {
                return Err(refusal(431, "expected a head of at most 16 KiB, found more"));
            }
            self.scanned += 1;
            if *byte != b'\n' {
                continue;
            }
            let line_end = self.scanned - 1;
            if line_end == self.line_start || buffer[line_end - 1] != b'\r' {
                return Err(bad("every line of the head to end with CR LF, found LF alone"));
            }
            if line_end - 1 == self.line_start {
                return self.head_ended(buffer);
            }
            self.line_start = self.scanned;
            self.lines += 1;
            if self.lines > self.max_headers + 1 {
                return Err(refusal(431, "expected at most 100 headers, found more"));
            }
        }
        Ok(0)
    }

    fn head_ended(&mut self, buffer: &[u8]) -> Result<usize, Refusal> {
        let length = self.scanned;
        let body = check_head(&buffer[..length - 4], self.max_target_bytes)?;
        self.state = match body {
            Body::Sized(0) => State::Head,
            Body::Sized(length) => State::Sized(length),
            Body::Chunked => State::ChunkSize,
        };
        (self.scanned, self.line_start, self.lines, self.blank_lines) = (0, 0, 0, 0);
        self.requests += 1;
        Ok(length)
    }

    fn admit_chunk_size(&mut self, buffer: &[u8]) -> Result<usize, Refusal> {
        /// No accepted chunk needs more digits.
        const DIGITS: usize = 8;
        let digits = buffer.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let wrong = bad("a chunk size of 1 to 8 hexadecimal digits and CR LF, found something else");
        if digits > DIGITS || (digits == 0 && !buffer.is_empty()) {
            return Err(wrong);
        }
        let end = &buffer[digits..];
        if !b"\r\n".starts_with(&end[..end.len().min(2)]) {
            return Err(wrong);
        }
        if end.len() < 2 {
            return Ok(0);
        }
        let digits_text = std::str::from_utf8(&buffer[..digits]).map_err(|_| wrong)?;
        let size = u64::from_str_radix(digits_text, 16).map_err(|_| wrong)?;
        self.state = if size == 0 { State::LastChunkEnd } else { State::ChunkData(size) };
        Ok(digits + 2)
    }

    fn admit_line_end(&mut self, buffer: &[u8], next: State) -> Result<usize, Refusal> {
        let end = &buffer[..buffer.len().min(2)];
        if !b"\r\n".starts_with(end) {
            return Err(bad("CR LF after a chunk, and no trailer fields, found something else"));
        }
        if end.len() < 2 {
            return Ok(0);
        }
        self.state = next;
        Ok(2)
    }
}

fn take(buffer: &[u8], left: u64) -> (usize, u64) {
    let admitted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
    (admitted, left - admitted as u64)
}

const fn bad(message: &'static str) -> Refusal {
    refusal(400, message)
}

const fn refusal(status: u16, message: &'static str) -> Refusal {
    Refusal { status, message, is_in_body: false }
}

/// The kind of body that a header announces; `head` is without its last line end and empty line.
fn check_head(head: &[u8], max_target_bytes: usize) -> Result<Body, Refusal> {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let version = check_request_line(lines.next().unwrap_or_default(), max_target_bytes)?;
    let (mut length, mut encoding, mut hosts) = (None, None, 0);
    for line in lines {
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or(bad("NAME: VALUE headers, found one without a colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
            return Err(bad("header names without white space right before their colon, found another"));
        }
        if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7F) {
            return Err(bad("header values without control characters, found one"));
        }
        if name.eq_ignore_ascii_case(b"content-length") && length.replace(value).is_some() {
            return Err(bad("one Content-Length, found two"));
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") && encoding.replace(value).is_some() {
            return Err(bad("one Transfer-Encoding, found two"));
        }
        if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        }
    }
    match (hosts, version) {
        (1, _) | (0, Version::Http10) => {}
        (0, Version::Http11) => return Err(bad("a Host header, found none")),
        _ => return Err(bad("one Host header, found two")),
    }
    match (length, encoding) {
        (Some(_), Some(_)) => Err(bad("Content-Length or Transfer-Encoding, found both")),
        (None, Some(_)) if version == Version::Http10 => {
            Err(bad("no Transfer-Encoding in HTTP/1.0, found one"))
        }
        (None, Some(value)) if value.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
        (None, Some(_)) => Err(refusal(501, "expected Transfer-Encoding: chunked, found another")),
        (None, None) => Ok(Body::Sized(0)),
        (Some(value), None) => read_length(value).map(Body::Sized),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

fn check_request_line(line: &[u8], max_target_bytes: usize) -> Result<Version, Refusal> {
    let mut words = line.split(|byte| *byte == b' ');
    let words = (words.next(), words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = words else {
        return Err(bad("METHOD TARGET HTTP/1.1, found another request line"));
    };
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => {
            return Err(refusal(505, "expected HTTP/1.1 or HTTP/1.0, found another version"));
        }
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(bad("a method such as GET or POST, found something else"));
    }
    if target.len() > max_target_bytes {
        return Err(refusal(414, "expected a target of at most 8 KiB, found more; use POST"));
    }
    if !target.starts_with(b"/") && target != b"*" && !target.starts_with(b"http://") {
        return Err(bad("a target that starts with /, found another"));
    }
    if target.iter().any(|byte| !byte.is_ascii_graphic()) {
        return Err(bad("a target of printable ASCII, found other bytes; write them as %XX"));
    }
    // hyper itself would answer what it cannot parse; only these bytes, and hosts, need a check.
    let is_plain = target.starts_with(b"/") && !target.iter().any(|byte| b"<>\"`".contains(byte));
    if !is_plain && hyper::Uri::try_from(target).is_err() {
        return Err(bad("a target that is a path, found characters such as < or \"; write them as %XX"));
    }
    Ok(version)
}

fn read_length(value: &[u8]) -> Result<u64, Refusal> {
    /// More digits than any accepted body has, and few enough for `u64`.
    const DIGITS: usize = 18;
    if value.is_empty() || value.len() > DIGITS || !value.iter().all(u8::is_ascii_digit) {
        return Err(bad("a Content-Length of decimal digits, found something else"));
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Characters of methods and header names.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
