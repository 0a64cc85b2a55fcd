//! Message exchange of hole punching: two daemons agree over a circuit to dial each other at the same moment,
//! and each asks the proxy for addresses.
//!
//! ```text
//! initiator                     the proxy, asked by each       responder
//!    ├─ Where ────────────────────▶│
//!    │◀──────────────────── Here ──┤   the address at which it sees the asker
//!    ├─ Connect (own place) ─────────────────────────────────────▶│
//!    │                             │◀──────── IsFrom, Where ──────┤
//!    │                             ├──────────── Yes, Here ──────▶│
//!    │◀───────────────────────────────────── Connect (own place) ─┤
//!    ├─ IsFrom ───────────────────▶│
//!    │◀───────────────────── Yes ──┤
//!    ├─ Echo ─────────────────────────────────────────────────────▶│
//!    │◀───────────────────────────────────────────────────── Echo ─┤  the round-trip time
//!    ├─ Sync ─────────────────────────────────────────────────────▶│  dials
//!    │ dials after half of it                                     │
//! ```
//! The exchange is that of DCUtR (libp2p specs, `relay/DCUtR.md`); here the proxy also confirms the
//! addresses.
//! Rule: a daemon dials one host, at two ports at most, and only if the proxy confirms that the peer is
//! connected from there: a peer cannot name an arbitrary address.
//! Not here: which peers may take part, and the dialling (`mod`); which networks are not dialled (`realm`).

use super::observed_addresses::ObservedAddresses;
use crate::clock;
use crate::net::frames;
use crate::net::protocol::Protocol;
use crate::net::streams::OpenError;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::id::PeerKey;

/// Longest message, in bytes: a key and an address.
const MESSAGE_LEN_MAX_BYTES: usize = Protocol::Punch.question_len_max_bytes();

/// Most questions that a proxy answers on one stream.
const QUESTIONS_MAX: usize = 2;

/// All messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    Where,
    Here(Option<SocketAddr>),
    IsFrom { peer: PeerKey, ip: IpAddr },
    Yes(bool),
    Connect(Place),
    Echo,
    Sync,
}

/// Addresses at which a daemon may be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// As its proxy sees it: the port is the one of the translator, if the translator uses the same for every
    /// destination.
    seen: SocketAddr,
    /// The port that the daemon listens at and dials from. Some translators preserve it, and the connection
    /// to the proxy may have another source port.
    port: u16,
}

impl Place {
    /// The addresses to dial, without those of the dialler, which is at `own`.
    fn addresses(self, own: Place) -> Vec<SocketAddr> {
        let both = |place: Place| [place.seen, SocketAddr::new(place.seen.ip(), place.port)];
        let mut all = both(self).to_vec();
        all.dedup();
        all.retain(|at| !both(own).contains(at));
        all
    }
}

/// Reason why the exchange failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Frames(#[from] frames::Error),
    #[error("it was not agreed in time")]
    Slow,
    #[error("the other end says no more")]
    Ended,
    #[error("something else was said than is due here")]
    OutOfTurn,
    #[error("the proxy does not see this daemon come in by plain TCP")]
    Unseen,
    #[error("the peer names {0}, where the proxy does not see it, or this daemon's own place")]
    NotThere(IpAddr),
}

/// Bidirectional byte stream.
pub(super) trait Ends: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Ends for S {}

/// Run the initiator's part; `port` is the one that this daemon listens at. Returns where to dial the peer,
/// and the delay before it.
pub(super) async fn begin(
    peer: PeerKey,
    with: &mut impl Ends,
    proxy: &mut impl Ends,
    port: u16,
) -> Result<(Vec<SocketAddr>, Duration), Error> {
    let own = own(proxy, port).await?;
    say(with, Message::Connect(own)).await?;
    let Message::Connect(there) = hear(with).await? else { return Err(Error::OutOfTurn) };
    let at = check(peer, there, own, proxy).await?;
    let asked = clock::now();
    say(with, Message::Echo).await?;
    expect(with, Message::Echo).await?;
    let round_trip = clock::now().since(asked);
    say(with, Message::Sync).await?;
    Ok((at, round_trip / 2))
}

