//! What comes to the window from threads that read logs and ask daemons, and how it comes.
//!
//! Rule: the window never waits; the channel is bounded, and a thread that is faster than the window waits for it.
//! Laying out is done by who sends.

use crate::flock::past::{Kept, Lack};
use crate::flock::sweep::{HostName, Sweep};
use crate::graphs::metric::Metric;
use crate::grid::Grid;
use crate::layout::{Layout, Moves, layout};
use crate::live::kept::Span;
use crate::live::served::ServedBy;
use crate::sensors::health::Health;
use crate::sensors::{At, Order};
use crate::series::Series;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wire::control::Signal;
use wire::time::Time;

/// Updates that may wait for the next frame.
const WAITING_MAX: usize = 64;
/// Wishes that may wait for the thread.
const WISHES_MAX: usize = 16;

/// A grid and where it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// The grid.
    pub grid: Grid,
    /// Its layout without moves.
    pub layout: Layout,
}

impl Drawn {
    /// A grid, laid out.
    #[must_use]
    pub fn new(grid: Grid) -> Drawn {
        let layout = layout(&grid, &Moves::default());
        Drawn { grid, layout }
    }
}

/// How the source is.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Not asked yet.
    Beginning,
    /// A log is read; so many lines so far.
    Reading {
        /// Lines.
        lines: u64,
    },
    /// A daemon answers.
    Connected {
        /// Where it is.
        address: String,
        /// How long an answer took, in seconds.
        took_secs: f64,
        /// Domains that could not be asked, and why.
        troubles: Vec<String>,
    },
    /// It does not; tried again by itself.
    Lost {
        /// What happened, and what to do.
        what: String,
    },
}

/// Series of one host by metric, shared with the thread that keeps them.
pub type HostSeries = BTreeMap<String, Series>;

/// Something new.
#[derive(Clone, Debug)]
pub enum Update {
    /// The grid as it is now.
    Grid(Arc<Drawn>),
    /// How the source is.
    Status(Status),
    /// The series of a host.
    Series {
        /// Which host.
        host: HostName,
        /// Its series.
        series: Arc<HostSeries>,
        /// Why it cannot be asked, or what is wrong with what it says.
        trouble: Option<String>,
    },
    /// Sweeps of the flock's hosts, of each the oldest first.
    Sweeps(Vec<Sweep>),
    /// Whether a host of the flock can be asked.
    Trouble {
        /// Which host.
        host: HostName,
        /// Why it cannot; nothing if it can again.
        trouble: Option<String>,
    },
    /// What a sensor kept of a stretch of the past.
    Kept {
        /// Of which host.
        host: HostName,
        /// What it kept, and of which times it keeps sweeps at all; why nothing, if it could not be asked.
        kept: Result<(Arc<Kept>, Vec<Span>), String>,
    },
    /// What served a call.
    Served {
        /// Its id.
        call: String,
        /// Its processes.
        by: Arc<ServedBy>,
    },
    /// How a sensor is.
    Sensor {
        /// Where it was asked.
        at: At,
        /// What it said; why nothing, if it could not be asked.
        health: Result<Arc<Health>, String>,
    },
    /// The term of who represents a domain.
    Term {
        /// Which domain.
        domain: String,
        /// The term; nothing where no one knows.
        term: Option<u64>,
    },
    /// The channel of the flock at a host.
    Channel {
        /// Which host.
        host: HostName,
        /// Its subscription.
        subscription: String,
        /// How somebody altered it, where that is otherwise than was wished.
        altered: Option<Altered>,
    },
    /// A channel of the flock that is no more.
    ChannelEnded {
        /// Of which host.
        host: HostName,
        /// Its subscription.
        subscription: String,
    },
    /// What came of something that was ordered.
    Told(String),
}

impl Update {
    /// A grid, laid out here, in the thread that has it.
    #[must_use]
    pub fn grid(grid: Grid) -> Update {
        Update::Grid(Arc::new(Drawn::new(grid)))
    }
}

