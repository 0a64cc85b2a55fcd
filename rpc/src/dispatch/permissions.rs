//! Permissions of calls: the domain and host in the request path, and the methods that the caller may call.
//!
//! ```text
//! call ─▶ Scope: the domain and host of the path go into the parameters ─▶ Permissions::may, for each call of a multicall
//! ```
//! Rules: the path and the parameters must name the same domain and host. A daemon on loopback has no
//! authorizer: every program on the machine may call it ([`Scope::OPEN`]).
//! Not here: authorization of requests (`http::authorizer`), accounts (the proxy).

use crate::codec::value::{Name, Value};
use crate::dispatch::forward::Caller;
use crate::dispatch::method::{Declaration, Located};
use crate::dispatch::params::Params;
use crate::fault::Fault;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use wire::fault;
use wire::query::{Account, Viewer};

/// Guard of a running call: dropping it releases its slot.
pub type Permit = Box<dyn Any + Send + Sync>;

/// Target of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallTarget<'a> {
    /// Name of the method.
    pub method: &'a str,
    /// Whether it only reads, or else changes something for others.
    pub is_reading: bool,
    /// Domain of the call, if any.
    pub domain: Option<&'a str>,
    /// Host of the call, if any.
    pub host: Option<&'a str>,
    /// Value of the parameter `kind`, if the call has it.
    pub kind: Option<&'a str>,
}

/// Decides what an authorized client may call.
pub trait Permissions: Send + Sync {
    /// Check whether the call is allowed now. The returned permit is dropped after the answer.
    ///
    /// # Errors
    /// Why the call is refused.
    fn may(&self, asked: CallTarget<'_>) -> Result<Permit, Fault>;

    /// Check whether a running stream is still allowed: grants change.
    ///
    /// # Errors
    /// Why the stream is refused.
    fn may_still(&self, asked: CallTarget<'_>) -> Result<(), Fault> {
        self.may(asked).map(drop)
    }

    /// Account identifier for the queried daemons, which separate the data of accounts by it.
    fn account(&self) -> Option<Account> {
        None
    }

    /// Name under which the concurrent calls and streams of the client are counted.
    fn who(&self) -> &str {
        ""
    }
}

/// Limits of the calls of one request.
#[derive(Clone, Default)]
pub struct Scope {
    /// Domain in the path.
    pub domain: Option<String>,
    /// Host in the path.
    pub host: Option<String>,
    /// Decides which calls are allowed; without it all are.
    pub access: Option<Arc<dyn Permissions>>,
    /// Local user or role on whose behalf the request is made.
    pub viewer: Viewer,
}

impl Scope {
    /// Scope of a client that is not identified, as on loopback: all methods.
    pub const OPEN: &'static Scope =
        &Scope { domain: None, host: None, access: None, viewer: Viewer::Anonymous };

    /// The caller of this scope, which waits for `time_left`.
    pub(crate) fn caller(&self, time_left: Duration) -> Caller {
        let account = self.access.as_ref().and_then(|access| access.account());
        Caller { account, viewer: self.viewer, ..Caller::client(time_left) }
    }

    /// Add the domain and host of the path to the parameters of a call.
    pub(crate) fn fill(
        &self,
        declaration: &Declaration,
        given: &mut Vec<(Name, Value)>,
    ) -> Result<(), Fault> {
        if self.domain.is_some() && declaration.located == Located::Here {
            let name = declaration.name;
            return Err(Fault::not_found(format!(
                "{name} is about no domain: ask it at /RPC2 or /api/v1/{name}, without /d/DOMAIN"
            )));
        }
        for (name, named) in [("domain", &self.domain), ("host", &self.host)] {
            let is_declared = declaration.parameters.iter().any(|parameter| parameter.name == name);
            let Some(named) = named.as_ref().filter(|_| is_declared) else { continue };
            match given.iter_mut().find(|(known, _)| known == name) {
                None => given.push((Name::Borrowed(name), Value::Text(named.clone()))),
                Some((_, value @ Value::Nil)) => *value = Value::Text(named.clone()),
                Some((_, Value::Text(text))) if text == named => {}
                Some(_) => {
                    let message = format!("{name}: expected {named}, as the path says, found another");
                    return Err(Fault::new(fault::FORBIDDEN, message));
                }
            }
        }
        Ok(())
    }

    /// Check whether the call is allowed. Returns its permit.
    pub(crate) fn check(&self, declaration: &Declaration, params: &Params) -> Result<Permit, Fault> {
        let Some(access) = &self.access else { return Ok(Box::new(())) };
        let (domain, host) = (params.text("domain")?, params.text("host")?);
        let (method, is_reading) = (declaration.name, declaration.is_reading());
        access.may(CallTarget { method, is_reading, domain, host, kind: params.text("kind").ok().flatten() })
    }
}
