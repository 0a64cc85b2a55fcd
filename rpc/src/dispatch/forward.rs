//! Forwarding of calls to the daemon that can answer: a query may enter at any daemon.
//!
//! A method declared [`crate::dispatch::method::Declaration::of_domain`] takes `domain`, one about a host
//! also `host`. Before the handler runs, [`Forward`] decides whether the call is for another daemon.
//! Rule: the caller and the remaining time and hops are forwarded with the call, so that it can neither loop
//! nor outlive its caller.
//! Not here: finding and reaching the other daemon (the composing program, over the overlay).

use crate::dispatch::encoded_answer::{Answered, Answering};
use crate::dispatch::params::Params;
use crate::fault::Fault;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use wire::id::PeerKey;
use wire::query::{Account, Asker, Form, Principal, Viewer};

/// Hops of a call from a client: one to the representative, one to the host; and one before them from a
/// daemon that knows only a member of the domain.
pub const HOPS: u8 = 3;

/// Caller of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The daemon that forwarded the call; `None` for a client of this one.
    pub peer: Option<PeerKey>,
    /// Account of a client that logged in at a proxy, this daemon or that one.
    pub account: Option<Account>,
    /// Number of times that the call may still be forwarded.
    pub hops_left: u8,
    /// Remaining time of the caller.
    pub time_left: Duration,
    /// Local user or role on whose behalf the call is made, which decides what it may see.
    pub viewer: Viewer,
}

impl Caller {
    /// A client of this daemon that is not identified, and waits for `time_left`.
    #[must_use]
    pub fn client(time_left: Duration) -> Caller {
        Caller { peer: None, account: None, hops_left: HOPS, time_left, viewer: Viewer::Anonymous }
    }

    /// A client with the rights of root, such as one on the local socket.
    #[must_use]
    pub fn trusted(time_left: Duration) -> Caller {
        Caller { viewer: Viewer::Trusted, ..Caller::client(time_left) }
    }

    /// The principal of the call.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal { viewer: self.viewer, asker: self.asker() }
    }

    /// Daemon and account of the caller, if it is not a client of this daemon.
    #[must_use]
    pub fn asker(&self) -> Option<Asker> {
        self.peer.map(|peer| Asker { peer, account: self.account })
    }
}

/// Future of a forwarded call; `None` if the call turns out to be for this daemon, as may happen while
/// daemons agree on the representative.
pub type Forwarding = Pin<Box<dyn Future<Output = Result<Option<Answered>, Fault>> + Send>>;

/// Future of an answer that needs no forwarding.
#[must_use]
pub fn forwarded(answer: Answering) -> Forwarding {
    Box::pin(async move { answer.await.map(Some) })
}

/// Forwards calls to the daemon that has to answer.
pub trait Forward: Send + Sync {
    /// Forward the call to the daemon that `params` (`domain`, `host`) name; `None` if that is this one. If a
    /// client reads a document, `form` is its form, and the other daemon's document is returned unchanged.
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding>;
}
