//! The processes of a call, selected in the flock.
//!
//! Pure. Rule: while a call is followed its hosts alone are watched, and afterwards those that were watched
//! before; a selection by hand replaces that of the call. Not here: which processes serve a call
//! (`live::served`).

use super::FlockState;
use crate::flock::Member;
use crate::flock::sweep::HostName;
use crate::model::served::ServedCall;
use crate::served::Process;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::time::Time;

/// The processes of a call that has ended are shown this long before its end, if it took more than twice
/// this.
const BEFORE_END: Duration = Duration::from_secs(1);

/// A process, by its host, number and start in nanoseconds since the host's boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessId {
    host: HostName,
    pid: u32,
    start_ns: u64,
}

impl ProcessId {
    /// A process that served a call of this domain, if sweeps can name it.
    #[must_use]
    pub fn of(domain: &str, process: &Process) -> Option<ProcessId> {
        let host = HostName::new(domain, &process.host);
        Some(ProcessId { host, pid: u32::try_from(process.pid).ok()?, start_ns: process.start_ns? })
    }
}

/// A call to follow.
pub(in crate::model) struct Following {
    pub(in crate::model) call: String,
    /// The domain of its hosts.
    pub(in crate::model) domain: String,
    pub(in crate::model) hosts: BTreeSet<HostName>,
    /// One process of it alone.
    pub(in crate::model) only: Option<ProcessId>,
    /// The time that the live timeline was moved to.
    pub(in crate::model) moved_to: Option<Time>,
}

/// A call that is followed.
#[derive(Clone)]
pub(super) struct Followed {
    call: String,
    domain: String,
    is_one_process: bool,
    /// Its processes that are known, as they were selected last.
    known: Vec<ProcessId>,
    /// Whether nothing else was selected since.
    is_selected: bool,
    hosts_before: Option<BTreeSet<HostName>>,
    moved_to: Option<Time>,
}

impl FlockState {
    /// The call whose processes are selected.
    #[must_use]
    pub fn followed_call(&self) -> Option<&str> {
        self.followed.as_ref().filter(|followed| followed.is_selected).map(|followed| &*followed.call)
    }

    /// Select none, and follow no call; returns the time that the timeline was moved to for it.
    pub(in crate::model) fn leave(&mut self) -> Option<Time> {
        self.selected.clear();
        let followed = self.followed.take()?;
        self.chosen_hosts = followed.hosts_before;
        followed.moved_to
    }

    pub(in crate::model) fn follow(&mut self, following: Following) {
        let hosts_before = self.chosen_hosts.replace(following.hosts);
        self.followed = Some(Followed {
            call: following.call,
            domain: following.domain,
            is_one_process: following.only.is_some(),
            known: following.only.into_iter().collect(),
            is_selected: true,
            hosts_before,
            moved_to: following.moved_to,
        });
    }

    /// Select these, whatever was selected before.
    pub(in crate::model) fn select(&mut self, members: BTreeSet<Member>) {
        if let Some(followed) = &mut self.followed {
            followed.is_selected = false;
        }
        self.selected = members;
    }

    /// Watch these hosts, or the first live ones.
    pub(in crate::model) fn watch(&mut self, hosts: Option<BTreeSet<HostName>>) {
        if self.chosen_hosts != hosts {
            (self.chosen_hosts, self.followed) = (hosts, None);
        }
    }

    /// Select the known processes of the call that is followed.
    pub(in crate::model) fn select_followed(&mut self, served: &ServedCall) {
        let Some(followed) = self.followed.as_mut().filter(|followed| followed.is_selected) else { return };
        if !followed.is_one_process
            && let Some(by) = served.of(&followed.call)
        {
            let known = by.processes.iter().filter_map(|process| ProcessId::of(&followed.domain, process));
            followed.known = known.collect();
        }
        let member = |id: &ProcessId| self.flock.member(&id.host, id.pid, id.start_ns);
        self.selected = followed.known.iter().filter_map(member).collect();
    }
}

/// A time when a call that has ended was running, near its end.
pub(in crate::model) fn shortly_before(started: Time, ended: Time) -> Time {
    ended.minus(BEFORE_END.min(ended.since(started) / 2))
}
