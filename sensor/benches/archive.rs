//! Benchmark of an archive: how many runs of jobs it copies a second, each part on disk before the next is asked for.
//!
//! `cargo bench -p sensor --bench archive` lets runs of half an hour on ten hosts be stored there, and one archive copy all of them
//! by the methods of the hosts, within one process: so the CPU time is that of both sides. It prints the wall and the CPU time, and
//! what a query of a run's curve takes at the archive and at its host; for runs of one curve, which is six series, and of seven.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark: it has a clock and prints.

#[path = "../tests/integration/archive/site.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod site;

use site::{NOON, Site, config};
use std::time::{Duration, Instant};
use wire::query::Viewer;

const HOSTS: usize = 10;
const RUNS: u32 = 200;
/// Length of a run, in seconds.
const RUN_SECS: u64 = 1800;

/// CPU time of this process, in seconds: proc(5), fields 14 and 15, in hundredths.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn hosts() -> impl Iterator<Item = String> {
    (1..=HOSTS).map(|number| format!("wn{number:02}"))
}

/// The name of a curve of a run.
fn job(run: u32, curve: usize) -> String {
    format!("slurm:{}", run as usize * 10 + curve)
}

async fn median(site: &Site, host: &str, measured_by: Option<&str>) -> Duration {
    let mut took = Vec::new();
    for run in 0..50 {
        let (job, since) = (job(run, 0), NOON.plus(Duration::from_secs(RUN_SECS) * run));
        let at = Instant::now();
        let series = site.series(host, measured_by, &job, since, Viewer::Trusted).await.expect("an answer");
        took.push(at.elapsed());
        assert_eq!(series.curves.len(), 1, "{job}");
    }
    took.sort_unstable();
    took[took.len() / 2]
}

async fn measure(curves: usize) {
    let site = Site::default();
    for host in hosts() {
        site.start(&host, None);
        for run in 0..RUNS {
            let started = NOON.plus(Duration::from_secs(RUN_SECS) * run);
            let jobs: Vec<String> = (0..curves).map(|curve| job(run, curve)).collect();
            site.run_jobs(&host, &jobs, started, RUN_SECS);
        }
    }
    let all: u64 = hosts().flat_map(|host| site.own_days(&host)).map(|(_, len)| len).sum();
    let (at, before) = (Instant::now(), cpu_secs());
    site.start("store1", Some(config(1 << 30, 1)));
    let is_there = |site: &Site| {
        hosts().all(|host| site.archived("store1", &host).is_some_and(|host| host.complete.is_some()))
    };
    site.until("all is there", is_there).await;
    let (wall, cpu) = (at.elapsed().as_secs_f64(), cpu_secs() - before);
    let (runs, mib) = (f64::from(RUNS), all as f64 / f64::from(1 << 20));
    println!("{RUNS} runs of {HOSTS} hosts, {} min and {curves} curves: {mib:.1} MiB", RUN_SECS / 60);
    println!("  {wall:.2} s, {:.0} runs/s, {:.0} MiB/s", runs / wall, mib / wall);
    println!("  {cpu:.2} s of CPU time, {:.0} runs/s of one core", runs / cpu.max(0.01));
    let own = median(&site, "wn01", None).await;
    let copy = median(&site, "store1", Some("wn01")).await;
    println!(
        "  curve of a run, of a host with {RUNS}: median {own:.1?} at the host, {copy:.1?} at the archive"
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        measure(1).await;
        measure(7).await;
    });
}
