//! The control links of a sensor: to each peer one stream out and one in, each with its task.
//!
//! Rule: a link is up when both streams stand; when either ends the link is gone. What cannot be written
//! in time is dropped and counted: heartbeats come again.
//! Not here: what is said on them (`election`).

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

/// Messages that may wait for a slow peer: several seconds of heartbeats.
const WAITING_MAX: usize = 32;

/// How long a dial with all that follows may take before the core is told that it failed.
const DIAL_TIMEOUT: Duration = Duration::from_secs(4);

/// Time between two looks whether a dialled peer is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What a link tells the driver. Numbers tell an old stream of a peer from its new one.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// The stream out stands.
    Opened(PeerKey, Stream),
    /// It could not be had.
    Failed(PeerKey),
    /// A message came in.
    Heard(PeerKey, u64, Message),
    /// One of the streams ended.
    Ended(PeerKey, u64),
}

#[derive(Debug)]
struct Link {
    /// When it was made, or lost the stream out.
    since: Moment,
    /// Whether both streams stood.
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
    /// Boxed: a channel has room for 32 from its first message on, and there is one for each peer.
    messages: mpsc::Sender<Box<Message>>,
    /// Ends when `messages` is dropped and what waited is written.
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

/// All links.
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

    /// Whether messages went both ways; what came in before the end counts after the stream out has ended.
    pub(super) fn is_up(&self, peer: PeerKey) -> bool {
        self.links.get(&peer).is_some_and(|link| link.up)
    }

    /// Whether `number` is a stream of the link that stands to `peer`.
    pub(super) fn is_current(&self, peer: PeerKey, number: u64) -> bool {
        self.links.get(&peer).is_some_and(|link| link.has(number))
    }

    /// Dial `peer` at `addresses` and open the stream out; tells [`LinkEvent::Opened`] or
    /// [`LinkEvent::Failed`].
    pub(super) fn dial(&mut self, peer: PeerKey, addresses: Vec<Address>) {
        self.open(peer, Some(addresses));
    }

    /// `peer` is connected: open the stream out to it, unless there is one.
    pub(super) fn welcome(&mut self, peer: PeerKey) {
        self.open(peer, None);
    }

    fn open(&mut self, peer: PeerKey, addresses: Option<Vec<Address>>) {
        // Until its event has been handled, so that no stream is opened twice.
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

    /// The stream out stands; whether the link is up now.
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

    /// The peer opened its stream; whether the link is up now. If the stream out is missing it is opened.
    pub(super) fn handle_visit(&mut self, peer: PeerKey, stream: Stream) -> bool {
        let number = self.number();
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            read_all(stream, peer, number, &events).await;
            let _ = events.send(LinkEvent::Ended(peer, number)).await;
        });
        // If it opened again, it has forgotten the former stream.
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

    /// Close the link; whether there was one.
    pub(super) async fn close(&mut self, peer: PeerKey) -> bool {
        if let Some(task) = self.opening.remove(&peer) {
            task.abort();
        }
        self.net.forget(Target::Peer(peer)).await;
        self.links.remove(&peer).is_some()
    }

    /// It could not be opened.
    pub(super) fn handle_failed(&mut self, peer: PeerKey) {
        self.opening.remove(&peer);
    }

    /// Drop links of which one stream never came; their peers.
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

    /// A stream of the link ended; whether the link is over. What the peer said last is still read.
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

    /// The peer's last connection ended; whether the link is over. If not, what came before is still being read, and
    /// its end is told.
    pub(super) fn handle_gone(&mut self, peer: PeerKey) -> bool {
        if self.links.get(&peer).is_some_and(|link| link.inward.is_some()) {
            return false;
        }
        self.links.remove(&peer).is_some()
    }

    /// Send on the link; dropped and counted if there is none or it is slow.
    pub(super) fn send(&mut self, peer: PeerKey, message: Message) {
        let out = self.links.get(&peer).and_then(|link| link.out.as_ref());
        if out.is_none_or(|out| out.messages.try_send(Box::new(message)).is_err()) {
            self.dropped_total += 1;
        }
    }

    /// Let what waits be written, for a moment: the last words of a daemon that stops.
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
    // Closed, not reset: what was written last still arrives. A peer that is gone needs none of it.
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
