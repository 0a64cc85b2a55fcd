//! A grid as it works: a daemon of this machine, or a proxy, is asked again and again, and what it answers becomes a grid.
//!
//! One thread decides and tells, a few ask (`asking`), and one for each domain waits for its events (`ear`); so what
//! happens is drawn when it happens, nothing is asked without success, and no one who is late keeps others waiting. Rule: a daemon
//! that does not answer is told and tried again, later each time, up to [`PAUSE_MAX`]; what was known stays, and its age is
//! seen. Not here: what is known (`known`), what answers mean (`answers`), the flock (`flock`).

pub mod answers;
mod apart;
pub mod ask;
mod asking;
pub mod call_events;
mod calls;
mod control;
mod ear;
mod figures;
pub mod flock;
pub mod kept;
pub mod known;
mod orders;
pub mod rates;
mod sensors;
pub mod served;
mod subscribed;
pub mod sweeps;
mod turn;
pub mod via;

pub use known::PAUSE_MAX;

use crate::feed::{Feed, Rested, Update, Wish};
use crate::flock::sweep::HostName;
use crate::grid::Grid;
use asking::Askers;
use client::Error;
use client::typed::About;
use ear::Listening;
use known::Known;
use serde_json::json;
use std::time::Duration;
use via::Where;

/// How often it is told how the daemon is, and hosts grow older.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// Two grids are at least so long apart, and so many times as long as one takes to be put together.
const GRID_PAUSE: Duration = Duration::from_millis(25);
const GRID_PAUSE_RATIO: u32 = 4;
/// Between two tries of a single question.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How much of the past a graph is given at first, and where that is not enough: as much as a series holds, one sample a second.
const HISTORY: Duration = Duration::from_secs(900);
const HISTORY_LONG: Duration = Duration::from_secs(3_600);

/// What is asked, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The daemon, or a proxy.
    pub address: Where,
    /// Of these domains; of its own where none is named.
    pub domains: Vec<String>,
    /// Whether it is a directory: then of all that it knows, where none is named.
    pub is_directory: bool,
}

/// Ask as planned until no one listens.
///
/// # Errors
/// If a thread cannot be started.
pub fn follow(plan: Plan, feed: Feed) -> std::io::Result<()> {
    let askers = Askers::begin(&plan.address, &feed.poker())?;
    let ask = move || {
        let mut following = Following {
            known: Known::new(&plan.domains, plan.is_directory),
            askers,
            listening: Listening::new(plan.address.clone(), feed.poker()),
            begun: crate::clock::instant(),
            has_news: false,
            not_before: Duration::ZERO,
            status: None,
        };
        while following.go_on(&feed) {}
    };
    // It ends when the window does: `rest` says so.
    std::thread::Builder::new().name("viewer-live".into()).spawn(ask).map(drop)
}

/// The thread that decides.
struct Following {
    known: Known,
    askers: Askers,
    listening: Listening,
    begun: std::time::Instant,
    /// Whether there is something to draw that was not told.
    has_news: bool,
    /// No grid before this.
    not_before: Duration,
    /// When the status was told, and whether the daemon was lost.
    status: Option<(Duration, bool)>,
}

impl Following {
    /// Ask what is due, tell what is new, wait until there is more. Whether anybody listens.
    fn go_on(&mut self, feed: &Feed) -> bool {
        let (now, at) = (self.begun.elapsed(), crate::clock::now());
        while let Some((answer, took)) = self.askers.answer() {
            let changed = self.known.take(answer, now, at, took);
            self.has_news |= changed.grid;
            changed.told.into_iter().for_each(|update| feed.tell(update));
            if self.status.is_none_or(|(_, was_lost)| was_lost != self.known.is_lost()) {
                self.tell_status(feed, now);
            }
        }
        while self.askers.has_room()
            && let Some(question) = self.known.question(now, at)
        {
            self.askers.ask(question);
        }
        self.listen();
        if self.has_news && now >= self.not_before {
            self.has_news = false;
            feed.tell(Update::grid(self.known.grid(now, at)));
            let took = self.begun.elapsed().saturating_sub(now);
            self.not_before = now + took + GRID_PAUSE.max(took * GRID_PAUSE_RATIO);
        }
        if self.status.is_some_and(|(told, _)| now >= told + STATUS_EVERY) {
            self.tell_status(feed, now);
        }
        self.rest(feed)
    }

