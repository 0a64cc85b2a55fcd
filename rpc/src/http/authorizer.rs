//! Authorization of requests by their headers.
//!
//! ```text
//! head ─▶ Authorizer::authorize ─▶ Admitted (path inside, scope, header fields of the answer), or Rejected
//! ```
//! Rule: a request is rejected before any of its body is read.
//! Not here: what a call may reach (`dispatch::permissions`), accounts (the proxy).

use crate::dispatch::permissions::{Permit, Scope};
use crate::fault::Fault;
use std::net::IpAddr;

/// Parts of a request's header that the authorization depends on.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Request target as it was sent: path and query.
    pub target: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// Value of the field `Authorization`. Several such fields are refused before.
    pub authorization: Option<&'a str>,
    /// Address of the client.
    pub source: IpAddr,
}

/// An authorized request.
pub struct Admitted {
    /// Path inside: `/RPC2`, `/api/v1/METHOD`.
    pub path: String,
    /// Limits of its calls.
    pub scope: Scope,
    /// Header fields of the answer, each name in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// Permit that is held until the answer is complete.
    pub permit: Permit,
}

/// A rejected request.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// HTTP status code.
    pub status: u16,
    /// Header fields of the answer, each name in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// The fault in the response.
    pub fault: Fault,
}

/// Decision on a request.
pub enum Decision {
    /// The request is authorized.
    Admitted(Admitted),
    /// The request is rejected.
    Rejected(Rejected),
}

/// Decides which requests are authorized.
pub trait Authorizer: Send + Sync {
    /// Decide on a request.
    fn authorize(&self, credentials: &Credentials<'_>) -> Decision;

    /// Whether the listener is for this host only, so that `Host` must be a name of loopback.
    fn serves_this_host(&self) -> bool {
        false
    }
}
