//! Owners of subscriptions.
//!
//! Pure. Rule: what belongs to one owner does not exist for another. Not here: who a caller is
//! (`rpc::dispatch::forward`).

use std::fmt;
use wire::query::{Asker, Principal, Viewer};

/// A part of the sensor that subscribes for itself. No client can alter, read or end such a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The flight recorder: a condition of one of its triggers.
    Recorder,
    Module,
}

impl Part {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Part::Recorder => "recorder",
            Part::Module => "module",
        }
    }

    /// What to change instead of the subscription.
    pub(super) const fn instead(self) -> &'static str {
        match self {
            Part::Recorder => "[[sensor.recorder.triggers]] of the configuration",
            Part::Module => "what the module wants (sensor.modules)",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A client of this daemon: a user on its local socket, otherwise anonymous.
    Client(Viewer),
    /// The daemon that forwarded the request, and the account it asks for.
    Peer(Asker),
    Own(Part),
}

impl Owner {
    /// The owner of a subscription that `principal` makes.
    #[must_use]
    pub fn of(principal: Principal) -> Owner {
        principal.asker.map_or(Owner::Client(principal.viewer), Owner::Peer)
    }
}

impl Owner {
    /// Whether `principal` may use what belongs to this owner: the owner itself may, and a client of this
    /// daemon on behalf of root or of the user that runs it.
    #[must_use]
    pub fn admits(self, principal: Principal) -> bool {
        match self {
            Owner::Own(_) => false,
            Owner::Client(_) | Owner::Peer(_) => {
                (principal.asker.is_none() && principal.viewer.is_trusted()) || self == Owner::of(principal)
            }
        }
    }

    /// Whether the owner is exempt from the limits on what one owner may have.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        matches!(self, Owner::Own(_) | Owner::Client(Viewer::Trusted | Viewer::Owner(_)))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Client(Viewer::Anonymous) => f.write_str("clients on TCP"),
            Owner::Client(Viewer::User(uid) | Viewer::Owner(uid)) => write!(f, "user {uid}"),
            Owner::Client(Viewer::Trusted) => f.write_str("root"),
            Owner::Peer(Asker { peer, account: None }) => write!(f, "daemon {peer}"),
            Owner::Peer(Asker { peer, account: Some(_) }) => write!(f, "a client of daemon {peer}"),
            Owner::Own(part) => write!(f, "the {}", part.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::PeerKey;
    use wire::query::Account;

    #[test]
    fn the_owner_and_the_trusted_use_a_subscription() {
        let client = |viewer| Principal { viewer, asker: None };
        let peer = |number: u8, account| {
            let asker = Some(Asker { peer: PeerKey([number; 32]), account });
            Principal { viewer: Viewer::Trusted, asker }
        };
        let all = [
            client(Viewer::Anonymous),
            client(Viewer::User(1000)),
            client(Viewer::User(1001)),
            peer(1, None),
            peer(1, Some(Account([1; 16]))),
            peer(2, None),
        ];
        for owner in all {
            for principal in all {
                assert_eq!(Owner::of(owner).admits(principal), owner == principal, "{owner:?} {principal:?}");
            }
            assert!(Owner::of(owner).admits(Principal::OWN), "{owner:?}");
            assert!(Owner::of(owner).admits(client(Viewer::Owner(999))), "{owner:?}");
        }
        assert!(!Owner::Own(Part::Recorder).admits(Principal::OWN), "it is changed by the configuration");
    }
}
