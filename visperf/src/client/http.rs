//! Answers of HTTP/1.1 as bytes: the head, and a body by its length, in chunks, or up to the end.
//!
//! Reads from any [`BufRead`]; deadlines are the stream's. Bounded: head, chunk lines and body.

use std::io::{self, BufRead, Read};

/// Largest head of an answer, in bytes; ours have some hundred.
const HEAD_LEN_MAX_BYTES: u64 = 64 << 10;
/// Largest body, in bytes: twice what a daemon answers at most.
pub(crate) const BODY_LEN_MAX_BYTES: u64 = 64 << 20;
/// Longest line with a chunk's size, in bytes.
const CHUNK_LINE_LEN_MAX_BYTES: u64 = 1 << 10;

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// The connection ended before the first byte.
    #[error("it closed the connection")]
    ClosedBefore,
    /// The stream failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not HTTP/1.1, or larger than its limit.
    #[error("{0}")]
    Malformed(String),
}

/// An answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the connection may be used again.
    pub(crate) keeps: bool,
    /// Each field `WWW-Authenticate`.
    pub(crate) challenges: Vec<String>,
    /// The field `Authentication-Info`.
    pub(crate) info: Option<String>,
}

/// Read one answer.
///
/// # Errors
/// See [`Error`]; the connection is of no more use then.
pub(crate) fn read(from: &mut impl BufRead) -> Result<Response, Error> {
    match begin(from)? {
        Begun::Whole(response) => Ok(response),
        Begun::Events(..) => Err(Error::Malformed("answers without end, which nobody asked for".to_owned())),
    }
}

/// An answer, or the beginning of one that goes on.
#[derive(Debug)]
pub(crate) enum Begun {
    Whole(Response),
    /// Its head, and the lines that come.
    Events(Response, Lines),
}

/// Read one answer, or the head of one that goes on as server-sent events.
///
/// # Errors
/// See [`Error`]; the connection is of no more use then.
pub(crate) fn begin(from: &mut impl BufRead) -> Result<Begun, Error> {
    loop {
        let head = head(from)?;
        if (100..200).contains(&head.status) {
            continue;
        }
        if head.status == 200 && head.is_events {
            let Head { status, chunked, challenges, info, .. } = head;
            let response = Response { status, body: Vec::new(), keeps: false, challenges, info };
            return Ok(Begun::Events(response, Lines { is_chunked: chunked, left: 0 }));
        }
        let (body, known_end) = match (&head.length, head.chunked) {
            _ if matches!(head.status, 204 | 304) => (Vec::new(), true),
            (_, true) => (chunks(from)?, true),
            (Some(length), false) => (exactly(from, *length)?, true),
            (None, false) => (to_the_end(from)?, false),
        };
        let Head { status, closes, challenges, info, .. } = head;
        return Ok(Begun::Whole(Response { status, body, keeps: known_end && !closes, challenges, info }));
    }
}

/// A body that is read line by line, as it comes.
#[derive(Debug)]
pub(crate) struct Lines {
    is_chunked: bool,
    /// What is left of the chunk.
    left: u64,
}

impl Lines {
    /// The next line without its end; none where the body ends.
    ///
    /// # Errors
    /// See [`Error`].
    pub(crate) fn next(&mut self, from: &mut impl BufRead) -> Result<Option<String>, Error> {
        let mut bytes = Vec::new();
        loop {
            if self.is_chunked && self.left == 0 {
                self.left = chunk_size(from)?;
                if self.left == 0 {
                    return Ok(None);
                }
            }
            let most = if self.is_chunked { self.left } else { BODY_LEN_MAX_BYTES };
            let most = most.min(BODY_LEN_MAX_BYTES.saturating_sub(bytes.len() as u64));
            let read = from.by_ref().take(most).read_until(b'\n', &mut bytes)? as u64;
            let is_whole = bytes.last() == Some(&b'\n');
            if read == 0 && !is_whole {
                return if self.is_chunked || !bytes.is_empty() { Err(too_large()) } else { Ok(None) };
            }
            if self.is_chunked {
                self.left -= read;
                if self.left == 0 {
                    end_of_chunk(from)?;
                }
            }
            if is_whole {
                bytes.pop();
                return Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned()));
            }
        }
    }
}

struct Head {
    is_events: bool,
    status: u16,
    length: Option<u64>,
    chunked: bool,
    closes: bool,
    challenges: Vec<String>,
    info: Option<String>,
}

