//! Copies of the members' minutes: when each member is asked, and what standbys may fetch.
//!
//! Pure. Rule: a member is asked for its own minutes, one answer at a time, and again when it has new ones; some time
//! after it connected also for what it has copied of hosts that are down, because it may have been a standby when they
//! were there, and this host not. Few members are asked at once, and only so much is received a second, so that a
//! representative that has just taken over is not flooded. Not here: how minutes are stored (`history`), the answers
//! (`report`).

use super::domain::{Domain, Link, Now, Output};
use super::hosts::Role;
use crate::history::copies::Copied;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::minutes::{FETCH_LEN_BYTES, Fetch, Held, HostMinutes, Minutes, Positions};
use wire::report::{self, FromRepresentative};
use wire::sample::Metric;
use wire::time::{Moment, Time};

/// How often a member is asked for minutes.
const FETCH_EVERY: Duration = Duration::from_secs(20);
/// After this time an answer is not expected any more.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Most members that are asked at once.
const ASKED_MAX: usize = 16;
/// Bytes of minutes that are received a second, on average.
const BUDGET_BYTES: u64 = 1 << 20;
/// So long after a takeover, a host that is not connected is down.
const CONNECTED_WITHIN: Duration = Duration::from_secs(15);
/// A member is asked for its copies of hosts that are down for so long after it connected, and after it had any that
/// were missing here: much longer than copies take to be opened.
const OTHERS_ASKED_FOR: Duration = Duration::from_secs(5 * 60);
/// A minute that is further ahead of this host's clock is not stored: what is oldest is judged by the newest.
const AHEAD_MAX: Duration = Duration::from_secs(3600);

/// Copying of all members.
#[derive(Debug, Default)]
pub(super) struct Copying {
    /// Age of the oldest minutes that are fetched; `None` if nothing is copied.
    age: Option<Duration>,
    /// `None` until the copies are open.
    positions: Option<Positions>,
    /// Until then, what was received uses up the budget.
    spent: Moment,
}

/// Copying of the member on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has no minutes, or does not know the frames.
    #[default]
    Never,
    /// It is to be asked from then on.
    Due(Moment),
    /// It was asked then.
    Asked(Moment),
}

impl Domain {
    /// Copies the members' minutes up to this age from now on, if it is not `None`.
    pub fn set_copies(&mut self, age: Option<Duration>) {
        self.copying.age = age;
    }

    pub(super) fn has_copies(&self) -> bool {
        self.copying.age.is_some()
    }

    /// Returns whether the shell is to open the copies and to call [`Domain::set_held`].
    #[must_use]
    pub fn wants_held(&self) -> bool {
        self.copying.age.is_some() && self.copying.positions.is_none()
    }

    /// Sets how far the minutes of each host are stored.
    pub fn set_held(&mut self, held: Vec<Held>) {
        self.copying.positions = Some(Positions::new(held));
    }

    /// Handles that the shell had no room for minutes: the positions are set again.
    pub fn handle_not_copied(&mut self) {
        self.copying.positions = None;
    }

    /// Returns the start of the last minute of a host that is copied.
    #[must_use]
    pub fn copied_until(&self, host: &HostName) -> Option<Time> {
        Some(self.copying.positions.as_ref()?.of(host)?.latest)
    }

