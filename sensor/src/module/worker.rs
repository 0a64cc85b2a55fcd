//! Registry of modules: loads, replaces and removes modules as the files in their folder appear, change and
//! disappear.
//!
//! Shell: a task that reads the folder and owns the tasks of the modules. Rules: a module runs only while its
//! file, its executable and every folder on the path to them are trusted; a changed file or executable
//! replaces the module, between two calls; an error in one file is reported, and the other modules go on; a
//! half-written file ends nothing.
//! Not here: one running module (`task`), when an error is taken as final (`debounce`).

use super::debounce::{CheckTrigger, Debounce};
use super::feed::Sources;
use super::figure_cache::FigureCache;
use super::folder::{self, FileError, Identities, ModuleFiles};
use super::key::{self, Key};
use super::life::{Counts, RestartPolicy, State};
use super::protocol::Hello;
use super::spec::{Runs, Spec};
use super::stderr::Tail;
use super::task::{Parts, SensorNames, Task};
use crate::sample::ticker::{locked, running};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use wire::api::modules::ModuleAct;
use wire::id::{DomainName, HostName};

/// Most commands that wait for the registry, and for each module.
const ORDERS_MAX: usize = 16;
/// How often the folder is checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A command to one module.
#[derive(Debug)]
pub(super) enum Order {
    Replace(Box<Spec>),
    /// Restarts the module as its file says; it stays off if the file says so.
    Reload(oneshot::Sender<()>),
    /// Starts or restarts the module, even if its file says `on = false`.
    Start(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Modules are not configured.
    #[error(
        "this sensor runs no modules; folder = \"/etc/visperf/modules\" in [sensor.modules] of its configuration names where they are"
    )]
    Off,
    /// No module has this name.
    #[error("no module {0:?}; expected one that sensor.modules lists, whose file NAME.toml is in its folder")]
    Unknown(String),
    /// Its file is invalid or not trusted.
    #[error("module {name}: {why}")]
    Refused {
        name: String,
        /// The reason, in words.
        why: String,
    },
    /// Too many commands wait for the module.
    #[error("{ORDERS_MAX} orders to module {0} wait; order again when they are obeyed")]
    Busy(String),
    /// The sensor is shutting down.
    #[error("the sensor is ending")]
    Ended,
}

/// Status of a module.
#[derive(Clone, Debug)]
pub struct ModuleStatus {
    pub name: String,
    pub runs: Runs,
    pub state: State,
    /// Its hello, while it runs.
    pub hello: Option<Hello>,
    /// Rate of calls to a collector, in Hz.
    pub rate_hz: Option<f64>,
    /// Process id, if it is a running process.
    pub pid: Option<u32>,
    pub counts: Counts,
    /// CPU time since the module was loaded.
    pub cpu: Duration,
    /// Entries that wait to be sent to a handler.
    pub waiting: usize,
    /// Its last failure.
    pub last_error: Option<String>,
    /// Its standard error or log.
    pub tail: Tail,
}

impl ModuleStatus {
    /// How long until the next start, if it waits for one.
    #[must_use]
    pub fn retry_in(&self) -> Option<Duration> {
        match self.state {
            State::Waiting { until } => Some(until.saturating_sub(running())),
            State::Due | State::Running | State::Quarantined | State::Stopped | State::Off => None,
        }
    }
}

/// Status that the tasks report and clients read.
#[derive(Debug, Default)]
pub(super) struct Shared {
    statuses: Mutex<BTreeMap<String, ModuleStatus>>,
    refused: Mutex<BTreeMap<String, String>>,
    trouble: Mutex<Option<String>>,
}

impl Shared {
    pub(super) fn set_status(&self, status: ModuleStatus) {
        locked(&self.statuses).insert(status.name.clone(), status);
    }
}

/// A command with its reply: an error, or a receiver that completes when the command is done.
type Command = (Option<String>, ModuleAct, oneshot::Sender<Result<Option<oneshot::Receiver<()>>, Refusal>>);

/// Handle for queries and commands; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    folder: PathBuf,
    figure_cache: FigureCache,
    orders: mpsc::Sender<Command>,
    key_file: PathBuf,
    key: Arc<OnceLock<Key>>,
}

impl Handle {
    /// The folder of the modules.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Their newest figures.
    #[must_use]
    pub fn figure_cache(&self) -> &FigureCache {
        &self.figure_cache
    }

    /// Status of every module, by name.
    #[must_use]
    pub fn statuses(&self) -> Vec<ModuleStatus> {
        locked(&self.shared.statuses).values().cloned().collect()
    }

    /// Invalid or untrusted files, by module name, with the reason.
    #[must_use]
    pub fn refused(&self) -> BTreeMap<String, String> {
        locked(&self.shared.refused).clone()
    }

