//! `sensor.job_series`: the curves of a job on this host, or on another one whose series the archive here has.
//!
//! Rules: a curve of another user is absent, unless the caller may inspect it: root and operators see all. Points of an
//! answer are bounded. Not here: what is stored (`job_series::log`), how points become curves (`job_series::curve`).

use super::archive::{archived, no_series, unreadable};
use super::history::step_for;
use super::job_measurements::joined;
use super::past::between;
use crate::archive::Archive;
use crate::history::writing::calendar;
use crate::job_series::curve::{Step, steps};
use crate::job_series::log::{Handle, each_stored};
use crate::job_series::piece::{Point, Whose};
use crate::process::details::Users;
use crate::process::visibility::Visibility;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use store::daily::DailyReader;
use wire::api::job_series::{JobCurve, JobSeries, JobSeriesParams, POINTS_MAX};
use wire::api::{Span, UnixTime};
use wire::id::HostName;
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 2;

/// Span of time by default.
const SPAN_DEFAULT: Duration = Duration::from_secs(3600);

/// Shortest step: that of the points.
const STEP_MIN: Duration = Duration::from_secs(1);

/// Longest step.
const STEP_MAX: Duration = Duration::from_secs(86_400);

/// How long before the requested time points are read, for the rate of the first step: more than the longest step may skip.
const BEFORE: Duration = Duration::from_secs(120);

/// Points that are read for an answer, at most: of a job, a month's.
const READ_MAX: usize = 3_000_000;

/// Where series are read.
enum Stored {
    /// Those that this host measured.
    Own(Handle),
    /// Those of another host, in the archive on this one.
    Archived(Vec<DailyReader>),
}

impl Stored {
    /// Visits the pieces that may have points between two times; returns the number of damaged bytes.
    fn each(
        &self,
        (since, until): (Time, Time),
        mut visit: impl FnMut(&Whose, &dyn Fn() -> Option<Vec<Point>>),
    ) -> io::Result<u64> {
        match self {
            Stored::Own(series) => series.each(since, until, visit),
            Stored::Archived(readers) => readers
                .iter()
                .try_fold(0, |damaged, reader| Ok(damaged + each_stored(reader, since, until, &mut visit)?)),
        }
    }

    fn oldest(&self) -> io::Result<Option<Time>> {
        match self {
            Stored::Own(series) => series.reader().oldest(),
            Stored::Archived(readers) => {
                let oldest = readers.iter().map(DailyReader::oldest).collect::<io::Result<Vec<_>>>()?;
                Ok(oldest.into_iter().flatten().min())
            }
        }
    }
}

/// Creates the method; without series it says so.
#[must_use]
pub fn method(series: Option<Handle>, archive: Option<Archive>, host: HostName) -> Method {
    let pool = BlockingPool::new("reading series of jobs", AT_ONCE_MAX);
    typed::method(move |caller, params: JobSeriesParams| {
        let (series, archive, pool, host) = (series.clone(), archive.clone(), pool.clone(), host.to_string());
        let visibility = Visibility::of(caller.viewer);
        async move {
            let (stored, whose) = match &params.measured_by {
                None => (Stored::Own(series.ok_or_else(no_series)?), (host, None)),
                Some(name) => {
                    (Stored::Archived(archived(archive.as_ref(), name)?), (name.clone(), Some(host)))
                }
            };
            let answer = pool.run(move || answer(&stored, &params, visibility, calendar())).await?;
            let (host, archive) = whose;
            Ok(JobSeries { host, archive, ..answer })
        }
    })
}

fn answer(
    series: &Stored,
    params: &JobSeriesParams,
    visibility: Visibility,
    now: Time,
) -> Result<JobSeries, Fault> {
    if !params.job.contains(':') {
        return Err(Fault::invalid_params(format!(
            "job: expected the middleware and number of a job, such as slurm:17, found {:?}",
            params.job
        )));
    }
    let (since, until) = between((params.since, params.until), SPAN_DEFAULT, now)?;
    let step = params.step.map_or_else(|| step_for(until.since(since)).min(STEP_MAX), |Span(step)| step);
    if !(STEP_MIN..=STEP_MAX).contains(&step) {
        return Err(Fault::invalid_params("step: a job has a point each second; expected 1 s to a day"));
    }
    let (mut found, mut count, mut damaged) = (BTreeMap::<Whose, Vec<Point>>::new(), 0, 0);
    let read = series.each((since.minus(step.max(BEFORE)), until), |whose, points| {
        let is_meant = whose.jobs.iter().any(|job| *job == params.job) && visibility.inspects(whose.uid);
        if !is_meant || count > READ_MAX {
            return;
        }
        match points() {
            Some(points) => {
                count += points.len();
                found.entry(whose.clone()).or_default().extend(points);
            }
            None => damaged += 1,
        }
    });
    let damaged_bytes = read.map_err(unreadable)? + damaged;
    if count > READ_MAX {
        return Err(too_many());
    }
    let mut users = Users::default();
    let (mut curves, mut shown) = (Vec::new(), 0);
    for (whose, points) in joined(found) {
        let steps = steps(&whose, points, step, (since, until));
        shown += steps.len();
        if !steps.is_empty() {
            curves.push(curve(whose, &steps, &mut users));
        }
    }
    if shown > POINTS_MAX {
        return Err(too_many());
    }
    curves.sort_by_key(|curve| curve.started);
    Ok(JobSeries {
        host: String::new(),
        archive: None,
        step_secs: step.as_secs_f64(),
        curves,
        own_only: !visibility.is_all(),
        oldest: series.oldest().map_err(unreadable)?.map(UnixTime),
        damaged_bytes,
    })
}