fn head(from: &mut impl BufRead) -> Result<Head, Error> {
    if from.fill_buf()?.is_empty() {
        return Err(Error::ClosedBefore);
    }
    let mut room = HEAD_LEN_MAX_BYTES;
    let status_line = line(from, &mut room)?;
    let status = status_line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
        .ok_or_else(|| Error::Malformed(format!("{status_line:?}, which is not HTTP")))?;
    let closes = status_line.starts_with("HTTP/1.0");
    let (challenges, info) = (Vec::new(), None);
    let mut head = Head { is_events: false, status, length: None, chunked: false, closes, challenges, info };
    loop {
        let line = line(from, &mut room)?;
        if line.is_empty() {
            return Ok(head);
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let length =
                    value.parse().map_err(|_| Error::Malformed(format!("a Content-Length of {value:?}")))?;
                head.length = Some(length);
            }
            "content-type" => head.is_events = value.to_ascii_lowercase().starts_with("text/event-stream"),
            "transfer-encoding" => head.chunked = value.to_ascii_lowercase().ends_with("chunked"),
            "www-authenticate" => head.challenges.push(value.to_owned()),
            "authentication-info" => head.info = Some(value.to_owned()),
            "connection" => head.closes |= value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
}

/// A line without its end, out of the `room` that is left for the head.
fn line(from: &mut impl BufRead, room: &mut u64) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.by_ref().take(*room).read_until(b'\n', &mut bytes)?;
    *room -= read as u64;
    if bytes.pop() != Some(b'\n') {
        let what = if *room == 0 { "a head or line without end" } else { "an answer that is cut short" };
        return Err(Error::Malformed(what.to_owned()));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn too_large() -> Error {
    Error::Malformed(format!("an answer of more than {BODY_LEN_MAX_BYTES} bytes"))
}

fn exactly(from: &mut impl BufRead, length: u64) -> Result<Vec<u8>, Error> {
    if length > BODY_LEN_MAX_BYTES {
        return Err(too_large());
    }
    let mut body = Vec::new();
    let read = from.by_ref().take(length).read_to_end(&mut body)?;
    if (read as u64) < length {
        return Err(Error::Malformed(format!("an answer that ends after {read} of {length} bytes")));
    }
    Ok(body)
}

fn chunks(from: &mut impl BufRead) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    loop {
        let size = chunk_size(from)?;
        if size.saturating_add(body.len() as u64) > BODY_LEN_MAX_BYTES {
            return Err(too_large());
        }
        if size == 0 {
            return Ok(body);
        }
        body.extend(exactly(from, size)?);
        end_of_chunk(from)?;
    }
}

/// The size of the next chunk; after the last, which has none, what stands behind it is read too.
fn chunk_size(from: &mut impl BufRead) -> Result<u64, Error> {
    let mut room = CHUNK_LINE_LEN_MAX_BYTES;
    let size_line = line(from, &mut room)?;
    let digits = size_line.split(';').next().unwrap_or("").trim();
    let size = u64::from_str_radix(digits, 16)
        .map_err(|_| Error::Malformed(format!("a chunk of size {digits:?}")))?;
    if size == 0 {
        let mut room = HEAD_LEN_MAX_BYTES;
        while !line(from, &mut room)?.is_empty() {}
    }
    Ok(size)
}

fn end_of_chunk(from: &mut impl BufRead) -> Result<(), Error> {
    let mut room = CHUNK_LINE_LEN_MAX_BYTES;
    match line(from, &mut room)?.is_empty() {
        true => Ok(()),
        false => Err(Error::Malformed("a chunk longer than its size".to_owned())),
    }
}

fn to_the_end(from: &mut impl BufRead) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    from.by_ref().take(BODY_LEN_MAX_BYTES + 1).read_to_end(&mut body)?;
    if body.len() as u64 > BODY_LEN_MAX_BYTES {
        return Err(too_large());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Option<(u16, &str, bool)>) {
        let mut from = io::BufReader::with_capacity(3, answer.as_bytes());
        let found = read(&mut from).ok();
        let expected = expected.map(|(status, body, keeps)| {
            let body = body.as_bytes().to_vec();
            Response { status, body, keeps, ..Response::default() }
        });
        assert_eq!(found, expected, "{answer:?}");
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcrest", Some((200, "abc", true)));
        check("HTTP/1.1 200 OK\r\ncontent-length:0\r\nConnection: close\r\n\r\n", Some((200, "", false)));
        check("HTTP/1.1 404 No\nContent-Length: 1\n\nx", Some((404, "x", true)));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n",
            Some((200, "abcde", true)),
        );
        check("HTTP/1.1 200 OK\r\n\r\nto the end", Some((200, "to the end", false)));
        check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Some((200, "x", false)));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", Some((204, "", true)));
    }

    #[test]
    fn lines_come_as_they_are_sent_however_they_are_cut() {
        let check = |head: &str, body: &str, expected: &[&str]| {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{head}\r\n{body}");
            let mut from = io::BufReader::with_capacity(3, answer.as_bytes());
            let Ok(Begun::Events(_, mut lines)) = begin(&mut from) else { panic!("{answer:?}") };
            let found: Vec<_> = std::iter::from_fn(|| lines.next(&mut from).ok()?).collect();
            assert_eq!(found, expected, "{body:?}");
        };
        let chunked = "Transfer-Encoding: chunked\r\n";
        check(chunked, "4\r\na\n\nb\r\n3\r\nc\nd\r\n1\r\n\n\r\n0\r\n\r\n", &["a", "", "bc", "d"]);
        check("", "data: x\r\n\r\n:\n", &["data: x", "", ":"]);
        check(chunked, "2\r\na\n\r\nzz\r\n", &["a"]);
    }

    #[test]
    fn fields_of_a_login_are_told() {
        let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest a\r\nwww-authenticate: Digest b\r\n\
                      Authentication-Info: rspauth\r\nContent-Length: 0\r\n\r\n";
        let read = read(&mut answer.as_bytes()).unwrap();
        assert_eq!(read.challenges, ["Digest a", "Digest b"]);
        assert_eq!(read.info.as_deref(), Some("rspauth"));
    }

    #[test]
    fn other_answers_are_refused() {
        for answer in [
            "",
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "HTTP/1.1 200 OK\r\nX: y",
        ] {
            check(answer, None);
        }
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(20_000));
        check(&endless, None);
    }

    #[test]
    fn a_connection_closed_while_idle_is_told_apart() {
        assert!(matches!(read(&mut io::empty()), Err(Error::ClosedBefore)));
    }
}
