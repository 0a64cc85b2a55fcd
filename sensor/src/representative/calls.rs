//! The domain's ended calls: their changes for a history, and what standbys and archives may fetch of it.
//!
//! Pure. Rule: only standbys and archives get calls. Not here: how calls are stored (`call_history`).

use super::domain::{Domain, Link, Output};
use super::hosts::{Host, Role};
use log_filters::join::changes::Taken;
use wire::report::FromRepresentative;
use wire::report::calls::{Calls, FetchCalls};

impl Domain {
    /// Collects changes of calls for a history from now on.
    pub fn collect_call_changes(&mut self) {
        self.has_call_history = true;
        self.joiner.collect_changes();
    }

    /// Takes changes of at most so many calls since they were last taken.
    pub fn take_call_changes(&mut self, limit: usize) -> Taken {
        self.joiner.take_changes(limit)
    }

    /// Handles a fetch of a standby or an archive. Others are answered that there is nothing: one that has just become a standby,
    /// which is not known here yet, asks again soon.
    pub(super) fn handle_fetch_calls(&mut self, link: Link, fetch: FetchCalls) {
        match self.has_call_history && self.may_fetch_calls(link) {
            true => self.closing.push_back(Output::FetchCalls(link, fetch)),
            false => self.send_calls(link, Calls::nothing()),
        }
    }

    /// Sends stored calls to a member, as requested by [`Output::FetchCalls`].
    pub fn send_calls(&mut self, link: Link, calls: Calls) {
        self.queue_frame(link, FromRepresentative::Calls(calls));
    }

    fn may_fetch_calls(&self, link: Link) -> bool {
        self.host_on(link).is_some_and(|host| host.role == Role::Standby || host.is_archive)
    }

    /// Returns the role of the member on a connection, once it is known.
    pub(super) fn role_of(&self, link: Link) -> Option<Role> {
        Some(self.host_on(link)?.role)
    }

    fn host_on(&self, link: Link) -> Option<&Host> {
        self.hosts.get(&self.links.get(&link)?.member.as_ref()?.host)
    }
}