fn too_many() -> Fault {
    Fault::invalid_params(format!(
        "more than {POINTS_MAX} points of this job are in this time; expected a longer step, or a shorter time"
    ))
}

fn curve(whose: Whose, steps: &[Step], users: &mut Users) -> JobCurve {
    JobCurve {
        user: users.name(whose.uid).map(ToOwned::to_owned),
        uid: whose.uid,
        evidence: if whose.is_proved { "cgroup" } else { "environment" }.to_owned(),
        started: UnixTime(whose.started),
        jobs: whose.jobs.into_iter().map(String::from).collect(),
        times: steps.iter().map(|step| UnixTime(step.time)).collect(),
        cpus: steps.iter().map(|step| step.cpus).collect(),
        memory_bytes: steps.iter().map(|step| step.memory_bytes).collect(),
        processes: steps.iter().map(|step| step.processes).collect(),
        threads: steps.iter().map(|step| step.threads).collect(),
        read_bytes_per_sec: steps.iter().map(|step| step.read_rate).collect(),
        written_bytes_per_sec: steps.iter().map(|step| step.write_rate).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_series::log::SeriesLog;
    use crate::job_series::piece::tests::{points, whose};
    use std::sync::Arc;
    use store::daily::DailyLimit;
    use wire::query::Viewer;

    /// Ten minutes of a job of user 1000 with two CPUs in use, and of a process of user 1001 that claims it.
    fn stored(state: &std::path::Path) -> Stored {
        let (mut log, handle) = SeriesLog::new(DailyLimit { bytes: 1 << 20, days: 9 }, state);
        let all = [(whose("slurm:17", 1000), 2), (whose("slurm:17", 1001), 0), (whose("slurm:18", 1000), 1)];
        for second in 1..=600 {
            let point =
                |(whose, cpus): &(Whose, u64)| (Arc::new(whose.clone()), points(whose, second, 1, *cpus)[0]);
            log.add(all.iter().map(point).collect());
            log.store();
        }
        Stored::Own(handle)
    }

    fn ask(series: &Stored, params: &JobSeriesParams, viewer: Viewer) -> Result<JobSeries, Fault> {
        let now = whose("", 0).started.plus(Duration::from_secs(600));
        answer(series, params, Visibility::with(viewer, false), now)
    }

    #[test]
    fn curves_are_those_of_the_job_that_the_caller_may_see() {
        let folder = tempfile::tempdir().expect("a folder");
        let series = stored(folder.path());
        let params = JobSeriesParams { job: "slurm:17".to_owned(), ..JobSeriesParams::default() };
        let uids = |viewer| -> Vec<(u32, usize)> {
            let answer = ask(&series, &params, viewer).expect("an answer");
            assert_eq!((answer.step_secs, answer.own_only), (30.0, viewer != Viewer::Trusted));
            answer.curves.iter().map(|curve| (curve.uid, curve.times.len())).collect()
        };
        assert_eq!(uids(Viewer::Trusted), [(1000, 21), (1001, 21)]);
        assert_eq!(uids(Viewer::User(1000)), [(1000, 21)]);
        assert_eq!((uids(Viewer::User(7)), uids(Viewer::Anonymous)), (Vec::new(), Vec::new()));
        let end = whose("", 0).started.plus(Duration::from_secs(300));
        let minute = JobSeriesParams {
            since: Some(UnixTime(end.minus(Duration::from_secs(60)))),
            until: Some(UnixTime(end)),
            step: Some(Span(Duration::from_secs(1))),
            ..params.clone()
        };
        let answer = ask(&series, &minute, Viewer::User(1000)).expect("an answer");
        let [curve] = answer.curves.as_slice() else { panic!("{answer:?}") };
        assert!((60..=61).contains(&curve.times.len()), "{}", curve.times.len());
        assert!(curve.cpus.iter().all(|cpus| (cpus - 2.0).abs() < 0.01), "{:?}", curve.cpus);
        assert_eq!((curve.memory_bytes.len(), curve.evidence.as_str()), (curve.times.len(), "environment"));
    }

    #[test]
    fn what_is_no_job_of_a_product_is_refused_and_an_unknown_one_has_no_curve() {
        let folder = tempfile::tempdir().expect("a folder");
        let series = stored(folder.path());
        let of = |job: &str| {
            let params = JobSeriesParams { job: job.to_owned(), ..JobSeriesParams::default() };
            ask(&series, &params, Viewer::Trusted)
        };
        assert!(of("17").is_err_and(|fault| fault.to_string().contains("slurm:17")));
        assert_eq!(of("slurm:1").expect("an answer").curves, []);
    }
}
