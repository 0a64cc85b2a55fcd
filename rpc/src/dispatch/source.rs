//! Source of a connection: the unit of limits per client.
//!
//! Pure. Rule: a network address is one source (IPv6: its /64, `wire::source`), of a local socket a user is.
//! Not here: the limits (`connections`, `stream::limits`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::query::Viewer;
use wire::source::source;

/// Other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client on the network or on loopback, which is not identified.
    Network(SocketAddr),
    /// A client of a local socket, identified by the kernel.
    Local {
        /// User id.
        uid: u32,
        /// Local user or role on whose behalf it asks.
        viewer: Viewer,
    },
}

/// Key of a source in the tables of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SourceKey {
    Address(IpAddr),
    User(u32),
}

impl Source {
    /// Its address; for a local socket that of loopback.
    pub(crate) fn address(self) -> SocketAddr {
        match self {
            Source::Network(address) => address,
            Source::Local { .. } => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        }
    }

    /// Key of the source.
    pub(crate) fn key(self) -> SourceKey {
        match self {
            Source::Network(address) => address.ip().into(),
            Source::Local { uid, .. } => SourceKey::User(uid),
        }
    }

    /// Local user or role on whose behalf it asks.
    pub(crate) fn viewer(self) -> Viewer {
        match self {
            Source::Network(_) => Viewer::Anonymous,
            Source::Local { viewer, .. } => viewer,
        }
    }
}

impl From<IpAddr> for SourceKey {
    fn from(address: IpAddr) -> SourceKey {
        SourceKey::Address(source(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_counts_apart_from_loopback_and_other_users() {
        let network = |text: &str| Source::Network(SocketAddr::new(text.parse().unwrap(), 1));
        let local = |uid| Source::Local { uid, viewer: Viewer::User(uid) };
        assert_eq!(network("::ffff:127.0.0.1").key(), network("127.0.0.1").key());
        assert_ne!(local(1000).key(), network("127.0.0.1").key());
        assert_ne!(local(1000).key(), local(1001).key());
        assert_eq!((network("127.0.0.1").viewer(), local(7).viewer()), (Viewer::Anonymous, Viewer::User(7)));
    }
}
