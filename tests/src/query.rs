//! Queries to a daemon: one call on one connection, with a deadline.
//!
//! Not here: XML-RPC, for which the tests use real clients.

use anyhow::{Context, Result, bail};
use client::blocking::Client;
use client::connect::{Connect, Local, Tcp};
use client::{Answer as Reply, Patience};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Timeout of a call; a call waits for events for at most 30 s.
const PATIENCE: Patience = Patience::of(Duration::from_secs(60));

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Result(Value),
    /// A fault.
    Fault {
        code: i64,
        message: String,
        /// The HTTP status.
        status: u16,
    },
}

/// Call a method with a structure of parameters.
///
/// # Errors
/// If no well-formed answer was received. The call may have been executed nevertheless.
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

/// Call a method and require a result.
///
/// # Errors
/// As [`ask`], or if the answer is a fault.
pub fn result(address: SocketAddr, method: &str, params: &Value) -> Result<Value> {
    no_fault(ask(address, method, params)?, method, params)
}

/// As [`result`], over a local socket, where the daemon knows the user.
///
/// # Errors
/// As [`result`].
pub fn local_result(socket: &Path, method: &str, params: &Value) -> Result<Value> {
    let path = format!("/api/v1/{method}");
    let (status, body) = exchange(Local(socket.to_owned()), &path, "application/json", &params.to_string())?;
    no_fault(read(method, status, &body)?, method, params)
}

fn no_fault(answer: Answer, method: &str, params: &Value) -> Result<Value> {
    match answer {
        Answer::Result(value) => Ok(value),
        Answer::Fault { code, message, .. } => bail!("{method} {params} gave fault {code}: {message}"),
    }
}

/// Post a body; returns the status and the body of the answer.
///
/// # Errors
/// If no well-formed answer was received.
pub fn post(address: SocketAddr, path: &str, media_type: &str, body: &str) -> Result<(u16, String)> {
    exchange(Tcp(address.to_string()), path, media_type, body)
}

fn exchange(
    connect: impl Connect + 'static,
    path: &str,
    media_type: &str,
    body: &str,
) -> Result<(u16, String)> {
    let mut client = Client::from(client::Client::new(connect));
    client.set_patience(PATIENCE);
    let Reply { status, body } = client.post(path, media_type, body.to_owned().into())?;
    Ok((status, String::from_utf8(body).context("an answer that is no UTF-8")?))
}
