//! A grid as it works: a daemon of this machine is asked again and again, and what it answers becomes a grid.
//!
//! A thread asks, another for each domain waits for its events and has the first ask at once when one comes; so what
//! happens is drawn when it happens, and nothing is asked in vain. Rule: a daemon that does not answer is told and tried
//! again, later each time, up to [`PAUSE_MAX`]; what was known stays, and its age is seen. Not here: what is known
//! (`known`), what answers mean (`answers`), the flock (`flock`).

pub mod answers;
pub mod flock;
pub mod http;
pub mod known;
pub mod rates;
pub mod served;
pub mod sweeps;

use crate::feed::{Feed, Poker, Rested, Status, Update, Wish};
use crate::flock::sweep::HostName;
use crate::grid::Grid;
use http::{Client, Error};
use known::Known;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often hosts and their figures are asked for; they report each second.
const FIGURES_EVERY: Duration = Duration::from_secs(1);
/// Two questions for calls are at least so long apart, however much happens: nobody sees more pictures.
const LOOK_PAUSE: Duration = Duration::from_millis(25);
/// All calls are asked for anew at every so many rounds: ids become better as more is known.
const WHOLE_EVERY: u32 = 60;
/// How long a daemon may wait for an event before it answers with none, in seconds.
const WAIT_SECS: u32 = 20;
/// Events asked for at once; that there is one is all that counts.
const EVENTS_ASKED: u32 = 1_000;
/// Until a daemon that could not be asked for events is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two tries of a single question.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How much of the past a graph is given at first.
const HISTORY: Duration = Duration::from_secs(900);
/// Longest time between two tries, where nobody answers.
pub const PAUSE_MAX: Duration = Duration::from_secs(8);

/// What is asked, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The daemon.
    pub address: SocketAddr,
    /// Of these domains; of its own where none is named.
    pub domains: Vec<String>,
    /// Whether it is a directory: then of all that it knows, where none is named.
    pub is_directory: bool,
}

/// Ask as planned until nobody listens.
///
/// # Errors
/// If a thread cannot be begun.
pub fn follow(plan: Plan, feed: Feed) -> std::io::Result<()> {
    let ask = move || {
        let (mut client, mut known) = (Client::new(plan.address), Known::new(&plan.domains));
        let (mut pause, mut failures) = (FIGURES_EVERY, 0);
        let mut wants_all = plan.is_directory && plan.domains.is_empty();
        loop {
            let begun = crate::clock::instant();
            if wants_all && known.take_domains(&mut client).is_ok() {
                wants_all = false;
            }
            match round(&mut known, &mut client, &feed, plan.address) {
                Ok(()) => {
                    (pause, failures) = (FIGURES_EVERY, 0);
                    let took_secs = begun.elapsed().as_secs_f64();
                    let (address, troubles) = (plan.address.to_string(), known.troubles());
                    feed.tell(Update::Status(Status::Connected { address, took_secs, troubles }));
                }
                Err(error) => {
                    pause = if failures == 0 { AGAIN / 2 } else { (pause * 2).min(PAUSE_MAX) };
                    failures += 1;
                    known.begin_anew();
                    feed.tell(Update::Status(Status::Lost { what: error.to_string() }));
                }
            }
            if !until_due(&mut known, &mut client, &feed, (pause, failures > 0)) {
                return;
            }
        }
    };
    // It ends when the window does: `rest` says so.
    std::thread::Builder::new().name("viewer-live".into()).spawn(ask).map(drop)
}

