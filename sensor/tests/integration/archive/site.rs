//! A domain of hosts with series of jobs and archives, which call each other's real methods within the process.

use jiff::civil::Date;
use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::{Answer, Registry};
use rpc::dispatch::typed::{self, answer_of, params_of};
use rpc::fault::Fault;
use rpc::limits::Limits;
use sensor::archive::config::Config;
use sensor::archive::{Archive, Peers};
use sensor::job_series::log::{Handle, SeriesLog};
use sensor::job_series::piece::{Point, Whose};
use sensor::query;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::daily::DailyLimit;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wire::api::archive::{ArchiveParams, SeriesCopyParams};
use wire::api::domain::{Host as Row, HostState, Hosts, HostsParams};
use wire::api::job_series::{JobSeries, JobSeriesParams};
use wire::api::{Request, Span, UnixTime};
use wire::id::HostName;
use wire::query::Viewer;
use wire::time::Time;

/// Noon of 2026-11-20.
pub(super) const NOON: Time = Time::from_micros(1_795_176_000_000_000);
pub(super) const DAY: Duration = Duration::from_secs(86_400);
const SERIES: DailyLimit = DailyLimit { bytes: 64 << 20, days: 90 };

pub(super) fn config(bytes: u64, copies: usize) -> Config {
    let (take_over, round) = (Duration::from_secs(60), Duration::from_millis(30));
    Config { limit: DailyLimit { bytes, days: 1000 }, copies, take_over, round }
}

/// A host, while it runs.
struct Running {
    dispatcher: Arc<Dispatcher>,
    archive: Option<Archive>,
    series: Handle,
    log: SeriesLog,
    shutdown: CancellationToken,
}

struct Host {
    state: TempDir,
    running: Option<Running>,
    /// When it was seen last, in seconds before now.
    age_secs: f64,
    config: Option<Config>,
}

/// All hosts; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Site(Arc<Inner>);

#[derive(Default)]
struct Inner {
    hosts: Mutex<BTreeMap<HostName, Host>>,
    /// Bytes of series that were sent to archives.
    pub(super) copied: AtomicU64,
    /// What a host answers instead of its series.
    lies: Mutex<BTreeMap<HostName, Value>>,
}

pub(super) fn name(host: &str) -> HostName {
    HostName::try_from(host).expect("a name")
}

impl Peers for Site {
    fn call(
        &self,
        host: Option<&HostName>,
        method: &'static str,
        params: Vec<(Name, Value)>,
        _: Duration,
    ) -> Answer {
        let Some(host) = host else { return Box::pin(std::future::ready(Ok(self.rows()))) };
        let lie = self.0.lies.lock().expect("no panic").get(host).cloned();
        if let Some(lie) = lie.filter(|_| method == SeriesCopyParams::METHOD) {
            return Box::pin(std::future::ready(Ok(lie)));
        }
        let hosts = self.0.hosts.lock().expect("no panic");
        let running = hosts.get(host).and_then(|host| host.running.as_ref());
        let dispatcher = running.map(|running| Arc::clone(&running.dispatcher));
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let dispatcher = dispatcher.ok_or_else(|| Fault::unavailable("it does not answer"))?;
            let answer =
                dispatcher.call_for(&Caller::trusted(Duration::from_secs(20)), method, params).await?;
            if method == SeriesCopyParams::METHOD {
                let copy = answer_of::<SeriesCopyParams>(answer.clone())?;
                let sent: usize = copy.parts.iter().map(|part| part.data.0.len()).sum();
                inner.copied.fetch_add(sent as u64, Ordering::Relaxed);
            }
            Ok(answer)
        })
    }
}

impl Site {
    fn rows(&self) -> Value {
        let hosts = self.0.hosts.lock().expect("no panic");
        let row = |(name, host): (&HostName, &Host)| Row {
            host: name.to_string(),
            state: if host.running.is_some() { HostState::Live } else { HostState::LastSeen },
            age_secs: host.age_secs,
            archive: Some(host.config.is_some()),
            ..Row::default()
        };
        let rows = hosts.iter().map(row).collect();
        let answer = Hosts { domain: "physics".to_owned(), hosts: rows };
        let answered = typed::answered::<HostsParams>(&answer, None).and_then(|answered| answered.value());
        answered.expect("a value")
    }

    /// Starts a host, again or for the first time.
    pub(super) fn start(&self, host: &str, config: Option<Config>) {
        let host = name(host);
        let mut hosts = self.0.hosts.lock().expect("no panic");
        let empty =
            || Host { state: tempfile::tempdir().expect("a folder"), running: None, age_secs: 0.0, config };
        let own = hosts.entry(host.clone()).or_insert_with(empty);
        (own.age_secs, own.config) = (0.0, config);
        let (log, series) = SeriesLog::new(SERIES, own.state.path());
        let archive =
            config.map(|config| Archive::open(config, own.state.path(), host.clone()).expect("a folder"));
        let mut registry = Registry::new();
        for method in [
            query::job_series::method(Some(series.clone()), archive.clone(), host),
            query::archive::method(archive.clone()),
            query::archive::copy_method(Some(series.clone()), archive.clone()),
        ] {
            registry.add(method).expect("one of each name");
        }
        let shutdown = CancellationToken::new();
        if let Some(archive) = archive.clone() {
            tokio::spawn(archive.run(Arc::new(self.clone()), shutdown.clone()));
        }
        let dispatcher = Arc::new(Dispatcher::new(registry, Limits::default(), Arc::default()));
        own.running = Some(Running { dispatcher, archive, series, log, shutdown });
    }

