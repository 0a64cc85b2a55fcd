//! Permissions of a client that logged in by HTTP, checked again for its streams.
//!
//! Rules: what goes on is looked at by what is granted now, to the name and by the proof with which it came in; nothing of a secret
//! is logged.
//! Not here: who comes in (`door`, `login`), what one call may (`access`, `grant`).

use crate::access::Visit;
use crate::door::{Passes, lock};
use crate::login::Login;
use overlay::clock;
use rpc::dispatch::permissions::{CallTarget, Permissions, Permit};
use rpc::fault::Fault;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tunnel::digest::Ha1;
use wire::fault;
use wire::query::Account;
use wire::time::Moment;

/// How often the pass of a stream is checked again: it costs a signature.
const PASS_INTERVAL: Duration = Duration::from_secs(5);

/// How a client was authenticated.
pub(crate) enum Shown {
    /// It proved this, of an account.
    Proof(Ha1),
    /// A member's pass.
    Pass(Pass),
}

/// A pass that was good when it was shown.
pub(crate) struct Pass {
    passes: Arc<dyn Passes>,
    text: String,
    /// When it was looked at.
    looked: Mutex<Moment>,
}

/// A visit that may last.
pub(crate) struct Lasting {
    pub(crate) visit: Visit,
    pub(crate) shown: Shown,
    pub(crate) login: Arc<Mutex<Login>>,
}

impl Permissions for Lasting {
    fn may(&self, asked: CallTarget<'_>) -> Result<Permit, Fault> {
        self.visit.may(asked)
    }

    fn may_still(&self, asked: CallTarget<'_>) -> Result<(), Fault> {
        let Visit { name, grant, rights, .. } = &self.visit;
        let forbidden = |why: String| Fault::new(fault::FORBIDDEN, why);
        let checked = match &self.shown {
            Shown::Pass(pass) => {
                pass.look().map_err(forbidden)?;
                grant.check(*rights, asked)
            }
            Shown::Proof(proof) => match lock(&self.login).granted(name, proof) {
                Some((grant, now)) => grant.check(now.min(*rights), asked),
                None => return Err(forbidden("the account is gone, or has another secret".to_owned())),
            },
        };
        checked.map_err(|refused| forbidden(refused.to_string()))
    }

    fn account(&self) -> Option<Account> {
        self.visit.account()
    }

    fn who(&self) -> &str {
        &self.visit.name
    }
}

impl Pass {
    /// Found good just now.
    pub(crate) fn new(passes: Arc<dyn Passes>, text: String, now: Moment) -> Pass {
        Pass { passes, text, looked: Mutex::new(now) }
    }

    fn look(&self) -> Result<(), String> {
        let (mut looked, now) = (lock(&self.looked), clock::now());
        if now.since(*looked) >= PASS_INTERVAL {
            self.passes.member(&self.text)?;
            *looked = now;
        }
        Ok(())
    }
}