/// What the window asks of the thread behind a feed.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Figures of hosts.
    Figures(Figures),
    /// The grid is to be looked at now: something happened.
    Look,
    /// This domain is to be shown too.
    Add(String),
    /// This domain is to be shown no more.
    Drop(String),
    /// The flock of these hosts.
    Flock(Watch),
    /// A stretch of the past of a host of the flock.
    Past(Past),
    /// How these sensors are.
    Sensors(Sensors),
    /// An order to a sensor.
    Order(Order),
    /// A signal to a process.
    Kill(Kill),
    /// The events of a call, and the processes that served it.
    Served(Served),
}

/// A call whose events and processes are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its id.
    pub call: String,
    /// The domain that tells of it; nothing for the daemon's own.
    pub domain: String,
    /// How many events tell of it, where they are wanted too.
    pub events: Option<u32>,
    /// Where it ran.
    pub hosts: Vec<HostName>,
}

/// Whose figures are wanted, and which.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Of these hosts.
    pub hosts: Vec<HostName>,
    /// These.
    pub metrics: Vec<Metric>,
    /// Whether an hour of the past is looked at, not its last minutes alone.
    pub is_long: bool,
    /// Whether no one looks: what is known is kept, and nothing is asked.
    pub rests: bool,
}

/// Which sensors are asked how they are, and which domains' terms are looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sensors {
    /// These.
    pub sensors: Vec<At>,
    /// Of these domains.
    pub domains: Vec<String>,
}

/// Whose processes are watched, and how often they are swept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// Of these hosts.
    pub hosts: Vec<HostName>,
    /// Sweeps a second.
    pub rate_hz: f64,
}

/// A stretch of the past that is to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Of which host, and from when to when.
    pub lack: Lack,
    /// One sweep in so long does.
    pub every: Duration,
}

/// What a channel tells since somebody altered it.
#[derive(Clone, Debug, PartialEq)]
pub struct Altered {
    /// Samples a second.
    pub rate_hz: f64,
    /// What passes; everything where it is empty.
    pub filter: String,
}

/// A signal to a process, after a person said yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// On which host.
    pub host: HostName,
    /// Its number.
    pub pid: u32,
    /// When it began, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// Its name, as it was shown.
    pub name: String,
    /// What is sent.
    pub signal: Signal,
}

/// Who is told that something came, to draw a frame.
type Waker = Box<dyn Fn() + Send + Sync>;

/// The sending end, in a thread.
pub struct Feed {
    teller: Teller,
    wishes: Receiver<Wish>,
    poker: Poker,
    is_open: Arc<AtomicBool>,
}

/// The sending end of further threads.
#[derive(Clone)]
pub struct Teller {
    updates: SyncSender<(Time, Update)>,
    waker: Arc<OnceLock<Waker>>,
}

impl Teller {
    /// Tell the window. It waits where the window is behind, so that nothing is lost and nothing heaps up.
    pub fn tell(&self, update: Update) {
        // A window that is gone is noticed by whoever rests.
        let _ = self.updates.send((crate::clock::now(), update));
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }
}

/// The window's end.
pub struct Inbox {
    updates: Receiver<(Time, Update)>,
    wishes: SyncSender<Wish>,
    is_open: Arc<AtomicBool>,
    waker: Arc<OnceLock<Waker>>,
}

/// Another thread's way to end a rest: something happened.
#[derive(Clone)]
pub struct Poker {
    wishes: SyncSender<Wish>,
    is_open: Arc<AtomicBool>,
    /// Whether a poke waits: further ones would only take the place of wishes.
    is_poked: Arc<AtomicBool>,
}

impl Poker {
    /// Have the thread behind the feed look at the grid.
    pub fn poke(&self) {
        if !self.is_poked.swap(true, Ordering::AcqRel) && self.wishes.try_send(Wish::Look).is_err() {
            self.is_poked.store(false, Ordering::Release);
        }
    }

