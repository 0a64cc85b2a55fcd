//! Hears the conditions that cause recordings: each is a subscription of the sensor's own, of which only signals come.
//!
//! Shell. Rules: a condition costs what any subscription may cost, and is stopped as any would be; that is told, and the others
//! go on. Where somebody else ends its subscription, there is another one.
//! Not here: what a signal causes (`trigger`, `desk`).

use super::trigger::Trigger;
use crate::channel::hub::{Error, Hub, Id};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wire::channel::stream::Body;

/// Signals that wait for the desk.
const SIGNALS_MAX: usize = 16;
/// Entries taken at a time.
const LIMIT: usize = 64;
/// How long to wait for a signal before asking again: below the time after which a subscription ends by itself.
const WAIT: Duration = Duration::from_secs(20);

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// The condition of the trigger of this number became true, so many nanoseconds after boot, at this value.
    True { number: usize, at_ns: u64, value: f64 },
    /// A condition is not looked at any longer, and why.
    Stopped(String),
}

/// All of them. Dropped, they are no longer heard, and their subscriptions end.
pub(super) struct Conditions {
    heard: mpsc::Receiver<Heard>,
    /// Kept for as long as they are heard.
    _tasks: JoinSet<()>,
}

impl Conditions {
    /// Subscribe to those of the triggers that have one.
    pub(super) fn hear<'a>(hub: &Hub, triggers: impl Iterator<Item = &'a Trigger>) -> Conditions {
        let (sender, heard) = mpsc::channel(SIGNALS_MAX);
        let mut tasks = JoinSet::new();
        for (number, trigger) in triggers.enumerate() {
            let Some(wanted) = trigger.condition.clone() else { continue };
            let (hub, sender, name) = (hub.clone(), sender.clone(), trigger.name.clone());
            tasks.spawn(async move {
                let why = loop {
                    let ended = match hub.subscribe((*wanted).clone()) {
                        Ok(id) => listen(&hub, id, number, &sender).await,
                        Err(error) => Err(error.to_string()),
                    };
                    match ended {
                        Ok(()) => tracing::warn!(
                            trigger = %name,
                            "a condition was unsubscribed; it is subscribed anew"
                        ),
                        Err(why) => break why,
                    }
                };
                // Nobody hears it where the desk has ended.
                let _ = sender.send(Heard::Stopped(format!("the condition of {name:?}: {why}"))).await;
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

/// Until somebody ends the subscription, or it is stopped, and why.
async fn listen(hub: &Hub, id: Id, number: usize, sender: &mpsc::Sender<Heard>) -> Result<(), String> {
    loop {
        let answer = match hub.take(id, LIMIT, WAIT).await {
            Ok(answer) => answer,
            Err(Error::Unknown(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        for entry in answer.entries {
            let Body::Signal { is_true: true, value } = entry.body else { continue };
            if sender.send(Heard::True { number, at_ns: entry.at_ns, value }).await.is_err() {
                return Err("the recorder has ended".to_owned());
            }
        }
        if let Some(reason) = answer.standing.quarantined {
            return Err(reason);
        }
    }
}
