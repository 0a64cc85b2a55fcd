//! Why a token of the type replace let a host not in: what was found, what to do.
//!
//! Pure.

use super::shown_time::At;
use std::time::Duration;
use wire::id::{HostName, PeerKey};
use wire::time::Time;

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// By its maker.
    #[error("token was revoked; type `visperf token create --replace HOST` on the issuer for a new one")]
    Revoked,
    /// As often as it may.
    #[error(
        "token was used {uses} times, as often as it may be; type `visperf token create --replace HOST` on the issuer \
         for a new one"
    )]
    UsedUp {
        /// How often.
        uses: u32,
    },
    /// Of another host.
    #[error(
        "token is not for host {host}, but for {hosts}; name the host by --host, or make a token for it with \
         `visperf token create --replace {host}`"
    )]
    Host {
        /// Whose name was given.
        host: HostName,
        /// What the token is for.
        hosts: String,
    },
    /// A name that no token gives away.
    #[error(
        "host {host} is {whose} ({peer}), whose name no token gives to another key; give this host another name, or \
         see `visperf domain members` and `visperf domain revoke`"
    )]
    Name {
        /// Which.
        host: HostName,
        /// Whose it is.
        whose: &'static str,
        /// The key that holds it.
        peer: PeerKey,
    },
    /// Two machines of one name, perhaps.
    #[error(
        "host {host} was given to another key several times lately, at {} to {peer}, which is not the {joiner} that asks \
         now; if two machines have this name, give one of them another (--host NAME); otherwise try again in {} min",
        At(*issued), wait.as_secs() / 60 + 1
    )]
    Often {
        /// Which.
        host: HostName,
        /// The key that holds it.
        peer: PeerKey,
        /// Since when.
        issued: Time,
        /// Who asks.
        joiner: PeerKey,
        /// How long to wait.
        wait: Duration,
    },
}
