//! Asking a daemon: one call on one connection, with a deadline.
//!
//! Not here: XML-RPC, for which the stories use real clients.

use anyhow::{Context, Result, bail};
use client::blocking::Client;
use client::connect::{Connect, Local, Tcp};
use client::{Answer as Reply, Patience};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Longest wait for an answer; a call waits 30 s at most for events.
const PATIENCE: Patience = Patience::of(Duration::from_secs(60));

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

/// Posts a body; the status and the body of the answer.
///
/// # Errors
/// If no well-formed answer came.
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
