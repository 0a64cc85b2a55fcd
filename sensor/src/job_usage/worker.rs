//! Worker of the usage of jobs: writes the lines, stores the state, and reads the control groups.
//!
//! Shell. Rules: the sampling thread hands over reports and never waits. If the disk refuses, reports wait in memory,
//! up to a bound, and the trouble is shown. A line is on disk before the state without its measurement. The thread may
//! hang on a directory of users, so the end of the sensor does not wait for it without end.

use super::control_group;
use super::measurement::{Extent, GroupReading};
use super::meter::{JobKey, Meter, Now, Report};
use super::usage_log::{self, LEN_MAX_BYTES, Line, NAME};
use crate::history::failure::Failure;
use crate::history::writing::calendar;
use crate::job_series::log::{self, SeriesLog};
use crate::job_series::piece::{Point, Whose};
use crate::own_log::OwnLog;
use crate::process::boot_time::{boot_id, boot_ns};
use crate::process::details::Users;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::ticker::locked;
use crate::serving::job_names::ControlGroups;
use crate::serving::watch;
use daemon::{state_file, state_folder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::daily::DailyLimit;
use wire::id::HostName;
use wire::version::JOB_USAGE;

/// Messages that wait for the worker, each of one sweep.
const QUEUE_LEN: usize = 64;

/// Reports in memory while they cannot be handed over or written.
const WAITING_MAX: usize = 16_384;

/// How often a job has a point in its series, in nanoseconds.
const POINT_EVERY_NS: u64 = 1_000_000_000;

/// How long after its start the sensor knows the processes of the jobs that ran then: before, a point would be of some.
const KNOWN_AFTER_NS: u64 = 10_000_000_000;

/// How often control groups are read.
const READ_EVERY: Duration = Duration::from_secs(1);

/// How often the sampling thread says which control groups are to be read, in nanoseconds.
const WANTED_EVERY_NS: u64 = 500_000_000;

/// How soon after each other control groups that may be gone soon are read, in nanoseconds: Slurm removes them a tenth of a
/// second after the end of a job.
const URGENT_EVERY_NS: u64 = 50_000_000;

/// How often the state is stored while jobs run, in nanoseconds.
const STORE_EVERY_NS: u64 = 30_000_000_000;

/// Longest stored state: of a host with the most processes.
const STATE_LEN_MAX_BYTES: u64 = 256 << 20;

/// Where the control groups of the system are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Reports and points of a sweep, and the state if it is to be stored.
struct Handover {
    reports: Vec<Report>,
    points: Vec<(Arc<Whose>, Point)>,
    state: Option<Vec<u8>>,
}

/// The state on disk, after the version.
#[derive(Serialize, Deserialize)]
struct Stored<M> {
    boot: String,
    meter: M,
}

/// Tap that measures, on the sampling thread.
pub struct UsageTap {
    meter: Meter,
    boot: String,
    serving: watch::Handle,
    handovers: SyncSender<Handover>,
    waiting: Vec<Report>,
    store_at_ns: u64,
    /// When the next points are due; `None` if no series are stored.
    points_at_ns: Option<u64>,
    /// The first sweep.
    began: Option<Now>,
    /// Whether the stored state has a measurement, or may have.
    is_stored: bool,
    shared: Arc<Shared>,
}

/// The worker, ready to run.
pub struct Worker {
    handovers: Receiver<Handover>,
    folder: PathBuf,
    log: OwnLog,
    host: HostName,
    series: Option<SeriesLog>,
    waiting: Vec<Report>,
    /// State that is not on disk yet.
    state: Option<Vec<u8>>,
    shared: Arc<Shared>,
}

/// Handle for status; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    series: Option<log::Handle>,
    failure: Failure,
    groups: Mutex<Groups>,
    measured: AtomicU64,
    lines: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

/// Control groups to read, and what was read of them.
#[derive(Default)]
struct Groups {
    wanted: BTreeMap<JobKey, (Arc<ControlGroups>, Extent)>,
    read: Vec<(JobKey, GroupReading)>,
    asked_ns: u64,
    /// When groups were last asked for that may be gone soon.
    urgent_ns: u64,
}

/// Creates the measurement of jobs with its state below the sensor's folder.
#[must_use]
pub fn set_up(
    state: &Path,
    host: HostName,
    serving: watch::Handle,
    series: Option<DailyLimit>,
) -> (UsageTap, Worker, Handle) {
    let folder = usage_log::folder(state);
    let (series_log, series) = series.map(|limit| SeriesLog::new(limit, state)).unzip();
    let shared = Arc::new(Shared {
        series,
        failure: Failure::new("usage of jobs"),
        groups: Mutex::default(),
        measured: AtomicU64::default(),
        lines: AtomicU64::default(),
        refused: AtomicU64::default(),
        lost: AtomicU64::default(),
    });
    serving.collect_news();
    let boot = boot_id();
    let (meter, waiting) = restored(state, &boot);
    let is_stored = folder.join("state").exists();
    let (sender, handovers) = sync_channel(QUEUE_LEN);
    let tap = UsageTap {
        meter,
        boot,
        serving,
        handovers: sender,
        waiting,
        store_at_ns: 0,
        points_at_ns: series_log.is_some().then_some(0),
        began: None,
        is_stored,
        shared: Arc::clone(&shared),
    };
    let log = OwnLog::new(folder.clone(), NAME, LEN_MAX_BYTES);
    let (waiting, state) = (Vec::new(), None);
    let series = series_log;
    let worker = Worker { handovers, folder, log, host, series, waiting, state, shared: Arc::clone(&shared) };
    (tap, worker, Handle(shared))
}

/// Reads the stored meter of a sensor with this state folder, and the id of its boot; `None` if nothing is stored.
///
/// # Errors
/// If it cannot be read, is of another version, or is damaged.
pub fn stored(state: &Path) -> Result<Option<(Meter, String)>, String> {
    let path = usage_log::folder(state).join("state");
    let bytes = state_file::read(&path, STATE_LEN_MAX_BYTES).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    unpacked(&bytes).map(|Stored { meter, boot }| Some((meter, boot)))
}

/// The stored meter; of another boot all its measurements are over.
fn restored(state: &Path, boot: &str) -> (Meter, Vec<Report>) {
    match stored(state) {
        Ok(None) => (Meter::default(), Vec::new()),
        Ok(Some((meter, stored))) if stored == boot => (meter, Vec::new()),
        Ok(Some((mut meter, _))) => {
            let reports = meter.end_all();
            (meter, reports)
        }
        Err(error) => {
            let path = usage_log::folder(state).join("state");
            tracing::warn!("{}: {error}; jobs that run are measured from now on", path.display());
            (Meter::default(), Vec::new())
        }
    }
}

fn unpacked(bytes: &[u8]) -> Result<Stored<Meter>, String> {
    let (version, rest) = bytes.split_first_chunk::<2>().ok_or("it is cut off")?;
    let version = u16::from_le_bytes(*version);
    if !JOB_USAGE.reads(version) {
        return Err(format!("expected version {}, found {version}", JOB_USAGE.expected()));
    }
    postcard::from_bytes(rest).map_err(|error| error.to_string())
}

fn packed(boot: &str, meter: &Meter) -> Vec<u8> {
    let stored = Stored { boot: boot.to_owned(), meter };
    let bytes = JOB_USAGE.written.to_le_bytes().to_vec();
    postcard::to_extend(&stored, bytes).expect("it can be written to memory")
}

impl Tap for UsageTap {
    fn swept(&mut self, view: &View, _: Duration) {
        let now = Now { boot_ns: view.table.sweep().begin_ns, time: calendar() };
        let (news, lost) = self.serving.take_news();
        self.shared.lost.fetch_add(lost, Ordering::Relaxed);
        self.take_read_groups();
        let reports = self.meter.sweep(view, news, now);
        let is_urgent = self.ask_for_groups(now);
        self.waiting.extend(reports);
        let is_due = match self.meter.is_idle() {
            true => self.is_stored,
            false => now.boot_ns >= self.store_at_ns,
        };
        let points = self.points(now);
        if is_due || is_urgent || !self.waiting.is_empty() || !points.is_empty() {
            self.hand_over(is_due, points);
        }
        if is_due {
            self.store_at_ns = now.boot_ns + STORE_EVERY_NS;
        }
        self.shared.measured.store(self.meter.count() as u64, Ordering::Relaxed);
        self.shared.refused.store(self.meter.refused_total(), Ordering::Relaxed);
    }

    fn drained(&mut self, view: &View) {
        self.meter.ended_between(view);
        self.take_read_groups();
        if self.ask_for_urgent_groups() {
            self.hand_over(false, Vec::new());
        }
    }
}

impl UsageTap {
    /// The points of all jobs, once a second.
    fn points(&mut self, now: Now) -> Vec<(Arc<Whose>, Point)> {
        let began = *self.began.get_or_insert(now);
        match &mut self.points_at_ns {
            Some(due) if *due <= now.boot_ns && !self.meter.is_idle() => {
                // At whole seconds, unless sweeps are rarer.
                *due = now.boot_ns - now.boot_ns % POINT_EVERY_NS + POINT_EVERY_NS;
                let is_known = now.boot_ns >= began.boot_ns + KNOWN_AFTER_NS;
                let mut points = self.meter.points(now);
                points.retain(|(whose, _)| is_known || whose.started >= began.time);
                points
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn hand_over(&mut self, with_state: bool, points: Vec<(Arc<Whose>, Point)>) {
        let state = with_state.then(|| packed(&self.boot, &self.meter));
        let handover = Handover { reports: std::mem::take(&mut self.waiting), points, state };
        match self.handovers.try_send(handover) {
            Ok(()) if with_state => self.is_stored = !self.meter.is_idle(),
            Ok(()) => {}
            Err(TrySendError::Full(handover) | TrySendError::Disconnected(handover)) => {
                self.waiting = handover.reports;
                let beyond = self.waiting.len().saturating_sub(WAITING_MAX);
                self.waiting.drain(..beyond);
                self.shared.lost.fetch_add(beyond as u64, Ordering::Relaxed);
            }
        }
    }

    /// Takes what was read of control groups.
    fn take_read_groups(&mut self) {
        // The worker holds it for a moment only; else the next sweep does it.
        let Ok(mut groups) = self.shared.groups.try_lock() else { return };
        for (key, reading) in std::mem::take(&mut groups.read) {
            self.meter.read_group(&key, reading);
        }
    }

    /// Says which control groups are to be read at times; returns whether some of them may be gone soon.
    fn ask_for_groups(&mut self, now: Now) -> bool {
        let Ok(mut groups) = self.shared.groups.try_lock() else { return false };
        if now.boot_ns.saturating_sub(groups.asked_ns) >= WANTED_EVERY_NS {
            groups.asked_ns = now.boot_ns;
            let before = std::mem::take(&mut groups.wanted);
            let extent = |key| before.get(key).map_or(Extent::Job, |(_, extent)| *extent);
            let with_groups = self.meter.with_groups();
            let wanted = with_groups.map(|(key, paths)| (key.clone(), (Arc::clone(paths), extent(key))));
            groups.wanted = wanted.collect();
        }
        if now.boot_ns.saturating_sub(groups.urgent_ns) < URGENT_EVERY_NS {
            return false;
        }
        groups.urgent_ns = now.boot_ns;
        drop(groups);
        self.ask_for_urgent_groups()
    }

    /// Says which control groups are to be read as they may be gone soon; returns whether there are some.
    fn ask_for_urgent_groups(&mut self) -> bool {
        let Ok(mut groups) = self.shared.groups.try_lock() else { return false };
        let urgent = self.meter.take_urgent();
        let is_some = !urgent.is_empty();
        for (key, paths, extent) in urgent {
            let wanted = groups.wanted.entry(key).or_insert((paths, extent));
            wanted.1 = wanted.1.max(extent);
        }
        is_some
    }
}

impl Drop for UsageTap {
    /// Stores the last state: the next run goes on from it.
    fn drop(&mut self) {
        if !self.meter.is_idle() || !self.waiting.is_empty() {
            self.hand_over(true, Vec::new());
        }
    }
}

impl Worker {
    /// Writes until the sampling thread has ended.
    pub fn run(mut self) {
        loop {
            match self.handovers.recv_timeout(READ_EVERY) {
                Ok(Handover { reports, mut points, state }) => {
                    points.extend(reports.iter().filter_map(Report::last_point));
                    self.take_points(points);
                    self.wait(reports);
                    self.state = state.or(self.state.take());
                }
                // What the disk refused is tried again.
                Err(RecvTimeoutError::Timeout) => self.take_points(Vec::new()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.series.iter_mut().for_each(SeriesLog::end);
                    return;
                }
            }
            // What the disk refused is tried again, whether or not more comes.
            if self.state.is_some() || !self.waiting.is_empty() {
                let written = self.write().and_then(|()| self.store());
                self.shared.failure.set(&self.folder, &written);
            }
            self.read_groups();
        }
    }

    /// Adds points to the series, and stores what is complete or was refused before.
    fn take_points(&mut self, points: Vec<(Arc<Whose>, Point)>) {
        if let Some(series) = &mut self.series {
            series.add(points);
            series.store();
        }
    }

    fn wait(&mut self, reports: Vec<Report>) {
        self.waiting.extend(reports);
        let beyond = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..beyond);
        self.shared.lost.fetch_add(beyond as u64, Ordering::Relaxed);
    }

    fn write(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut users = Users::default();
        let mut lines = String::new();
        for report in &self.waiting {
            let line = Line { report, host: &self.host, user: users.name(report.measured.uid) };
            lines.push_str(&format!("{line}\n"));
        }
        self.log.append(lines.as_bytes())?;
        self.shared.lines.fetch_add(self.waiting.len() as u64, Ordering::Relaxed);
        self.waiting.clear();
        Ok(())
    }

    fn store(&mut self) -> io::Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        state_folder::prepare_below(&self.folder)?;
        let (path, next) = (self.folder.join("state"), self.folder.join("state.new"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = state_file::open(&next, &mut options)?;
        file.write_all(state)?;
        file.sync_data()?;
        fs::rename(next, path)?;
        self.state = None;
        Ok(())
    }

    fn read_groups(&self) {
        let wanted = std::mem::take(&mut locked(&self.shared.groups).wanted);
        let root = Path::new(CONTROL_GROUPS);
        let mut read = Vec::new();
        for (key, (groups, extent)) in wanted {
            let read_ns = boot_ns();
            let reading = control_group::read(root, &groups, extent);
            if reading != GroupReading::default() {
                read.push((key, GroupReading { read_ns, ..reading }));
            }
        }
        if !read.is_empty() {
            locked(&self.shared.groups).read.extend(read);
        }
    }
}

impl Handle {
    /// What is not written at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.failure.trouble(None).or_else(|| self.0.series.as_ref()?.trouble())
    }

    /// The series of jobs; `None` if the configuration turns them off.
    #[must_use]
    pub fn series(&self) -> Option<&log::Handle> {
        self.0.series.as_ref()
    }

    /// Statistics: name and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let figures = [
            ("jobs", read(&self.0.measured)),
            ("lines_total", read(&self.0.lines)),
            ("refused_total", read(&self.0.refused)),
            ("lost_total", read(&self.0.lost)),
        ];
        let series = self.0.series.as_ref().map(log::Handle::figures).unwrap_or_default();
        figures.into_iter().chain(series).collect()
    }
}
