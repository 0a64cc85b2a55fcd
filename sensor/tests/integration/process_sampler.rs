//! Process sampling thread: which sweeps its taps see, and how often, while rates are requested and
//! withdrawn.

use sensor::process::sampler::{Handle, Sampler};
use sensor::process::source::{ChosenSource, Error, Kind, Source, View};
use sensor::process::table::Coverage;
use sensor::process::tap::Tap;
use sensor::sample::schedule::Rate;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A source without processes that counts its sweeps.
struct Empty;

impl Source for Empty {
    fn kind(&self) -> Kind {
        Kind::BpfSweep
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        view.table.begin(number, number, Coverage::All);
        view.table.end(0);
        Ok(())
    }

    fn drain(&mut self, _: &mut View) {}

    fn lost_total(&self) -> u64 {
        0
    }
}

/// Records its name with the number of each sweep.
struct Noting(&'static str, Arc<Mutex<Vec<(&'static str, u64)>>>);

impl Tap for Noting {
    fn swept(&mut self, view: &View, now: Duration) {
        assert!(!now.is_zero());
        self.1.lock().expect("no tap panics").push((self.0, view.table.sweep().number));
    }
}

type Notes = Arc<Mutex<Vec<(&'static str, u64)>>>;

fn sampler(hz: f64) -> (Sampler, Notes) {
    let notes = Notes::default();
    let taps: Vec<Box<dyn Tap>> =
        vec![Box::new(Noting("first", Arc::clone(&notes))), Box::new(Noting("second", Arc::clone(&notes)))];
    let chosen = ChosenSource { source: Box::new(Empty), reasons: Vec::new() };
    (Sampler::new(chosen, Path::new("/proc"), rate(hz), taps), notes)
}

fn rate(hz: f64) -> Rate {
    Rate::of_processes(hz).expect("allowed")
}

/// Runs the sampler until `is_done` returns true; polls it every millisecond.
async fn run_until(sampler: Sampler, mut is_done: impl FnMut(&Handle) -> bool) -> Handle {
    let handle = sampler.handle();
    let shutdown = CancellationToken::new();
    let running = sampler.run(shutdown.clone());
    let asking = async {
        let mut ask = tokio::time::interval(Duration::from_millis(1));
        while !is_done(&handle) {
            ask.tick().await;
        }
        shutdown.cancel();
    };
    let both = async { tokio::join!(running, asking).0 };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("in time").expect("it does not panic");
    handle
}

#[tokio::test]
async fn every_tap_sees_every_sweep_in_order_and_what_they_took_is_reported() {
    let (sampler, notes) = sampler(500.0);
    let handle = run_until(sampler, |handle| handle.status().sweeps_total >= 50).await;
    let status = handle.status();
    assert!(status.taps_ns_total > 0);
    let notes = notes.lock().expect("no tap panics").clone();
    assert_eq!(notes.len() as u64, 2 * status.sweeps_total);
    for pair in notes.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0), ("first", "second"));
        assert_eq!(pair[0].1, pair[1].1);
    }
}

#[tokio::test]
async fn rates_wished_for_change_while_it_runs_and_no_sweep_is_lost() {
    let (sampler, notes) = sampler(0.1);
    let (wish, other) = (sampler.handle().demand(), sampler.handle().demand());
    let mut changes = 0_u32;
    let handle = run_until(sampler, |handle| {
        changes += 1;
        wish.set(Some(rate(f64::from(200 + changes % 7 * 100))));
        other.set(changes.is_multiple_of(3).then(|| rate(1000.0)));
        changes >= 1000 && handle.status().sweeps_total >= 100
    })
    .await;
    let status = handle.status();
    let numbers: Vec<u64> = notes
        .lock()
        .expect("no tap panics")
        .iter()
        .filter(|(name, _)| *name == "first")
        .map(|(_, number)| *number)
        .collect();
    assert_eq!(numbers.len() as u64, status.sweeps_total, "every sweep was shown");
    // Numbers also count slipped sweeps; no other number is missing.
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert!(numbers.last().expect("some") - status.sweeps_total <= status.slipped_total);
    drop((wish, other));
    assert_eq!(handle.rate(), rate(0.1), "withdrawn with their guards");
}
