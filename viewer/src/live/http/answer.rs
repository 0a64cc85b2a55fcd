//! An answer of HTTP/1.1 as bytes: the head, and a body by its length or in chunks.
//!
//! Rule: head, lines and body are bounded. Not here: connections (`http`).

use super::Odd;
use std::io::{BufRead, ErrorKind, Read};

/// Largest head of an answer, in bytes; ours have some hundred.
const HEAD_LEN_MAX_BYTES: u64 = 16 << 10;
/// Largest answer, in bytes: what a daemon answers at most.
const BODY_LEN_MAX_BYTES: u64 = 32 << 20;

/// An answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Whether the connection may be used again.
    pub(super) keeps: bool,
    /// Each field `WWW-Authenticate` (RFC 9110, section 11.6.1).
    pub(super) challenges: Vec<String>,
    /// The field `Authentication-Info` (RFC 7615).
    pub(super) info: Option<String>,
}

/// Read one answer.
pub(super) fn read(from: &mut impl BufRead) -> Result<Answer, Odd> {
    let mut room = HEAD_LEN_MAX_BYTES;
    let first = line(from, &mut room)?;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status =
        status.ok_or_else(|| Odd::Found(format!("{:?}", first.chars().take(40).collect::<String>())))?;
    let mut answer = Answer { status, keeps: true, ..Answer::default() };
    let (mut len, mut is_chunked) = (None, false);
    loop {
        let line = line(from, &mut room)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => len = value.parse::<u64>().ok(),
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => answer.keeps = !value.eq_ignore_ascii_case("close"),
            "www-authenticate" => answer.challenges.push(value.to_owned()),
            "authentication-info" => answer.info = Some(value.to_owned()),
            _ => {}
        }
    }
    match (is_chunked, len.filter(|&len| len <= BODY_LEN_MAX_BYTES)) {
        (true, _) => while chunk(from, &mut answer.body)? {},
        (false, Some(len)) => body(from, len, &mut answer.body)?,
        (false, None) => {
            return Err(Odd::Found("an answer without a length, or longer than 32 MiB".to_owned()));
        }
    }
    Ok(answer)
}

/// So many bytes more.
fn body(from: &mut impl BufRead, len: u64, to: &mut Vec<u8>) -> Result<(), Odd> {
    let read = from.take(len).read_to_end(to)? as u64;
    match read == len {
        true => Ok(()),
        false => Err(Odd::Found(format!("an answer that ends after {read} of {len} bytes"))),
    }
}

/// A chunk (RFC 9112, section 7.1); whether more follow.
fn chunk(from: &mut impl BufRead, to: &mut Vec<u8>) -> Result<bool, Odd> {
    let mut room = HEAD_LEN_MAX_BYTES;
    let size = line(from, &mut room)?;
    let size = size.split(';').next().unwrap_or_default().trim();
    let len = u64::from_str_radix(size, 16).ok();
    let left = BODY_LEN_MAX_BYTES - to.len() as u64;
    let Some(len) = len.filter(|&len| len <= left) else {
        return Err(Odd::Found(format!("a chunk of length {size:?}, or an answer longer than 32 MiB")));
    };
    if len == 0 {
        while !line(from, &mut room)?.is_empty() {}
        return Ok(false);
    }
    body(from, len, to)?;
    match line(from, &mut room)?.is_empty() {
        true => Ok(true),
        false => Err(Odd::Found("a chunk that is longer than it says".to_owned())),
    }
}

/// A line without its end, out of the `room` that is left for the head.
pub(super) fn line(from: &mut impl BufRead, room: &mut u64) -> Result<String, Odd> {
    let mut bytes = Vec::new();
    *room -= from.by_ref().take(*room).read_until(b'\n', &mut bytes)? as u64;
    if bytes.pop() != Some(b'\n') {
        return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn an_answer_has_its_length() {
        let read = |text: &str| super::read(&mut BufReader::with_capacity(3, text.as_bytes())).ok();
        let expected = |status, body: &str, keeps| {
            Some(Answer { status, body: body.into(), keeps, ..Answer::default() })
        };
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest"), expected(200, "{}", true));
        assert_eq!(
            read("HTTP/1.1 503 Busy\r\ncontent-length:1\r\nConnection: close\r\n\r\nx"),
            expected(503, "x", false)
        );
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&format!("{chunked}1\r\n{{\r\n1;x=y\r\n}}\r\n0\r\n\r\n")), expected(200, "{}", true));
        for odd in ["2\r\n{}x\r\n0\r\n\r\n", "ffffffff\r\n", "-1\r\n", "2\r\n{", ""] {
            assert_eq!(read(&format!("{chunked}{odd}")), None, "{odd:?}");
        }
        for odd in [
            "",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        ] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
        assert_eq!(
            read(&format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(9_000))),
            None,
            "a head without end"
        );
    }
}
