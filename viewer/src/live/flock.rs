//! Feeds the flock: a subscription to the processes of each host that is watched, anywhere in the grid, orders to them, and
//! the processes of calls.
//!
//! A thread of its own, for a chart must not wait for tables. Rule: a host that cannot be asked is told and tried again;
//! nobody is subscribed to while no flock is seen. Only an operator's order ends a process, and it names the very process
//! that was shown (docs/control.md). Not here: what answers mean (`sweeps`).

use super::answers;
use super::http::{Client, Error};
use super::served;
use super::sweeps::{Stream, Taken};
use crate::feed::{Feed, Kill, Rested, Update, Watch, Wish};
use crate::flock::HOSTS_MAX;
use crate::flock::sweep::{HostName, Sweep};
use overlay::identity::operator::Operator;
use overlay::identity::state_folder;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::control::Act;
use wire::process::ProcessKey;

/// How often what waits is taken: marks are drawn so much later than they were swept, and as smoothly.
pub const TAKE_EVERY: Duration = Duration::from_millis(100);
/// Entries taken at once.
const ENTRIES_MAX: u32 = 200;
/// Until a host that could not be asked is asked again.
const AGAIN: Duration = Duration::from_secs(2);
/// Room for what waits of a subscription, in bytes: a whole sample of some thousand processes, and no more together for
/// 64 hosts than a sensor has for all queues.
const QUEUE_BYTES: u64 = 768 << 10;
/// The fault of a subscription that is not there any more (docs/query-interface.md).
const NOT_FOUND: i64 = -32010;
/// How long a wish is waited for where nothing is watched.
const IDLE: Duration = Duration::from_secs(5);

/// Feed the flock of the daemon at `address` until nobody listens.
///
/// # Errors
/// If the thread cannot be begun.
pub fn follow(address: SocketAddr, feed: Feed) -> std::io::Result<()> {
    let ask = move || {
        let mut asking = Asking { client: Client::new(address), herds: Vec::new(), rate_hz: 10.0 };
        loop {
            asking.take_all(&feed);
            let pause = if asking.herds.is_empty() { IDLE } else { TAKE_EVERY };
            match feed.rest(pause) {
                Rested::Whole => {}
                Rested::Wished(Wish::Flock(watch)) => asking.watch(watch),
                Rested::Wished(Wish::Kill(kill)) => {
                    let told = asking.kill(&kill).unwrap_or_else(|why| why);
                    feed.tell(Update::Told(told));
                }
                Rested::Wished(Wish::Served(wanted)) => {
                    if let Ok(by) = served::ask(&mut asking.client, &wanted) {
                        feed.tell(Update::Served { call: wanted.call, by: std::sync::Arc::new(by) });
                    }
                }
                Rested::Wished(Wish::Watch(_) | Wish::Look | Wish::Add(_) | Wish::Drop(_)) => {}
                Rested::Alone => return asking.watch(Watch::default()),
            }
        }
    };
    // It ends when the window does: `rest` says so.
    std::thread::Builder::new().name("viewer-flock".into()).spawn(ask).map(drop)
}

struct Asking {
    client: Client,
    herds: Vec<Subscribed>,
    rate_hz: f64,
}

/// A host, and how its subscription stands.
struct Subscribed {
    host: HostName,
    id: Option<String>,
    stream: Stream,
    /// Not before this.
    next: Option<Instant>,
    /// What was told of it last.
    trouble: Option<String>,
}

