//! Asking a daemon by HTTP: one JSON call on one connection, read with a deadline.
//!
//! Rule: written out by hand, so that a story sees the bytes that a client sees, and needs no client
//! installed. Not here: XML-RPC, for which the stories use real clients.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for a connection or a part of an answer; a call waits 30 s at most for events.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result.
    Result(Value),
    /// A fault, and the status of HTTP it came with.
    Fault {
        /// Its code.
        code: i64,
        /// What it says.
        message: String,
        /// The status of HTTP.
        status: u16,
    },
}

/// Calls a method with a structure of parameters.
///
/// # Errors
/// If no well-formed answer came. The call may have been carried out all the same.
pub fn ask(address: SocketAddr, method: &str, params: &Value) -> Result<Answer> {
    let (status, body) =
        post(address, &format!("/api/v1/{method}"), "application/json", &params.to_string())?;
    read(method, status, &body)
}

fn read(method: &str, status: u16, body: &str) -> Result<Answer> {
    let value: Value = serde_json::from_str(body).with_context(|| format!("{method} answered {body:?}"))?;
    if status == 200 {
        return Ok(Answer::Result(value));
    }
    let error = &value["error"];
    match (error["code"].as_i64(), error["message"].as_str()) {
        (Some(code), Some(message)) => Ok(Answer::Fault { code, message: message.to_owned(), status }),
        _ => bail!("expected a fault with code and message from {method}, found status {status} and {body}"),
    }
}

/// Calls a method and takes nothing but a result.
///
/// # Errors
/// As [`ask`], or if the answer is a fault.
pub fn result(address: SocketAddr, method: &str, params: &Value) -> Result<Value> {
    no_fault(ask(address, method, params)?, method, params)
}

/// The same on a local socket, where the daemon knows the user.
///
/// # Errors
/// As [`result`].
pub fn local_result(socket: &Path, method: &str, params: &Value) -> Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let path = format!("/api/v1/{method}");
    let (status, body) =
        exchange(&mut stream, "localhost", (&path, "application/json", &params.to_string()))?;
    no_fault(read(method, status, &body)?, method, params)
}

fn no_fault(answer: Answer, method: &str, params: &Value) -> Result<Value> {
    match answer {
        Answer::Result(value) => Ok(value),
        Answer::Fault { code, message, .. } => bail!("{method} {params} gave fault {code}: {message}"),
    }
}

/// Posts a body; the status and the body of the answer.
///
/// # Errors
/// If no well-formed answer came.
pub fn post(address: SocketAddr, path: &str, media_type: &str, body: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    exchange(&mut stream, &address.to_string(), (path, media_type, body))
}

/// Posts a body on a connection to the daemon that goes by `host`.
fn exchange(
    stream: &mut (impl Read + Write),
    host: &str,
    (path, media_type, body): (&str, &str, &str),
) -> Result<(u16, String)> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> Result<(u16, String)> {
    let answer = std::str::from_utf8(answer).context("an answer that is no UTF-8")?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("expected a head of HTTP, found {} bytes: {answer:?}", answer.len()))?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("expected a status, found {head:?}"))?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.with_context(|| format!("expected a Content-Length, found {head:?}"))?;
    ensure!(body.len() == length, "expected {length} bytes of body, found {}", body.len());
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_refused() {
        let good = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse(good).unwrap(), (404, "{}".to_owned()));
        for (bad, reason) in [
            (&good[..good.len() - 1], "found 1"),
            (&good[..20], "a head"),
            (b"", "a head"),
            (b"HTTP/1.1 200 OK\r\n\r\n{}", "a Content-Length"),
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
