//! Viewers of a domain at a proxy: most are fast, some read slowly, some read nothing at all.
//!
//! ```text
//! viewers ask|follow HOST:PORT CERTIFICATE ACCOUNTS PATH HZ SECONDS HEALTHY SLOW STALLED FROM GO
//! ```
//! ACCOUNTS is a file of lines `NAME:SECRET`; sixteen viewers share each account. Each viewer has its own
//! connection from the address 127.0.0.FROM, and requests PATH at the given rate or follows it. A slow viewer
//! that polls reads 4 KiB per second, a slow one that follows 512 bytes; a stalled one reads nothing, and for
//! both the kernel buffers a few KiB. `ready` is printed once all are connected; the run starts when the file
//! GO exists. At the end it prints one line: answers, faults and failures; the median and maximum of the
//! healthy viewers' times in ms (from the request to the answer, or from the creation of the answer to its
//! reading); the longest time without an answer in ms (99th percentile); how many stalled viewers were
//! disconnected and after how long at most; the answers that were skipped and reported as such; and other
//! connections that ended. Several processes run in parallel, because the descriptors per process are
//! limited. Started by `benches/viewers.sh`.
#![allow(clippy::print_stdout)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A benchmark panics on an error, and reads clocks.

mod asking;
mod following;
#[path = "../../tests/visitor/mod.rs"]
mod visitor;

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use visitor::{Place, Visitor};

/// Viewers per account: fewer than its limit of concurrent requests.
const OF_ACCOUNT: usize = 16;
/// Concurrent connection attempts: like people, not like an attack.
const CONNECTING: usize = 64;
/// Kernel receive buffer of a slow viewer.
const NARROW_BYTES: u32 = 4 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Healthy,
    Slow,
    Stalled,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Ask,
    Follow,
}

/// Results of one viewer.
#[derive(Default)]
pub(crate) struct ViewerResults {
    times: Vec<f64>,
    failures: usize,
    gap_max: Duration,
    cut_after: Option<Duration>,
    skipped: u64,
    ended: usize,
}

#[derive(Clone)]
pub(crate) struct Plan {
    place: Place,
    from: IpAddr,
    accounts: Arc<Vec<(String, String)>>,
    path: String,
    every: Duration,
    span: Duration,
    began: Arc<OnceLock<Instant>>,
}

impl Plan {
    async fn connect(&self, number: usize, kind: Kind) -> Visitor {
        let (name, secret) = &self.accounts[number / OF_ACCOUNT % self.accounts.len()];
        let visitor = match kind {
            Kind::Healthy => self.place.connect_from(self.from).await,
            Kind::Slow | Kind::Stalled => self.place.connect_narrowly(self.from, NARROW_BYTES).await,
        };
        visitor.with_account(name, secret)
    }

    /// End of the run; `None` before it has started.
    fn end(&self) -> Option<Instant> {
        self.began.get().map(|began| *began + self.span)
    }

    fn is_over(&self) -> bool {
        self.end().is_some_and(|end| Instant::now() >= end)
    }

    /// Send `bytes` periodically and read nothing, until the server closes the connection.
    async fn until_cut(&self, mut visitor: Visitor, bytes: &[u8], every: Duration) -> ViewerResults {
        let began = Instant::now();
        let sending = async {
            while visitor.try_send(bytes).await {
                sleep(every).await;
            }
        };
        let left = self.end().unwrap().saturating_duration_since(began);
        let is_cut = timeout(left, sending).await.is_ok();
        ViewerResults { cut_after: is_cut.then(|| began.elapsed()), ..ViewerResults::default() }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [way, at, certificate, accounts, path, hz, secs, healthy, slow, stalled, from, go] = words[..] else {
        return println!("see the head of proxy/benches/viewers/main.rs; benches/viewers.sh starts it");
    };
    let way = if way == "follow" { Way::Follow } else { Way::Ask };
    let text = std::fs::read_to_string(accounts).unwrap();
    let account =
        |line: &str| line.split_once(':').map(|(name, secret)| (name.to_owned(), secret.to_owned()));
    let from: u8 = from.parse().unwrap();
    let mut accounts: Vec<_> = text.lines().filter_map(account).collect();
    // Each process starts with other accounts.
    let first = usize::from(from) * 131 % accounts.len();
    accounts.rotate_left(first);
    let plan = Plan {
        place: Place::encrypted(at.parse().unwrap(), "localhost", Path::new(certificate)),
        from: [127, 0, 0, from].into(),
        accounts: Arc::new(accounts),
        path: path.to_owned(),
        every: Duration::from_secs_f64(1.0 / hz.parse::<f64>().unwrap()),
        span: Duration::from_secs_f64(secs.parse().unwrap()),
        began: Arc::default(),
    };
    let [healthy, slow, stalled] = [healthy, slow, stalled].map(|count| count.parse::<usize>().unwrap());
    let kind = move |number: usize| match number {
        _ if number < stalled => Kind::Stalled,
        _ if number < stalled + slow => Kind::Slow,
        _ => Kind::Healthy,
    };
    let mut watching = JoinSet::new();
    let mut connecting = JoinSet::new();
    let mut watch = |(number, visitor): (usize, Visitor)| match way {
        Way::Ask => watching.spawn(plan.clone().ask(number, kind(number), visitor)),
        Way::Follow => watching.spawn(plan.clone().follow(number, kind(number), visitor)),
    };
    for number in 0..healthy + slow + stalled {
        let plan = plan.clone();
        connecting.spawn(async move {
            let mut visitor = plan.connect(number, kind(number)).await;
            if way == Way::Follow {
                assert!(plan.begin(&mut visitor).await, "a viewer was not let in");
            }
            (number, visitor)
        });
        if connecting.len() >= CONNECTING {
            watch(connecting.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(connected) = connecting.join_next().await {
        watch(connected.unwrap());
    }
    println!("ready");
    while !Path::new(go).exists() {
        sleep(Duration::from_millis(20)).await;
    }
    plan.began.get_or_init(Instant::now);
    report(watching.join_all().await, stalled);
}

fn report(all: Vec<ViewerResults>, stalled: usize) {
    let failures: usize = all.iter().map(|seen| seen.failures).sum();
    let cut: Vec<Duration> = all.iter().filter_map(|seen| seen.cut_after).collect();
    let longest = cut.iter().max().copied().unwrap_or_default();
    let skipped: u64 = all.iter().map(|seen| seen.skipped).sum();
    let ended: usize = all.iter().map(|seen| seen.ended).sum();
    let gaps = all.iter().filter(|seen| !seen.times.is_empty()).map(|seen| seen.gap_max.as_secs_f64() * 1e3);
    let gaps: Vec<f64> = gaps.collect();
    let times: Vec<f64> = all.into_iter().flat_map(|seen| seen.times).collect();
    let count = times.len();
    println!(
        "{count} {failures} {:.1} {:.1} {:.0} {}/{stalled} {:.0} {skipped} {ended}",
        rank(times.clone(), 50),
        rank(times, 99),
        rank(gaps, 99),
        cut.len(),
        longest.as_secs_f64()
    );
}

fn rank(mut all: Vec<f64>, percent: usize) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get((all.len() * percent / 100).min(all.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