    /// Asks members for their minutes whose turn it is. Calling it some times a second is enough.
    pub fn fetch_minutes(&mut self, now: Now) {
        let (Some(age), Some(positions)) = (self.copying.age, &self.copying.positions) else { return };
        if self.copying.spent > now.moment {
            return;
        }
        let mut asked = 0;
        let mut due = Vec::new();
        for (link, connection) in &mut self.links {
            let Some(member) = &connection.member else { continue };
            match connection.turn {
                Turn::Asked(since) if now.moment.since(since) < ANSWER_WITHIN => asked += 1,
                Turn::Asked(_) => connection.turn = Turn::Due(now.moment),
                Turn::Due(from) if from <= now.moment => due.push((from, *link, member.host.clone())),
                Turn::Due(_) | Turn::Never => {}
            }
        }
        due.sort_unstable();
        let room = ASKED_MAX.saturating_sub(asked);
        let since = now.wall.minus(age);
        let fetches: Vec<(Link, Fetch)> = due
            .into_iter()
            .take(room)
            .map(|(_, link, host)| {
                let connected = self.may_have_missing(link, now).then(|| self.connected());
                let held = match &connected {
                    None => positions.of(&host).into_iter().collect(),
                    Some(connected) => {
                        let is_asked = |held: &Held| held.host == host || !connected.contains(&held.host);
                        positions.all().into_iter().filter(is_asked).collect()
                    }
                };
                let connected = AtEnd(connected.map(|connected| connected.into_iter().collect()));
                (link, Fetch { held, since, len_bytes: FETCH_LEN_BYTES, connected })
            })
            .collect();
        for (link, fetch) in fetches {
            self.queue_frame(link, FromRepresentative::Fetch(fetch));
            if let Some(connection) = self.links.get_mut(&link) {
                connection.turn = Turn::Asked(now.moment);
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

    /// Handles minutes of a member: those of its own host, and what it has copied of hosts that are down. Others are
    /// not stored.
    pub(super) fn handle_minutes(&mut self, link: Link, minutes: Minutes, now: Now) -> Result<(), String> {
        let Some(connection) = self.links.get_mut(&link) else { return Ok(()) };
        let Some(own) = connection.member.as_ref().map(|member| member.host.clone()) else { return Ok(()) };
        if !matches!(connection.turn, Turn::Asked(_)) {
            return Ok(());
        }
        let is_end = minutes.is_end || minutes.hosts.is_empty();
        connection.turn = Turn::Due(if is_end { now.moment.plus(FETCH_EVERY) } else { now.moment });
        let connected = self.may_have_missing(link, now).then(|| self.connected());
        for mut of_host in minutes.hosts {
            let Some(connection) = self.links.get_mut(&link) else { return Ok(()) };
            let is_own = of_host.host == own;
            let numbered = if is_own { &mut connection.numbered } else { &mut connection.numbered_copies };
            let metrics = numbered.learn(&mut of_host).map_err(|error| error.to_string())?;
            let is_down = connected.as_ref().is_some_and(|connected| !connected.contains(&of_host.host));
            if is_own {
                self.copy(of_host, metrics, now);
            } else if is_down && self.copy(of_host, metrics, now) {
                self.links.entry(link).and_modify(|connection| connection.had_missing = now.moment);
            }
        }
        Ok(())
    }

    /// Stores what follows of the minutes of a host; returns false if nothing does.
    fn copy(&mut self, mut minutes: HostMinutes, metrics: Arc<BTreeMap<u32, Arc<Metric>>>, now: Now) -> bool {
        let Some(positions) = &mut self.copying.positions else { return false };
        match positions.of(&minutes.host) {
            // Several members may have copies of a host.
            Some(held) => minutes.rows.retain(|row| row.number >= held.next || row.start > held.latest),
            None if positions.has_room() => {}
            None => return false,
        }
        if minutes.rows.is_empty() {
            return false;
        }
        positions.note(&minutes);
        let len: usize = minutes.rows.iter().map(|row| row.packed.0.len()).sum();
        let took = Duration::from_micros(len as u64 * 1_000_000 / BUDGET_BYTES);
        self.copying.spent = self.copying.spent.max(now.moment).plus(took);
        let allowed = now.wall.plus(AHEAD_MAX);
        let rows = minutes.rows.into_iter().filter(|row| row.start <= allowed).collect();
        self.closing.push_back(Output::Copy(Copied { host: minutes.host, metrics, rows }));
        true
    }

    /// Handles a fetch of a standby. Others are answered that there is nothing: one that has just become a standby,
    /// which is not known here yet, asks again soon.
    pub(super) fn handle_fetch(&mut self, link: Link, fetch: Fetch) {
        match self.copying.positions.is_some() && self.role_of(link) == Some(Role::Standby) {
            true => self.closing.push_back(Output::Fetch(link, fetch)),
            false => self.send_minutes(link, Minutes { hosts: Vec::new(), is_end: true }),
        }
    }

    /// Sends minutes to a standby, as requested by [`Output::Fetch`].
    pub fn send_minutes(&mut self, link: Link, minutes: Minutes) {
        let frame = FromRepresentative::Minutes(minutes);
        match report::encode(&frame, &mut Vec::new()) {
            Ok(()) => self.queue_frame(link, frame),
            Err(error) => tracing::warn!(%error, "minutes are not sent to a standby"),
        }
    }
}
