//! Fuzzing of a proxy's streams: random bytes, and valid messages with random changes, by each protocol that
//! strangers and visitors may open, and by those that they may not.
//!
//! Rules: a real daemon, real connections on loopback; every stream follows from the seed that is printed.
//! Whatever bytes arrive, nothing panics, no peer is admitted, each stream is counted as refused, memory is
//! bounded, and valid questions are answered as before.
//! Not here: bytes before the handshake of Noise (libp2p's), requests at the proxy's listener
//! (`rpc/tests/integration/hostile.rs`).

mod line;
mod words;

use crate::papers;
use futures::future::join_all;
use line::Line;
use overlay::authenticator::Authenticator;
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Affiliation, Readers, Trust};
use overlay::net::event_loop::{Config, Event, EventLoop};
use overlay::net::handle::{Answer, Handle};
use overlay::net::protocol::Protocol;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use words::{Random, Words};

/// Another seed makes other streams; this one makes the same at each run.
const SEED: u64 = 0x5eed_2026;

/// Total number of streams.
const STREAMS: u64 = 10_000;

/// Lanes that send at the same time, each one connection after the other with a seed of its own: most of the
/// time is spent in waiting for the proxy to close what is wrong.
const LANES: u64 = 16;

/// Streams on one connection, unless it is closed earlier.
const OF_CONNECTION: u64 = 50;

/// Most that the process may grow: far below the size of the longest questions of all streams.
const GROWTH_MAX_BYTES: u64 = 96 << 20;

/// Names of libp2p's relay protocol, of its two ends.
const CIRCUITS: [&str; 2] = ["/libp2p/circuit/relay/0.2.0/hop", "/libp2p/circuit/relay/0.2.0/stop"];

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Questions that reached the daemon itself, which it refuses.
static ASKED: AtomicU64 = AtomicU64::new(0);

struct Proxy {
    handle: Handle,
    at: SocketAddr,
    running: tokio::task::JoinHandle<()>,
}

impl Proxy {
    async fn start(key: &Key, words: &Words) -> Proxy {
        let trust = Trust::of_member(papers::domain(), words.root(), Readers::Admitted);
        let gate = Gate::new(trust, RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, Some(words.chain())));
        let config = Config { is_proxy: true, ..Config::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) };
        let (event_loop, handle, events) = EventLoop::open(config, key, gate, 1).expect("listens");
        let running = tokio::spawn(event_loop.run(CancellationToken::new()));
        tokio::spawn(refuse(events));
        let mut listening = handle.listening();
        let at = listening.wait_for(|all| !all.is_empty()).await.expect("runs")[0];
        Proxy { handle, at, running }
    }

    fn refused(&self) -> u64 {
        let figures = self.handle.figures();
        figures.streams_refused_total.get()
            + figures.hellos_refused_total.get()
            + figures.questions_failed_total.get()
    }
}

/// The daemon: it refuses every question, and panics on any event that strangers and visitors must not cause.
async fn refuse(mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Question(question) => {
                ASKED.fetch_add(1, Ordering::Relaxed);
                let affiliation = question.principal.as_ref().map(|principal| principal.affiliation);
                match question.protocol {
                    Protocol::Query => {
                        assert_eq!(affiliation, Some(Affiliation::Visitor), "a question of a stranger")
                    }
                    Protocol::Enter | Protocol::Join => {}
                    Protocol::Hello
                    | Protocol::Control
                    | Protocol::Directory
                    | Protocol::Queries
                    | Protocol::Report
                    | Protocol::Punch => panic!("a question by {}", question.protocol),
                }
                let _ = question.reply.send(Answer::Refused("no".to_owned()));
            }
            Event::Stream { protocol, .. } => panic!("a stream of {protocol}"),
            Event::Ready { principal, .. } => panic!("{} was let in", principal.peer),
            Event::Gone(_) | Event::Unwelcome { .. } | Event::DialFailed(..) => {}
        }
    }
}

/// Resident memory of this process, in bytes (proc(5), `statm`, its second number, in pages of 4 KiB).
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

/// What was sent; `sure` counts the streams that have to be counted as refused.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    streams: u64,
    connections: u64,
    sure: u64,
}