    /// What is wrong with the folder as a whole, or a doubtful error of one file.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        locked(&self.shared.trouble).clone()
    }

    /// Health messages. They are sent to other daemons, so they contain nothing that modules or their files
    /// say.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let hint = |what: String| format!("{what}; `visperf modules` on that host shows why");
        let mut health: Vec<String> = Vec::new();
        health
            .extend(self.trouble().map(|_| hint("something is wrong with the folder of modules".to_owned())));
        health.extend(self.refused().into_keys().map(|name| hint(format!("module {name} is refused"))));
        let quarantined = self.statuses().into_iter().filter(|statuses| statuses.state == State::Quarantined);
        health.extend(quarantined.map(|one| hint(format!("module {} is quarantined", one.name))));
        health
    }

    /// Whether `text` is the content of the key file, which only the sensor's user and root can read.
    #[must_use]
    pub fn is_key(&self, text: &str) -> bool {
        self.key.get().is_some_and(|key| key.is(text))
    }

    #[must_use]
    pub fn key_file(&self) -> &Path {
        &self.key_file
    }

    /// Reads the folder now, then sends the command to the named module, if there is one. Waits until the
    /// command is done; a call under way is completed first.
    ///
    /// # Errors
    /// If there is no such module, its file is invalid, or the command cannot be queued.
    pub async fn order(&self, name: Option<String>, act: ModuleAct) -> Result<(), Refusal> {
        let (sender, reply) = oneshot::channel();
        self.orders.send((name, act, sender)).await.map_err(|_| Refusal::Ended)?;
        match reply.await.map_err(|_| Refusal::Ended)?? {
            Some(done) => done.await.map_err(|_| Refusal::Ended),
            None => Ok(()),
        }
    }
}

/// The registry, ready to run.
pub struct Worker {
    handle: Handle,
    orders: mpsc::Receiver<Command>,
    state: PathBuf,
    names: SensorNames,
    policy: RestartPolicy,
    slots: BTreeMap<String, Slot>,
    /// Doubt about an error of the folder.
    debounce: Debounce,
    tasks: JoinSet<()>,
    running: BTreeMap<Id, String>,
}

/// State of one file in the folder.
struct Slot {
    identity: Result<Identities, String>,
    spec: Option<Spec>,
    /// `None` if the module is refused.
    task: Option<RunningTask>,
    debounce: Debounce,
}

impl Slot {
    /// Why the module does not run.
    fn why(&self) -> String {
        let defect = "the sensor's part of it failed by a defect; the daemon's log says more";
        self.identity.as_ref().err().cloned().unwrap_or_else(|| defect.to_owned())
    }
}

struct RunningTask {
    orders: mpsc::Sender<Order>,
    ending: CancellationToken,
}

impl Worker {
    /// Creates the registry for `folder`; each module gets a working directory of its own below `state`.
    #[must_use]
    pub fn new(
        folder: PathBuf,
        state: &Path,
        (domain, host): (&DomainName, &HostName),
        policy: RestartPolicy,
    ) -> (Worker, Handle) {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let handle = Handle {
            shared: Arc::default(),
            folder,
            figure_cache: FigureCache::default(),
            orders: sender,
            key_file: state.join(key::FILE),
            key: Arc::default(),
        };
        let worker = Worker {
            handle: handle.clone(),
            orders,
            state: state.join("modules"),
            names: SensorNames { host: host.to_string(), domain: domain.to_string() },
            policy,
            slots: BTreeMap::new(),
            debounce: Debounce::default(),
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
        };
        (worker, handle)
    }

