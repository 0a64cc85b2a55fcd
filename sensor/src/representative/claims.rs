//! Claims of hosts: which daemon may report for which host.
//!
//! Pure. A member reports for its own host: its samples and state carry no host name at all, so they cannot
//! be of another host. A host belongs to the daemon key that claimed it first. It stays with that key until
//! the daemon has been silent for [`HELD_FOR`], or until another key claims it with a certificate that the
//! issuer signed later: a name belongs to one key at a time, so the issuer has given it to the later key
//! since.
//! An event names the host whose log it is from. That is the member's own host, or a host that the member's
//! tail configuration names and that no other sensor of the domain has as its own, unless the operator of the
//! representative lists that host as shared. A daemon that claims a host ends the streams of its previous
//! holder, and the grants of others for it. Events of any other host are refused and counted, and the member
//! is notified in the answer to its hello. So a compromised member can lie about its own host and about hosts
//! without a sensor, and about no other.
//! The same holds for sensor keys: a key belongs to its daemon, and can pass to another daemon only after the
//! silence.

use compact_str::CompactString;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey};
use wire::time::Moment;

/// How long a silent daemon holds its host: longer than a reboot, shorter than a reinstallation.
pub const HELD_FOR: Duration = Duration::from_secs(600);

/// Most hosts held at once.
pub const HOLDERS_MAX: usize = 8192;

/// Reason why a claim is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another daemon holds the host.
    #[error(
        "host {host} is that of daemon {holder}, heard {silent_secs} s ago; give this sensor another host name, or wait 10 minutes after stopping the other"
    )]
    Held {
        host: HostName,
        holder: PeerKey,
        /// Time since the holder was last seen, in seconds.
        silent_secs: u64,
    },
    /// The table of holders is full.
    #[error("{HOLDERS_MAX} hosts are held; no more are taken")]
    Full,
}

/// The daemon that holds a host.
#[derive(Clone, Copy, Debug)]
struct Holder {
    peer: PeerKey,
    /// Serial number of its certificate.
    serial: Serial,
    last_seen: Moment,
}

impl Holder {
    fn is_silent(&self, now: Moment) -> bool {
        now.since(self.last_seen) >= HELD_FOR
    }
}

/// Holders by host.
#[derive(Debug, Default)]
pub struct Claims {
    holders: BTreeMap<HostName, Holder>,
    /// Hosts whose logs any member may read.
    shared: BTreeSet<HostName>,
}

impl Claims {
    /// Creates an empty table; the operator's configuration lists the `shared` hosts.
    #[must_use]
    pub fn new(shared: BTreeSet<HostName>) -> Claims {
        Claims { holders: BTreeMap::new(), shared }
    }

    /// Claims `host` for a daemon whose certificate for it has this serial number.
    ///
    /// # Errors
    /// If another daemon holds it; nothing changes then.
    pub fn claim(
        &mut self,
        host: &HostName,
        (peer, serial): (PeerKey, Serial),
        now: Moment,
    ) -> Result<(), Error> {
        if let Some(holder) = self.holders.get(host) {
            if holder.peer != peer && !holder.is_silent(now) && serial <= holder.serial {
                let silent_secs = now.since(holder.last_seen).as_secs();
                return Err(Error::Held { host: host.clone(), holder: holder.peer, silent_secs });
            }
        } else if self.holders.len() >= HOLDERS_MAX {
            self.holders.retain(|_, holder| !holder.is_silent(now));
            if self.holders.len() >= HOLDERS_MAX {
                return Err(Error::Full);
            }
        }
        self.holders.insert(host.clone(), Holder { peer, serial, last_seen: now });
        Ok(())
    }

    /// Renews the claim of a daemon that sent a frame for this host, if it is the holder.
    pub fn renew(&mut self, host: &HostName, peer: PeerKey, now: Moment) {
        if let Some(holder) = self.holders.get_mut(host).filter(|holder| holder.peer == peer) {
            holder.last_seen = now;
        }
    }