/// Run the responder's part; returns where to dial the peer, at once.
pub(super) async fn answer(
    peer: PeerKey,
    with: &mut impl Ends,
    proxy: &mut impl Ends,
    port: u16,
) -> Result<Vec<SocketAddr>, Error> {
    let Message::Connect(there) = hear(with).await? else { return Err(Error::OutOfTurn) };
    let own = own(proxy, port).await?;
    let at = check(peer, there, own, proxy).await?;
    say(with, Message::Connect(own)).await?;
    expect(with, Message::Echo).await?;
    say(with, Message::Echo).await?;
    expect(with, Message::Sync).await?;
    Ok(at)
}

/// Answer `asker`, which has a circuit or a registration at this proxy: from which addresses it and others
/// are connected.
pub(super) async fn attest(
    asker: PeerKey,
    with: &mut impl Ends,
    seen: &ObservedAddresses,
) -> Result<(), Error> {
    for _ in 0..QUESTIONS_MAX {
        let answer = match hear(with).await {
            Ok(Message::Where) => Message::Here(seen.at(asker)),
            Ok(Message::IsFrom { peer, ip }) => Message::Yes(seen.is_from(peer, ip)),
            Ok(Message::Here(_) | Message::Yes(_) | Message::Connect(_) | Message::Echo | Message::Sync) => {
                return Err(Error::OutOfTurn);
            }
            Err(Error::Ended) => return Ok(()),
            Err(error) => return Err(error),
        };
        say(with, answer).await?;
    }
    Ok(())
}

async fn own(proxy: &mut impl Ends, port: u16) -> Result<Place, Error> {
    say(proxy, Message::Where).await?;
    match hear(proxy).await? {
        Message::Here(Some(seen)) => Ok(Place { seen, port }),
        Message::Here(None) => Err(Error::Unseen),
        Message::Where
        | Message::IsFrom { .. }
        | Message::Yes(_)
        | Message::Connect(_)
        | Message::Echo
        | Message::Sync => Err(Error::OutOfTurn),
    }
}

/// The addresses at which to dial `peer`, if the proxy confirms its host.
async fn check(
    peer: PeerKey,
    there: Place,
    own: Place,
    proxy: &mut impl Ends,
) -> Result<Vec<SocketAddr>, Error> {
    let (ip, at) = (there.seen.ip(), there.addresses(own));
    say(proxy, Message::IsFrom { peer, ip }).await?;
    match hear(proxy).await? {
        Message::Yes(true) if !at.is_empty() => Ok(at),
        Message::Yes(_) => Err(Error::NotThere(ip)),
        Message::Where
        | Message::IsFrom { .. }
        | Message::Here(_)
        | Message::Connect(_)
        | Message::Echo
        | Message::Sync => Err(Error::OutOfTurn),
    }
}

async fn expect(with: &mut impl Ends, due: Message) -> Result<(), Error> {
    if hear(with).await? == due { Ok(()) } else { Err(Error::OutOfTurn) }
}

async fn say(to: &mut impl Ends, message: Message) -> Result<(), Error> {
    Ok(frames::write(to, &message, MESSAGE_LEN_MAX_BYTES).await?)
}

