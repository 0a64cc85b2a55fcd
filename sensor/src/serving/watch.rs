//! Asks every process once which job it serves: told of newcomers on the sampling thread, asking beside it.
//!
//! Shell. Rules: the sampling thread reads no file for it; a process is asked when it is first seen and when it has become
//! another program, and once more a little later if it named no job, since a program is begun as a copy of its parent; so
//! many are asked a second and no more, the others serve what their parents serve.
//! Not here: what the words mean (`named`), what follows (`known`).

use super::known::{Known, Newcomer, Serves};
use super::read::{self, Heard};
use crate::process::procfs::boot_ns;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::beat::locked;
use compact_str::CompactString;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::process::{Process, ProcessKey, State};

/// Batches of news that wait, each of one sweep.
const BATCHES_MAX: usize = 256;
/// Processes asked a second: at 50 µs each, 2 % of a core at most.
const ASKED_A_SECOND_MAX: u64 = 400;
/// Processes asked at once: those that are there at the start.
const ASKED_AT_ONCE_MAX: u64 = 16_384;
/// How long after the first time a process is asked again.
const AGAIN_AFTER_NS: u64 = 1_000_000_000;
/// The number of the kernel's thread that begins its other threads.
const KTHREADD: u32 = 2;

/// What a sweep brought.
#[derive(Clone, Copy, Debug)]
enum News {
    /// It is there, or has become another program.
    Came(Newcomer),
    /// It is gone since then.
    Gone(ProcessKey, u64),
    /// It was there between two sweeps.
    Lived(Newcomer, u64),
}

/// Sees newcomers on the sampling thread.
pub struct Spotter {
    /// By place: who is there, and its name.
    rows: Vec<Option<(ProcessKey, CompactString)>>,
    number: u64,
    lives_next: Option<u64>,
    news: mpsc::Sender<Vec<News>>,
    waiting: Vec<News>,
    shared: Arc<Shared>,
}

/// Asks them, once run.
pub struct Watch {
    proc: PathBuf,
    news: mpsc::Receiver<Vec<News>>,
    shared: Arc<Shared>,
}

/// What is known; to be cloned freely.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    counts: Mutex<Counts>,
    /// How often something became known.
    changes: tokio::sync::watch::Sender<u64>,
}

/// What could not be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes that were asked.
    pub asked_total: u64,
    /// Of them, those whose environment is not for the sensor to read.
    pub unreadable_total: u64,
    /// Processes that were too many to be asked.
    pub passed_over_total: u64,
}

/// The parts of a watch over the processes of `proc`.
#[must_use]
pub fn over(proc: PathBuf) -> (Spotter, Watch, Handle) {
    let (sender, news) = mpsc::channel(BATCHES_MAX);
    let shared = Arc::<Shared>::default();
    let spotter = Spotter {
        rows: Vec::new(),
        number: 0,
        lives_next: None,
        news: sender,
        waiting: Vec::new(),
        shared: Arc::clone(&shared),
    };
    (spotter, Watch { proc, news, shared: Arc::clone(&shared) }, Handle(shared))
}

impl Handle {
    /// Look at what is known.
    pub fn look<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&locked(&self.0.known))
    }

    /// Changes whenever something became known.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// What could not be asked.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *locked(&self.0.counts)
    }

    /// Those that served a job between these moments, in nanoseconds since boot.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Vec<(ProcessKey, Serves)> {
        let fits = |key: ProcessKey, serves: &Serves| {
            key.start_ns <= to_ns && serves.end_ns.is_none_or(|end_ns| end_ns >= from_ns)
        };
        self.look(|known| {
            let all = known.all().filter(|(key, serves)| fits(*key, serves));
            all.map(|(key, serves)| (key, serves.clone())).collect()
        })
    }
}

impl Tap for Spotter {
    fn swept(&mut self, view: &View, _: Duration) {
        let (table, begin_ns) = (&view.table, view.table.sweep().begin_ns);
        let next = view.lives.next();
        let (ended, _) = view.lives.since(self.lives_next.replace(next).unwrap_or(next));
        for life in ended {
            let newcomer = Newcomer { key: life.key, parent: life.parent };
            self.waiting.push(News::Lived(newcomer, life.end_ns));
        }
        for place in table.changed_since(self.number) {
            if place >= self.rows.len() {
                self.rows.resize(place + 1, None);
            }
            // One that has ended serves nothing, though its parent has not asked how.
            let is_alive = |row: &&Process| !matches!(row.state, State::Zombie | State::Dead);
            let row = table.rows().get(place).and_then(Option::as_ref).filter(is_alive);
            let known = &mut self.rows[place];
            let is_same = |(key, name): &(ProcessKey, CompactString)| {
                row.is_some_and(|row| row.key == *key && row.name == *name)
            };
            if known.as_ref().is_some_and(is_same) {
                continue;
            }
            let before = known.take().map(|(key, _)| key);
            if let Some(key) = before.filter(|key| row.is_none_or(|row| row.key != *key)) {
                self.waiting.push(News::Gone(key, begin_ns));
            }
            if let Some(row) = row {
                *known = Some((row.key, row.name.clone()));
                self.waiting.push(News::Came(Newcomer { key: row.key, parent: row.parent }));
            }
        }
        self.number = table.sweep().number;
        self.send();
    }
}