/// Rest until the next round is due; look at calls meanwhile whenever something happens. Whether anybody listens.
fn until_due(
    known: &mut Known,
    client: &mut Client,
    feed: &Feed,
    (pause, is_lost): (Duration, bool),
) -> bool {
    let due = crate::clock::instant() + pause;
    let mut looked = None;
    loop {
        let left = due.saturating_duration_since(crate::clock::instant());
        match feed.rest(left) {
            Rested::Whole => return true,
            Rested::Wished(Wish::Look) if is_lost => {}
            Rested::Wished(Wish::Look) => {
                if let Some(pause) =
                    looked.and_then(|at: std::time::Instant| LOOK_PAUSE.checked_sub(at.elapsed()))
                {
                    std::thread::sleep(pause);
                }
                if known.look(client).is_ok_and(|changed| changed) {
                    feed.tell(Update::grid(known.grid(crate::clock::now())));
                }
                looked = Some(crate::clock::instant());
            }
            Rested::Wished(Wish::Watch(host)) => {
                known.watch(host);
                return true;
            }
            Rested::Wished(Wish::Add(domain)) => {
                known.add(&domain);
                return true;
            }
            Rested::Wished(Wish::Drop(domain)) => {
                known.drop_domain(&domain);
                return true;
            }
            Rested::Wished(Wish::Flock(_) | Wish::Kill(_) | Wish::Served(_)) => {}
            Rested::Alone => return false,
        }
    }
}

/// Ask for all that is due, and tell what is new.
fn round(known: &mut Known, client: &mut Client, feed: &Feed, address: SocketAddr) -> Result<(), Error> {
    known.take_hosts(client)?;
    known.look(client)?;
    feed.tell(Update::grid(known.grid(crate::clock::now())));
    for domain in known.unheard() {
        // Without it all is asked for each second.
        if listen(address, domain, feed.poker()).is_err() {
            break;
        }
    }
    if let Some((host, series)) = known.figures(client)? {
        feed.tell(Update::Series { host, series: Arc::new(series) });
    }
    Ok(())
}

/// Wait for events of a domain (the daemon's own where none is named), and have calls asked for when one comes.
fn listen(address: SocketAddr, domain: Option<String>, poker: Poker) -> std::io::Result<()> {
    let wait = move || {
        let mut client = Client::new(address);
        let mut cursor = "end".to_owned();
        while poker.is_open() {
            let mut params = json!({ "cursor": cursor, "wait": WAIT_SECS, "limit": EVENTS_ASKED });
            if let Some(domain) = &domain {
                params["domain"] = domain.as_str().into();
            }
            match client.ask("domain.events", &params) {
                Ok(answer) => {
                    if answer["events"].as_array().is_some_and(|events| !events.is_empty()) {
                        poker.poke();
                    }
                    cursor = answers::text(&answer, "cursor");
                }
                Err(_) => {
                    // The thread that asks for the rest tells what is wrong.
                    "end".clone_into(&mut cursor);
                    std::thread::sleep(AGAIN);
                }
            }
        }
    };
    // It ends when the window does: the poker says so.
    std::thread::Builder::new().name("viewer-events".into()).spawn(wait).map(drop)
}

/// The grid of a plan, asked for once; tried again until `wait` is over.
///
/// # Errors
/// What the last try met.
pub fn once(plan: &Plan, wait: Duration) -> Result<Grid, Error> {
    let begun = crate::clock::instant();
    let (mut client, mut known) = (Client::new(plan.address), Known::new(&plan.domains));
    loop {
        match once_tried(plan, &mut client, &mut known) {
            Ok(()) => return Ok(known.grid(crate::clock::now())),
            Err(error) if begun.elapsed() > wait || !matches!(error, Error::Unreachable { .. }) => {
                return Err(error);
            }
            Err(_) => std::thread::sleep(TRY_EVERY),
        }
    }
}

fn once_tried(plan: &Plan, client: &mut Client, known: &mut Known) -> Result<(), Error> {
    if plan.is_directory && plan.domains.is_empty() {
        known.take_domains(client)?;
    }
    known.take_hosts(client)?;
    known.look(client).map(drop)
}

/// A host's names as parameters of a question.
fn named(host: &HostName) -> serde_json::Value {
    let mut params = json!({ "host": &*host.host });
    if !host.domain.is_empty() {
        params["domain"] = (*host.domain).into();
    }
    params
}
