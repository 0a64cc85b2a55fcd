//! HTTP requests on persistent connections: to a sensor itself, to a tunnel to it, or to a proxy's listener
//! with TLS and Digest.
//!
//! Rule: the same requests and the same parsing of answers for every path. Not here: the path.

use crate::measure::{STREAMS, WARM, cpu_secs, middle_and_slow};
use crate::visitor::{Place, Visitor};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Connections per account. The proxy limits the concurrent calls of an account for one domain
/// (`proxy::authorizer`), so the connections are spread over several accounts.
const EACH_ACCOUNT: usize = 8;

/// Server to query and accounts `NAME:SECRET`; a sensor itself needs none.
pub(crate) struct HttpLoad {
    place: Place,
    accounts: Vec<(String, String)>,
}

impl HttpLoad {
    pub(crate) fn new(at: &str, certificate: &str, accounts: &str) -> HttpLoad {
        let at: SocketAddr = at.parse().unwrap();
        let account = |text: &str| text.split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let place = match certificate {
            "" => Place::plain(at),
            file => Place::encrypted(at, "localhost", Path::new(file)),
        };
        HttpLoad { place, accounts: accounts.split(',').filter_map(account).collect() }
    }

    async fn connect(&self, number: usize) -> Visitor {
        let visitor = self.place.connect().await;
        match self.accounts.get(number / EACH_ACCOUNT % self.accounts.len().max(1)) {
            Some((name, secret)) => visitor.with_account(name, secret),
            None => visitor,
        }
    }

    /// Print the row of `name`: requests for `small` on one connection, for `large` on one and on 32.
    pub(crate) async fn measure(&self, name: &str, [small, large]: [&str; 2], secs: f64, pids: &[&str]) {
        let span = Duration::from_secs_f64(secs);
        let mut one = self.connect(0).await;
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < WARM + span {
            let asked = Instant::now();
            assert_eq!(one.get(small).await.status, 200);
            if began.elapsed() > WARM {
                times.push(asked.elapsed().as_secs_f64() * 1e6);
            }
        }
        let [p50, p99] = middle_and_slow(times);
        let first = self.bulk(large, 1, span, pids).await;
        let many = self.bulk(large, STREAMS, span, pids).await;
        println!(
            "{name}\t{p50:.0}\t{p99:.0}\t{:.0}\t{:.2}\t{:.0}\t{:.2}",
            first[0], first[1], many[0], many[1]
        );
    }

    /// MB per second, and seconds of CPU time per GB.
    async fn bulk(&self, path: &str, connections: usize, span: Duration, pids: &[&str]) -> [f64; 2] {
        let counted = Arc::new(AtomicU64::new(0));
        let mut asking = JoinSet::new();
        for number in 0..connections {
            let mut visitor = self.connect(number).await;
            let (counted, path) = (Arc::clone(&counted), path.to_owned());
            asking.spawn(async move {
                loop {
                    assert_eq!(visitor.get_counting(&path, &counted).await.status, 200);
                }
            });
        }
        let read = || counted.load(Ordering::Relaxed);
        tokio::time::sleep(WARM).await;
        let (bytes, cpu, began) = (read(), cpu_secs(pids), Instant::now());
        tokio::time::sleep(span).await;
        let (bytes, cpu, secs) = (read() - bytes, cpu_secs(pids) - cpu, began.elapsed().as_secs_f64());
        asking.shutdown().await;
        [bytes as f64 / secs / 1e6, cpu / bytes as f64 * 1e9]
    }
}
