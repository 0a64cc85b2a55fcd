//! Reason why a daemon that was dialled was not reached, where the attempt itself shows it.
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
    /// No one listens there: every attempt was refused.
    Closed,
    /// The name stands for no address.
    Nowhere,
    /// The daemon there has no place for another handshake.
    Full,
    /// The connection was closed before the handshake was done.
    Cut,
    /// What answers there speaks another protocol.
    Foreign,
}

/// What this error tells.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others tell nothing of whoever is there")]
pub(super) fn of(error: &DialError) -> Option<Undialled> {
    match error {
        DialError::WrongPeerId { obtained, .. } => peer_key(obtained).map(Undialled::Other),
        DialError::NoAddresses => Some(Undialled::Nowhere),
        DialError::Transport(all) if !all.is_empty() => {
            let each: Vec<_> = all.iter().map(|(_, error)| of_attempt(error)).collect();
            // One route to a daemon that is full says so for all; what else happened counts where it happened on each.
            let first = each.first().copied().flatten();
            match each.contains(&Some(Undialled::Full)) {
                true => Some(Undialled::Full),
                false => first.filter(|first| each.iter().all(|why| *why == Some(*first))),
            }
        }
        _ => None,
    }
}

/// How an attempt shows why it failed: the layers of the transport wrap what the system or the other end answered, some without
/// giving it as their source; all show it.
const SHOWN: [(&str, Undialled); 11] = [
    // `NegotiationError::Failed` of the last protocol that was proposed, without waiting for an answer: every daemon speaks one of them,
    // and one that is full refuses all.
    ("error: Failed", Undialled::Full),
    // The same while an answer was awaited: the connection ended.
    ("Select(Failed)", Undialled::Cut),
    ("InvalidMessage", Undialled::Foreign),
    ("InvalidProtocol", Undialled::Foreign),
    ("ConnectionRefused", Undialled::Closed),
    ("Connection refused", Undialled::Closed),
    ("UnexpectedEof", Undialled::Cut),
    ("ConnectionReset", Undialled::Cut),
    ("BrokenPipe", Undialled::Cut),
    ("WriteZero", Undialled::Cut),
    ("InvalidData", Undialled::Foreign),
];

fn of_attempt(error: &TransportError<io::Error>) -> Option<Undialled> {
    let TransportError::Other(error) = error else { return None };
    let shown = format!("{error:?} {error}");
    SHOWN.iter().find(|(text, _)| shown.contains(text)).map(|(_, why)| *why)
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
        let full = || io::Error::other("Apply(Io(Custom { kind: Other, error: Failed }))");
        assert_eq!(failed(vec![refused(), full()]), Some(Undialled::Full));
        let negotiated = |text: &str| failed(vec![io::Error::other(text)]);
        assert_eq!(negotiated("Select(Failed)"), Some(Undialled::Cut));
        assert_eq!(negotiated("Select(ProtocolError(InvalidMessage))"), Some(Undialled::Foreign));
        assert_eq!(failed(vec![io::ErrorKind::UnexpectedEof.into()]), Some(Undialled::Cut));
        assert_eq!(
            failed(vec![io::Error::other(io::Error::from(io::ErrorKind::InvalidData))]),
            Some(Undialled::Foreign)
        );
        assert_eq!(failed(Vec::new()), None);
        assert_eq!(of(&DialError::NoAddresses), Some(Undialled::Nowhere));
        assert_eq!(of(&DialError::Aborted), None);
    }
}
