//! Reader of the journal for subscriptions, and task that passes the sweeps over the host on to them.
//!
//! Shell: a thread that reads the journal, as often as the fastest subscription requires, and a task that
//! waits for sweeps. Rules: each subscription has its own position in the journal and waits there while it
//! has no room, so that no event is left out except those that the journal itself has deleted; without a
//! subscription nothing is read.
//! Not here: the evaluation (`scheduler`).

use super::event_evaluation::EventOrCall;
use super::host_evaluation::Sweep;
use super::hub::{Hub, Id};
use super::subscription::Subscription;
use crate::journal::reader::{Page, Reader};
use crate::process::boot_time::boot_ns;
use crate::sample::schedule::{RATE_MIN_HZ, Rate};
use crate::sample::table::Table;
use crate::sample::ticker::{self, Next, Ticker, running};
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::call::Call;
use wire::channel::Kind;
use wire::channel::stream::{Change, Occurrence};
use wire::event::Event;
use wire::time::Time;

/// Most events per read. No other subscription is served while one is evaluated over them.
const EVENTS_AT_A_TIME: usize = 256;
/// Most rounds of reading per tick: the rest waits for the next tick.
const PAGES_AT_ONCE_MAX: usize = 256;

/// Reads the journal for the subscriptions, once run.
pub struct Pump {
    hub: Hub,
    ticker: Arc<Ticker>,
    reader: Reader,
    joiner: Arc<Mutex<Joiner>>,
}

/// An event with its call and the whole that the call is a part of, in their current state.
struct JoinedEvent {
    occurrence: Occurrence,
    calls: Vec<Call>,
}

impl Pump {
    /// Creates the pump and connects it to the hub.
    #[must_use]
    pub fn new(hub: &Hub, reader: Reader, joiner: Arc<Mutex<Joiner>>) -> Pump {
        let slowest = Rate::of_processes(RATE_MIN_HZ).expect("the slowest is allowed");
        let ticker = Arc::new(Ticker::new(slowest));
        hub.set_demand(Kind::Event, ticker.demand());
        hub.set_demand(Kind::Call, ticker.demand());
        hub.set_journal(reader.clone());
        Pump { hub: hub.clone(), ticker, reader, joiner }
    }

    /// Reads until `shutdown`.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ticker::Error> {
        let ticker = Arc::clone(&self.ticker);
        ticker
            .drive(shutdown, move || {
                let mut follower = self.ticker.follow();
                while let Next::Sweep(now) = follower.next(None) {
                    self.turn(now);
                }
            })
            .await
    }

    /// Gives each subscription its events, then checks the conditions and scripts that are due.
    fn turn(&self, now: Duration) {
        // Called here because this thread runs whatever the subscriptions are to. The clock is that of the
        // clients.
        self.hub.drop_idle(running());
        for _ in 0..PAGES_AT_ONCE_MAX {
            let newest = *self.reader.next().borrow();
            let mut at: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
            for (place, id) in self.hub.places(now).into_iter().filter(|(place, _)| *place < newest) {
                at.entry(place).or_default().push(id);
            }
            if at.is_empty() {
                break;
            }
            for (place, ids) in at {
                match self.reader.read_numbered(place, EVENTS_AT_A_TIME) {
                    Ok(page) => self.pass(page, &ids, now),
                    // The next tick tries again.
                    Err(error) => {
                        tracing::debug!(%error, "the journal cannot be read for channels");
                        return;
                    }
                }
            }
        }
        self.hub.check_due(boot_ns(), now);
    }

    fn pass(&self, page: Page<(u64, Event)>, ids: &[Id], now: Duration) {
        let at_ns = boot_ns();
        let found: Vec<JoinedEvent> = {
            let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
            page.events.into_iter().map(|(number, event)| found(&joiner, number, event)).collect()
        };
        for id in ids {
            self.hub.pass_to(*id, at_ns, now, |one| {
                let mut has_more = false;
                for (nth, found) in found.iter().enumerate() {
                    // The rest waits in the journal.
                    if one.place(now).is_none() {
                        return has_more;
                    }
                    let missed = if nth == 0 { page.missed } else { 0 };
                    // The position moves past an event only after the evaluation: a client that takes
                    // meanwhile must not receive a position after an event that it was not given.
                    one.go_to(found.occurrence.number, missed, at_ns);
                    has_more |= pass_to(one, found, at_ns, now) || missed > 0;
                    one.go_to(found.occurrence.number + 1, 0, at_ns);
                }
                let missed = if found.is_empty() { page.missed } else { 0 };
                one.go_to(page.cursor, missed, at_ns);
                has_more || missed > 0
            });
        }
    }
}

fn found(joiner: &Joiner, number: u64, event: Event) -> JoinedEvent {
    let call = Some(&event.call).filter(|id| !id.is_empty()).and_then(|id| joiner.get(id));
    let user = match (event.content.user.is_empty(), &call) {
        (true, Some(call)) => call.user.clone(),
        (false, _) | (true, None) => event.content.user.clone(),
    };
    let name = call.as_ref().map_or_else(CompactString::default, |call| call.name.clone());
    let whole = call.as_ref().and_then(|call| joiner.whole_of(&call.id));
    let calls = call.into_iter().chain(whole).collect();
    JoinedEvent { occurrence: Occurrence { number, event, name, user }, calls }
}

fn pass_to(one: &Subscription, found: &JoinedEvent, at_ns: u64, now: Duration) -> bool {
    match one.wanted().kind {
        Kind::Event => one.handle_event(&EventOrCall::Event(&found.occurrence), at_ns, now),
        Kind::Call => {
            let (number, before) = (found.occurrence.number, &found.occurrence.event.call);
            let mut has_more = false;
            for call in &found.calls {
                if one.has_changed(call, before) {
                    let change = Change { number, call: call.clone() };
                    has_more |= one.handle_event(&EventOrCall::Call(&change), at_ns, now);
                }
            }
            has_more
        }
        Kind::Process | Kind::Host => false,
    }
}

/// Passes each sweep over the host to the subscriptions, until `shutdown`.
pub async fn show_host(
    hub: Hub,
    mut sweeps: watch::Receiver<Option<Arc<Table>>>,
    shutdown: CancellationToken,
) {
    let mut last: Option<(u64, Time)> = None;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            changed = sweeps.changed() => if changed.is_err() { return },
        }
        let Some(table) = sweeps.borrow_and_update().clone() else { continue };
        if let Some((number, time)) = last.replace((table.number(), table.time()))
            && table.number() > number + 1
        {
            let count = table.number() - number;
            #[allow(clippy::cast_precision_loss)] // Sweeps between two that were seen.
            let of = count as f64 / table.time().since(time).as_secs_f64().max(1e-3);
            hub.miss_of(Kind::Host, count - 1, of, boot_ns());
        }
        if hub.wants(Kind::Host) {
            let hub = hub.clone();
            // A script may take long, and its CPU time is measured on the thread that runs it.
            let shown = tokio::task::spawn_blocking(move || {
                let age = now().since(table.time());
                let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
                let sweep =
                    Sweep { number: table.number(), at_ns: boot_ns().saturating_sub(age_ns), table: &table };
                hub.swept_host(&sweep, running().saturating_sub(age));
            });
            if shown.await.is_err() {
                return;
            }
        }
    }
}

#[allow(clippy::disallowed_methods)] // The shell that converts calendar time to time since boot.
fn now() -> Time {
    std::time::SystemTime::now().into()
}
