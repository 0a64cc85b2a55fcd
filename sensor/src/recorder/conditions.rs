//! Watcher of trigger conditions: each condition is a subscription of the sensor's own that returns only
//! signals.
//!
//! Shell. Rules: a condition may use the CPU budget of its trigger, and is stopped beyond it like any
//! subscription; that is reported, the other conditions go on, and after a pause the stopped one is
//! subscribed to again. If a subscription ended because it was not read in time, a new one replaces it.
//! Not here: what a signal causes (`trigger`, `worker`).

use super::trigger::Trigger;
use crate::channel::hub::{Error, Hub, Id, Part};
use compact_str::CompactString;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wire::channel::ChannelRequest;
use wire::channel::stream::Body;

/// Most signals that wait for the recorder.
const SIGNALS_MAX: usize = 16;
/// Entries per read.
const LIMIT: usize = 64;
/// Longest wait for a signal before the next request: less than the time after which an idle subscription
/// ends.
const WAIT: Duration = Duration::from_secs(20);
/// Pause after a condition was stopped.
pub(super) const AFTER_STOP: Duration = Duration::from_secs(60);

/// Report about the condition of trigger `number`.
#[derive(Debug)]
pub(super) enum ConditionReport {
    /// The condition became true with this value, `at_ns` nanoseconds after boot.
    True { number: usize, at_ns: u64, value: f64 },
    /// The condition is not evaluated for some time; `why` is the reason.
    Stopped { number: usize, why: String },
    /// The condition is evaluated again.
    GoesOn { number: usize },
}

/// All watched conditions. Dropping it ends their subscriptions.
pub(super) struct Conditions {
    reports: mpsc::Receiver<ConditionReport>,
    /// Dropping the set aborts the tasks.
    _tasks: JoinSet<()>,
}

impl Conditions {
    /// Subscribes to the conditions of the triggers; after one was stopped, waits for `after_stop`.
    pub(super) fn watch<'a>(
        hub: &Hub,
        triggers: impl Iterator<Item = &'a Trigger>,
        after_stop: Duration,
    ) -> Conditions {
        let (sender, reports) = mpsc::channel(SIGNALS_MAX);
        let mut tasks = JoinSet::new();
        for (number, trigger) in triggers.enumerate() {
            let Some(wanted) = trigger.condition.clone() else { continue };
            let (hub, sender, name) = (hub.clone(), sender.clone(), trigger.name.clone());
            let watcher = ConditionWatcher { hub, wanted: *wanted, name, number, sender };
            tasks.spawn(async move {
                // Fails only after the recorder has ended.
                let _ = watcher.watch(after_stop).await;
            });
        }
        Conditions { reports, _tasks: tasks }
    }

    /// The next report; pending for ever if there are no conditions.
    pub(super) async fn next(&mut self) -> ConditionReport {
        match self.reports.recv().await {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }
}

/// Watcher of one condition.
struct ConditionWatcher {
    hub: Hub,
    wanted: ChannelRequest,
    name: CompactString,
    number: usize,
    sender: mpsc::Sender<ConditionReport>,
}

/// Why a subscription is not read any longer.
enum EndReason {
    /// It no longer exists.
    Gone,
    /// It used too much, or was refused.
    Stopped(String),
}

/// The recorder has ended.
struct RecorderEnded;

impl ConditionWatcher {
    async fn watch(&self, after_stop: Duration) -> Result<(), RecorderEnded> {
        let number = self.number;
        let mut is_stopped = false;
        loop {
            let reason = match self.hub.subscribe_own(Part::Recorder, self.wanted.clone()) {
                Ok(id) => {
                    if std::mem::take(&mut is_stopped) {
                        self.report(ConditionReport::GoesOn { number }).await?;
                    }
                    self.listen(id).await?
                }
                Err(error) => EndReason::Stopped(error.to_string()),
            };
            match reason {
                EndReason::Gone => {
                    tracing::warn!(trigger = %self.name, "the subscription of a condition ended; there is another one");
                }
                EndReason::Stopped(why) => {
                    is_stopped = true;
                    self.report(ConditionReport::Stopped { number, why }).await?;
                    tokio::time::sleep(after_stop).await;
                }
            }
        }
    }

    /// Reads the subscription until it ends or is stopped.
    async fn listen(&self, id: Id) -> Result<EndReason, RecorderEnded> {
        loop {
            let answer = match self.hub.take(id, LIMIT, WAIT).await {
                Ok(answer) => answer,
                Err(Error::Unknown(_)) => return Ok(EndReason::Gone),
                Err(error) => return Ok(EndReason::Stopped(error.to_string())),
            };
            for entry in answer.entries {
                let Body::Signal { is_true: true, value } = entry.body else { continue };
                self.report(ConditionReport::True { number: self.number, at_ns: entry.at_ns, value }).await?;
            }
            if let Some(reason) = answer.status.quarantined {
                // It does not matter if it no longer exists.
                let _ = self.hub.unsubscribe(id);
                return Ok(EndReason::Stopped(reason));
            }
        }
    }

    async fn report(&self, report: ConditionReport) -> Result<(), RecorderEnded> {
        self.sender.send(report).await.map_err(|_| RecorderEnded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{Config, RawConfig};
    use super::*;
    use crate::process::source::View;
    use crate::process::table::Coverage;
    use crate::sample::ticker::running;
    use std::path::Path;
    use wire::process::{Process, ProcessKey};

    const PROCESSES: u32 = 30_000;

    fn config(text: &str) -> Config {
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), text).expect("well formed");
        Config::new(raw).expect("good")
    }

    /// A sweep over a host with many processes.
    fn sweep(view: &mut View, number: u64) {
        view.table.begin(number, number * 1_000_000_000, Coverage::All);
        for pid in 1..=PROCESSES {
            let key = ProcessKey { pid, start_ns: 1 };
            view.table.set(Process { key, name: "work".into(), ..Process::default() });
        }
        view.table.end(1);
    }

    async fn in_time<T>(waited: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(30), waited).await.expect("in time")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_that_uses_too_much_is_stopped_for_a_while_and_goes_on() {
        let text = "[[triggers]]\nname = 'many'\ncondition = 'count > 1000000'\nfilter = 'name ~ \"^(a|b|c)*k$\" and cpu >= 0'\n\
                    hz = 1000\ncpu_ms = 1";
        let (hub, config) = (Hub::default(), config(text));
        let mut tap = hub.tap();
        let mut conditions = Conditions::watch(&hub, config.triggers.iter(), Duration::from_millis(50));
        while hub.is_empty() {
            tokio::task::yield_now().await;
        }
        let (mut view, mut number) = (View::default(), 0);
        for round in 0..2 {
            let stopped = async {
                loop {
                    number += 1;
                    sweep(&mut view, number);
                    tap.swept(&view, running());
                    if let Ok(report) =
                        tokio::time::timeout(Duration::from_millis(20), conditions.next()).await
                    {
                        break report;
                    }
                }
            };
            let report = in_time(stopped).await;
            assert!(
                matches!(&report, ConditionReport::Stopped { number: 0, why } if why.contains("at most 1 ms")),
                "{round}: {report:?}"
            );
            assert!(
                matches!(in_time(conditions.next()).await, ConditionReport::GoesOn { number: 0 }),
                "{round}"
            );
        }
    }
}