impl Asking {
    /// Watch these hosts from now on, and no others.
    fn watch(&mut self, watch: Watch) {
        let (hosts, rate_hz) = (watch.hosts, watch.rate_hz);
        let is_other_rate = (rate_hz - self.rate_hz).abs() > f64::EPSILON;
        self.rate_hz = rate_hz;
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.herds)
            .into_iter()
            .partition(|herd| hosts.contains(&herd.host) && !is_other_rate);
        self.herds = kept;
        for herd in gone {
            if let Some(id) = herd.id {
                // One that cannot be ended now ends by itself when nobody takes.
                let _ = self.client.ask("sensor.unsubscribe", &at(&herd.host, json!({ "subscription": id })));
            }
        }
        for host in hosts.into_iter().take(HOSTS_MAX) {
            if !self.herds.iter().any(|herd| herd.host == host) {
                let stream = Stream::default();
                self.herds.push(Subscribed { host, id: None, stream, next: None, trouble: None });
            }
        }
    }

    /// Take what waits of every host, and tell it.
    fn take_all(&mut self, feed: &Feed) {
        let mut sweeps: Vec<Sweep> = Vec::new();
        let mut troubles = Vec::new();
        for herd in &mut self.herds {
            if herd.next.is_some_and(|next| crate::clock::instant() < next) {
                continue;
            }
            let trouble = match herd.take(&mut self.client, self.rate_hz) {
                Ok(taken) => {
                    herd.next = None;
                    sweeps.extend(taken.sweeps);
                    taken.stopped
                }
                Err(error) => {
                    herd.next = Some(crate::clock::instant() + AGAIN);
                    Some(error.to_string())
                }
            };
            if trouble != herd.trouble {
                troubles.push((herd.host.clone(), trouble.clone()));
                herd.trouble = trouble;
            }
        }
        for (host, trouble) in troubles {
            feed.tell(Update::Trouble { host, trouble });
        }
        if !sweeps.is_empty() {
            feed.tell(Update::Sweeps(sweeps));
        }
    }

    /// Order it; what to tell of it, or why not.
    fn kill(&mut self, kill: &Kill) -> Result<String, String> {
        let info = self.client.ask("daemon.info", &json!({})).map_err(|error| error.to_string())?;
        let domain = if kill.host.domain.is_empty() {
            answers::text(&info, "domain")
        } else {
            kill.host.domain.to_string()
        };
        let domain = wire::id::DomainName::try_from(domain.as_str()).map_err(|error| error.to_string())?;
        let host = wire::id::HostName::try_from(&*kill.host.host).map_err(|error| error.to_string())?;
        let operator = Operator::find(&folders(&info), &domain).map_err(|error| error.to_string())?;
        let process = ProcessKey { pid: kill.pid, start_ns: kill.start_ns };
        let order = operator.order(&host, process, Act::Signal(kill.signal), crate::clock::now());
        let order = order.map_err(|error| error.to_string())?;
        let params = at(&kill.host, json!({ "order": order }));
        let answer = self.client.ask("sensor.control", &params).map_err(|error| error.to_string())?;
        let then = match answer["ended"].as_bool() {
            Some(true) => "; it has ended",
            Some(false) => "; it is there still",
            None => "",
        };
        Ok(format!("sent {} to {} ({}) on {}{then}", kill.signal.as_str(), kill.name, kill.pid, host))
    }
}

/// Where an operator may be: the usual folder, and that of the daemon, which is on this machine.
fn folders(info: &Value) -> Vec<PathBuf> {
    let usual = state_folder::usual();
    let of_daemon = PathBuf::from(answers::text(info, "state_directory"));
    let of_daemon = Some(of_daemon).filter(|folder| folder.is_absolute() && *folder != usual);
    std::iter::once(usual).chain(of_daemon).collect()
}

impl Subscribed {
    fn take(&mut self, client: &mut Client, rate_hz: f64) -> Result<Taken, Error> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.subscribe(client, rate_hz)?,
        };
        let params = at(&self.host, json!({ "subscription": id, "limit": ENTRIES_MAX }));
        let answer = match client.ask("sensor.take", &params) {
            Ok(answer) => answer,
            Err(error) => {
                if matches!(error, Error::Fault { code: NOT_FOUND, .. } | Error::Unreachable { .. }) {
                    self.id = None;
                }
                return Err(error);
            }
        };
        let taken = self.stream.take(&self.host, &answer);
        if taken.wants_whole && taken.stopped.is_none() {
            client.ask("sensor.alter", &at(&self.host, json!({ "subscription": id })))?;
        }
        Ok(taken)
    }

    fn subscribe(&mut self, client: &mut Client, rate_hz: f64) -> Result<String, Error> {
        let budget = json!({ "queue_bytes": QUEUE_BYTES });
        let params = at(&self.host, json!({ "rate": rate_hz, "changes": true, "budget": budget }));
        let made = client.ask("sensor.subscribe", &params)?;
        let id = answers::text(&made, "subscription");
        (self.id, self.stream) = (Some(id.clone()), Stream::default());
        Ok(id)
    }
}

/// Parameters about a host.
fn at(host: &HostName, mut params: Value) -> Value {
    if !host.domain.is_empty() {
        params["domain"] = (*host.domain).into();
    }
    params["host"] = (*host.host).into();
    params
}
