//! Copies of the members' minutes and newest samples: when each member is asked, and what standbys may fetch.
//!
//! Pure. Rule: a member is asked for those of its own host, one answer of each kind at a time, and again when it has new
//! ones; some time after it connected also for the minutes that it has copied of hosts that are down, because it may have
//! been a standby when they were there, and this host not. Few members are asked at once, and only so much is received a second, so that a
//! representative that has just taken over is not flooded. Not here: how they are stored (`history`), the answers
//! (`report`).

use super::connection::Connection;
use super::domain::{Domain, Link, Now, Output};
use super::hosts::Role;
use crate::history::copied::{Answer, Copied, Kind, OfKind, Received};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report;
use wire::report::minutes::{Fetch, Held, Numbered, Positions};
use wire::time::{Moment, Time};

/// After this time an answer is not expected any more.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Most members that are asked at once.
const ASKED_MAX: usize = 16;
/// Bytes of each kind that are received a second, on average.
const BUDGET_BYTES: u64 = 1 << 20;
/// So long after a takeover, a host that is not connected is down.
const CONNECTED_WITHIN: Duration = Duration::from_secs(15);
/// A member is asked for its copies of hosts that are down for so long after it connected, and after it had any that
/// were missing here: much longer than copies take to be opened.
const OTHERS_ASKED_FOR: Duration = Duration::from_secs(5 * 60);
/// What is further ahead of this host's clock is not stored: what is oldest is judged by the newest.
const AHEAD_MAX: Duration = Duration::from_secs(3600);

/// Copying of a kind, of all members.
#[derive(Debug, Default)]
pub(super) struct Copying {
    /// Age of what is fetched at most; `None` if it is not copied.
    age: Option<Duration>,
    /// `None` until the copies are open.
    positions: Option<Positions>,
    /// Until then, what was received uses up the budget.
    spent: Moment,
}

/// Copying of a kind, of the member on a connection.
#[derive(Debug, Default)]
pub(super) struct MemberCopying {
    pub(super) turn: Turn,
    /// Names of the metrics in what was received.
    numbered: Numbered,
}

/// When a member is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has none, or does not know the frames.
    #[default]
    Never,
    /// It is to be asked from then on.
    Due(Moment),
    /// It was asked then.
    Asked(Moment),
}

impl Domain {
    /// Copies what the members store up to these ages from now on.
    pub fn set_copies(&mut self, ages: &OfKind<Option<Duration>>) {
        for kind in Kind::ALL {
            self.copying.of_mut(kind).age = *ages.of(kind);
        }
    }

    pub(super) fn has_copies(&self, kind: Kind) -> bool {
        self.copying.of(kind).age.is_some()
    }

    /// Returns whether the shell is to open the copies and to call [`Domain::set_held`].
    #[must_use]
    pub fn wants_held(&self) -> bool {
        self.copying.0.iter().any(|copying| copying.age.is_some() && copying.positions.is_none())
    }

    /// Sets how far what each host has is stored.
    pub fn set_held(&mut self, held: OfKind<Vec<Held>>) {
        for (copying, held) in self.copying.0.iter_mut().zip(held.0) {
            copying.positions = Some(Positions::new(held));
        }
    }

    /// Handles that the shell had no room for what was received: the positions are set again.
    pub fn handle_not_copied(&mut self) {
        self.copying.0.iter_mut().for_each(|copying| copying.positions = None);
    }

    /// Returns the start of the last minute of a host that is copied.
    #[must_use]
    pub fn copied_until(&self, host: &HostName) -> Option<Time> {
        Some(self.copying.of(Kind::Minutes).positions.as_ref()?.of(host)?.latest)
    }

    /// Asks members whose turn it is for what they store. Calling it some times a second is enough.
    pub fn fetch_copies(&mut self, now: Now) {
        Kind::ALL.into_iter().for_each(|kind| self.fetch(kind, now));
    }

    fn fetch(&mut self, kind: Kind, now: Now) {
        let Copying { age: Some(age), positions: Some(positions), spent } = self.copying.of(kind) else {
            return;
        };
        if *spent > now.moment {
            return;
        }
        let since = now.wall.minus(*age);
        let fetches: Vec<(Link, Fetch)> = due(&mut self.links, kind, now.moment)
            .into_iter()
            .map(|(link, host)| {
                let missing = kind == Kind::Minutes && self.may_have_missing(link, now);
                let connected = missing.then(|| self.connected());
                let held = match &connected {
                    None => positions.of(&host).into_iter().collect(),
                    Some(connected) => {
                        let is_asked = |held: &Held| held.host == host || !connected.contains(&held.host);
                        positions.all().into_iter().filter(is_asked).collect()
                    }
                };
                let connected = AtEnd(connected.map(|connected| connected.into_iter().collect()));
                (link, Fetch { connected, ..Kind::fetch(held, since) })
            })
            .collect();
        for (link, fetch) in fetches {
            self.queue_frame(link, kind.of_representative(fetch));
            if let Some(connection) = self.links.get_mut(&link) {
                connection.copying.of_mut(kind).turn = Turn::Asked(now.moment);
            }
        }
    }