    fn tell_status(&mut self, feed: &Feed, now: Duration) {
        self.status = Some((now, self.known.is_lost()));
        feed.tell(Update::Status(self.known.status(&self.listening.address)));
    }

    fn listen(&mut self) {
        if self.known.is_lost() {
            return;
        }
        for (domain, ear) in self.known.unheard() {
            if !self.listening.has_room() {
                return;
            }
            *ear = self.listening.listen(domain);
        }
    }

    fn rest(&mut self, feed: &Feed) -> bool {
        let status = self.status.map(|(told, _)| told + STATUS_EVERY);
        let grid = self.has_news.then_some(self.not_before);
        // An answer pokes, and then there is room.
        let question = if self.askers.has_room() { self.known.next_due() } else { None };
        let next = [status, grid, question].into_iter().flatten().min();
        let time = next.map_or(STATUS_EVERY, |next| next.saturating_sub(self.begun.elapsed()));
        match feed.rest(time) {
            Rested::Whole => {}
            Rested::Wished(Wish::Figures(wanted)) => self.known.figures.want(wanted),
            Rested::Wished(Wish::Add(domain)) => self.known.add(&domain),
            Rested::Wished(Wish::Drop(domain)) => {
                self.known.drop_domain(&domain);
                self.has_news = true;
            }
            Rested::Wished(Wish::Sensors(wanted)) => self.known.sensors.want(wanted),
            Rested::Wished(
                Wish::Look
                | Wish::Flock(_)
                | Wish::Past(_)
                | Wish::Order(_)
                | Wish::Kill(_)
                | Wish::Served(_),
            ) => {}
            Rested::Alone => return false,
        }
        true
    }
}

/// The grid of a plan, asked for once, and why domains of it could not be asked; tried again until `wait` is over.
///
/// # Errors
/// What the last try met, or that no domain could be asked.
pub fn once(plan: &Plan, wait: Duration) -> Result<(Grid, Vec<String>), String> {
    let begun = crate::clock::instant();
    let mut client = asking::client(plan.address.clone());
    loop {
        match once_tried(plan, &mut client) {
            Ok((grid, troubles)) if grid.places.is_empty() && !troubles.is_empty() => {
                return Err(troubles.join("; "));
            }
            Ok(told) => return Ok(told),
            Err(error)
                if begun.elapsed() > wait || !matches!(error, Error::Unreachable(_) | Error::Lost { .. }) =>
            {
                return Err(error.to_string());
            }
            Err(_) => std::thread::sleep(TRY_EVERY),
        }
    }
}

fn once_tried(plan: &Plan, client: &mut ask::Client) -> Result<(Grid, Vec<String>), Error> {
    let mut known = Known::new(&plan.domains, plan.is_directory);
    // At the first moment all is due, and after it nothing more.
    let (now, at) = (Duration::ZERO, crate::clock::now());
    while let Some(question) = known.question(now, at) {
        let answer = asking::ask(client, question);
        if let Some(error) = known.take(answer, now, at, Duration::ZERO).error {
            return Err(error);
        }
    }
    Ok((known.grid(now, at), known.troubles().cloned().collect()))
}

/// A host's names as parameters of a question.
fn named(host: &HostName) -> serde_json::Value {
    at(host, json!({}))
}

/// Parameters of a question to a host.
fn about(host: &HostName) -> About {
    let domain = Some(host.domain.to_string()).filter(|domain| !domain.is_empty());
    About { domain, host: Some(host.host.to_string()) }
}

fn at(host: &HostName, mut params: serde_json::Value) -> serde_json::Value {
    if !host.domain.is_empty() {
        params["domain"] = (*host.domain).into();
    }
    params["host"] = (*host.host).into();
    params
}