    /// Whether there is a window.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

/// Why a rest is over.
#[derive(Debug, PartialEq)]
pub enum Rested {
    /// The time has passed.
    Whole,
    /// The window wishes something.
    Wished(Wish),
    /// There is no window any more.
    Alone,
}

/// Both ends.
#[must_use]
pub fn feed() -> (Feed, Inbox) {
    let (updates_in, updates) = sync_channel(WAITING_MAX);
    let (wishes, wishes_out) = sync_channel(WISHES_MAX);
    let (waker, is_open) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(true)));
    let poker = Poker { wishes: wishes.clone(), is_open: Arc::clone(&is_open), is_poked: Arc::default() };
    let feed = Feed {
        teller: Teller { updates: updates_in, waker: Arc::clone(&waker) },
        wishes: wishes_out,
        poker,
        is_open: Arc::clone(&is_open),
    };
    (feed, Inbox { updates, wishes, is_open, waker })
}

impl Feed {
    /// Tell the window. It waits where the window is behind, so that nothing is lost and nothing heaps up.
    pub fn tell(&self, update: Update) {
        self.teller.tell(update);
    }

    /// For other threads, which tell the same window.
    #[must_use]
    pub fn teller(&self) -> Teller {
        self.teller.clone()
    }

    /// Wait for `time`, or until the window wishes something or is gone.
    #[must_use]
    pub fn rest(&self, time: Duration) -> Rested {
        let rested = self.wishes.recv_timeout(time);
        if rested == Ok(Wish::Look) {
            self.poker.is_poked.store(false, Ordering::Release);
        }
        match rested {
            _ if !self.is_open.load(Ordering::Relaxed) => Rested::Alone,
            Ok(wish) => Rested::Wished(wish),
            Err(RecvTimeoutError::Timeout) => Rested::Whole,
            Err(RecvTimeoutError::Disconnected) => Rested::Alone,
        }
    }

    /// For other threads, which notice what happens.
    #[must_use]
    pub fn poker(&self) -> Poker {
        self.poker.clone()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.is_open.store(false, Ordering::Relaxed);
        // Whoever rests notices it now; where wishes wait it does in any case.
        let _ = self.wishes.try_send(Wish::Look);
    }
}

impl Inbox {
    /// Who is to be told that something came; the first that is named.
    pub fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(waker));
    }

    /// What came since the last time, and when, without waiting.
    pub fn take(&self) -> impl Iterator<Item = (Time, Update)> + '_ {
        self.updates.try_iter().take(WAITING_MAX)
    }

    /// Wish something, and whether it was heard: one beyond those that wait is not, and may be wished again.
    pub fn wish(&self, wish: Wish) -> bool {
        self.wishes.try_send(wish).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_arrive_in_order_and_wishes_end_a_rest() {
        let (feed, inbox) = feed();
        let woken = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = Arc::clone(&woken);
        inbox.wake_by(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        for lines in [1, 2] {
            feed.tell(Update::Status(Status::Reading { lines }));
        }
        let lines: Vec<u64> = inbox
            .take()
            .filter_map(|(_, update)| {
                let Update::Status(Status::Reading { lines }) = update else { return None };
                Some(lines)
            })
            .collect();
        assert_eq!((lines, woken.load(std::sync::atomic::Ordering::Relaxed)), (vec![1, 2], 2));
        let watch = || Wish::Flock(Watch { hosts: vec![HostName::new("demo", "wn01")], rate_hz: 1.0 });
        assert!(inbox.wish(watch()));
        assert_eq!(feed.rest(Duration::from_secs(60)), Rested::Wished(watch()));
        let poker = feed.poker();
        poker.poke();
        assert_eq!(feed.rest(Duration::from_secs(60)), Rested::Wished(Wish::Look));
        assert_eq!(feed.rest(Duration::ZERO), Rested::Whole);
        drop(inbox);
        assert_eq!(feed.rest(Duration::from_secs(60)), Rested::Alone);
        assert!(!poker.is_open());
    }
}
