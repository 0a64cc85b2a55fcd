//! Viewers of a domain at a proxy's door: most are quick, some read slowly, some read nothing at all.
//!
//! ```text
//! viewers HOST:PORT CERTIFICATE ACCOUNTS PATH HZ SECONDS HEALTHY SLOW STALLED
//! ```
//! ACCOUNTS is a file of lines `NAME:SECRET`, of which each serves sixteen. Each viewer has a connection of its own and asks for
//! PATH so often; one that is slow takes 4 KiB a second of what comes, one that is stalled asks and takes nothing. `ready` is
//! printed once all are connected, then one line: answers, failures, the middle and slowest of the healthy ones' times in ms,
//! the longest time without an answer of one in a hundred of them in ms, and how many stalled ones were cut off and after how
//! long at most. Several run beside each other, as a process has so many descriptors and no more.
//! Started by `benches/viewers.sh`.
#![allow(clippy::print_stdout, missing_docs)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A bench ends where it cannot go on, and reads clocks.

#[path = "../../tests/visitor/mod.rs"]
mod visitor;

use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use visitor::{Place, Visitor};

/// Viewers of one account: fewer than its requests in work at a time.
const OF_ACCOUNT: usize = 16;
/// Connected at a time: as people come, not as an attack does.
const CONNECTING: usize = 64;
/// What a slow one takes in a second.
const SLOWLY_BYTES: usize = 4 << 10;
/// Longest time that a healthy one waits for an answer.
const GIVES_UP: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Healthy,
    Slow,
    Stalled,
}

/// What one saw.
#[derive(Default)]
struct Seen {
    times: Vec<f64>,
    failures: usize,
    gap_max: Duration,
    cut_after: Option<Duration>,
}

#[derive(Clone)]
struct Plan {
    place: Place,
    accounts: Vec<(String, String)>,
    path: String,
    every: Duration,
    span: Duration,
}

impl Plan {
    async fn connect(&self, number: usize) -> Visitor {
        let (name, secret) = &self.accounts[number / OF_ACCOUNT % self.accounts.len()];
        self.place.connect().await.with_account(name, secret)
    }

    async fn watch(self, number: usize, kind: Kind, mut visitor: Visitor) -> Seen {
        // They do not all ask at one moment.
        sleep(self.every.mul_f64((number % 97) as f64 / 97.0)).await;
        match kind {
            Kind::Healthy => self.watch_well(number, visitor).await,
            Kind::Slow => {
                let mut seen = Seen::default();
                let began = Instant::now();
                while began.elapsed() < self.span {
                    let answer = visitor.get(&self.path).await;
                    let secs = answer.body.len() as f64 / SLOWLY_BYTES as f64;
                    seen.failures += usize::from(answer.status != 200);
                    sleep(Duration::from_secs_f64(secs.max(0.5))).await;
                }
                seen
            }
            Kind::Stalled => {
                visitor.get(&self.path).await;
                let began = Instant::now();
                let request = visitor.request(&self.path, "");
                // Asked and never read, until the other end has enough of it.
                let asking = async {
                    while visitor.try_send(&request).await {
                        sleep(self.every).await;
                    }
                };
                let is_cut = timeout(self.span, asking).await.is_ok();
                Seen { cut_after: is_cut.then(|| began.elapsed()), ..Seen::default() }
            }
        }
    }

    async fn watch_well(&self, number: usize, mut visitor: Visitor) -> Seen {
        let mut seen = Seen::default();
        let mut tick = interval(self.every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (began, mut last) = (Instant::now(), Instant::now());
        while began.elapsed() < self.span {
            tick.tick().await;
            let asked = Instant::now();
            match timeout(GIVES_UP, visitor.get(&self.path)).await {
                Ok(answer) if answer.status == 200 => {
                    seen.gap_max = seen.gap_max.max(last.elapsed());
                    last = Instant::now();
                    seen.times.push(asked.elapsed().as_secs_f64() * 1e3);
                }
                Ok(_) => seen.failures += 1,
                Err(_) => {
                    seen.failures += 1;
                    visitor = self.connect(number).await;
                }
            }
        }
        seen.gap_max = seen.gap_max.max(last.elapsed());
        seen
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [at, certificate, accounts, path, hz, secs, healthy, slow, stalled] = words[..] else {
        return println!("see the head of proxy/benches/viewers/main.rs; benches/viewers.sh starts it");
    };
    let text = std::fs::read_to_string(accounts).unwrap();
    let account =
        |line: &str| line.split_once(':').map(|(name, secret)| (name.to_owned(), secret.to_owned()));
    let plan = Plan {
        place: Place::encrypted(at.parse().unwrap(), "localhost", Path::new(certificate)),
        accounts: text.lines().filter_map(account).collect(),
        path: path.to_owned(),
        every: Duration::from_secs_f64(1.0 / hz.parse::<f64>().unwrap()),
        span: Duration::from_secs_f64(secs.parse().unwrap()),
    };
    let [healthy, slow, stalled] = [healthy, slow, stalled].map(|count| count.parse::<usize>().unwrap());
    let kind = |number: usize| match number {
        _ if number < stalled => Kind::Stalled,
        _ if number < stalled + slow => Kind::Slow,
        _ => Kind::Healthy,
    };
    let mut visitors = Vec::new();
    let mut connecting = JoinSet::new();
    for number in 0..healthy + slow + stalled {
        let plan = plan.clone();
        connecting.spawn(async move { (number, plan.connect(number).await) });
        if connecting.len() >= CONNECTING {
            visitors.push(connecting.join_next().await.unwrap().unwrap());
        }
    }
    visitors.extend(connecting.join_all().await);
    println!("ready");
    let mut watching = JoinSet::new();
    for (number, visitor) in visitors {
        watching.spawn(plan.clone().watch(number, kind(number), visitor));
    }
    tell(watching.join_all().await, stalled);
}

fn tell(all: Vec<Seen>, stalled: usize) {
    let failures: usize = all.iter().map(|seen| seen.failures).sum();
    let cut: Vec<Duration> = all.iter().filter_map(|seen| seen.cut_after).collect();
    let longest = cut.iter().max().copied().unwrap_or_default();
    let gaps = all.iter().filter(|seen| !seen.times.is_empty()).map(|seen| seen.gap_max.as_secs_f64() * 1e3);
    let gaps: Vec<f64> = gaps.collect();
    let times: Vec<f64> = all.into_iter().flat_map(|seen| seen.times).collect();
    let count = times.len();
    println!(
        "{count} {failures} {:.1} {:.1} {:.0} {}/{stalled} {:.0}",
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
