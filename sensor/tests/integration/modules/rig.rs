//! Test rig: a module worker over a simulated sensor with a journal in memory, subscriptions without a
//! sampler, and sweeps made by the test.

use crate::report::rig::Member;
use sensor::channel::hub::Hub;
use sensor::journal;
use sensor::module::feed::Sources;
use sensor::module::life::RestartPolicy;
use sensor::module::worker::{Handle, ModuleStatus, Worker};
use sensor::sample::collector::{Collectors, Now};
use sensor::sample::table::{Rows, Table, metric};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::api::modules::{ModuleAct, ModuleState};
use wire::backoff::Backoff;
use wire::sample::{Number, Semantics};
use wire::time::Time;

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);
/// The hello line of a collector.
pub const COLLECTOR: &str = r#"{"protocol":1,"name":"test","kind":"collector","rate":10}"#;

/// Restarts with short delays, so that a test need not wait; three failures are too many.
pub const HASTY: RestartPolicy = RestartPolicy {
    backoff: Backoff::new(Duration::from_millis(20), Duration::from_millis(40)),
    failures_max: 3,
    forgiven_after: Duration::from_secs(600),
};

pub struct Rig {
    pub folder: TempDir,
    pub handle: Handle,
    pub member: Member,
    pub hub: Hub,
    sweeps: watch::Sender<Option<Arc<Table>>>,
    shutdown: CancellationToken,
    run: JoinHandle<()>,
}

impl Rig {
    /// Starts without modules in the folder.
    pub fn start() -> Rig {
        Rig::with(HASTY)
    }

    pub fn with(policy: RestartPolicy) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("modules")).unwrap();
        mode(&folder.path().join("modules"), 0o755);
        let names = ("local".try_into().unwrap(), "here".try_into().unwrap());
        let (worker, handle) = Worker::new(
            folder.path().join("modules"),
            &folder.path().join("state"),
            (&names.0, &names.1),
            policy,
        );
        let (member, hub) = (Member::new(0, journal::Config::default()), Hub::default());
        let sweeps = watch::Sender::new(None);
        let sources =
            Sources { hub: hub.clone(), reader: member.journal.reader(), sweeps: sweeps.subscribe() };
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(worker.run(sources, shutdown.clone()));
        Rig { folder, handle, member, hub, sweeps, shutdown, run }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a shell script as a module: it answers with `hello`, and runs `body` for each call, which is in
    /// `$call`; `$dir` is the rig's folder.
    pub fn script(&self, name: &str, hello: &str, body: &str) -> PathBuf {
        let dir = self.folder.path().display();
        let text = format!(
            "#!/bin/sh\ndir={dir}\nwhile read -r call; do case $call in\n'{{\"hello\":'*) echo '{hello}' ;;\n*) {body} ;;\nesac; done\n"
        );
        self.program(name, &text)
    }

    /// Writes any text as an executable program.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let fresh = self.path(&format!("{name}.new"));
        std::fs::write(&fresh, text).unwrap();
        mode(&fresh, 0o755);
        std::fs::rename(&fresh, &path).unwrap();
        path
    }

    /// Loads a module that runs this program, with more lines in its file; returns after the sensor has read
    /// the file.
    pub async fn load(&self, name: &str, program: &Path, more: &str) {
        self.write(name, &format!("run = ['{}']\n{more}\n", program.display()));
        self.reload().await;
    }

    pub fn write(&self, name: &str, text: &str) {
        let (path, fresh) = (self.path("modules").join(format!("{name}.toml")), self.path("fresh"));
        std::fs::write(&fresh, text).unwrap();
        mode(&fresh, 0o644);
        std::fs::rename(&fresh, path).unwrap();
    }

    pub async fn reload(&self) {
        self.handle.order(None, ModuleAct::Reload).await.unwrap();
    }

    pub async fn order(&self, name: &str, act: ModuleAct) {
        self.handle.order(Some(name.to_owned()), act).await.unwrap();
    }

    /// Polls the state of the module until `is_wanted` accepts it.
    pub async fn status_when(
        &self,
        name: &str,
        what: &str,
        is_wanted: impl Fn(&ModuleStatus) -> bool,
    ) -> ModuleStatus {
        let mut last = None;
        let found = until(|| {
            last = self.handle.statuses().into_iter().find(|status| status.name == name);
            last.as_ref().is_some_and(&is_wanted)
        });
        assert!(found.await, "expected {name} to be {what}: {last:?}");
        last.unwrap()
    }

    /// Waits until the module has answered this many more calls.
    pub async fn goes_on(&self, name: &str, more: u64) {
        let calls = |status: &ModuleStatus| status.counts.calls_total;
        let before = self.status_when(name, "there", |_| true).await;
        self.status_when(name, "going on", |status| calls(status) >= calls(&before) + more).await;
    }

    /// Waits until the module is in this state; returns the text of its last failure.
    pub async fn state(&self, name: &str, state: &str) -> String {
        let status =
            self.status_when(name, state, |status| ModuleState::from(status.state).as_str() == state).await;
        status.last_error.unwrap_or_default()
    }

    /// Returns a figure from the metrics of the host.
    pub fn figure(&self, name: &str) -> Option<Number> {
        let mut collectors = Collectors::new(vec![self.handle.figure_cache().collector()]);
        let now = Now { calendar: Time::default(), running: Duration::ZERO };
        collectors.sweep(now, Duration::default).get(name, &[])
    }

    pub async fn until_figure(&self, name: &str, expected: impl Into<Option<f64>>) {
        let expected = expected.into();
        let found = until(|| self.figure(name).map(Number::as_f64) == expected).await;
        assert!(found, "expected {name} = {expected:?}, found {:?}", self.figure(name));
    }

    /// Sweeps the host with these figures.
    pub fn sweep(&self, figures: &[(&str, u64)]) {
        let mut rows = Rows::default();
        for (name, value) in figures {
            rows.push_whole(&metric(name, "", Semantics::Gauge, &[]), *value);
        }
        self.sweeps.send_replace(Some(Arc::new(rows.finish(Time::from_micros(1_500_000)))));
    }

    /// Returns the complete lines of a file in the rig's folder; none if the file does not exist.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        whole.lines().map(ToOwned::to_owned).collect()
    }

    pub async fn until_lines(&self, name: &str, count: usize) -> Vec<String> {
        let found = until(|| self.lines(name).len() >= count).await;
        assert!(found, "expected {count} lines of {name}, found {:?}", self.lines(name));
        self.lines(name)
    }

    pub async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap();
    }
}

/// Whether the condition became true before the timeout.
pub async fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(10));
        while !is_so() {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.is_ok()
}

pub fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether the process with this id exists and has not ended.
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
