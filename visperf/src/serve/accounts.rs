//! Account of a forwarded call: other daemons use it to separate what belongs to each account, such as
//! subscriptions.
//!
//! Pure. Rule: accounts of another daemon's proxy differ from the own ones, whatever both are named.
//! Not here: the name of an account (`proxy::authorizer::permissions`), what belongs to it (`sensor::channel::hub`).

use proxy::authorizer::permissions;
use rpc::dispatch::forward::Caller;
use wire::query::{Account, Asker, Viewer};

/// The account of a forwarded call.
pub(crate) fn handed_on(caller: &Caller) -> Option<Account> {
    match caller.asker() {
        None => caller.account.or_else(|| of_user(caller.viewer)),
        Some(Asker { peer, account }) => {
            let of_peer = account.as_ref().map_or(&[][..], |Account(bytes)| bytes);
            Some(permissions::account(&peer.0, of_peer))
        }
    }
}

/// The account of a client that did not log in at a proxy: each local user has another one. A trusted client
/// has none, like the daemon itself.
pub(crate) fn of_user(viewer: Viewer) -> Option<Account> {
    match viewer {
        Viewer::Anonymous => Some(permissions::account(b"anonymous", b"")),
        Viewer::User(uid) | Viewer::Owner(uid) => Some(permissions::account(b"user", &uid.to_le_bytes())),
        Viewer::Trusted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wire::id::PeerKey;

    #[test]
    fn accounts_of_one_name_at_two_doors_are_two() {
        let own = Caller { account: Some(Account([7; 16])), ..Caller::client(Duration::ZERO) };
        assert_eq!(handed_on(&own), own.account);
        let local = |viewer| Caller { viewer, ..Caller::client(Duration::ZERO) };
        assert_eq!(handed_on(&local(Viewer::Trusted)), None);
        let of = |peer: u8| Caller { peer: Some(PeerKey([peer; 32])), ..own };
        let of_peer_itself = Caller { account: None, ..of(1) };
        let users = [Viewer::Anonymous, Viewer::User(0), Viewer::User(1)].map(local);
        let handed: Vec<_> =
            [own, of(1), of(2), of_peer_itself].iter().chain(&users).map(handed_on).collect();
        for (nth, one) in handed.iter().enumerate() {
            assert!(one.is_some() && !handed[nth + 1..].contains(one), "{handed:?}");
        }
    }
}
