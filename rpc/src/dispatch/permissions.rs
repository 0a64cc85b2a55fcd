//! Permissions of a call: the domain and host of its path, and which methods the caller may call.
//!
//! ```text
//! call ─▶ Scope: the domain and host of the path go into the parameters ─▶ Permissions::may, for each call of a multicall
//! ```
//! Rules: what the path names and what the parameters name must be the same. A daemon on loopback has no authorizer: every program
//! on the machine may ask ([`Scope::OPEN`]).
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

/// What a call holds until it is answered: dropping it makes place for another.
pub type Permit = Box<dyn Any + Send + Sync>;

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub struct CallTarget<'a> {
    /// Its method.
    pub method: &'a str,
    /// Whether it only reads; else it changes something for others.
    pub is_reading: bool,
    /// The domain that it is for, if any.
    pub domain: Option<&'a str>,
    /// The host, if any.
    pub host: Option<&'a str>,
    /// Of what kind is what it asks for, where its parameters say so (`kind`).
    pub kind: Option<&'a str>,
}

/// Decides what an authorized client may call.
pub trait Permissions: Send + Sync {
    /// Whether what is asked may be called now; what is returned is dropped once it is answered.
    ///
    /// # Errors
    /// Why not.
    fn may(&self, asked: CallTarget<'_>) -> Result<Permit, Fault>;

    /// Whether a stream that was allowed may go on: grants change.
    ///
    /// # Errors
    /// Why not.
    fn may_still(&self, asked: CallTarget<'_>) -> Result<(), Fault> {
        self.may(asked).map(drop)
    }

    /// The account at the daemons that are asked, which keep what belongs to each account separate.
    fn account(&self) -> Option<Account> {
        None
    }

    /// Under which name it is counted what goes on at a time.
    fn who(&self) -> &str {
        ""
    }
}

/// What calls of one request may reach.
#[derive(Clone, Default)]
pub struct Scope {
    /// The domain that the path names.
    pub domain: Option<String>,
    /// The host that the path names.
    pub host: Option<String>,
    /// Decides which calls are allowed; all are without it.
    pub access: Option<Arc<dyn Permissions>>,
    /// On whose behalf the request is made.
    pub viewer: Viewer,
}

impl Scope {
    /// Every method, for a client that is not identified, as on loopback.
    pub const OPEN: &'static Scope =
        &Scope { domain: None, host: None, access: None, viewer: Viewer::Anonymous };

    /// The caller, which waits for `time_left`.
    pub(crate) fn caller(&self, time_left: Duration) -> Caller {
        let account = self.access.as_ref().and_then(|access| access.account());
        Caller { account, viewer: self.viewer, ..Caller::client(time_left) }
    }

    /// Put what the path names into what a call gave.
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

    /// Whether the call may be made; what it holds while it is.
    pub(crate) fn check(&self, declaration: &Declaration, params: &Params) -> Result<Permit, Fault> {
        let Some(access) = &self.access else { return Ok(Box::new(())) };
        let (domain, host) = (params.text("domain")?, params.text("host")?);
        let (method, is_reading) = (declaration.name, declaration.is_reading());
        access.may(CallTarget { method, is_reading, domain, host, kind: params.text("kind").ok().flatten() })
    }
}
