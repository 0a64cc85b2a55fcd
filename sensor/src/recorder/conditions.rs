//! Hears the conditions that cause recordings: each is a subscription of the sensor's own, of which only signals come.
//!
//! Shell. Rules: a condition costs what its trigger may cost, and is stopped beyond it as any subscription would be; that is told,
//! the others go on, and after a pause it is looked at again. Where its subscription ended, since it was not taken from in time,
//! there is another one.
//! Not here: what a signal causes (`trigger`, `desk`).

use super::trigger::Trigger;
use crate::channel::hub::{Error, Hub, Id, Part};
use compact_str::CompactString;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wire::channel::Wanted;
use wire::channel::stream::Body;

/// Signals that wait for the desk.
const SIGNALS_MAX: usize = 16;
/// Entries taken at a time.
const LIMIT: usize = 64;
/// How long to wait for a signal before asking again: below the time after which a subscription ends by itself.
const WAIT: Duration = Duration::from_secs(20);
/// How long a condition that was stopped is left alone.
pub(super) const AFTER_STOP: Duration = Duration::from_secs(60);

/// What was heard of the condition of the trigger of this number.
#[derive(Debug)]
pub(super) enum Heard {
    /// It became true, so many nanoseconds after boot, at this value.
    True { number: usize, at_ns: u64, value: f64 },
    /// It is not looked at for some time, and why.
    Stopped { number: usize, why: String },
    /// It is looked at again.
    GoesOn { number: usize },
}

/// All of them. Dropped, they are no longer heard, and their subscriptions end.
pub(super) struct Conditions {
    heard: mpsc::Receiver<Heard>,
    /// Kept for as long as they are heard.
    _tasks: JoinSet<()>,
}

impl Conditions {
    /// Subscribe to those of the triggers that have one; one that is stopped is left alone for so long.
    pub(super) fn hear<'a>(
        hub: &Hub,
        triggers: impl Iterator<Item = &'a Trigger>,
        after_stop: Duration,
    ) -> Conditions {
        let (sender, heard) = mpsc::channel(SIGNALS_MAX);
        let mut tasks = JoinSet::new();
        for (number, trigger) in triggers.enumerate() {
            let Some(wanted) = trigger.condition.clone() else { continue };
            let (hub, sender, name) = (hub.clone(), sender.clone(), trigger.name.clone());
            let ear = Ear { hub, wanted: *wanted, name, number, sender };
            tasks.spawn(async move {
                // No one hears it where the desk has ended.
                let _ = ear.hear(after_stop).await;
            });
        }
        Conditions { heard, _tasks: tasks }
    }

    /// The next; without an end where there are none.
    pub(super) async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            None => std::future::pending().await,
        }
    }
}

/// Listens to one condition.
struct Ear {
    hub: Hub,
    wanted: Wanted,
    name: CompactString,
    number: usize,
    sender: mpsc::Sender<Heard>,
}

/// Why a subscription is not listened to any longer.
enum Over {
    /// It is there no more.
    Gone,
    /// It uses too much, or there is none to be had.
    Stopped(String),
}

/// The desk has ended.
struct Unheard;

impl Ear {
    async fn hear(&self, after_stop: Duration) -> Result<(), Unheard> {
        let number = self.number;
        let mut is_stopped = false;
        loop {
            let over = match self.hub.subscribe_own(Part::Recorder, self.wanted.clone()) {
                Ok(id) => {
                    if std::mem::take(&mut is_stopped) {
                        self.tell(Heard::GoesOn { number }).await?;
                    }
                    self.listen(id).await?
                }
                Err(error) => Over::Stopped(error.to_string()),
            };
            match over {
                Over::Gone => {
                    tracing::warn!(trigger = %self.name, "the subscription of a condition ended; there is another one");
                }
                Over::Stopped(why) => {
                    is_stopped = true;
                    self.tell(Heard::Stopped { number, why }).await?;
                    tokio::time::sleep(after_stop).await;
                }
            }
        }
    }

    /// Until the subscription has ended, or is stopped.
    async fn listen(&self, id: Id) -> Result<Over, Unheard> {
        loop {
            let answer = match self.hub.take(id, LIMIT, WAIT).await {
                Ok(answer) => answer,
                Err(Error::Unknown(_)) => return Ok(Over::Gone),
                Err(error) => return Ok(Over::Stopped(error.to_string())),
            };
            for entry in answer.entries {
                let Body::Signal { is_true: true, value } = entry.body else { continue };
                self.tell(Heard::True { number: self.number, at_ns: entry.at_ns, value }).await?;
            }
            if let Some(reason) = answer.standing.quarantined {
                // Where it is there no more, that is as well.
                let _ = self.hub.unsubscribe(id);
                return Ok(Over::Stopped(reason));
            }
        }
    }

    async fn tell(&self, heard: Heard) -> Result<(), Unheard> {
        self.sender.send(heard).await.map_err(|_| Unheard)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{Config, RawConfig};
    use super::*;
    use crate::process::source::View;
    use crate::process::table::Coverage;
    use crate::sample::beat::running;
    use std::path::Path;
    use wire::process::{Process, ProcessKey};

    const PROCESSES: u32 = 30_000;

    fn config(text: &str) -> Config {
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), text).expect("well formed");
        Config::new(raw).expect("good")
    }

    /// A sweep over a host of many processes.
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
        let mut conditions = Conditions::hear(&hub, config.triggers.iter(), Duration::from_millis(50));
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
                    if let Ok(heard) =
                        tokio::time::timeout(Duration::from_millis(20), conditions.next()).await
                    {
                        break heard;
                    }
                }
            };
            let heard = in_time(stopped).await;
            assert!(
                matches!(&heard, Heard::Stopped { number: 0, why } if why.contains("at most 1 ms")),
                "{round}: {heard:?}"
            );
            assert!(matches!(in_time(conditions.next()).await, Heard::GoesOn { number: 0 }), "{round}");
        }
    }
}