async fn hear(from: &mut impl Ends) -> Result<Message, Error> {
    frames::read_exactly_one(from, MESSAGE_LEN_MAX_BYTES).await?.ok_or(Error::Ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::swarm::ConnectionId;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

    const ONE: PeerKey = PeerKey([1; 32]);
    const OTHER: PeerKey = PeerKey([2; 32]);

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// A proxy that sees `ONE` and `OTHER` at these addresses; returns the stream of each to it.
    fn proxy(of_one: &str, of_other: &str) -> [DuplexStream; 2] {
        let seen = std::sync::Arc::new(ObservedAddresses::default());
        seen.handle_established(ConnectionId::new_unchecked(1), ONE, at(of_one));
        seen.handle_established(ConnectionId::new_unchecked(2), OTHER, at(of_other));
        [ONE, OTHER].map(|asker| {
            let ((near, mut far), seen) = (duplex(256), std::sync::Arc::clone(&seen));
            tokio::spawn(async move { attest(asker, &mut far, &seen).await });
            near
        })
    }

    fn place(seen: &str, port: u16) -> Place {
        Place { seen: at(seen), port }
    }

    #[tokio::test]
    async fn both_learn_where_the_other_is_as_it_is_seen_and_by_its_own_port() {
        let [mut by_one, mut by_other] = proxy("203.0.113.1:40001", "203.0.113.2:7318");
        let (mut one, mut other) = duplex(256);
        let opened = begin(OTHER, &mut one, &mut by_one, 443);
        let (opened, answered) = tokio::join!(opened, answer(ONE, &mut other, &mut by_other, 7318));
        let (of_other, wait) = opened.expect("agreed");
        assert_eq!(answered.expect("agreed"), ["203.0.113.1:40001", "203.0.113.1:443"].map(at));
        assert_eq!(of_other, ["203.0.113.2:7318"].map(at));
        assert!(wait < Duration::from_secs(5), "{wait:?}");
    }

    /// A peer that wants others to dial an arbitrary address.
    #[tokio::test]
    async fn where_the_proxy_does_not_see_a_peer_it_is_not_dialled() {
        for named in ["10.0.0.5:22", "203.0.113.9:7318"] {
            let [mut by_one, mut by_other] = proxy("203.0.113.1:40001", "203.0.113.2:7318");
            let (mut liar, mut other) = duplex(256);
            say(&mut liar, Message::Connect(place(named, 22))).await.expect("said");
            liar.shutdown().await.expect("it says no more");
            let answered = answer(ONE, &mut other, &mut by_other, 7318).await;
            assert!(matches!(answered, Err(Error::NotThere(_))), "{named}: {answered:?}");

            let (mut one, mut liar) = duplex(256);
            say(&mut liar, Message::Connect(place(named, 22))).await.expect("said");
            liar.shutdown().await.expect("it says no more");
            let opened = begin(OTHER, &mut one, &mut by_one, 7318).await;
            assert!(matches!(opened, Err(Error::NotThere(_))), "{named}: {opened:?}");
        }
    }

    #[test]
    fn no_peer_dials_its_own_place() {
        let (own, seen) = (place("203.0.113.1:40001", 7318), "203.0.113.1:40002");
        assert_eq!(place(seen, 7318).addresses(own), [at(seen)], "both behind one translator");
        assert_eq!(own.addresses(own), []);
        assert_eq!(place(seen, 443).addresses(own), ["203.0.113.1:40002", "203.0.113.1:443"].map(at));
    }

    #[tokio::test]
    async fn who_is_not_seen_or_speaks_out_of_turn_comes_to_nothing() {
        let seen = ObservedAddresses::default();
        let (mut near, mut far) = duplex(256);
        let asking = async { own(&mut near, 7318).await };
        let (asked_result, attested) = tokio::join!(asking, async {
            let heard = attest(ONE, &mut far, &seen);
            tokio::time::timeout(Duration::from_millis(50), heard).await
        });
        assert!(matches!(asked_result, Err(Error::Unseen)), "{asked_result:?}");
        assert!(attested.is_err(), "it may ask once more");
        for out_of_turn in [Message::Sync, Message::Here(None), Message::Yes(true)] {
            let (mut near, mut far) = duplex(256);
            say(&mut near, out_of_turn).await.expect("said");
            assert!(matches!(attest(ONE, &mut far, &seen).await, Err(Error::OutOfTurn)));
            say(&mut near, out_of_turn).await.expect("said");
            let (mut proxy, _) = duplex(256);
            let answered = answer(ONE, &mut far, &mut proxy, 7318).await;
            assert!(matches!(answered, Err(Error::OutOfTurn)), "{answered:?}");
        }
    }
}
