//! For whom of those whom a daemon lets in a call is handed on, so that others keep apart what belongs to each: subscriptions.
//!
//! Pure. Rule: those of another daemon's door are others than those of the own one, whatever both say of them.
//! Not here: how an account is told (`proxy::access`), what belongs to it (`sensor::channel::hub`).

use proxy::access;
use rpc::elsewhere::Caller;
use wire::query::{Account, Asker};

/// For whom a call is handed on.
pub(crate) fn handed_on(caller: &Caller) -> Option<Account> {
    match caller.asker() {
        None => caller.account,
        Some(Asker { peer, account }) => {
            let of_peer = account.as_ref().map_or(&[][..], |Account(bytes)| bytes);
            Some(access::account(&peer.0, of_peer))
        }
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
        assert_eq!(handed_on(&Caller::client(Duration::ZERO)), None);
        let of = |peer: u8| Caller { peer: Some(PeerKey([peer; 32])), ..own };
        let of_peer_itself = Caller { account: None, ..of(1) };
        let told = [own, of(1), of(2), of_peer_itself].map(|caller| handed_on(&caller));
        for (nth, one) in told.iter().enumerate() {
            assert!(one.is_some() && !told[nth + 1..].contains(one), "{told:?}");
        }
    }
}
