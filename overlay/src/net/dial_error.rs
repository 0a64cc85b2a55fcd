//! Reason why a dial failed, where the error of the attempt shows it.
//!
//! Pure. Rule: a timeout shows nothing, and yields no reason. Not here: trying again (`redial`), messages for
//! people (the callers).

use super::conversion::peer_key;
use libp2p::TransportError;
use libp2p::swarm::DialError;
use std::io;
use wire::id::PeerKey;

/// Reason of a failed dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialErrorKind {
    /// A daemon with this other key is there.
    Other(PeerKey),
    /// Every attempt was refused: no program listens there.
    Closed,
    /// The name has no address.
    Nowhere,
    /// The daemon there has no room for another handshake.
    Full,
    /// The connection was closed before the handshake was done.
    Cut,
    /// The program there speaks another protocol.
    Foreign,
}

/// The reason that this error shows, if any.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others show nothing of the peer")]
pub(super) fn of(error: &DialError) -> Option<DialErrorKind> {
    match error {
        DialError::WrongPeerId { obtained, .. } => peer_key(obtained).map(DialErrorKind::Other),
        DialError::NoAddresses => Some(DialErrorKind::Nowhere),
        DialError::Transport(all) if !all.is_empty() => {
            let each: Vec<_> = all.iter().map(|(_, error)| of_attempt(error)).collect();
            // One address of a daemon that is full decides for all; any other reason counts only if all
            // addresses failed with it.
            let first = each.first().copied().flatten();
            match each.contains(&Some(DialErrorKind::Full)) {
                true => Some(DialErrorKind::Full),
                false => first.filter(|first| each.iter().all(|why| *why == Some(*first))),
            }
        }
        _ => None,
    }
}

/// Texts by which an error shows its reason: the layers of the transport wrap the error of the system or of
/// the other end, some without exposing it as their source; all include its text.
const SHOWN: [(&str, DialErrorKind); 11] = [
    // `NegotiationError::Failed` of the last protocol that was proposed, without waiting for an answer: every
    // daemon speaks one of them, and one that is full rejects all.
    ("error: Failed", DialErrorKind::Full),
    // The same while an answer was awaited: the connection ended.
    ("Select(Failed)", DialErrorKind::Cut),
    ("InvalidMessage", DialErrorKind::Foreign),
    ("InvalidProtocol", DialErrorKind::Foreign),
    ("ConnectionRefused", DialErrorKind::Closed),
    ("Connection refused", DialErrorKind::Closed),
    ("UnexpectedEof", DialErrorKind::Cut),
    ("ConnectionReset", DialErrorKind::Cut),
    ("BrokenPipe", DialErrorKind::Cut),
    ("WriteZero", DialErrorKind::Cut),
    ("InvalidData", DialErrorKind::Foreign),
];

fn of_attempt(error: &TransportError<io::Error>) -> Option<DialErrorKind> {
    let TransportError::Other(error) = error else { return None };
    let shown = format!("{error:?} {error}");
    SHOWN.iter().find(|(text, _)| shown.contains(text)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::conversion::peer_id;
    use libp2p::Multiaddr;

    #[test]
    fn the_error_of_an_attempt_is_reported_and_silence_is_not() {
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
            Some(DialErrorKind::Other(key))
        );
        assert_eq!(
            failed(vec![refused(), io::Error::other(io::Error::other(refused()))]),
            Some(DialErrorKind::Closed)
        );
        assert_eq!(failed(vec![refused(), io::ErrorKind::TimedOut.into()]), None);
        let full = || io::Error::other("Apply(Io(Custom { kind: Other, error: Failed }))");
        assert_eq!(failed(vec![refused(), full()]), Some(DialErrorKind::Full));
        let negotiated = |text: &str| failed(vec![io::Error::other(text)]);
        assert_eq!(negotiated("Select(Failed)"), Some(DialErrorKind::Cut));
        assert_eq!(negotiated("Select(ProtocolError(InvalidMessage))"), Some(DialErrorKind::Foreign));
        assert_eq!(failed(vec![io::ErrorKind::UnexpectedEof.into()]), Some(DialErrorKind::Cut));
        assert_eq!(
            failed(vec![io::Error::other(io::Error::from(io::ErrorKind::InvalidData))]),
            Some(DialErrorKind::Foreign)
        );
        assert_eq!(failed(Vec::new()), None);
        assert_eq!(of(&DialError::NoAddresses), Some(DialErrorKind::Nowhere));
        assert_eq!(of(&DialError::Aborted), None);
    }
}
