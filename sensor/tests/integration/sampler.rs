//! Sampling thread, on this host's own clock.

#![allow(clippy::unwrap_used)]

use sensor::sample::collector::{Collector, Collectors, Error, Now};
use sensor::sample::sampler::{Handle, Sampler};
use sensor::sample::schedule::Rate;
use sensor::sample::table::{Rows, Table, metric};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::sample::{Metric, Number, Semantics};

/// Timeout: far longer than any step of these tests takes.
const PATIENCE: Duration = Duration::from_secs(30);

struct Counting(u64, Arc<Metric>);

impl Collector for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        self.0 += 1;
        out.push_whole(&self.1, self.0);
        Ok(())
    }
}

/// Every table that a sampler handed to its sink.
type Stored = Arc<Mutex<Vec<Arc<Table>>>>;

fn start(hz: f64) -> (Handle, CancellationToken, JoinHandle<Result<(), sensor::sample::ticker::Error>>) {
    let (handle, _, shutdown, running) = start_with_sink(hz);
    (handle, shutdown, running)
}

fn start_with_sink(
    hz: f64,
) -> (Handle, Stored, CancellationToken, JoinHandle<Result<(), sensor::sample::ticker::Error>>) {
    let counting = Counting(0, metric("sweeps", "", Semantics::Counter, &[]));
    let mut sampler = Sampler::new(Collectors::new(vec![Box::new(counting)]), Rate::from_hz(hz).unwrap());
    let stored = Stored::default();
    let sink = Arc::clone(&stored);
    sampler.set_sink(Box::new(move |table| sink.lock().unwrap().push(Arc::clone(table))));
    let (handle, shutdown) = (sampler.handle(), CancellationToken::new());
    (handle, stored, shutdown.clone(), tokio::spawn(sampler.run(shutdown)))
}

async fn await_sweep(handle: &Handle, number: u64) {
    let reached = |table: &Option<Arc<Table>>| {
        table.as_ref().is_some_and(|table| table.get("sweeps", &[]).unwrap().as_f64() >= number as f64)
    };
    let mut tables = handle.subscribe();
    tokio::time::timeout(PATIENCE, tables.wait_for(reached)).await.expect("in time").unwrap();
}

#[tokio::test]
async fn every_table_is_published_and_stored_until_shutdown() {
    let (handle, stored, shutdown, running) = start_with_sink(10.0);
    await_sweep(&handle, 4).await;
    shutdown.cancel();
    tokio::time::timeout(PATIENCE, running).await.expect("in time").unwrap().unwrap();
    let stored = stored.lock().unwrap();
    let values: Vec<Number> = stored.iter().map(|table| table.get("sweeps", &[]).unwrap()).collect();
    assert_eq!(values[..4], [1, 2, 3, 4].map(Number::Whole));
    let spacing = stored[3].time().since(stored[0].time());
    assert!(spacing >= Duration::from_millis(150), "four sweeps at 10 Hz within {spacing:?}");
    let sweeps = handle.counts().sweeps_total;
    assert_eq!(stored.len() as u64, sweeps);
    assert_eq!(handle.latest().unwrap().get("sweeps", &[]), Some(Number::Whole(sweeps)));
}

#[tokio::test]
async fn the_rate_changes_at_once() {
    let (handle, shutdown, running) = start(0.1);
    await_sweep(&handle, 1).await;
    assert_eq!(handle.rate(), Rate::from_hz(0.1).unwrap());
    // At the old rate the next sweeps would come after 10 and 20 s.
    let asked = tokio::time::Instant::now();
    handle.set_rate(Rate::from_hz(10.0).unwrap());
    await_sweep(&handle, 3).await;
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_aborted_task_stops_its_thread() {
    let (handle, _shutdown, running) = start(10.0);
    await_sweep(&handle, 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    // One sweep may be in progress; after it no table comes, though five would be due.
    let mut tables = handle.subscribe();
    for _ in 0..10 {
        if tokio::time::timeout(Duration::from_millis(500), tables.changed()).await.is_err() {
            return;
        }
    }
    panic!("it sweeps on");
}
