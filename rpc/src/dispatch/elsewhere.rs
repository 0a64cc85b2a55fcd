//! Calls that another daemon has to answer: a query may enter anywhere.
//!
//! A method declared [`crate::dispatch::method::Declaration::of_domain`] takes `domain`, one of a host `host` too. Before it is
//! answered here, [`Elsewhere`] is asked whether it is for this daemon at all.
//! Rule: who called and how much time and how many hops are left goes with the call, so that it can neither
//! run in a circle nor outlive its caller.
//! Not here: finding and reaching the other daemon (the composing program, over the overlay).

use crate::dispatch::params::Params;
use crate::dispatch::written::{Answered, Answering};
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
    /// For whom of several it is: one who came in by a door, here or where that daemon has one.
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

    /// Who asks.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal { viewer: self.viewer, asker: self.asker() }
    }

    /// Who asks, if that is no client of this daemon.
    #[must_use]
    pub fn asker(&self) -> Option<Asker> {
        self.peer.map(|peer| Asker { peer, account: self.account })
    }
}

/// What comes of asking another daemon; `None` if the call turns out to be for this one, as happens while daemons agree
/// on who has to answer.
pub type Asking = Pin<Box<dyn Future<Output = Result<Option<Answered>, Fault>> + Send>>;

/// As somebody gives it who never leaves the call to its asker.
#[must_use]
pub fn asked(answer: Answering) -> Asking {
    Box::pin(async move { answer.await.map(Some) })
}

/// Knows which daemon has to answer.
pub trait Elsewhere: Send + Sync {
    /// The answer of the daemon that `params` (`domain`, `host`) name; `None` if that is this one. For a client that reads a
    /// document in `form`, where one is named, what was written elsewhere is handed on as it is.
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Asking>;
}
