//! Refusals of tokens of the type replace: what was found, and what to do.
//!
//! Pure.

use super::shown_time::At;
use std::time::Duration;
use wire::id::{HostName, PeerKey};
use wire::time::Time;

/// Reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The token was revoked.
    #[error("token was revoked; type `visperf token create --replace HOST` on the issuer for a new one")]
    Revoked,
    /// The token was used as often as it may be.
    #[error(
        "token was used {uses} times, as often as it may be; type `visperf token create --replace HOST` on the issuer \
         for a new one"
    )]
    UsedUp {
        /// The number of uses.
        uses: u32,
    },
    /// The token is for other hosts.
    #[error(
        "token is not for host {host}, but for {hosts}; name the host by --host, or make a token for it with \
         `visperf token create --replace {host}`"
    )]
    Host {
        /// The host name in the request.
        host: HostName,
        /// The patterns of the token.
        hosts: String,
    },
    /// A host name that no token gives to another key.
    #[error(
        "host {host} is {whose} ({peer}), whose name no token gives to another key; give this host another name, or \
         see `visperf domain members` and `visperf domain revoke`"
    )]
    Name {
        host: HostName,
        /// Description of its holder.
        whose: &'static str,
        /// The key that holds it.
        peer: PeerKey,
    },
    /// The host name changes keys too often; two machines may have the same name.
    #[error(
        "host {host} was given to another key several times lately, at {} to {peer}, which is not the {joiner} that asks \
         now; if two machines have this name, give one of them another (--host NAME); otherwise try again in {} min",
        At(*issued), wait.as_secs() / 60 + 1
    )]
    Often {
        host: HostName,
        /// The key that holds it.
        peer: PeerKey,
        /// When it got the name.
        issued: Time,
        /// The key that requests the name.
        joiner: PeerKey,
        wait: Duration,
    },
}