    /// Runs the modules until `shutdown`, then ends them.
    pub async fn run(mut self, sources: Sources, shutdown: CancellationToken) {
        self.make_key().await;
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = look.tick() => self.check_folder(&sources, CheckTrigger::Timer).await,
                Some((name, act, reply)) = self.orders.recv() => {
                    self.check_folder(&sources, CheckTrigger::Command).await;
                    // The client may be gone.
                    let _ = reply.send(self.obey(name, act));
                }
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.ended(ended);
                    self.check_folder(&sources, CheckTrigger::Timer).await;
                }
            }
        }
        self.slots.values().filter_map(|slot| slot.task.as_ref()).for_each(|task| task.ending.cancel());
        while self.tasks.join_next().await.is_some() {}
    }

    /// Creates the key. Without it all commands are refused, but the modules run.
    async fn make_key(&self) {
        let file = self.handle.key_file.clone();
        match tokio::task::spawn_blocking(move || Key::make(&file)).await {
            // Called once, so the key is not set yet.
            Ok(Ok(key)) => drop(self.handle.key.set(key)),
            Ok(Err(error)) => {
                tracing::error!(%error, path = %self.handle.key_file.display(), "no orders to modules: no key");
            }
            Err(error) => tracing::error!(%error, "no orders to modules: no key, by a defect"),
        }
    }

    /// Reads the folder and applies it.
    async fn check_folder(&mut self, sources: &Sources, trigger: CheckTrigger) {
        let folder = self.handle.folder.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || folder::read_modules(&folder)).await else {
            return;
        };
        let (found, trouble) = match found {
            Ok(found) => {
                self.debounce.clear();
                found
            }
            Err(error) => {
                if !self.debounce.is_settled(&error, trigger) {
                    *locked(&self.handle.shared.trouble) = Some(error.why);
                    return;
                }
                (ModuleFiles::new(), Some(error.why))
            }
        };
        self.remove_missing(&found, trigger);
        for (name, module) in found {
            self.update_slot(&name, module, sources, trigger);
        }
        let doubted = self.slots.iter().find_map(|(name, slot)| {
            Some(format!("module {name} goes on as before, if that does not last: {}", slot.debounce.why()?))
        });
        *locked(&self.handle.shared.trouble) = trouble.or(doubted);
        let refused = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.task.is_none())
            .map(|(name, slot)| (name.clone(), slot.why()));
        *locked(&self.handle.shared.refused) = refused.collect();
    }

    /// Ends the modules whose files are gone.
    fn remove_missing(&mut self, found: &ModuleFiles, trigger: CheckTrigger) {
        self.slots.retain(|name, slot| {
            let is_there = found.contains_key(name);
            match &slot.task {
                // Stays until its task has ended: a module of the same name must not start before.
                Some(task) => {
                    let gone =
                        || FileError { why: "its file is gone".to_owned(), of: None, is_passing: true };
                    if !is_there && slot.debounce.is_settled(&gone(), trigger) {
                        task.ending.cancel();
                    }
                    true
                }
                None => is_there,
            }
        });
    }

    fn update_slot(
        &mut self,
        name: &str,
        module: Result<(Spec, Identities), FileError>,
        sources: &Sources,
        trigger: CheckTrigger,
    ) {
        if let Some(slot @ Slot { task: Some(_), .. }) = self.slots.get_mut(name) {
            match &module {
                Ok(_) => slot.debounce.clear(),
                Err(error) if !slot.debounce.is_settled(error, trigger) => return,
                Err(_) => {}
            }
        }
        let (spec, identity) = match module {
            Ok((spec, identity)) => (Some(spec), Ok(identity)),
            Err(error) => (None, Err(error.why)),
        };
        match self.slots.get_mut(name) {
            Some(slot) if slot.identity == identity && (slot.spec == spec || spec.is_none()) => {}
            Some(Slot { task: Some(task), .. }) if task.ending.is_cancelled() => {}
            Some(slot @ Slot { task: Some(_), .. }) => {
                let task = slot.task.as_ref().expect("it was just seen");
                match &spec {
                    // If its command queue is full, the next check tries again.
                    Some(spec) => {
                        if task.orders.try_send(Order::Replace(Box::new(spec.clone()))).is_err() {
                            return;
                        }
                    }
                    None => task.ending.cancel(),
                }
                (slot.identity, slot.spec) = (identity, spec);
            }
            Some(_) | None => {
                if let Err(why) = &identity {
                    tracing::warn!(module = name, why, "module is refused");
                }
                let task = spec.clone().map(|spec| self.start_task(spec, sources));
                self.slots
                    .insert(name.to_owned(), Slot { identity, spec, task, debounce: Debounce::default() });
            }
        }
    }

    fn start_task(&mut self, spec: Spec, sources: &Sources) -> RunningTask {
        let (orders, received) = mpsc::channel(ORDERS_MAX);
        let (ending, name) = (CancellationToken::new(), spec.name.clone());
        let task = Task::new(Parts {
            folder: self.state.join(&name),
            spec,
            names: self.names.clone(),
            sources: sources.clone(),
            figure_cache: self.handle.figure_cache.clone(),
            shared: Arc::clone(&self.handle.shared),
            orders: received,
            ending: ending.clone(),
            policy: self.policy,
        });
        let id = self.tasks.spawn(task.run()).id();
        self.running.insert(id, name);
        RunningTask { orders, ending }
    }

    /// Cleans up after the task of a module has ended.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, is_defect) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), true),
        };
        let Some(name) = self.running.remove(&id) else { return };
        locked(&self.handle.shared.statuses).remove(&name);
        self.handle.figure_cache.clear(&name);
        if !is_defect {
            self.slots.remove(&name);
        } else if let Some(slot) = self.slots.get_mut(&name) {
            // The module is not started again before its file changes.
            slot.task = None;
            tracing::error!(module = %name, "the sensor's part of a module panicked; left out until its file changes");
        }
    }

    /// Passes a command on; returns a receiver that completes when it is done.
    fn obey(&self, name: Option<String>, act: ModuleAct) -> Result<Option<oneshot::Receiver<()>>, Refusal> {
        let Some(name) = name else { return Ok(None) };
        let slot = self.slots.get(&name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        let Some(task) = slot.task.as_ref().filter(|task| !task.ending.is_cancelled()) else {
            let why = slot.why();
            return Err(Refusal::Refused { name, why });
        };
        let (sender, done) = oneshot::channel();
        let order = match act {
            ModuleAct::Reload => Order::Reload(sender),
            ModuleAct::Start => Order::Start(sender),
            ModuleAct::Stop => Order::Stop(sender),
        };
        match task.orders.try_send(order) {
            Ok(()) => Ok(Some(done)),
            Err(_) => Err(Refusal::Busy(name)),
        }
    }
}
