//! Simulated representatives of many domains at a real directory: each has its own key, certificate and
//! connection, states its record every five seconds, and some look up other domains.
//!
//! ```text
//! domains admit FOLDER DOMAINS                        write the list of admitted domains of a directory
//! domains state KEY@ADDRESS DOMAINS RESOLVES:SECONDS[,RESOLVES:SECONDS…]
//! ```
//! `ready` is printed once every domain was stated; then each phase runs: all domains continue stating, and
//! this many look-ups a second are sent over the connections of [`ASKERS`] of them. The results are printed
//! at the end of a phase. Started by `benches/directory.sh`, which measures the directory.
#![allow(clippy::print_stdout)]

#[path = "../grid/mod.rs"]
mod grid;
mod representative;

use anyhow::{Context as _, bail};
use directory::admission::List;
use directory::admitted_file;
use overlay::config::parse_contact;
use representative::{Outcomes, Representative, name, root};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::id::DomainName;
use wire::join::Directory;

/// Daemons that send look-ups; each has at most as many questions in flight as a real daemon.
const ASKERS: usize = 50;
/// Domains that connect concurrently.
const CONNECTING_MAX: usize = 32;
/// Timer interval for starting look-ups, the shortest that the timer supports.
const STEP: Duration = Duration::from_millis(1);
/// Most look-ups in flight: beyond them the directory is behind, and no more are started.
const UNDER_WAY_MAX: usize = 1024;

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let words = grid::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            println!("made-up domains at a directory, started by benches/directory.sh");
            Ok(())
        }
        ["admit", folder, domains] => admit(Path::new(folder), domains.parse()?),
        ["state", contact, domains, phases] => state(contact, domains.parse()?, phases).await,
        _ => bail!("expected admit FOLDER DOMAINS, or state KEY@ADDRESS DOMAINS RESOLVES:SECONDS"),
    }
}

fn admit(folder: &Path, domains: u32) -> anyhow::Result<()> {
    let mut list = List::default();
    for nth in 0..domains {
        list.add(name(nth), root(nth).peer())?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(admitted_file::write(folder, &list)?)
}

async fn state(contact: &str, domains: u32, phases: &str) -> anyhow::Result<()> {
    let (key, address) = parse_contact(contact).map_err(anyhow::Error::msg)?;
    let directory = Directory { key, addresses: vec![address] };
    let (ending, outcomes) = (CancellationToken::new(), Arc::new(Outcomes::default()));
    let connecting = Arc::new(Semaphore::new(CONNECTING_MAX));
    let mut tasks = JoinSet::new();
    let mut askers = Vec::new();
    for nth in 0..domains {
        let seat = Arc::clone(&connecting).acquire_owned().await?;
        let one = Arc::new(Representative::start(nth, &directory, &mut tasks, &ending)?);
        if askers.len() < ASKERS {
            askers.push(Arc::clone(&one));
        }
        let (outcomes, ending) = (Arc::clone(&outcomes), ending.clone());
        tasks.spawn(async move {
            one.keep_stated(seat, &outcomes, ending).await;
        });
    }
    // All permits are free again: every domain was stated once.
    drop(connecting.acquire_many(u32::try_from(CONNECTING_MAX)?).await?);
    println!("ready: {}", outcomes.take());
    for phase in phases.split(',') {
        let (rate, secs) = phase.split_once(':').context("a phase is RESOLVES:SECONDS")?;
        let (rate, secs): (u32, u64) = (rate.parse()?, secs.parse()?);
        resolve(&askers, domains, rate, Duration::from_secs(secs), &outcomes).await;
        println!("phase of {rate} look-ups/s, {secs} s: {}", outcomes.take());
    }
    ending.cancel();
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Look up domains at this rate.
async fn resolve(
    askers: &[Arc<Representative>],
    domains: u32,
    rate: u32,
    span: Duration,
    outcomes: &Arc<Outcomes>,
) {
    let names: Vec<DomainName> = (0..domains).map(|at| name(at.wrapping_mul(7919) % domains)).collect();
    let (began, mut asked) = (overlay::clock::now(), 0u64);
    let mut step = tokio::time::interval(STEP);
    let mut asking = JoinSet::new();
    loop {
        step.tick().await;
        while asking.try_join_next().is_some() {}
        let passed = overlay::clock::now().since(began);
        if passed >= span {
            break;
        }
        let due = (passed.as_millis() as u64) * u64::from(rate) / 1000;
        while asked < due && asking.len() < UNDER_WAY_MAX {
            let at = usize::try_from(asked).unwrap_or_default();
            let (asker, name) = (Arc::clone(&askers[at % askers.len()]), names[at % names.len()].clone());
            let outcomes = Arc::clone(outcomes);
            asking.spawn(async move { asker.resolve(name, &outcomes).await });
            asked += 1;
        }
    }
    asking.join_all().await;
}
