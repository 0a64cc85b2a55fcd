//! Processes that serve a call, on real process trees: exactly those, however they were started.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::process::source::Kind;
use sensor::run::Sensor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers of several kinds, which write their process ids to a file: a child, one without an environment,
/// one that leaves its parent.
const TREE: &str = "echo $$ >> pids; sleep 600 & echo $! >> pids; env -i sleep 600 & echo $! >> pids; \
                    setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";

/// A tree of processes; killed on drop.
struct Tree {
    root: Child,
    folder: tempfile::TempDir,
}

impl Tree {
    #[allow(clippy::disallowed_methods)]
    fn start(environment: &[(&str, String)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", TREE]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Tree { root: command.spawn().unwrap(), folder }
    }

    fn pids(&self) -> BTreeSet<u64> {
        let text = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    #[allow(clippy::disallowed_methods)]
    fn kill(&mut self) {
        let pids = self.pids().into_iter().map(|pid| pid.to_string());
        // Some of them may have ended already.
        let _ = Command::new("kill").arg("-KILL").args(pids).stderr(std::process::Stdio::null()).status();
        let _ = self.root.wait();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the processes of a call that the sensor lists.
async fn processes_of(dispatcher: &Dispatcher, call: &str) -> Vec<Value> {
    let params = vec![(Name::Borrowed("call"), Value::from(call))];
    let caller = Caller::trusted(PATIENCE);
    let answer = dispatcher.call_for(&caller, "sensor.call_processes", params).await.unwrap();
    answer.get("processes").and_then(Value::as_array).unwrap().to_vec()
}

/// Maps process ids to how each was recognized, and whether it has ended.
async fn serving(dispatcher: &Dispatcher, call: &str) -> BTreeMap<u64, (String, bool)> {
    let one = |process: &Value| {
        let Some(Value::UInt(pid)) = process.get("pid") else { panic!("{process:?}") };
        let by = process.get("known_by").and_then(Value::as_text).unwrap();
        (*pid, (by.to_owned(), process.get("ended").is_some()))
    };
    processes_of(dispatcher, call).await.iter().map(one).collect()
}

/// Start time of each process, as calendar time and since boot.
async fn starts(dispatcher: &Dispatcher, call: &str) -> Vec<[Value; 2]> {
    let one = |process: &Value| ["start", "start_ns"].map(|name| process.get(name).unwrap().clone());
    processes_of(dispatcher, call).await.iter().map(one).collect()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while !is_so().await {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("timed out: {what}"));
}

/// Filters the processes that are reported to be running.
fn living(serving: &BTreeMap<u64, (String, bool)>) -> BTreeSet<u64> {
    serving.iter().filter(|(_, (_, has_ended))| !has_ended).map(|(pid, _)| *pid).collect()
}

/// A sensor of this host that runs in this process, with sweeps of `source`.
struct Running {
    dispatcher: Dispatcher,
    status: sensor::run::Status,
    shutdown: CancellationToken,
    run: tokio::task::JoinHandle<Result<(), sensor::run::Error>>,
}

impl Running {
    fn start(folder: &Path, source: Option<Kind>) -> Running {
        let text = "process_hz = 20\n[recorder]\nhz = 20\n";
        let mut raw: RawConfig = daemon::config_file::load(Path::new("f"), text).unwrap();
        raw.process_source = source;
        let config = Config::new(raw, "wn01", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &folder.join("state")).unwrap();
        let (methods, status) = (sensor.methods().unwrap(), sensor.status());
        let dispatcher = Dispatcher::new(methods, Limits::default(), std::sync::Arc::default());
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        Running { dispatcher, status, shutdown, run }
    }

    async fn end(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(daemon::shutdown::GRACE, self.run).await;
        ended.expect("it ends in time").unwrap().unwrap();
    }
}

/// Each test has its own job number: every sensor sees all processes of the machine.
async fn check(source: Option<Kind>, number: u32) {
    let folder = tempfile::tempdir().unwrap();
    let sensor = Running::start(folder.path(), source);
    let dispatcher = &sensor.dispatcher;

    let ad = folder.path().join(".job.ad");
    std::fs::write(&ad, format!("ClusterId = {number}\nProcId = 1\n")).unwrap();
    let text = |text: &str| text.to_owned();
    let job = format!("{number}17");
    let mut trees = [
        (format!("slurm:{job}"), Tree::start(&[("SLURM_JOB_ID", job.clone())])),
        (format!("torque:{job}.head"), Tree::start(&[("PBS_JOBID", format!("{job}.head"))])),
        (
            format!("gridengine:{job}"),
            Tree::start(&[("JOB_ID", job.clone()), ("SGE_TASK_ID", text("undefined"))]),
        ),
        (format!("htcondor:{number}.1"), Tree::start(&[("_CONDOR_JOB_AD", ad.display().to_string())])),
    ];
    let others = Tree::start(&[("JOB_ID", job)]);
    until("the others", async || others.pids().len() == 4).await;
    for (call, tree) in &trees {
        until(call, async || {
            let pids = tree.pids();
            pids.len() == 4 && living(&serving(dispatcher, call).await) == pids
        })
        .await;
    }
    let (call, tree) = &mut trees[0];
    let pids = tree.pids();
    tree.kill();
    until("their ends", async || living(&serving(dispatcher, call).await).is_empty()).await;
    let after = serving(dispatcher, call).await;
    assert!(pids.iter().all(|pid| after.contains_key(pid)), "{pids:?} {after:?}");
    let known = starts(dispatcher, call).await;
    assert!(known.len() >= 4);
    for _ in 0..20 {
        assert_eq!(starts(dispatcher, call).await, known, "a process has one start in all answers");
    }
    sensor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_job_are_named_and_no_others() {
    check(None, 9042).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_job_are_named_where_only_proc_is_read() {
    check(Some(Kind::Procfs), 9043).await;
}

/// A FUSE file system whose server never answers; unmounted on drop.
struct Unanswering(std::path::PathBuf, #[allow(dead_code)] std::fs::File);

impl Unanswering {
    fn mount(place: &Path) -> Unanswering {
        use std::os::fd::AsRawFd as _;
        std::fs::create_dir(place).unwrap();
        let server = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
        let options = std::ffi::CString::new(options).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("fuse", place, "fuse", flags, options.as_c_str()).unwrap();
        Unanswering(place.to_owned(), server)
    }
}

impl Drop for Unanswering {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

/// Each attack has its own job number; that job comes after the file that could block the sensor.
async fn check_hostile(folder: &Path, hostile: &[(&str, &str)]) {
    let sensor = Running::start(folder, None);
    for (number, (file, refused)) in hostile.iter().enumerate() {
        let attack = Tree::start(&[("_CONDOR_JOB_AD", (*file).to_owned())]);
        until(file, async || sensor.status.health().iter().any(|text| text.contains(refused))).await;
        let job = format!("77{}{number}", std::process::id());
        let tree = Tree::start(&[("SLURM_JOB_ID", job.clone())]);
        until(&format!("the job after {file}"), async || {
            let pids = tree.pids();
            pids.len() == 4 && living(&serving(&sensor.dispatcher, &format!("slurm:{job}")).await) == pids
        })
        .await;
        drop(attack);
    }
    sensor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_a_file_that_a_process_names_holds_up_no_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, link) = (place("pipe"), place("link"));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", &link).unwrap();
    let mut hostile = vec![
        ("/proc/kmsg", "/proc/kmsg: it is on a file system of type proc"),
        (pipe.as_str(), "pipe: it is not a plain file"),
        (link.as_str(), "link: it leads through a symbolic link"),
    ];
    if !rustix::process::geteuid().is_root() {
        hostile.push(("/etc/passwd", "/etc/passwd: it belongs to user 0"));
        check_hostile(folder.path(), &hostile).await;
        return;
    }
    let (mount, traces) = (place("fuse"), place("tracing"));
    let file = format!("{mount}/ad");
    let _mount = Unanswering::mount(Path::new(&mount));
    std::fs::create_dir(&traces).unwrap();
    rustix::mount::mount("tracefs", &traces, "tracefs", rustix::mount::MountFlags::empty(), None).unwrap();
    let pipe_of_traces = format!("{traces}/trace_pipe");
    hostile.push((&file, "fuse/ad: it is on a file system of type fuse"));
    hostile.push((&pipe_of_traces, "trace_pipe: it is on a file system of type tracefs"));
    check_hostile(folder.path(), &hostile).await;
    rustix::mount::unmount(&traces, rustix::mount::UnmountFlags::DETACH).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_a_huge_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::process::id();
    let ad = folder.path().join("ad");
    std::fs::write(&ad, format!("ClusterId = {number}\nProcId = 7\n")).unwrap();
    std::fs::OpenOptions::new().write(true).open(&ad).unwrap().set_len(100 << 30).unwrap();
    let sensor = Running::start(folder.path(), None);
    let tree = Tree::start(&[("_CONDOR_JOB_AD", ad.display().to_string())]);
    until("the job", async || {
        let pids = tree.pids();
        let call = format!("htcondor:{number}.7");
        pids.len() == 4 && living(&serving(&sensor.dispatcher, &call).await) == pids
    })
    .await;
    sensor.end().await;
}
