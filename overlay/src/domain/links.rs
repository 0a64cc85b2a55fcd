//! Control links of a sensor: one outbound and one inbound stream for each peer, each with its task.
//!
//! Rule: a link is up once both streams are open. It is removed when the inbound stream ends, or when the
//! outbound one ends and there is no inbound one: the last messages of the peer are still read. Messages to a
//! slow peer are dropped and counted: heartbeats come again.
//! Not here: the messages (`election`).

use crate::clock;
use crate::net::frames::{self, Reader};
use crate::net::handle::Handle;
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use crate::net::stream::Stream;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wire::address::Address;
use wire::id::PeerKey;
use wire::membership::{MESSAGE_LEN_MAX_BYTES, Message};
use wire::time::Moment;

/// Most messages that may wait for a slow peer: several seconds of heartbeats.
const WAITING_MAX: usize = 32;

/// Timeout of a dial, including the opening of the stream; the core is then notified of the failure.
const DIAL_TIMEOUT: Duration = Duration::from_secs(4);

/// Interval of the check whether a dialled peer is ready.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Event of a link for the driver. The number distinguishes an old stream of a peer from its new one.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// The outbound stream is open.
    Opened(PeerKey, Stream),
    /// The outbound stream could not be opened.
    Failed(PeerKey),
    Heard(PeerKey, u64, Message),
    /// One of the streams ended.
    Ended(PeerKey, u64),
}

#[derive(Debug)]
struct Link {
    /// When the link was created, or lost its outbound stream.
    since: Moment,
    /// Whether both streams were open at some time.
    up: bool,
    out: Option<Out>,
    inward: Option<Inward>,
}

impl Link {
    fn has(&self, number: u64) -> bool {
        self.out.as_ref().is_some_and(|out| out.number == number)
            || self.inward.as_ref().is_some_and(|inward| inward.number == number)
    }
}

#[derive(Debug)]
struct Out {
    number: u64,
    /// Boxed: a channel allocates room for all its messages with the first one, and there is one for each
    /// peer.
    messages: mpsc::Sender<Box<Message>>,
    /// Ends when `messages` is dropped and the waiting messages are written.
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Inward {
    number: u64,
    task: JoinHandle<()>,
}

impl Drop for Inward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
pub(super) struct Links {
    net: Handle,
    links: BTreeMap<PeerKey, Link>,
    opening: BTreeMap<PeerKey, JoinHandle<()>>,
    numbers: u64,
    events: mpsc::Sender<LinkEvent>,
    pub(super) dropped_total: u64,
}

impl Links {
    pub(super) fn new(net: Handle, events: mpsc::Sender<LinkEvent>) -> Links {
        Links { net, links: BTreeMap::new(), opening: BTreeMap::new(), numbers: 0, events, dropped_total: 0 }
    }

    /// Whether both streams were open; messages received before the end still count after the outbound stream
    /// has ended.
    pub(super) fn is_up(&self, peer: PeerKey) -> bool {
        self.links.get(&peer).is_some_and(|link| link.up)
    }

    /// Whether `number` is a stream of the current link to `peer`.
    pub(super) fn is_current(&self, peer: PeerKey, number: u64) -> bool {
        self.links.get(&peer).is_some_and(|link| link.has(number))
    }

    /// Dial `peer` at `addresses` and open the outbound stream; the result is [`LinkEvent::Opened`] or
    /// [`LinkEvent::Failed`].
    pub(super) fn dial(&mut self, peer: PeerKey, addresses: Vec<Address>) {
        self.open(peer, Some(addresses));
    }

    /// `peer` is connected: open the outbound stream to it, unless there is one.
    pub(super) fn welcome(&mut self, peer: PeerKey) {
        self.open(peer, None);
    }

    fn open(&mut self, peer: PeerKey, addresses: Option<Vec<Address>>) {
        // The entry stays until the event has been handled, so that no stream is opened twice.
        if self.opening.contains_key(&peer) {
            return;
        }
        if self.links.get(&peer).is_some_and(|link| link.out.is_some()) {
            return;
        }
        let (net, events) = (self.net.clone(), self.events.clone());
        let task = tokio::spawn(async move {
            let opening = open_stream(&net, peer, addresses);
            let event = match tokio::time::timeout(DIAL_TIMEOUT, opening).await {
                Ok(Some(stream)) => LinkEvent::Opened(peer, stream),
                Ok(None) | Err(_) => {
                    net.forget(Target::Peer(peer)).await;
                    LinkEvent::Failed(peer)
                }
            };
            // The driver reads until it ends.
            let _ = events.send(event).await;
        });
        self.opening.insert(peer, task);
    }

