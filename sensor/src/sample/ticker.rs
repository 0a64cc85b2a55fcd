//! Ticker of a sampling thread: wakes it on time, at a rate that can change at runtime, until it is stopped.
//!
//! Shell: the clock and the waiting of both samplers, of the host and of its processes. Rule: the thread
//! waits only for its deadline and for commands. It sweeps at the highest of its base rate and the rates that
//! others request ([`Demand`]).
//! Not here: when a sweep is due (`schedule`), what a sweep does.

use super::schedule::{Rate, Schedule};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Why sampling ended unexpectedly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The thread panicked.
    #[error("the sampling thread panicked: {0}")]
    Panicked(String),
}

/// Ticker with the commands to a sampling thread.
#[derive(Debug)]
pub struct Ticker {
    state: Mutex<TickerState>,
    changed: Condvar,
}

#[derive(Debug)]
struct TickerState {
    /// The configured rate of the thread.
    base: Rate,
    /// Requested rates, by the number of their [`Demand`]: one for each part of the sensor that may request
    /// one.
    demands: BTreeMap<u64, Rate>,
    next_demand: u64,
    stop: bool,
}

impl TickerState {
    fn rate(&self) -> Rate {
        self.demands
            .values()
            .fold(self.base, |highest, rate| if rate.hz() > highest.hz() { *rate } else { highest })
    }
}

/// Rate request: another part of the sensor demands at least this rate; no rate at first. Dropping it
/// withdraws the request.
#[derive(Debug)]
pub struct Demand {
    ticker: Arc<Ticker>,
    number: u64,
}

impl Demand {
    /// Requests at least this rate, counted from the last sweep; `None` withdraws the request.
    pub fn set(&self, rate: Option<Rate>) {
        self.ticker.change(|state| match rate {
            Some(rate) => drop(state.demands.insert(self.number, rate)),
            None => drop(state.demands.remove(&self.number)),
        });
    }
}

impl Drop for Demand {
    fn drop(&mut self) {
        self.set(None);
    }
}

/// The next action of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sweep; the value is the time on the clock of `running`.
    Sweep(Duration),
    /// The requested pause is over, and no sweep is due.
    Paused,
    /// End the thread.
    Stop,
}

impl Ticker {
    /// Creates a ticker with this base rate.
    #[must_use]
    pub fn new(rate: Rate) -> Ticker {
        let state = TickerState { base: rate, demands: BTreeMap::new(), next_demand: 0, stop: false };
        Ticker { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The current rate: the highest of the base rate and the requested rates.
    #[must_use]
    pub fn rate(&self) -> Rate {
        locked(&self.state).rate()
    }

    /// Changes the base rate; the new period counts from the last sweep.
    pub fn set_rate(&self, rate: Rate) {
        self.change(|state| state.base = rate);
    }

    /// Returns a handle by which another part of the sensor can request a higher rate.
    #[must_use]
    pub fn demand(self: &Arc<Ticker>) -> Demand {
        let mut state = locked(&self.state);
        let number = state.next_demand;
        state.next_demand += 1;
        Demand { ticker: Arc::clone(self), number }
    }

    /// Runs `work` on a dedicated thread until `shutdown` fires and the thread has received [`Next::Stop`].
    /// Dropping the future stops the thread too.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn drive(
        self: Arc<Ticker>,
        shutdown: CancellationToken,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let _stop = StopOnDrop(Arc::clone(&self));
        // A dedicated thread: reading from the kernel can take milliseconds on an overloaded host.
        let mut work = tokio::task::spawn_blocking(work);
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = shutdown.cancelled() => {
                self.change(|state| state.stop = true);
                work.await
            }
        };
        outcome.map_err(|error| Error::Panicked(error.to_string()))
    }

    /// Returns the thread's side of the ticker; the first sweep is due at once.
    #[must_use]
    pub fn follow(&self) -> Follower<'_> {
        let rate = self.rate();
        Follower { ticker: self, rate, schedule: Schedule::new(rate, running()) }
    }

    fn change(&self, change: impl FnOnce(&mut TickerState)) {
        change(&mut locked(&self.state));
        self.changed.notify_all();
    }
}

/// Stops the thread when the task that owns it is dropped.
struct StopOnDrop(Arc<Ticker>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.change(|state| state.stop = true);
    }
}

/// The thread's side of a ticker.
#[derive(Debug)]
pub struct Follower<'a> {
    ticker: &'a Ticker,
    rate: Rate,
    schedule: Schedule,
}

impl Follower<'_> {
    /// Waits for the next action, at most for `pause` if one is given.
    pub fn next(&mut self, pause: Option<Duration>) -> Next {
        let mut state = locked(&self.ticker.state);
        let mut may_pause = true;
        loop {
            if state.stop {
                return Next::Stop;
            }
            let rate = state.rate();
            if rate != self.rate {
                self.rate = rate;
                self.schedule.set_rate(self.rate, running());
            }
            let now = running();
            let left = self.schedule.wait(now);
            if left.is_zero() {
                self.schedule.begin(now);
                return Next::Sweep(now);
            }
            if !may_pause {
                return Next::Paused;
            }
            let wait = pause.map_or(left, |pause| pause.min(left));
            let waited = self.ticker.changed.wait_timeout(state, wait);
            let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = held;
            may_pause = !(timeout.timed_out() && wait < left);
        }
    }

    /// Deadlines without a sweep, because an earlier sweep took too long.
    #[must_use]
    pub fn slipped_total(&self) -> u64 {
        self.schedule.slipped_total()
    }
}

/// Locks a mutex and ignores poisoning: a panic leaves nothing half done behind the locks of sampling, or the
/// next sweep repairs it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time since boot without suspension; waiting uses the same clock.
pub(crate) fn running() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_cut_by_pauses_and_by_orders() {
        let ticker = Ticker::new(Rate::from_hz(0.1).expect("allowed"));
        let mut follower = ticker.follow();
        assert!(matches!(follower.next(None), Next::Sweep(_)), "the first is at once");
        assert_eq!(follower.next(Some(Duration::from_millis(1))), Next::Paused);
        ticker.set_rate(Rate::of_processes(1000.0).expect("allowed"));
        assert!(matches!(follower.next(None), Next::Sweep(_)), "by the new rate");
        ticker.change(|state| state.stop = true);
        assert_eq!(follower.next(None), Next::Stop);
    }
    #[test]
    fn the_highest_wish_counts_until_it_is_withdrawn() {
        let rate = |hz| Rate::of_processes(hz).expect("allowed");
        let ticker = Arc::new(Ticker::new(rate(10.0)));
        let (low, high) = (ticker.demand(), ticker.demand());
        low.set(Some(rate(1.0)));
        assert_eq!(ticker.rate(), rate(10.0), "its own is higher");
        low.set(Some(rate(64.0)));
        high.set(Some(rate(500.0)));
        assert_eq!(ticker.rate(), rate(500.0));
        high.set(Some(rate(100.0)));
        ticker.set_rate(rate(80.0));
        assert_eq!(ticker.rate(), rate(100.0));
        drop(high);
        assert_eq!(ticker.rate(), rate(80.0));
        ticker.set_rate(rate(10.0));
        assert_eq!(ticker.rate(), rate(64.0));
        low.set(None);
        assert_eq!(ticker.rate(), rate(10.0));
    }
}
