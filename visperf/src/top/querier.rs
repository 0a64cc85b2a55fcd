//! Thread that requests rounds of data from the daemons, and sends signals for the screen.
//!
//! Shell: one thread, the only one that waits for answers. Rules: a host that does not answer costs only its
//! own rows, and a round ends in a bounded time; if no daemon answers, that is reported, and the round
//! retried. A change of scope takes effect at once.
//! Not here: processing of the answers (`state`).

use super::rows::{Id, Place, Process};
use super::state::{Host, Round, Scope, Update};
use crate::client::Client;
use crate::client::command_sender::CommandSender;
use crate::client::items;
use crate::client::target::Target;
use crate::exit::Failure;
use ::client::Error;
use ::client::Patience;
use ::client::recovery::{self, Recovery};
use ::client::typed::{About, Answered};
use overlay::clock;
use serde_json::Value;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::api::daemon::InfoParams;
use wire::api::domain::{self, HostState, Hosts, HostsParams};
use wire::api::processes::ProcessesParams;
use wire::control::{Act, Signal};

/// Timeout of a request: longer than a daemon needs to find another domain, shorter than a user waits.
const PATIENCE: Patience = Patience::of(Duration::from_secs(10));
/// Timeout of the check whether the queried daemon itself answers.
const ALIVE: Patience = Patience::of(Duration::from_secs(3));
/// Delay before a failed round is retried.
const AGAIN: Duration = Duration::from_secs(1);
/// Time limit of a round, after which hosts that were not asked yet are left out.
const ROUND: Duration = Duration::from_secs(30);
/// Maximum number of hosts asked in a round; with more, those with the highest load.
const HOSTS_MAX: usize = 64;
/// Processes requested of a single host, and of each of several hosts.
const PROCESSES_OF_ONE: u64 = 500;
const PROCESSES_OF_MANY: u64 = 100;
/// With a filter all processes are needed.
const PROCESSES_FILTERED: u64 = 10_000;
/// Faults of a daemon that could not query another (`docs/query-interface.md`).
const UNAVAILABLE: i64 = -32011;
const TIMEOUT: i64 = -32004;
/// Queue lengths between the thread and the screen; older entries would be outdated.
const WAITING_MAX: usize = 8;

/// Requests of the screen.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Show this from now on.
    Show(Scope),
    /// Send this signal to this process.
    Give(Id, Signal),
}

/// Client for the daemon of `target`.
pub(crate) struct Querier {
    target: Target,
    client: Client,
    domains: Vec<String>,
}

impl Querier {
    /// For these domains; for the daemon's own if there are none.
    pub(crate) fn new(target: &Target, domains: Vec<String>) -> Querier {
        Querier { target: target.clone(), client: Client::new(target), domains }
    }

    /// The host of this name in the first domain.
    ///
    /// # Errors
    /// If no daemon answers.
    pub(crate) fn place(&mut self, host: &str) -> Result<Place, Failure> {
        let named = self.domains.first().map(String::as_str).or(self.target.door_domain());
        let domain = match named {
            Some(domain) => domain.to_owned(),
            None => {
                let info = self.client.request(&InfoParams {}, &About::default(), PATIENCE)?.typed;
                info.domain.unwrap_or_default()
            }
        };
        Ok(Place { domain, host: host.to_owned() })
    }

