//! Cost of carrying bytes through a proxy: small queries and answers, and bulk data on one stream and on 32.
//!
//! ```text
//! tunnel target                            answers by TCP alone; prints HOST:PORT
//! tunnel inside KEY DOOR                   a daemon inside, registered with the proxy of that key; prints KEY
//! tunnel gate NAME WALL SECONDS [PID…]     a proxy; prints KEY DOOR OVERLAY, asks each daemon that connects, prints a row
//! tunnel gate - WALL                       a proxy that carries alone, until it is stopped
//! tunnel circuit NAME KEY VIA SECONDS [PID…]    queries the daemon of that key through VIA, KEY@HOST:PORT
//! tunnel tcp NAME HOST:PORT SECONDS [PID…]      queries what answers there: the target, or a tunnel to it
//! tunnel http NAME HOST:PORT SMALL LARGE SECONDS [PID…]    asks by HTTP for these two paths; at a proxy's door with
//!                                          CERTIFICATE and ACCOUNTS (NAME:SECRET,…) from the environment
//! ```
//! Rule: overlay, listener and relay are those of the daemons, each in its own process; WALL (`none`, `tls`,
//! `web`) blocks what a firewall would, which decides the transport. The CPU time of a row is that of this
//! process and of PID…. Started by `benches/tunnel.sh`, next to other programs that carry the same bytes.
#![allow(clippy::print_stdout, dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A benchmark panics on an error, and reads clocks.

mod door;
#[path = "../../tests/tunnels/ends.rs"]
mod ends;
mod measure;
#[path = "../../tests/visitor/mod.rs"]
mod visitor;

use ends::{End, Gate, Wall};
use measure::{Row, answer_on};
use overlay::net::event_loop::{Config, Event};
use overlay::net::handle::{Answer, Handle};
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use overlay::net::stream::Stream;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use wire::address::Address;
use wire::id::PeerKey;

/// Timeout of opening a stream.
const OPENS: Duration = Duration::from_secs(15);

#[tokio::main]
async fn main() {
    // `cargo bench` adds the argument `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["target"] => target().await,
        ["inside", key, door] => inside(key.parse().unwrap(), door.parse().unwrap()).await,
        ["gate", "-", wall] => {
            let _gate = gate(wall).await;
            std::future::pending().await
        }
        ["gate", name, wall, secs, ref pids @ ..] => ask_inside(name, wall, secs, pids).await,
        ["circuit", name, key, via, secs, ref pids @ ..] => {
            ask_through(name, key.parse().unwrap(), via, secs, pids).await;
        }
        ["tcp", name, at, secs, ref pids @ ..] => {
            let at: SocketAddr = at.parse().unwrap();
            let open = async || {
                let stream = TcpStream::connect(at).await.unwrap();
                stream.set_nodelay(true).unwrap();
                stream
            };
            Row::measure(name, open, secs.parse().unwrap(), pids).await;
        }
        ["http", name, at, small, large, secs, ref pids @ ..] => {
            let variable = |name| std::env::var(name).unwrap_or_default();
            let asked = door::HttpLoad::new(at, &variable("CERTIFICATE"), &variable("ACCOUNTS"));
            asked.measure(name, [small, large], secs.parse().unwrap(), pids).await;
        }
        _ => println!("see the head of proxy/benches/tunnel/main.rs; benches/tunnel.sh starts it"),
    }
}

/// Server that answers over plain TCP.
async fn target() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        tokio::spawn(answer_on(stream));
    }
}

/// A daemon inside the firewall that answers on every stream.
async fn inside(proxy: PeerKey, door: SocketAddr) {
    let mut end = End::inside(2, proxy, door);
    println!("{}", end.key());
    let mut events = end.take_events();
    while let Some(event) = events.recv().await {
        if let Event::Stream { stream, .. } = event {
            tokio::spawn(answer_on(stream));
        }
    }
}

async fn gate(wall: &str) -> Gate {
    let wall = match wall {
        "none" => Wall::default(),
        "tls" => Wall { stops_plain: true, stops_upgrade: false },
        "web" => Wall { stops_plain: true, stops_upgrade: true },
        other => panic!("expected none, tls or web, found {other}"),
    };
    let gate = Gate::open(1, wall).await;
    let overlay = gate.end.handle.listening().borrow()[0];
    println!("{} {} {overlay}", gate.key(), gate.door);
    gate
}

/// Query a daemon inside as a proxy does for its visitors.
async fn ask_inside(name: &str, wall: &str, secs: &str, pids: &[&str]) {
    let gate = gate(wall).await;
    let mut line = String::new();
    // The process id of the daemon inside, which is started after the proxy's address is known.
    std::io::stdin().read_line(&mut line).unwrap();
    let pids: Vec<&str> = pids.iter().copied().chain(line.split_whitespace()).collect();
    ends::until("a peer inside", || !gate.end.handle.ready().is_empty()).await;
    let peer = gate.end.handle.ready()[0].peer;
    ask(name, &gate.end.handle, peer, secs, &pids).await;
}

/// Query a daemon inside as a daemon of another site does.
async fn ask_through(name: &str, key: PeerKey, via: &str, secs: &str, pids: &[&str]) {
    let end = End::start(3, Config::new(Vec::new()));
    end.handle.keep(Target::Peer(key), vec![Address::try_from(via).unwrap()]).await;
    ends::until("the daemon inside", || end.handle.is_ready(key)).await;
    ask(name, &end.handle, key, secs, pids).await;
}

async fn ask(name: &str, handle: &Handle, peer: PeerKey, secs: &str, pids: &[&str]) {
    let open = async || -> Stream { handle.open(peer, Protocol::Report, OPENS).await.unwrap() };
    Row::measure(name, open, secs.parse().unwrap(), pids).await;
}

/// Answer a query by sending it back.
fn answer(event: Event) {
    if let Event::Question(question) = event {
        let _ = question.reply.send(Answer::Done(question.body));
    }
}
