//! Hand-over of process sweeps from the sampling thread to the threads of the subscriptions, so that sampling
//! never waits for a filter or a script.
//!
//! ```text
//! sampling thread ─▶ Tap: what the sweep changed ─▶ Changes ─▶ Mirror: a table of its own ─▶ subscriptions
//!                                                   one per lane; one lock, held for a copy
//! ```
//! Shell. Rules: without a subscription to processes nothing is copied; if the other thread falls behind by
//! several sweeps, it gets the last one, with all changes since, and the skipped sweeps count as missed by
//! the subscriptions that were due.
//! Not here: the evaluation (`scheduler`).

use super::hub::Hub;
use super::scheduler::Lane;
use crate::process::source::View;
use crate::process::table::Coverage;
use crate::process::tap::Tap;
use crate::sample::ticker::{Error, locked};
use compact_str::CompactString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::process::delta::Sweep;
use wire::process::{Process, ProcessKey};

/// Sending end, on the sampling thread.
pub struct HandoverSender {
    hub: Hub,
    lane: Lane,
    shared: Arc<Shared>,
    /// Number of the last sweep that was handed over; 0 if the next must be whole.
    given: u64,
}

/// Receiving end: the thread of the subscriptions, once run.
pub struct HandoverReceiver {
    hub: Hub,
    lane: Lane,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    changes: Mutex<Changes>,
    given: Condvar,
}

/// Changes since the receiving end last took them.
#[derive(Default)]
struct Changes {
    /// Current row, by position.
    rows: Vec<Row>,
    /// Positions that are not [`Row::Same`].
    dirty: Vec<usize>,
    /// The last sweep, and when it started on the monotonic clock.
    last: Option<(Sweep, Duration)>,
    /// Earlier sweeps that were not taken.
    skipped: u64,
    is_whole: bool,
    is_ended: bool,
}

#[derive(Clone, Default)]
enum Row {
    #[default]
    Same,
    Gone,
    Is(Box<(Process, Option<CompactString>)>),
}

/// Creates both ends for a lane.
#[must_use]
pub fn pair(hub: &Hub, lane: Lane) -> (HandoverSender, HandoverReceiver) {
    let shared = Arc::<Shared>::default();
    let giving = HandoverSender { hub: hub.clone(), lane, shared: Arc::clone(&shared), given: 0 };
    (giving, HandoverReceiver { hub: hub.clone(), lane, shared })
}

impl Tap for HandoverSender {
    fn swept(&mut self, view: &View, now: Duration) {
        if !self.hub.has_processes(self.lane) {
            self.given = 0;
            return;
        }
        let table = &view.table;
        let mut changes = locked(&self.shared.changes);
        let is_whole = self.given == 0;
        if is_whole {
            changes.clear();
            changes.is_whole = true;
            (0..table.rows().len()).for_each(|place| changes.set(place, view));
        } else {
            table.changed_since(self.given).for_each(|place| changes.set(place, view));
        }
        let sweep = table.sweep();
        if changes.last.replace((sweep, now)).is_some() {
            changes.skipped += 1;
        }
        drop(changes);
        self.given = sweep.number;
        self.shared.given.notify_one();
    }
}

impl Changes {
    fn clear(&mut self) {
        for place in std::mem::take(&mut self.dirty) {
            self.rows[place] = Row::Same;
        }
    }

    fn set(&mut self, place: usize, view: &View) {
        if self.rows.len() <= place {
            self.rows.resize(place + 1, Row::Same);
        }
        let is_dirty = !matches!(self.rows[place], Row::Same);
        self.rows[place] = match view.table.rows().get(place).and_then(Option::as_ref) {
            None => Row::Gone,
            Some(process) => Row::Is(Box::new((process.clone(), view.lives.command(process.key).cloned()))),
        };
        if !is_dirty {
            self.dirty.push(place);
        }
    }
}

impl HandoverReceiver {
    /// Evaluates until `shutdown`.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let _end = EndOnDrop(Arc::clone(&shared));
        let mut work = tokio::task::spawn_blocking(move || self.evaluate());
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = shutdown.cancelled() => {
                shared.end();
                work.await
            }
        };
        outcome.map_err(|error| Error::Panicked(error.to_string()))
    }

    fn evaluate(self) {
        let (mut tap, mut mirror) = (self.hub.tap_of(Some(self.lane)), Mirror::default());
        let mut changes = Changes::default();
        while self.shared.take(&mut changes) {
            let Some((sweep, now)) = changes.last.take() else { continue };
            let skipped = std::mem::take(&mut changes.skipped);
            // Before a whole sweep there was no subscription in this lane, so nothing was missed.
            if skipped > 0 && !changes.is_whole {
                let secs = now.saturating_sub(mirror.swept_at).as_secs_f64();
                #[allow(clippy::cast_precision_loss)] // Sweeps between two that were seen.
                let of = (skipped + 1) as f64 / secs.max(1e-3);
                self.hub.miss_in(self.lane, skipped, of, sweep.begin_ns);
            }
            mirror.apply(&mut changes, sweep, now);
            tap.swept(&mirror.view, now);
        }
    }
}