impl Spotter {
    fn send(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.news.try_reserve() {
            Ok(place) => place.send(std::mem::take(&mut self.waiting)),
            // They wait for the next sweep; beyond the most, they are not asked.
            Err(_) if self.waiting.len() as u64 <= ASKED_AT_ONCE_MAX => {}
            Err(_) => {
                locked(&self.shared.counts).passed_over_total += self.waiting.len() as u64;
                self.waiting.clear();
            }
        }
    }
}

/// What the asking task keeps to itself.
struct Asking {
    proc: PathBuf,
    shared: Arc<Shared>,
    /// To be asked again, each with when.
    again: VecDeque<(u64, Newcomer)>,
    /// How many may still be asked, and since when that is reckoned.
    left: u64,
    since_ns: u64,
}

impl Watch {
    /// Ask until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let Watch { proc, mut news, shared } = self;
        let (left, since_ns) = (ASKED_AT_ONCE_MAX, boot_ns());
        let mut asking = Asking { proc, shared, again: VecDeque::new(), left, since_ns };
        loop {
            let wait_ns = asking.again.front().map(|(due_ns, _)| due_ns.saturating_sub(boot_ns()));
            let due = tokio::time::sleep(Duration::from_nanos(wait_ns.unwrap_or(0)));
            let batch = tokio::select! {
                () = shutdown.cancelled() => return,
                batch = news.recv() => match batch {
                    Some(batch) => batch,
                    None => return,
                },
                () = due, if wait_ns.is_some() => Vec::new(),
            };
            // Files of `/proc` can take long on a host in trouble.
            let asked = tokio::task::spawn_blocking(move || {
                asking.hear(batch);
                asking
            });
            match asked.await {
                Ok(back) => asking = back,
                Err(_) => return,
            }
        }
    }
}

impl Asking {
    fn hear(&mut self, mut batch: Vec<News>) {
        // Parents before their children.
        batch.sort_by_key(|news| match news {
            News::Gone(..) => 0,
            News::Came(newcomer) | News::Lived(newcomer, _) => newcomer.key.start_ns,
        });
        for news in batch {
            match news {
                News::Came(newcomer) => self.ask(newcomer, true),
                News::Gone(key, end_ns) => locked(&self.shared.known).gone(key, end_ns),
                News::Lived(newcomer, end_ns) => {
                    let mut known = locked(&self.shared.known);
                    known.came(newcomer, None);
                    known.gone(newcomer.key, end_ns);
                }
            }
        }
        let now_ns = boot_ns();
        while let Some((_, newcomer)) = self.again.pop_front_if(|(due_ns, _)| *due_ns <= now_ns) {
            self.ask(newcomer, false);
        }
        self.shared.changes.send_modify(|times| *times += 1);
    }

    fn ask(&mut self, newcomer: Newcomer, is_first: bool) {
        let is_of_kernel = newcomer.key.pid == KTHREADD || newcomer.parent == KTHREADD;
        if is_of_kernel {
            return;
        }
        if !self.may_ask() {
            locked(&self.shared.counts).passed_over_total += 1;
            locked(&self.shared.known).came(newcomer, None);
            return;
        }
        let heard = read::ask(&self.proc, newcomer.key);
        let mut counts = locked(&self.shared.counts);
        counts.asked_total += 1;
        let said = match heard {
            Heard::Job(jobs, by) => Some((jobs, by)),
            Heard::Nothing => None,
            Heard::Unreadable => {
                counts.unreadable_total += u64::from(is_first);
                None
            }
            // It was told as gone meanwhile, and is not there again.
            Heard::Gone if !is_first => return,
            Heard::Gone => None,
        };
        if said.is_none() && is_first && (self.again.len() as u64) < ASKED_AT_ONCE_MAX {
            self.again.push_back((boot_ns() + AGAIN_AFTER_NS, newcomer));
        }
        locked(&self.shared.known).came(newcomer, said);
    }

    fn may_ask(&mut self) -> bool {
        let now_ns = boot_ns();
        let more = now_ns.saturating_sub(self.since_ns) * ASKED_A_SECOND_MAX / 1_000_000_000;
        if more > 0 {
            self.left = (self.left + more).min(ASKED_AT_ONCE_MAX);
            self.since_ns = now_ns;
        }
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
        true
    }
}