    /// Returns whether a member is asked for its copies of hosts that are down.
    fn may_have_missing(&self, link: Link, now: Now) -> bool {
        self.began.is_some_and(|began| now.moment >= began.plus(CONNECTED_WITHIN))
            && self.links.get(&link).is_some_and(|connection| {
                now.moment < connection.since.max(connection.had_missing).plus(OTHERS_ASKED_FOR)
            })
    }

    fn connected(&self) -> BTreeSet<HostName> {
        self.hosts.connected().cloned().collect()
    }

    /// Handles the answer of a member: what is of its own host, and the minutes that it has copied of hosts that are
    /// down. Others are not stored.
    pub(super) fn handle_answer(&mut self, link: Link, answer: Answer, now: Now) -> Result<(), String> {
        let Some(connection) = self.links.get_mut(&link) else { return Ok(()) };
        let Some(own) = connection.member.as_ref().map(|member| member.host.clone()) else { return Ok(()) };
        let (kind, hosts, is_end) = answer.received();
        let of_member = connection.copying.of_mut(kind);
        if !matches!(of_member.turn, Turn::Asked(_)) {
            return Ok(());
        }
        let is_end = is_end || hosts.is_empty();
        of_member.turn = Turn::Due(if is_end { now.moment.plus(kind.every()) } else { now.moment });
        let missing = kind == Kind::Minutes && self.may_have_missing(link, now);
        let connected = missing.then(|| self.connected());
        for received in hosts {
            let Some(connection) = self.links.get_mut(&link) else { return Ok(()) };
            let is_own = received.host == own;
            let numbered = match is_own {
                true => &mut connection.copying.of_mut(kind).numbered,
                false => &mut connection.numbered_copies,
            };
            let Received { host, names, rows } = received;
            let metrics = numbered.learn_with(names, |metric| self.names.shared(metric));
            let metrics = metrics.map_err(|error| error.to_string())?;
            let is_down = connected.as_ref().is_some_and(|connected| !connected.contains(&host));
            let copied = Copied { host, metrics, rows };
            if is_own {
                self.copy(kind, copied, now);
            } else if is_down && self.copy(kind, copied, now) {
                self.links.entry(link).and_modify(|connection| connection.had_missing = now.moment);
            }
        }
        Ok(())
    }

    /// Stores what follows of a host; returns false if nothing does.
    fn copy(&mut self, kind: Kind, mut copied: Copied, now: Now) -> bool {
        let Copying { positions: Some(positions), spent, .. } = self.copying.of_mut(kind) else {
            return false;
        };
        match positions.of(&copied.host) {
            // Several members may have copies of a host.
            Some(held) => copied.rows.drop_held(&held),
            None if positions.has_room() => {}
            None => return false,
        }
        let Some((next, last)) = copied.rows.end() else { return false };
        positions.note(&copied.host, next, last);
        let took = Duration::from_micros(copied.rows.len_bytes() as u64 * 1_000_000 / BUDGET_BYTES);
        *spent = (*spent).max(now.moment).plus(took);
        copied.rows.drop_after(now.wall.plus(AHEAD_MAX));
        self.closing.push_back(Output::Copy(copied));
        true
    }

    /// Handles a fetch of a standby. Others are answered that there is nothing: one that has just become a standby,
    /// which is not known here yet, asks again soon.
    pub(super) fn handle_fetch(&mut self, link: Link, kind: Kind, fetch: Fetch) {
        let is_open = self.copying.of(kind).positions.is_some();
        match is_open && self.role_of(link) == Some(Role::Standby) {
            true => self.closing.push_back(Output::Fetch(link, kind, fetch)),
            false => self.send_answer(link, Answer::nothing(kind)),
        }
    }

    /// Sends minutes or samples to a standby, as requested by [`Output::Fetch`].
    pub fn send_answer(&mut self, link: Link, answer: Answer) {
        let frame = answer.of_representative();
        match report::encode(&frame, &mut Vec::new()) {
            Ok(()) => self.queue_frame(link, frame),
            Err(error) => tracing::warn!(%error, "minutes or samples are not sent to a standby"),
        }
    }
}

/// The members that are to be asked now, the first due first.
fn due(links: &mut BTreeMap<Link, Connection>, kind: Kind, now: Moment) -> Vec<(Link, HostName)> {
    let mut asked = 0;
    let mut due = Vec::new();
    for (link, connection) in links {
        let Some(member) = &connection.member else { continue };
        let turn = &mut connection.copying.of_mut(kind).turn;
        match *turn {
            Turn::Asked(since) if now.since(since) < ANSWER_WITHIN => asked += 1,
            Turn::Asked(_) => *turn = Turn::Due(now),
            Turn::Due(from) if from <= now => due.push((from, *link, member.host.clone())),
            Turn::Due(_) | Turn::Never => {}
        }
    }
    due.sort_unstable();
    let room = ASKED_MAX.saturating_sub(asked);
    due.into_iter().take(room).map(|(_, link, host)| (link, host)).collect()
}
