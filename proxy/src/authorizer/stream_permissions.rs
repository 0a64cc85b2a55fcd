//! Permissions of a client that logged in by HTTP, checked again while its streams run.
//!
//! Rules: a running stream is checked against the present grant of the account, which must still have the
//! hash by which the client logged in. Secrets are never logged.
//! Not here: authentication (`authorizer`, `login`), the check of one call (`permissions`, `grant`).

use super::permissions::AccountPermissions;
use super::{TicketVerifier, lock};
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

/// Interval at which the pass of a stream is verified again: a verification costs a signature check.
const PASS_INTERVAL: Duration = Duration::from_secs(5);

/// How a client was authenticated.
pub(crate) enum Credential {
    /// By the secret of an account, with this hash.
    Proof(Ha1),
    /// By a member's pass.
    Ticket(Ticket),
}

/// A pass that was valid when the client logged in.
pub(crate) struct Ticket {
    ticket_verifier: Arc<dyn TicketVerifier>,
    text: String,
    /// When it was last verified.
    looked: Mutex<Moment>,
}

/// Permissions of a client that may hold streams.
pub(crate) struct StreamPermissions {
    pub(crate) permissions: AccountPermissions,
    pub(crate) shown: Credential,
    pub(crate) login: Arc<Mutex<Login>>,
}

impl Permissions for StreamPermissions {
    fn may(&self, asked: CallTarget<'_>) -> Result<Permit, Fault> {
        self.permissions.may(asked)
    }

    fn may_still(&self, asked: CallTarget<'_>) -> Result<(), Fault> {
        let AccountPermissions { name, grant, rights, .. } = &self.permissions;
        let forbidden = |why: String| Fault::new(fault::FORBIDDEN, why);
        let checked = match &self.shown {
            Credential::Ticket(pass) => {
                pass.look().map_err(forbidden)?;
                grant.check(*rights, asked)
            }
            Credential::Proof(proof) => match lock(&self.login).granted(name, proof) {
                Some((grant, now)) => grant.check(now.min(*rights), asked),
                None => return Err(forbidden("the account is gone, or has another secret".to_owned())),
            },
        };
        checked.map_err(|refused| forbidden(refused.to_string()))
    }

    fn account(&self) -> Option<Account> {
        self.permissions.account()
    }

    fn who(&self) -> &str {
        &self.permissions.name
    }
}

impl Ticket {
    /// A pass that was verified just now.
    pub(crate) fn new(ticket_verifier: Arc<dyn TicketVerifier>, text: String, now: Moment) -> Ticket {
        Ticket { ticket_verifier, text, looked: Mutex::new(now) }
    }

    fn look(&self) -> Result<(), String> {
        let (mut looked, now) = (lock(&self.looked), clock::now());
        if now.since(*looked) >= PASS_INTERVAL {
            self.ticket_verifier.member(&self.text)?;
            *looked = now;
        }
        Ok(())
    }
}
