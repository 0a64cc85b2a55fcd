//! Who may come in, asked about the head of every request.
//!
//! ```text
//! head ─▶ Entrance::knock ─▶ Admitted (the path inside, where it may go, fields of the answer), or Turned away
//! ```
//! Rule: whoever is turned away is so before anything of the body is read.
//! Not here: what a call may reach (`dispatch::scope`), who is who (the proxy).

use crate::dispatch::scope::{Held, Scope};
use crate::fault::Fault;
use std::net::IpAddr;

/// What is seen of a request before its body.
#[derive(Clone, Copy, Debug)]
pub struct Knock<'a> {
    /// The method of HTTP.
    pub method: &'a str,
    /// What it asks for, as it was sent: path and query.
    pub target: &'a str,
    /// The path alone.
    pub path: &'a str,
    /// The field `Authorization`, if there is one. Several are refused before.
    pub authorization: Option<&'a str>,
    /// From where.
    pub source: IpAddr,
}

/// A request that was let in.
pub struct Admitted {
    /// The path as it is inside: `/RPC2`, `/api/v1/METHOD`.
    pub path: String,
    /// What its calls may reach.
    pub scope: Scope,
    /// Fields of the answer, each name in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// Held until the answer is made.
    pub seat: Held,
}

/// A request that was turned away.
#[derive(Clone, Debug)]
pub struct Turned {
    /// The status of HTTP.
    pub status: u16,
    /// Fields of the answer, each name in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// What it is told.
    pub fault: Fault,
}

/// What is done with a request.
pub enum Entry {
    /// It goes on.
    Admitted(Admitted),
    /// It does not.
    Turned(Turned),
}

/// Decides who comes in.
pub trait Entrance: Send + Sync {
    /// What is done with a request.
    fn knock(&self, knock: &Knock<'_>) -> Entry;

    /// Whether it stands before what only this host asks, under its own names, as where there is no entrance.
    fn is_for_this_host(&self) -> bool {
        false
    }
}