impl Shared {
    /// Waits for changes and takes them in exchange for `changes`, which are empty; `false` at the end.
    fn take(&self, changes: &mut Changes) -> bool {
        let mut given = locked(&self.changes);
        while given.last.is_none() && !given.is_ended {
            given = self.given.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
        if given.is_ended {
            return false;
        }
        std::mem::swap(&mut *given, changes);
        true
    }

    fn end(&self) {
        locked(&self.changes).is_ended = true;
        self.given.notify_all();
    }
}

/// Ends the thread when the task that owns it is dropped.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Copy of the sampling thread's processes.
#[derive(Default)]
struct Mirror {
    view: View,
    /// Process at each position of the sampling thread's table.
    keys: Vec<Option<ProcessKey>>,
    swept_at: Duration,
}

impl Mirror {
    fn apply(&mut self, changes: &mut Changes, sweep: Sweep, now: Duration) {
        let Mirror { view, keys, swept_at } = self;
        *swept_at = now;
        let is_whole = std::mem::take(&mut changes.is_whole);
        let coverage = if is_whole { Coverage::All } else { Coverage::Changes };
        view.table.begin(sweep.number, sweep.begin_ns, coverage);
        if keys.len() < changes.rows.len() {
            keys.resize(changes.rows.len(), None);
        }
        if is_whole {
            keys.fill(None);
        }
        let dirty = std::mem::take(&mut changes.dirty);
        // Removes the processes that left their position first: one may be at another position now.
        for place in &dirty {
            let key = match &changes.rows[*place] {
                Row::Is(is) => Some(is.0.key),
                Row::Same | Row::Gone => None,
            };
            let before = std::mem::replace(&mut keys[*place], key);
            if let Some(before) = before.filter(|before| key != Some(*before)) {
                view.table.remove_process(before);
                view.lives.forget(before);
            }
        }
        for place in dirty {
            if let Row::Is(is) = std::mem::take(&mut changes.rows[place]) {
                let (process, command) = *is;
                if let Some(command) = command {
                    view.lives.exec(process.key, command);
                }
                view.table.set(process);
            }
        }
        view.table.end(sweep.took_ns);
        view.recent.update(&view.table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Table;
    use wire::channel::ChannelRequest;

    fn process(pid: u32, start_ns: u64, rss_kib: u64) -> Process {
        Process { key: ProcessKey { pid, start_ns }, rss_kib, ..Process::default() }
    }

    fn rows(table: &Table) -> Vec<Process> {
        let mut rows: Vec<_> = table.rows().iter().flatten().cloned().collect();
        rows.sort_by_key(|row| row.key);
        rows
    }

    /// Processes appear, change, end and reappear under the same id, and the receiving end takes now and
    /// then.
    #[test]
    fn the_mirror_is_the_table_whenever_it_is_taken() {
        let hub = Hub::default();
        hub.subscribe(ChannelRequest::default()).unwrap();
        let (mut giving, taking) = pair(&hub, Lane::Plain);
        let (mut view, mut mirror, mut changes) = (View::default(), Mirror::default(), Changes::default());
        let mut dice = 7_u64;
        for number in 1..600 {
            view.table.begin(number, number, if number % 9 == 0 { Coverage::All } else { Coverage::Changes });
            for _ in 0..10 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let one = process(u32::try_from(dice >> 59).unwrap(), dice >> 50 & 1, dice >> 33);
                match dice >> 40 & 3 {
                    0 => view.table.remove_process(one.key),
                    _ => {
                        view.lives.exec(one.key, format!("command {}", dice >> 60).into());
                        view.table.set(one);
                    }
                }
            }
            view.table.end(1);
            if number == 300 {
                giving.given = 0;
            }
            giving.swept(&view, Duration::from_millis(number));
            if dice >> 20 & 1 == 0 {
                assert!(taking.shared.take(&mut changes));
                let (sweep, now) = changes.last.take().unwrap();
                mirror.apply(&mut changes, sweep, now);
                assert_eq!(rows(&mirror.view.table), rows(&view.table), "sweep {number}");
                assert_eq!(mirror.view.table.sweep(), view.table.sweep());
                for row in view.table.rows().iter().flatten() {
                    assert_eq!(mirror.view.lives.command(row.key), view.lives.command(row.key), "{row:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_copied_where_no_subscription_is_to_processes() {
        let hub = Hub::default();
        let (mut giving, _taking) = pair(&hub, Lane::Plain);
        let mut view = View::default();
        view.table.begin(1, 1, Coverage::All);
        view.table.set(process(1, 1, 1));
        view.table.end(1);
        giving.swept(&view, Duration::from_secs(1));
        assert!(locked(&giving.shared.changes).last.is_none());
        let id = hub.subscribe(ChannelRequest::default()).unwrap();
        giving.swept(&view, Duration::from_secs(2));
        assert!(locked(&giving.shared.changes).last.is_some());
        hub.unsubscribe(id).unwrap();
        giving.swept(&view, Duration::from_secs(3));
        assert_eq!(giving.given, 0, "the next is whole");
    }
}
