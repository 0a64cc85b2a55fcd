//! Why a daemon that was dialled by its key was not reached, where the attempt itself tells.
//!
//! Pure. Rule: silence tells nothing, and is no answer here. Not here: trying again (`redial`), what a person is told (the callers).

use super::event_loop::peer_key;
use libp2p::TransportError;
use libp2p::swarm::DialError;
use std::io;
use wire::id::PeerKey;

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undialled {
    /// A daemon of this key is there instead.
    Other(PeerKey),
    /// Nobody listens there: every attempt was refused.
    Closed,
    /// The name stands for no address.
    Nowhere,
}

/// What this error tells.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others tell nothing of whoever is there")]
pub(super) fn of(error: &DialError) -> Option<Undialled> {
    match error {
        DialError::WrongPeerId { obtained, .. } => peer_key(obtained).map(Undialled::Other),
        DialError::NoAddresses => Some(Undialled::Nowhere),
        DialError::Transport(all) if !all.is_empty() => {
            all.iter().all(|(_, error)| is_refused(error)).then_some(Undialled::Closed)
        }
        _ => None,
    }
}

/// The layers of the transport wrap what the system said, some without telling it as their source; all show it.
fn is_refused(error: &TransportError<io::Error>) -> bool {
    let TransportError::Other(error) = error else { return false };
    let shown = format!("{error:?} {error}");
    shown.contains("ConnectionRefused") || shown.contains("Connection refused")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::event_loop::peer_id;
    use libp2p::Multiaddr;

    #[test]
    fn what_the_attempt_tells_is_told_and_silence_is_not() {
        let at: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let failed = |errors: Vec<io::Error>| {
            let all = errors.into_iter().map(|error| (at.clone(), TransportError::Other(error)));
            of(&DialError::Transport(all.collect()))
        };
        let key = crate::identity::key::Key::from_seed([7; 32]).peer();
        let obtained = peer_id(key).unwrap();
        assert_eq!(
            of(&DialError::WrongPeerId { obtained, address: at.clone() }),
            Some(Undialled::Other(key))
        );
        assert_eq!(
            failed(vec![refused(), io::Error::other(io::Error::other(refused()))]),
            Some(Undialled::Closed)
        );
        assert_eq!(failed(vec![refused(), io::ErrorKind::TimedOut.into()]), None);
        assert_eq!(failed(Vec::new()), None);
        assert_eq!(of(&DialError::NoAddresses), Some(Undialled::Nowhere));
        assert_eq!(of(&DialError::Aborted), None);
    }
}