    /// The outbound stream is open; returns whether the link is up now.
    pub(super) fn handle_opened(&mut self, peer: PeerKey, stream: Stream) -> bool {
        self.opening.remove(&peer);
        let number = self.number();
        let (messages, waiting) = mpsc::channel(WAITING_MAX);
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            write_all(stream, waiting).await;
            // The driver reads until it ends.
            let _ = events.send(LinkEvent::Ended(peer, number)).await;
        });
        let link = self.link(peer);
        link.out = Some(Out { number, messages, task });
        link.up |= link.inward.is_some();
        link.up
    }

    /// The peer opened its stream; returns whether the link is up now. A missing outbound stream is opened.
    pub(super) fn handle_session(&mut self, peer: PeerKey, stream: Stream) -> bool {
        let number = self.number();
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            read_all(stream, peer, number, &events).await;
            let _ = events.send(LinkEvent::Ended(peer, number)).await;
        });
        // A peer that opens a second stream has dropped the previous one.
        let link = self.link(peer);
        link.inward = Some(Inward { number, task });
        link.up |= link.out.is_some();
        let is_up = link.up;
        self.open(peer, None);
        is_up
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn link(&mut self, peer: PeerKey) -> &mut Link {
        let fresh = || Link { since: clock::now(), up: false, out: None, inward: None };
        self.links.entry(peer).or_insert_with(fresh)
    }

    /// Close the link; returns whether there was one.
    pub(super) async fn close(&mut self, peer: PeerKey) -> bool {
        if let Some(task) = self.opening.remove(&peer) {
            task.abort();
        }
        self.net.forget(Target::Peer(peer)).await;
        self.links.remove(&peer).is_some()
    }

    /// The outbound stream could not be opened.
    pub(super) fn handle_failed(&mut self, peer: PeerKey) {
        self.opening.remove(&peer);
    }

    /// Drop links whose second stream did not open in time; returns their peers.
    pub(super) fn drop_halves(&mut self) -> Vec<PeerKey> {
        let now = clock::now();
        let is_half = |link: &Link| link.out.is_none() || link.inward.is_none();
        let late = |link: &Link| is_half(link) && now.since(link.since) >= DIAL_TIMEOUT;
        let halves: Vec<PeerKey> =
            self.links.iter().filter(|(_, link)| late(link)).map(|(peer, _)| *peer).collect();
        for peer in &halves {
            self.links.remove(peer);
        }
        halves
    }

    /// A stream of the link ended; returns whether the link is removed. The last messages of the peer are
    /// still read.
    pub(super) fn handle_ended(&mut self, peer: PeerKey, number: u64) -> bool {
        let Some(link) = self.links.get_mut(&peer).filter(|link| link.has(number)) else { return false };
        if link.out.as_ref().is_some_and(|out| out.number == number) {
            (link.out, link.since) = (None, clock::now());
            if link.inward.is_some() {
                return false;
            }
        }
        self.links.remove(&peer).is_some()
    }

    /// The peer's last connection ended; returns whether the link is removed. If it is not, received messages
    /// are still being read, and a [`LinkEvent::Ended`] follows.
    pub(super) fn handle_gone(&mut self, peer: PeerKey) -> bool {
        if self.links.get(&peer).is_some_and(|link| link.inward.is_some()) {
            return false;
        }
        self.links.remove(&peer).is_some()
    }

    /// Send a message on the link; it is dropped and counted if there is no link or the link is slow.
    pub(super) fn send(&mut self, peer: PeerKey, message: Message) {
        let out = self.links.get(&peer).and_then(|link| link.out.as_ref());
        if out.is_none_or(|out| out.messages.try_send(Box::new(message)).is_err()) {
            self.dropped_total += 1;
        }
    }

    /// Wait for up to `most` until queued messages are written: the last messages of a daemon that stops.
    pub(super) async fn flush(&mut self, most: Duration) {
        let tasks: Vec<JoinHandle<()>> = std::mem::take(&mut self.links)
            .into_values()
            .filter_map(|link| link.out.map(|out| out.task))
            .collect();
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(most, all).await;
    }
}

async fn open_stream(net: &Handle, peer: PeerKey, addresses: Option<Vec<Address>>) -> Option<Stream> {
    if let Some(addresses) = addresses {
        net.keep(Target::Peer(peer), addresses).await;
    }
    loop {
        if net.is_ready(peer) {
            return net.open(peer, Protocol::Control, DIAL_TIMEOUT).await.ok();
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

async fn write_all(mut stream: Stream, mut messages: mpsc::Receiver<Box<Message>>) {
    while let Some(message) = messages.recv().await {
        if frames::write(&mut stream, message.as_ref(), MESSAGE_LEN_MAX_BYTES).await.is_err() {
            return;
        }
    }
    // Closed, not reset, so that the last message still arrives. If the peer is gone, the error does not
    // matter.
    let _ = stream.shutdown().await;
}

async fn read_all(stream: Stream, peer: PeerKey, number: u64, events: &mpsc::Sender<LinkEvent>) {
    let mut reader = Reader::new(stream, MESSAGE_LEN_MAX_BYTES);
    loop {
        match reader.next::<Message>().await {
            Ok(Some(message)) => {
                if events.send(LinkEvent::Heard(peer, number, message)).await.is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%peer, %error, "a control stream failed");
                return;
            }
        }
    }
}
