//! Table of the domain's hosts: state, role, and what they reported last.
//!
//! Pure. Not here: which member may report for a host ([`super::claims`]).

use super::receiver::ColumnMetrics;
use super::recent::Recent;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::sweep::{self, Decoder};
use wire::report::{Hello, HostState, Sweep};
use wire::time::{Moment, Time};

/// A host is silent after this time without a report: three states are missing.
pub const SILENT_AFTER: Duration = Duration::from_secs(15);
/// How long hosts that left or are silent are shown.
pub const SHOWN_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most hosts of a domain.
pub const HOSTS_MAX: usize = 4096;
/// Most bytes of samples of all hosts together.
pub const SAMPLES_LEN_BYTES: usize = 96 << 20;
/// Most bytes of samples of one host, if there is room.
const SAMPLES_OF_HOST_LEN_BYTES: usize = 512 << 10;

/// Whether a host is alive, silent or has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// It should report and does not.
    Silent,
    /// It reported that it leaves.
    Left,
}

impl Liveness {
    /// Returns its name in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Liveness::Alive => "alive",
            Liveness::Silent => "silent",
            Liveness::Left => "left",
        }
    }
}

/// What a host's sensor does for the domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Representative,
    /// It would succeed the representative.
    Standby,
    /// It only reports.
    #[default]
    Member,
}

impl Role {
    /// Returns its name in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Representative => "representative",
            Role::Standby => "standby",
            Role::Member => "member",
        }
    }
}

/// What the election knows of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElectionEntry {
    pub role: Role,
    /// How it went, and when it was last seen; `None` if it is there.
    pub gone: Option<(Liveness, Time)>,
}

/// A host that the election knows and that has not reported to this representative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreported {
    pub host: HostName,
    /// What it does for the domain, if it is there.
    pub role: Role,
    /// How it went. A host that the election receives messages of is about to report, and so alive, until it
    /// has not reported for [`SILENT_AFTER`].
    pub liveness: Liveness,
    /// When it was last seen, or first expected, by this host's clock.
    pub heard: Time,
}

/// One host.
#[derive(Debug)]
pub struct Host {
    pub sensor: SensorKey,
    /// Key of its daemon.
    pub peer: PeerKey,
    pub program: CompactString,
    /// When its sensor started, by the host's clock.
    pub started: Time,
    pub role: Role,
    /// Whether it is an archive.
    pub is_archive: bool,
    /// State that it reported last.
    pub state: HostState,
    /// By how much its clock was ahead of the representative's at its last hello, in microseconds.
    pub clock_ahead_micros: i64,
    /// When its last frame was received.
    pub heard: Moment,
    /// Number of samples received.
    pub samples: u64,
    /// Number of samples that its sensor took and did not send, since the sensor started.
    pub thinned: u64,
    /// When its newest samples were taken, by its clock.
    pub swept: Time,
    /// Number of sweeps that could not be decoded.
    pub broken_sweeps: u64,
    is_connected: bool,
    has_left: bool,
    latest: Option<(ColumnMetrics, Decoder)>,
    recent: Recent,
}

impl Host {
    /// Returns whether it is alive, silent or has left.
    #[must_use]
    pub fn liveness(&self, now: Moment) -> Liveness {
        if self.has_left {
            Liveness::Left
        } else if self.is_connected && now.since(self.heard) < SILENT_AFTER {
            Liveness::Alive
        } else {
            Liveness::Silent
        }
    }

    /// Returns its newest samples: the metrics and, in the same order, their values.
    #[must_use]
    pub fn latest(&self) -> Option<(&ColumnMetrics, &Decoder)> {
        self.latest.as_ref().map(|(shape, decoder)| (shape, decoder))
    }