    /// Run one round; each process as its sensor sent it is added to `kept`, if given.
    ///
    /// # Errors
    /// If the queried daemon does not answer, or refuses for all domains.
    pub(crate) fn round(
        &mut self,
        scope: &Scope,
        mut kept: Option<&mut Vec<(Place, Value)>>,
    ) -> Result<Round, Error> {
        let started = clock::now();
        let mut round = Round::default();
        self.ask_hosts(&mut round)?;
        let wanted = |host: &&mut Host| scope.only.as_ref().is_none_or(|only| host.place == *only);
        let mut asked: Vec<&mut Host> =
            round.hosts.iter_mut().filter(|host| host.is_live).filter(wanted).collect();
        asked.sort_by(|a, b| b.load.partial_cmp(&a.load).unwrap_or(std::cmp::Ordering::Equal));
        if asked.len() > HOSTS_MAX {
            round
                .notes
                .push(format!("processes of {HOSTS_MAX} hosts of {}, those with most load", asked.len()));
            asked.truncate(HOSTS_MAX);
        }
        let limit = match (scope.is_filtered, asked.len()) {
            (true, _) => PROCESSES_FILTERED,
            (false, 1) => PROCESSES_OF_ONE,
            (false, _) => PROCESSES_OF_MANY,
        };
        let mut processes = Vec::new();
        for host in asked {
            if clock::now().since(started) > ROUND {
                host.trouble = Some("not asked, as others took too long".to_owned());
                continue;
            }
            let about =
                About { domain: Some(host.place.domain.clone()), host: Some(host.place.host.clone()) };
            let wanted =
                ProcessesParams { order: scope.order.of_sensor(), limit, ..ProcessesParams::default() };
            match self.client.request(&wanted, &about, PATIENCE) {
                Ok(Answered { raw, typed }) => {
                    round.answered += 1;
                    round.total += typed.total;
                    processes.extend(typed.processes.iter().map(|one| Process::of(&host.place, one)));
                    if let Some(kept) = &mut kept {
                        kept.extend(
                            items(&raw, "processes").into_iter().map(|one| (host.place.clone(), one)),
                        );
                    }
                }
                Err(Error::Fault { code, message }) => {
                    // These two faults mean that another daemon could not query it; all others come from the
                    // host itself.
                    round.answered += usize::from(![UNAVAILABLE, TIMEOUT].contains(&code));
                    host.trouble = Some(message);
                }
                // The queried daemon may wait longer for another than this timeout.
                Err(error) if error.is_lost() && self.is_alive() => host.trouble = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        round.processes = processes;
        Ok(round)
    }

    /// Retry the round until a daemon answers.
    ///
    /// # Errors
    /// If the error is permanent.
    pub(crate) fn round_at_last(
        &mut self,
        scope: &Scope,
        mut kept: Option<&mut Vec<(Place, Value)>>,
    ) -> Result<Round, Error> {
        loop {
            std::thread::sleep(AGAIN);
            if let Some(kept) = &mut kept {
                kept.clear();
            }
            match self.round(scope, kept.as_deref_mut()) {
                Err(error) if recovery::of(&error, true) != Recovery::End => {}
                round => return round,
            }
        }
    }

    /// Whether the queried daemon answers at all; some refuse `daemon.info`.
    fn is_alive(&mut self) -> bool {
        let answer = self.client.request(&InfoParams {}, &About::default(), ALIVE);
        matches!(answer, Ok(_) | Err(Error::Fault { .. }))
    }

    /// Request the hosts of the domains. A domain that does not answer becomes a note, as long as another
    /// does.
    fn ask_hosts(&mut self, round: &mut Round) -> Result<(), Error> {
        let named: Vec<Option<String>> = match self.domains.is_empty() {
            true => vec![None],
            false => self.domains.iter().cloned().map(Some).collect(),
        };
        let mut fault = None;
        for domain in named {
            let about = About { domain: domain.clone(), host: None };
            match self.client.request(&HostsParams {}, &about, PATIENCE) {
                Ok(Answered { typed: Hosts { domain, hosts }, .. }) => {
                    round.hosts.extend(hosts.iter().map(|host| read_host(&domain, host)));
                }
                Err(error @ (Error::Fault { .. } | Error::Answer { .. })) => {
                    round.notes.push(format!("{}: {error}", domain.as_deref().unwrap_or("the domain")));
                    fault = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match fault {
            Some(fault) if round.hosts.is_empty() => Err(fault),
            _ => Ok(()),
        }
    }

    fn give(&self, (place, key): &Id, signal: Signal) -> Result<String, String> {
        let text_of = |failure: Failure| {
            let text = failure.message().unwrap_or_default();
            text.strip_prefix("error: ").map_or_else(|| text.clone(), str::to_owned)
        };
        let mut sender =
            CommandSender::new(&self.target, Some(&place.domain), &place.host).map_err(text_of)?;
        let done = sender.send(*key, Act::Signal(signal)).map_err(text_of)?.typed;
        let ended = match done.ended {
            Some(true) => "; it has ended",
            Some(false) => "; it is there still",
            None => "",
        };
        let (signal, name, host) = (signal.as_str(), done.name, &place.host);
        Ok(format!("sent {signal} to {name} ({}) on {host}{ended}", key.pid))
    }
}

#[allow(clippy::cast_precision_loss)] // amounts of memory are shown with two digits
fn read_host(domain: &str, host: &domain::Host) -> Host {
    Host {
        place: Place { domain: domain.to_owned(), host: host.host.clone() },
        is_live: host.state == HostState::Live,
        load: host.load1,
        cpu: host.cpu_used,
        memory_used: host.memory_used_bytes.map(|bytes| bytes as f64),
        memory_total: host.memory_total_bytes.map(|bytes| bytes as f64),
        trouble: None,
    }
}

/// The running thread.
pub(crate) struct Running {
    /// Requests to it.
    pub(crate) asks: SyncSender<Ask>,
    /// Messages from it.
    pub(crate) updates: Receiver<Update>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Start to request `scope`, every `interval`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(querier: Querier, scope: Scope, interval: Duration) -> Result<Running, Failure> {
        let (asks, asked) = sync_channel(WAITING_MAX);
        let (sender, updates) = sync_channel(WAITING_MAX);
        let work = move || work(querier, scope, interval, &asked, &sender);
        let thread = std::thread::Builder::new().name("querier".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Failure::of("cannot start a thread", error))?;
        Ok(Running { asks, updates, thread })
    }

    /// Whether it can still send updates: it ends by itself only by a defect.
    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }
}

/// The thread's loop, until the other ends of its channels are closed.
fn work(
    mut querier: Querier,
    mut scope: Scope,
    interval: Duration,
    asked: &Receiver<Ask>,
    sender: &SyncSender<Update>,
) {
    loop {
        let update = match querier.round(&scope, None) {
            Ok(round) => Update::Round(round),
            Err(error) => Update::Lost(error.to_string()),
        };
        if sender.send(update).is_err() {
            return;
        }
        match asked.recv_timeout(interval) {
            Ok(Ask::Show(wanted)) => scope = wanted,
            Ok(Ask::Give(id, signal)) => {
                let given = querier.give(&id, signal);
                if sender.send(Update::Given(given)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rows::Order;
    use serde_json::json;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    /// A daemon of a domain with these hosts; for those called `late…` and for `last` it closes the
    /// connection instead of an answer, and after `last` it answers nothing at all.
    fn daemon(hosts: &'static [&'static str]) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::of_address(&listener.local_addr().unwrap().to_string());
        // It ends with the test's process.
        std::thread::spawn(move || {
            while serve(listener.accept().unwrap().0, hosts) {}
            listener.incoming().for_each(drop);
        });
        target
    }

    /// Serve until the connection ends; returns whether to serve another.
    fn serve(stream: TcpStream, hosts: &[&str]) -> bool {
        let mut from = BufReader::new(stream);
        loop {
            let (mut head, mut len) = (String::new(), 0);
            while from.read_line(&mut head).is_ok_and(|read| read > 2) {}
            for line in head.lines() {
                len = line.strip_prefix("content-length: ").map_or(len, |text| text.parse().unwrap());
            }
            let mut body = vec![0; len];
            if head.is_empty() || from.read_exact(&mut body).is_err() {
                return true;
            }
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let answer = if head.contains("domain.hosts") {
                let hosts: Vec<_> = hosts.iter().map(|host| json!({"host": host, "state": "live"})).collect();
                json!({"domain": "alpha", "hosts": hosts})
            } else if let Some(host) = asked["host"].as_str().filter(|host| host.starts_with("la")) {
                return host != "last";
            } else {
                json!({"total": 1, "processes": [{"pid": 7, "start_ns": 1, "name": "burn"}]})
            };
            let answer = answer.to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            from.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    }

    fn scope() -> Scope {
        Scope { only: None, order: Order::Cpu, is_filtered: false }
    }

    #[test]
    fn a_host_that_answers_late_costs_its_own_rows() {
        let mut querier = Querier::new(&daemon(&["a", "late1", "late2", "b", "late3", "c"]), Vec::new());
        let mut kept = Vec::new();
        let round = querier.round(&scope(), Some(&mut kept)).unwrap();
        assert_eq!((round.processes.len(), kept.len(), round.total), (3, 3, 3));
        let trouble: Vec<&str> = round
            .hosts
            .iter()
            .filter(|host| host.trouble.is_some())
            .map(|host| host.place.host.as_str())
            .collect();
        assert_eq!(trouble, ["late1", "late2", "late3"]);
    }

    #[test]
    fn a_daemon_that_answers_no_more_is_no_trouble_of_its_hosts() {
        let mut querier = Querier::new(&daemon(&["a", "last", "b"]), Vec::new());
        assert!(matches!(querier.round(&scope(), None), Err(error) if error.is_lost()));
    }
}
