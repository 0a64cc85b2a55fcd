//! Forwarding: calls that another daemon has to answer, as a query may enter at any daemon.
//!
//! A method declared [`crate::dispatch::method::Declaration::of_domain`] takes `domain`, one of a host `host` too. Before it is
//! answered here, [`Forward`] is asked whether it is for this daemon at all.
//! Rule: the caller and the remaining time and hops go with the call, so that it can neither
//! run in a circle nor outlive its caller.
//! Not here: finding and reaching the other daemon (the composing program, over the overlay).

use crate::dispatch::encoded_answer::{Answered, Answering};
use crate::dispatch::params::Params;
use crate::fault::Fault;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use wire::id::PeerKey;
use wire::query::{Account, Asker, Form, Principal, Viewer};

/// Hops of a call that comes from a client: one to the representative, one to the host; and one before them from a daemon
/// that knows of its domain only a member to ask.
pub const HOPS: u8 = 3;

/// On whose behalf a call is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The daemon that handed the call on; none for a client of this one.
    pub peer: Option<PeerKey>,
    /// The account of a client that logged in at a proxy, here or at that daemon.
    pub account: Option<Account>,
    /// How often it may still be handed on.
    pub hops_left: u8,
    /// How long the caller waits from now.
    pub time_left: Duration,
    /// On whose behalf it asks.
    pub viewer: Viewer,
}

impl Caller {
    /// A client of this daemon that is not identified, which waits for `time_left`.
    #[must_use]
    pub fn client(time_left: Duration) -> Caller {
        Caller { peer: None, account: None, hops_left: HOPS, time_left, viewer: Viewer::Anonymous }
    }

    /// A client on behalf of root, such as on the local socket.
    #[must_use]
    pub fn trusted(time_left: Duration) -> Caller {
        Caller { viewer: Viewer::Trusted, ..Caller::client(time_left) }
    }

    /// The principal of the call.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal { viewer: self.viewer, asker: self.asker() }
    }

    /// The daemon and account that ask, if the caller is no client of this daemon.
    #[must_use]
    pub fn asker(&self) -> Option<Asker> {
        self.peer.map(|peer| Asker { peer, account: self.account })
    }
}

/// What comes of asking another daemon; `None` if the call turns out to be for this one, as happens while daemons agree
/// on who has to answer.
pub type Forwarding = Pin<Box<dyn Future<Output = Result<Option<Answered>, Fault>> + Send>>;

/// The future of a daemon that always answers itself.
#[must_use]
pub fn forwarded(answer: Answering) -> Forwarding {
    Box::pin(async move { answer.await.map(Some) })
}

/// Forwards calls to the daemon that has to answer.
pub trait Forward: Send + Sync {
    /// The answer of the daemon that `params` (`domain`, `host`) name; `None` if that is this one. For a client that reads a
    /// document in `form`, where one is named, what was written elsewhere is handed on as it is.
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding>;
}