    /// Returns its samples of the last minutes.
    #[must_use]
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Adds a sweep.
    ///
    /// # Errors
    /// If the sweep cannot be decoded; no values are known then until a whole one is received.
    pub fn sweep(
        &mut self,
        shape: &ColumnMetrics,
        sweep: &Sweep,
        len_max_bytes: usize,
    ) -> Result<(), sweep::Error> {
        self.thinned = sweep.thinned;
        let is_same = self.latest.as_ref().is_some_and(|(known, _)| ColumnMetrics::ptr_eq(known, shape));
        if !is_same {
            self.latest = Some((ColumnMetrics::clone(shape), Decoder::default()));
        }
        let (shape, decoder) = self.latest.as_mut().expect("set above");
        match decoder.decode(&sweep.packed.0, shape.len()) {
            Ok((time, form)) => {
                self.samples += shape.len() as u64;
                self.swept = time;
                self.recent.push(shape, time, form, &sweep.packed.0, len_max_bytes);
                Ok(())
            }
            Err(error) => {
                self.broken_sweeps += 1;
                self.latest = None;
                Err(error)
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct Hosts {
    table: BTreeMap<HostName, Host>,
    unreported: Vec<Unreported>,
    /// Of the unreported hosts, those that the election receives messages of, and since when.
    expected: BTreeMap<HostName, (Moment, Time)>,
}

impl Hosts {
    /// Adds or updates a host after its sensor's hello. Returns `false` if there is no room for one more.
    pub fn arrive(&mut self, hello: &Hello, peer: PeerKey, wall: Time, now: Moment) -> bool {
        if !self.table.contains_key(&hello.host) && self.table.len() >= HOSTS_MAX {
            let gone = |host: &Host| host.liveness(now) != Liveness::Alive;
            let oldest = self.table.iter().filter(|(_, host)| gone(host)).min_by_key(|(_, host)| host.heard);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { return false };
            self.table.remove(&oldest);
        }
        let former = self.table.remove(&hello.host);
        let (recent, latest, swept, samples, broken_sweeps, state, role) = match former {
            Some(former) if former.sensor == hello.sensor => (
                former.recent,
                former.latest,
                former.swept,
                former.samples,
                former.broken_sweeps,
                former.state,
                former.role,
            ),
            Some(_) | None => {
                (Recent::default(), None, Time::default(), 0, 0, HostState::default(), Role::default())
            }
        };
        let host = Host {
            sensor: hello.sensor,
            peer,
            program: hello.program.clone(),
            started: hello.started,
            role,
            is_archive: hello.stores.0.is_some_and(|stores| stores.archive.0 == Some(true)),
            state,
            clock_ahead_micros: hello.clock.micros().saturating_sub(wall.micros()),
            heard: now,
            samples,
            thinned: 0,
            swept,
            broken_sweeps,
            is_connected: true,
            has_left: false,
            latest,
            recent,
        };
        self.unreported.retain(|gone| gone.host != hello.host);
        self.table.insert(hello.host.clone(), host);
        true
    }

    /// Records that a host's connection ended, with or without a leave message.
    pub fn depart(&mut self, name: &HostName, has_left: bool) {
        if let Some(host) = self.table.get_mut(name) {
            host.is_connected = false;
            host.has_left |= has_left;
        }
    }

    /// Updates roles and unreported hosts from what the election knows.
    pub fn apply_election(&mut self, election: &BTreeMap<HostName, ElectionEntry>, wall: Time, now: Moment) {
        self.unreported.clear();
        let before = std::mem::take(&mut self.expected);
        for (name, entry) in election {
            match (self.table.get_mut(name), entry.gone) {
                (Some(host), gone) => {
                    host.role = entry.role;
                    // It may have sent its leave message to the election alone, before its last frames here
                    // were read.
                    host.has_left |= !host.is_connected && matches!(gone, Some((Liveness::Left, _)));
                }
                (None, Some((liveness, heard))) => {
                    let role = Role::Member;
                    self.unreported.push(Unreported { host: name.clone(), role, liveness, heard });
                }
                (None, None) => {
                    let since = before.get(name).copied().unwrap_or((now, wall));
                    let is_late = now.since(since.0) >= SILENT_AFTER;
                    let liveness = if is_late { Liveness::Silent } else { Liveness::Alive };
                    let (host, role) = (name.clone(), entry.role);
                    self.unreported.push(Unreported { host, role, liveness, heard: since.1 });
                    self.expected.insert(name.clone(), since);
                }
            }
        }
    }

    /// Returns the hosts that the election knows and that never reported here, sorted by name.
    #[must_use]
    pub fn unreported(&self) -> &[Unreported] {
        &self.unreported
    }

    /// Iterates over the hosts that are connected, sorted by name.
    pub fn connected(&self) -> impl Iterator<Item = &HostName> {
        self.table.iter().filter(|(_, host)| host.is_connected).map(|(name, _)| name)
    }

    pub fn get_mut(&mut self, name: &HostName) -> Option<&mut Host> {
        self.table.get_mut(name)
    }

    #[must_use]
    pub fn get(&self, name: &HostName) -> Option<&Host> {
        self.table.get(name)
    }

    /// Iterates over all hosts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&HostName, &Host)> {
        self.table.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the bytes of samples that each host may have.
    #[must_use]
    pub fn share_len_bytes(&self) -> usize {
        (SAMPLES_LEN_BYTES / self.table.len().max(1)).min(SAMPLES_OF_HOST_LEN_BYTES)
    }

    /// Forgets hosts that have been gone for a long time. The others shrink to their share, including those
    /// that are silent: their share became smaller when others came.
    pub fn forget(&mut self, now: Moment) {
        self.table
            .retain(|_, host| host.liveness(now) == Liveness::Alive || now.since(host.heard) < SHOWN_FOR);
        let share = self.share_len_bytes();
        self.table.values_mut().for_each(|host| host.recent.shrink_to(share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wire::at_end::AtEnd;
    use wire::report::sweep::Encoder;
    use wire::report::{Packed, VERSION};
    use wire::sample::{Metric, Number, Semantics};

    const COLUMNS: u64 = 500;

    fn hello(nth: usize) -> Hello {
        Hello {
            version: VERSION,
            program: "test".into(),
            sensor: SensorKey(nth as u64),
            host: HostName::try_from(format!("h{nth}").as_str()).expect("a name"),
            hosts: Vec::new(),
            boot: "boot".into(),
            started: Time::default(),
            clock: Time::default(),
            oldest: 0,
            next: 0,
            acknowledged: None,
            marks: Vec::new(),
            stores: AtEnd(None),
        }
    }

    /// Adds sweeps that compress badly, until the host has as many bytes of them as it may.
    fn fill(host: &mut Host, share: usize) {
        let metric = |at: u64| Metric {
            name: format!("m{at}").into(),
            labels: Vec::new(),
            unit: "".into(),
            semantics: Semantics::Gauge,
        };
        let shape: ColumnMetrics = (0..COLUMNS).map(|at| Arc::new(metric(at))).collect();
        let mut encoder = Encoder::default();
        for second in 0..400_u64 {
            let noise =
                |at: u64| Number::Whole((second * COLUMNS + at).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16);
            let values: Vec<_> = (0..COLUMNS).map(noise).collect();
            let mut packed = Vec::new();
            encoder.encode(Time::from_micros(second as i64 * 1_000_000), &values, &mut packed);
            host.sweep(&shape, &Sweep { thinned: 0, packed: Packed(packed) }, share).expect("encoded");
        }
    }

    #[test]
    fn a_host_that_is_gone_shrinks_to_its_share_as_others_come() {
        let mut hosts = Hosts::default();
        let now = Moment::default();
        let (first, share) = (hello(0), hosts.share_len_bytes());
        assert!(hosts.arrive(&first, PeerKey([0; 32]), Time::default(), now));
        fill(hosts.get_mut(&first.host).expect("it came"), share);
        hosts.depart(&first.host, false);
        let recent = |hosts: &Hosts| hosts.get(&first.host).expect("shown for days").recent().len_bytes();
        assert!(recent(&hosts) > share / 2, "{}", recent(&hosts));
        for nth in 1..HOSTS_MAX {
            assert!(hosts.arrive(&hello(nth), PeerKey([1; 32]), Time::default(), now));
        }
        hosts.forget(now);
        assert!(recent(&hosts) <= SAMPLES_LEN_BYTES / HOSTS_MAX, "{}", recent(&hosts));
    }
}