    /// Stops a host, which was last seen so long ago.
    pub(super) fn stop(&self, host: &str, age_secs: f64) {
        let mut hosts = self.0.hosts.lock().expect("no panic");
        let own = hosts.get_mut(&name(host)).expect("a host");
        own.age_secs = age_secs;
        if let Some(running) = own.running.take() {
            running.shutdown.cancel();
        }
    }

    /// Makes a host answer this instead of its series.
    pub(super) fn lie(&self, host: &str, answer: Value) {
        self.0.lies.lock().expect("no panic").insert(name(host), answer);
    }

    pub(super) fn honest(&self, host: &str) {
        self.0.lies.lock().expect("no panic").remove(&name(host));
    }

    /// Lets a job run on a host for some seconds from a time on; all is on disk then.
    pub(super) fn run_job(&self, host: &str, job: &str, started: Time, secs: u64) {
        self.run_jobs(host, &[job.to_owned()], started, secs);
    }

    pub(super) fn run_jobs(&self, host: &str, jobs: &[String], started: Time, secs: u64) {
        let mut hosts = self.0.hosts.lock().expect("no panic");
        let running = hosts.get_mut(&name(host)).and_then(|host| host.running.as_mut()).expect("it runs");
        let whose =
            |job: &String| Whose { jobs: vec![job.as_str().into()], uid: 1000, is_proved: false, started };
        let jobs: Vec<Arc<Whose>> = jobs.iter().map(|job| Arc::new(whose(job))).collect();
        for second in 1..=secs {
            let point = Point {
                time: started.plus(Duration::from_secs(second)),
                cpu_us: second * 2_000_000 + second * second % 7,
                memory_bytes: (1000 + second * second % 997) * 1024,
                processes: 3,
                threads: 8,
                ..Point::default()
            };
            running.log.add(jobs.iter().map(|job| (Arc::clone(job), point)).collect());
        }
        running.log.end();
    }

    /// Removes the series of a host, as with a new disk.
    pub(super) fn lose(&self, host: &str) {
        let state =
            self.0.hosts.lock().expect("no panic").get(&name(host)).map(|host| host.state.path().to_owned());
        std::fs::remove_dir_all(state.expect("a host").join("job-series")).expect("removed");
    }

    pub(super) fn state(&self, archive: &str) -> wire::api::archive::Archive {
        self.archive(archive).state(None)
    }

    /// Days of a host at an archive, and their lengths.
    pub(super) fn days(&self, archive: &str, host: &str) -> Vec<(Date, u64)> {
        let state = self.archive(archive).state(Some(&name(host)));
        let days = state.hosts.into_iter().flat_map(|host| host.days);
        days.map(|day| (day.day.parse().expect("a day"), day.bytes)).collect()
    }

    /// Days of a host on its own disk, and their lengths.
    pub(super) fn own_days(&self, host: &str) -> Vec<(Date, u64)> {
        let hosts = self.0.hosts.lock().expect("no panic");
        let series = hosts[&name(host)].running.as_ref().expect("it runs").series.clone();
        series.reader().lens().expect("readable").into_iter().map(|day| (day.date, day.len)).collect()
    }

    pub(super) fn copied(&self) -> u64 {
        self.0.copied.load(Ordering::Relaxed)
    }

    fn archive(&self, host: &str) -> Archive {
        let hosts = self.0.hosts.lock().expect("no panic");
        let running = hosts.get(&name(host)).and_then(|host| host.running.as_ref());
        running.and_then(|running| running.archive.clone()).expect("an archive that runs")
    }

    /// Asks a host for a job's series of a day, those that another one measured if it is named.
    pub(super) async fn series(
        &self,
        host: &str,
        measured_by: Option<&str>,
        job: &str,
        since: Time,
        viewer: Viewer,
    ) -> Result<JobSeries, Fault> {
        let request = JobSeriesParams {
            job: job.to_owned(),
            measured_by: measured_by.map(str::to_owned),
            since: Some(UnixTime(since)),
            until: Some(UnixTime(since.plus(DAY))),
            step: Some(Span(Duration::from_secs(1))),
        };
        self.ask(host, &request, viewer).await
    }

    pub(super) async fn ask<R: Request>(
        &self,
        host: &str,
        request: &R,
        viewer: Viewer,
    ) -> Result<R::Answer, Fault> {
        let dispatcher = {
            let hosts = self.0.hosts.lock().expect("no panic");
            Arc::clone(&hosts[&name(host)].running.as_ref().expect("it runs").dispatcher)
        };
        let caller = Caller { viewer, ..Caller::client(Duration::from_secs(20)) };
        let answer = dispatcher.call_for(&caller, R::METHOD, params_of(request)?).await?;
        answer_of::<R>(answer)
    }

    /// Waits until this is so, for half a minute at most.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Site) -> bool) {
        for _ in 0..1500 {
            if is_so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}: not so after half a minute");
    }

    /// State of a host in an archive.
    pub(super) fn archived(&self, archive: &str, host: &str) -> Option<wire::api::archive::ArchivedHost> {
        self.state(archive).hosts.into_iter().find(|found| found.host == host)
    }
}

/// Asks for the state of an archive.
pub(super) fn state_of(host: &str) -> ArchiveParams {
    ArchiveParams { measured_by: Some(host.to_owned()) }
}
