//! One row of the table: latency of small queries, throughput, and CPU time.
//!
//! ```text
//! question: 1 KiB, its first 8 bytes the length of the answer ──▶ that many bytes
//! ```
//! Rule: the same exchange over every kind of stream; received bytes are counted, not sent bytes.
//! Not here: the stream itself.

use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Length of a query, and of the answer to a small one.
const SMALL_LEN_BYTES: usize = 1024;
/// Length of one bulk answer: longer than the measurement.
const BULK_LEN_BYTES: u64 = 1 << 40;
/// Bytes per write and read.
const PAGE_LEN_BYTES: usize = 64 << 10;
/// Interval between two small queries.
const QUESTION_EVERY: Duration = Duration::from_millis(1);
/// Concurrent streams in the last figure.
pub(crate) const STREAMS: usize = 32;
/// Warm-up time, not measured: windows grow, keys are exchanged.
pub(crate) const WARM: Duration = Duration::from_millis(500);

/// Answer queries until the other end closes.
pub(crate) async fn answer_on<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let page = vec![0x5a; PAGE_LEN_BYTES];
    let mut question = [0; SMALL_LEN_BYTES];
    while stream.read_exact(&mut question).await.is_ok() {
        let mut left = u64::from_be_bytes(question[..8].try_into().expect("8 bytes"));
        while left > 0 {
            let count = usize::try_from(left.min(page.len() as u64)).expect("a page");
            if stream.write_all(&page[..count]).await.is_err() {
                return;
            }
            left -= count as u64;
        }
        if stream.flush().await.is_err() {
            return;
        }
    }
}

async fn question<S: AsyncWrite + Unpin>(stream: &mut S, answer_len_bytes: u64) {
    let mut question = [0; SMALL_LEN_BYTES];
    question[..8].copy_from_slice(&answer_len_bytes.to_be_bytes());
    stream.write_all(&question).await.unwrap();
    stream.flush().await.unwrap();
}

pub(crate) struct Row;

impl Row {
    /// Open streams with `open`, measure each figure for `secs`, and print the row.
    pub(crate) async fn measure<S>(name: &str, open: impl AsyncFn() -> S, secs: f64, pids: &[&str])
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let span = Duration::from_secs_f64(secs);
        let [p50, p99] = small(open().await, span).await;
        let one = bulk(vec![open().await], span, pids).await;
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(open().await);
        }
        let many = bulk(streams, span, pids).await;
        println!(
            "{name}\t{p50:.0}\t{p99:.0}\t{:.0}\t{:.2}\t{:.0}\t{:.2}",
            one.mb_per_sec, one.cpu_secs_per_gb, many.mb_per_sec, many.cpu_secs_per_gb
        );
    }
}

/// Median and 99th percentile of the latency of small queries in microseconds, at a thousand queries per
/// second.
async fn small<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, span: Duration) -> [f64; 2] {
    let mut times = Vec::new();
    let mut page = [0; SMALL_LEN_BYTES];
    let mut tick = tokio::time::interval(QUESTION_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let began = Instant::now();
    while began.elapsed() < WARM + span {
        tick.tick().await;
        let asked = Instant::now();
        question(&mut stream, SMALL_LEN_BYTES as u64).await;
        stream.read_exact(&mut page).await.unwrap();
        if began.elapsed() > WARM {
            times.push(asked.elapsed().as_secs_f64() * 1e6);
        }
    }
    middle_and_slow(times)
}

/// Median and 99th percentile.
pub(crate) fn middle_and_slow(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [50, 99].map(|percent| times[times.len() * percent / 100])
}

struct Bulk {
    mb_per_sec: f64,
    cpu_secs_per_gb: f64,
}

/// Read bulk answers on all streams at once.
async fn bulk<S>(streams: Vec<S>, span: Duration, pids: &[&str]) -> Bulk
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let read = || counted.load(std::sync::atomic::Ordering::Relaxed);
    let mut reading = JoinSet::new();
    for mut stream in streams {
        let counted = std::sync::Arc::clone(&counted);
        reading.spawn(async move {
            question(&mut stream, BULK_LEN_BYTES).await;
            let mut page = vec![0; PAGE_LEN_BYTES];
            while let Ok(count @ 1..) = stream.read(&mut page).await {
                counted.fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
            }
        });
    }
    tokio::time::sleep(WARM).await;
    let (bytes, cpu, began) = (read(), cpu_secs(pids), Instant::now());
    tokio::time::sleep(span).await;
    let (bytes, cpu, secs) = (read() - bytes, cpu_secs(pids) - cpu, began.elapsed().as_secs_f64());
    reading.shutdown().await;
    let bytes = bytes as f64;
    Bulk { mb_per_sec: bytes / secs / 1e6, cpu_secs_per_gb: cpu / bytes * 1e9 }
}

/// CPU time of this process and of `pids`, user and system, in seconds.
pub(crate) fn cpu_secs(pids: &[&str]) -> f64 {
    let of = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Clock ticks, a hundred per second on every Linux.
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    };
    of("self") + pids.iter().map(|pid| of(pid)).sum::<f64>()
}
