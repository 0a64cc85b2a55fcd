//! The processes of a call, chosen in the flock.
//!
//! Rule: who follows a call sees its hosts alone, at a time of its life, and comes back to the hosts that were watched before.
//! Whoever chooses something else by hand has that. Not here: which processes serve a call (`live::served`).

use super::FlockView;
use crate::app::App;
use crate::app::tabs::{self, Tab};
use crate::flock::sweep::HostName;
use crate::flock::{HOSTS_MAX, Member};
use crate::grid::call::Call;
use crate::grid::place::PlaceId;
use crate::live::served::Process;
use crate::timeline::Mode;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::time::Time;

/// So long before the end of a call that is over its processes are looked at, if it was longer than twice this.
const BEFORE_END: Duration = Duration::from_secs(1);

/// A process, by its host, number and start in nanoseconds since the host's boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct Wanted {
    host: HostName,
    pid: u32,
    start_ns: u64,
}

/// A call that is followed.
#[derive(Clone)]
pub(super) struct Followed {
    call: String,
    /// The domain of its hosts.
    domain: String,
    /// One process of it alone.
    only: Option<Wanted>,
    /// Its processes that are known, as they were chosen last.
    known: Vec<Wanted>,
    /// Whether no one chose anything else since.
    is_chosen: bool,
    /// The hosts that were chosen by hand before.
    before: Option<BTreeSet<HostName>>,
    /// The time to which one was led from what is live.
    led_to: Option<Time>,
}

impl FlockView {
    /// Choose none, and no longer follow a call; the time to which one was led for it.
    fn leave(&mut self) -> Option<Time> {
        self.forget_choice();
        let followed = self.followed.take()?;
        self.by_hand = followed.before;
        followed.led_to
    }

    /// Members that were chosen mean nothing any more.
    pub(super) fn forget_choice(&mut self) {
        self.selected.clear();
        (self.groups, self.rows) = (None, None);
    }

    /// Choose these, whatever was chosen before.
    pub(super) fn choose_by_hand(&mut self, members: BTreeSet<Member>) {
        if let Some(followed) = &mut self.followed {
            followed.is_chosen = false;
        }
        self.selected = members;
        self.groups = None;
    }

    /// Watch these hosts, or the usual ones.
    pub(super) fn watch_by_hand(&mut self, hosts: Option<BTreeSet<HostName>>) {
        if self.by_hand != hosts {
            (self.by_hand, self.followed) = (hosts, None);
        }
    }

    /// The call whose processes are chosen.
    pub(super) fn followed_call(&self) -> Option<&str> {
        self.followed.as_ref().filter(|followed| followed.is_chosen).map(|followed| followed.call.as_str())
    }
}

impl App {
    /// Choose none of the flock. Whoever followed a call watches the hosts that were watched before, and live what was live, unless
    /// somebody went elsewhere since.
    pub(in crate::app) fn clear_flock_choice(&mut self) {
        if self.flock.leave() == Some(self.timeline.time()) {
            self.timeline.go_live();
        }
    }

    /// A process of a call as the flock knows it.
    pub(in crate::app) fn wanted(&self, call: &Call, process: &Process) -> Option<Wanted> {
        wanted(self.domain_name(call.domain), process)
    }

    /// Show the processes of a call in the flock, or one of them, as of a time when it was at work.
    pub(in crate::app) fn follow_call(&mut self, call: &Call, only: Option<Wanted>) {
        self.clear_flock_choice();
        let hosts = call.hosts.iter().take(HOSTS_MAX).map(|&id| self.host_name(id)).collect();
        let before = self.flock.by_hand.replace(hosts);
        let (domain, known) = (self.domain_name(call.domain).to_owned(), only.iter().cloned().collect());
        let call_id = call.id.clone();
        let led_to = self.go_into(call);
        self.flock.followed =
            Some(Followed { call: call_id, domain, only, known, is_chosen: true, before, led_to });
        tabs::open(self, Tab::Flock);
    }

    /// Watch one host alone, until somebody chooses others.
    pub(in crate::app) fn watch_flock_of(&mut self, id: PlaceId) {
        let host = self.host_name(id);
        self.flock.watch_by_hand(Some(BTreeSet::from([host])));
    }

    /// Look at a time when a call was at work, unless that is so; that time, if what was looked at was live.
    fn go_into(&mut self, call: &Call) -> Option<Time> {
        let begun = call.started.or(call.assigned)?;
        let is_live = self.timeline.mode() == Mode::Live;
        match call.ended {
            Some(ended) if is_live || !(begun..=ended).contains(&self.timeline.time()) => {
                self.stop_at(shortly_before(begun, ended));
                return is_live.then(|| self.timeline.time());
            }
            None if self.timeline.time() < begun => self.timeline.go_live(),
            Some(_) | None => {}
        }
        None
    }

    /// Choose the processes of the call that is followed, as far as they are known and their hosts are watched.
    pub(in crate::app) fn choose_followed(&mut self) {
        let Some(followed) = self.flock.followed.as_ref().filter(|followed| followed.is_chosen) else {
            return;
        };
        let of_call = || {
            let processes = self.served.of(&followed.call)?.processes.iter();
            Some(processes.filter_map(|process| wanted(&followed.domain, process)).collect::<Vec<_>>())
        };
        let known = match followed.only {
            Some(_) => None,
            None => of_call().filter(|known| *known != followed.known),
        };
        let flock = &self.flock.flock;
        let wanted = known.as_ref().unwrap_or(&followed.known).iter();
        let members: BTreeSet<Member> =
            wanted.filter_map(|one| flock.member(&one.host, one.pid, one.start_ns)).collect();
        if self.flock.selected != members {
            self.flock.forget_choice();
            self.flock.selected = members;
        }
        if let (Some(known), Some(followed)) = (known, &mut self.flock.followed) {
            followed.known = known;
        }
    }
}

fn wanted(domain: &str, process: &Process) -> Option<Wanted> {
    let host = HostName::new(domain, &process.host);
    Some(Wanted { host, pid: u32::try_from(process.pid).ok()?, start_ns: process.start_ns? })
}

/// A time at which a call that is over was at work, near its end.
fn shortly_before(begun: Time, ended: Time) -> Time {
    ended.minus(BEFORE_END.min(ended.since(begun) / 2))
}
