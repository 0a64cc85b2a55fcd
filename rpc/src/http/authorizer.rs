//! Authorization of requests by their heads.
//!
//! ```text
//! head ─▶ Authorizer::authorize ─▶ Admitted (the path inside, where it may go, fields of the answer), or Rejected away
//! ```
//! Rule: a request is rejected before anything of its body is read.
//! Not here: what a call may reach (`dispatch::permissions`), accounts (the proxy).

use crate::dispatch::permissions::{Permit, Scope};
use crate::fault::Fault;
use std::net::IpAddr;

/// The parts of a request's head that authorization depends on.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
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
    /// Permit until the answer is made.
    pub permit: Permit,
}

/// A request that was rejected.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The status of HTTP.
    pub status: u16,
    /// Fields of the answer, each name in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// The fault in the response.
    pub fault: Fault,
}

/// Decision on a request.
pub enum Decision {
    /// It goes on.
    Admitted(Admitted),
    /// It does not.
    Rejected(Rejected),
}

/// Decides which requests are let in.
pub trait Authorizer: Send + Sync {
    /// Decision on a request.
    fn authorize(&self, credentials: &Credentials<'_>) -> Decision;

    /// Whether its listener is for this host only, so that `Host` must be a name of loopback.
    fn serves_this_host(&self) -> bool {
        false
    }
}