impl Sent {
    /// Send `streams` streams on each lane.
    async fn on_all_lanes(proxy: &Proxy, words: &Words, lanes: &mut [Random], streams: u64) -> Sent {
        let add = |all: Sent, sent: Sent| Sent {
            streams: all.streams + sent.streams,
            connections: all.connections + sent.connections,
            sure: all.sure + sent.sure,
        };
        let sending = lanes.iter_mut().map(|random| Sent::on_lane(proxy, words, random, streams));
        join_all(sending).await.into_iter().fold(Sent::default(), add)
    }

    async fn on_lane(proxy: &Proxy, words: &Words, random: &mut Random, streams: u64) -> Sent {
        let mut sent = Sent::default();
        while sent.streams < streams {
            sent.connection(proxy, words, random, streams).await;
            assert!(!proxy.running.is_finished(), "after {sent:?}");
        }
        sent
    }

    /// Run one connection, of a stranger or of a visitor with a visa, until `streams` streams were sent.
    async fn connection(&mut self, proxy: &Proxy, words: &Words, random: &mut Random, streams: u64) {
        let seed = random.bytes_32();
        let key = Key::from_seed(seed);
        let Some(mut line) = Line::dial(proxy.at, seed).await else { return };
        self.connections += 1;
        let is_visitor = random.below(2) == 0;
        if is_visitor {
            let verdict = line.speak(Protocol::Hello.name(), &words.hello(key.peer())).await;
            assert!(verdict.is_some_and(|verdict| words::is_welcome(&verdict)), "a good visa");
        }
        for _ in 0..OF_CONNECTION {
            if self.streams == streams {
                return;
            }
            self.streams += 1;
            let kind = random.below(12);
            if kind >= 10 {
                let circuit = CIRCUITS[random.below(2) as usize];
                if line.speak(circuit, &words.of_circuit(random)).await.is_none() {
                    return;
                }
                continue;
            }
            let protocol = Protocol::ALL[random.below(Protocol::ALL.len() as u64) as usize];
            let bytes = words.of_protocol(protocol, key.peer(), random);
            // One kind in ten negotiates no protocol.
            let heard = match kind {
                0 => line.say(&bytes).await,
                _ => line.speak(protocol.name(), &bytes).await,
            };
            if heard.is_none() {
                return;
            }
            let is_question = !bytes.is_empty() && kind != 0;
            // Some hellos are still valid after a small change.
            self.sure += u64::from(is_question && protocol != Protocol::Hello);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_bytes_come_no_peer_is_let_in_and_a_correct_question_is_answered() {
    println!("seed {SEED:#x}");
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(panic);
    }));
    let (root, key) = (Key::from_seed([1; 32]), Key::from_seed([2; 32]));
    let words = Words::new(&root, &key);
    let proxy = Proxy::start(&key, &words).await;
    let mut lanes: Vec<Random> = (0..LANES).map(|lane| Random(SEED + lane)).collect();
    // The first streams fill shared caches.
    let first = Sent::on_all_lanes(&proxy, &words, &mut lanes, STREAMS / LANES / 10).await;
    let before = resident_bytes();
    let sent = Sent::on_all_lanes(&proxy, &words, &mut lanes, STREAMS / LANES).await;
    let sure = first.sure + sent.sure;
    let grown = resident_bytes().saturating_sub(before);
    let asked = ASKED.load(Ordering::Relaxed);
    println!(
        "{first:?}, {sent:?}, {} counted as refused, {asked} asked, {grown} bytes more",
        proxy.refused()
    );
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    assert!(proxy.handle.ready().is_empty(), "a peer is ready");
    assert!(sure > STREAMS / 3, "most were closed before: {sent:?}");
    assert!(proxy.refused() >= sure, "{} of {first:?} and {sent:?} were counted", proxy.refused());
    assert!(grown < GROWTH_MAX_BYTES, "{grown} bytes more");
    assert!(asked > STREAMS / 100, "none were questions: {asked}");

    let visitor = Key::from_seed([3; 32]);
    let mut line = Line::dial(proxy.at, [3; 32]).await.expect("as ever");
    let verdict = line.speak(Protocol::Hello.name(), &words.hello(visitor.peer())).await.expect("answered");
    assert!(words::is_welcome(&verdict));
    let answer = line.speak(Protocol::Query.name(), &words::question(b"?")).await.expect("answered");
    assert_eq!(words::answer(&answer), Answer::Refused("no".to_owned()));
    // The connection is closed in time, and its entry is removed.
    drop(line);
    let gone = async {
        while proxy.handle.is_connected(visitor.peer()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("forgotten");
}