    /// Releases the host of a daemon that left for good.
    pub fn release(&mut self, host: &HostName, peer: PeerKey) {
        if self.holders.get(host).is_some_and(|holder| holder.peer == peer) {
            self.holders.remove(host);
        }
    }

    /// Returns whether a daemon may report for a host that its hello named.
    #[must_use]
    pub fn may_speak(&self, peer: PeerKey, host: &HostName, now: Moment) -> bool {
        let is_free = |holder: &Holder| holder.peer == peer || holder.is_silent(now);
        self.shared.contains(host) || self.holders.get(host).is_none_or(is_free)
    }

    /// Returns whether any member may report for this host.
    #[must_use]
    pub fn is_shared(&self, host: &HostName) -> bool {
        self.shared.contains(host)
    }
}

/// Returns the hosts that a member may report events of, and those that it named and may not.
#[must_use]
pub fn granted(
    claims: &Claims,
    peer: PeerKey,
    own: &HostName,
    named: &[HostName],
    now: Moment,
) -> (BTreeSet<CompactString>, Vec<HostName>) {
    let (granted, refused): (Vec<_>, Vec<_>) =
        named.iter().filter(|host| *host != own).partition(|host| claims.may_speak(peer, host, now));
    let granted = granted.into_iter().chain([own]).map(|host| host.as_str().into());
    (granted.collect(), refused.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        HostName::try_from(name).expect("a name")
    }

    const FIRST: Serial = Serial(1);

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn a_host_stays_with_its_daemon_until_it_is_silent() {
        let (one, other) = (PeerKey([1; 32]), PeerKey([2; 32]));
        let mut claims = Claims::default();
        claims.claim(&host("a"), (one, FIRST), at(0)).expect("free");
        assert!(matches!(
            claims.claim(&host("a"), (other, FIRST), at(599)),
            Err(Error::Held { silent_secs: 599, .. })
        ));
        claims.renew(&host("a"), one, at(500));
        claims.renew(&host("a"), other, at(900));
        assert!(claims.claim(&host("a"), (other, FIRST), at(1000)).is_err());
        claims.claim(&host("a"), (other, FIRST), at(1100)).expect("silent for long");
        assert!(claims.claim(&host("a"), (one, FIRST), at(1100)).is_err());
        claims.release(&host("a"), other);
        claims.claim(&host("a"), (one, FIRST), at(1101)).expect("released");
    }

    #[test]
    fn a_host_is_at_once_that_of_the_key_that_the_issuer_gave_its_name_later() {
        let (lost, new) = (PeerKey([1; 32]), PeerKey([2; 32]));
        let mut claims = Claims::default();
        claims.claim(&host("a"), (lost, Serial(7)), at(0)).expect("free");
        assert!(claims.claim(&host("a"), (new, Serial(6)), at(1)).is_err(), "an earlier certificate");
        claims.claim(&host("a"), (new, Serial(8)), at(1)).expect("given to it since");
        assert!(claims.claim(&host("a"), (lost, Serial(7)), at(2)).is_err(), "not any more");
        assert!(!claims.may_speak(lost, &host("a"), at(2)) && claims.may_speak(new, &host("a"), at(2)));
    }

    #[test]
    fn a_member_speaks_for_hosts_without_a_sensor_and_for_shared_ones() {
        let (one, other) = (PeerKey([1; 32]), PeerKey([2; 32]));
        let mut claims = Claims::new(BTreeSet::from([host("nfs")]));
        claims.claim(&host("b"), (other, FIRST), at(0)).expect("free");
        claims.claim(&host("nfs"), (other, FIRST), at(0)).expect("free");
        let named = [host("a"), host("b"), host("c"), host("nfs")];
        let (granted, refused) = super::granted(&claims, one, &host("a"), &named, at(599));
        assert_eq!(granted.iter().map(|host| host.as_str()).collect::<Vec<_>>(), ["a", "c", "nfs"]);
        assert_eq!(refused, [host("b")]);
        let (_, refused) = super::granted(&claims, one, &host("a"), &named, at(600));
        assert_eq!(refused, [], "its sensor is silent for long");
    }
}
