//! Tests of the meter, over made-up sweeps.

use super::*;
use crate::process::lives::Freed;
use crate::process::table::Coverage;
use crate::serving::job_table::Evidence;
use wire::call::usage::Figure;
use wire::process::{Io, Life, Process, Usage};

const SECOND: u64 = 1_000_000_000;

/// A host on which processes have used so many seconds of CPU time, and have so many MiB of memory.
#[derive(Default)]
struct Host {
    view: View,
    meter: Meter,
    secs: u64,
}

fn key(pid: u32) -> ProcessKey {
    ProcessKey { pid, start_ns: u64::from(pid) * SECOND }
}

fn usage(cpu_secs: u64) -> Usage {
    let io = Io { read_bytes: 10, written_bytes: 20, ..Io::default() };
    Usage { cpu_ns: cpu_secs * SECOND, minor_faults: 3, io: Some(io), ..Usage::default() }
}

fn served(job: &str, user: u32) -> ServedJob {
    ServedJob {
        jobs: vec![job.into()],
        by: Evidence::Environment,
        user: Some(user),
        groups: Arc::default(),
        end_ns: None,
    }
}

/// A process that the middleware put into a control group of the job.
fn proved(job: u32) -> ServedJob {
    let groups = job_names::by_cgroup(&format!("0::/system.slice/slurmstepd.scope/job_{job}/step_0"));
    ServedJob { groups: Arc::new(groups), by: Evidence::Cgroup, ..served(&format!("slurm:{job}"), 1000) }
}

fn life(pid: u32, end_secs: u64, cpu_secs: Option<u64>) -> Life {
    Life {
        key: key(pid),
        parent: 1,
        uid: 1000,
        cgroup: None,
        name: "work".into(),
        command: "".into(),
        end_ns: end_secs * SECOND,
        code: 0,
        usage: cpu_secs.map(usage),
    }
}

impl Host {
    /// Sweeps a second later: these processes live.
    fn sweep(&mut self, living: &[(u32, u64, u64)], news: Vec<(u32, ServedJob)>) -> Vec<Report> {
        self.secs = (self.secs + 1).max(1000);
        let table = &mut self.view.table;
        table.begin(self.secs, self.secs * SECOND, Coverage::All);
        for (pid, cpu_secs, mib) in living {
            let (rss_kib, usage) = (mib << 10, usage(*cpu_secs));
            table.set(Process { key: key(*pid), threads: 2, rss_kib, usage, ..Process::default() });
        }
        table.end(1);
        let time = Time::from_micros(i64::try_from(self.secs).expect("small") * 1_000_000);
        let now = Now { boot_ns: self.secs * SECOND, time };
        self.meter.sweep(&self.view, news.into_iter().map(|(pid, served)| (key(pid), served)).collect(), now)
    }

    /// The kernel frees a process that has used so many seconds, and had so many MiB of memory.
    fn freed(&mut self, pid: u32, cpu_secs: u64, mib: u64) {
        self.view.lives.freed(Freed { key: key(pid), usage: usage(cpu_secs), peak_rss_kib: mib << 10 });
    }

    /// Sweeps without any process until the measurements are over.
    fn end(&mut self) -> Vec<Report> {
        (0..5).flat_map(|_| self.sweep(&[], Vec::new())).collect()
    }
}

fn figures(report: &Report, wanted: [Figure; 4]) -> [Option<u64>; 4] {
    let figures = report.measured.figures();
    wanted.map(|figure| figures.iter().find(|(known, _)| *known == figure).map(|(_, amount)| *amount))
}

const MOST: [Figure; 4] = [Figure::CpuTime, Figure::PeakMemory, Figure::Processes, Figure::PeakThreads];

#[test]
fn a_job_has_the_counters_of_all_its_processes_and_the_most_memory_of_a_moment() {
    let mut host = Host::default();
    host.sweep(
        &[(5, 1, 10), (6, 0, 20), (7, 9, 99)],
        vec![(5, served("slurm:1", 1000)), (6, served("slurm:1", 1000))],
    );
    host.sweep(&[(5, 2, 40), (6, 1, 50), (7, 10, 99)], Vec::new());
    // One ends between two sweeps, and its end is known.
    host.view.lives.exit(life(6, 1001, Some(3)));
    host.sweep(&[(5, 4, 60), (7, 11, 99)], Vec::new());
    let [report] = host.end().try_into().expect("one job is over");
    assert!(report.is_over);
    assert_eq!(figures(&report, MOST), [Some(7_000_000), Some(90 << 20), Some(2), Some(4)]);
    let measured = &report.measured;
    assert_eq!((measured.jobs[0].as_str(), measured.uid, measured.is_proved), ("slurm:1", 1000, false));
    assert_eq!((measured.started.micros(), measured.until.micros()), (5_000_000, 1_003_000_000));
    assert!(host.meter.is_idle() && host.meter.members.is_empty() && host.meter.numbers.is_empty());
}

#[test]
fn processes_that_no_sweep_saw_count_once_their_job_is_known() {
    let mut host = Host::default();
    host.sweep(&[(5, 1, 10)], vec![(5, served("slurm:1", 1000))]);
    host.view.lives.exit(life(600, 1001, Some(2)));
    host.view.lives.exit(life(601, 1001, None));
    host.sweep(&[(5, 1, 10)], Vec::new());
    // The jobs of ended processes become known later.
    let late = [600, 601, 602].map(|pid| (pid, served("slurm:1", 1000)));
    host.sweep(&[(5, 1, 10)], late.to_vec());
    let [report] = host.end().try_into().expect("one job is over");
    let wanted = [Figure::CpuTime, Figure::Processes, Figure::Missed, Figure::MinorFaults];
    assert_eq!(figures(&report, wanted), [Some(3_000_000), Some(4), Some(2), Some(6)]);
}

#[test]
fn what_a_child_reads_and_writes_counts_once() {
    let mut host = Host::default();
    let job = || served("slurm:1", 1000);
    let [shell, child, orphan, short] = [5, 6, 7, 600];
    let living = [(shell, 1, 1), (child, 1, 1), (orphan, 1, 1)];
    host.sweep(&living, [shell, child, orphan].map(|pid| (pid, job())).to_vec());
    // The kernel adds what the child did to what its parent did, once that has waited for it.
    host.view.lives.exit(Life { parent: shell, ..life(child, 1001, Some(1)) });
    host.view.lives.exit(Life { parent: shell, ..life(short, 1001, Some(1)) });
    host.view.lives.exit(life(orphan, 1001, Some(1)));
    host.freed(child, 1, 1);
    host.sweep(&[(shell, 1, 1)], vec![(short, job())]);
    let [report] = host.end().try_into().expect("one job is over");
    let wanted = [Figure::CpuTime, Figure::Processes, Figure::ReadBytes, Figure::WrittenBytes];
    // Of the shell, which has those of its children, and of the orphan.
    assert_eq!(figures(&report, wanted), [Some(4_000_000), Some(4), Some(20), Some(40)]);
}

#[test]
fn what_processes_used_at_the_very_end_counts_for_their_job() {
    let mut host = Host::default();
    host.sweep(&[(5, 1, 10)], vec![(5, served("slurm:1", 1000))]);
    host.view.lives.exit(life(5, 1001, Some(2)));
    host.view.lives.exit(life(600, 1001, Some(2)));
    host.sweep(&[], Vec::new());
    host.freed(5, 3, 90);
    host.sweep(&[], vec![(600, served("slurm:1", 1000))]);
    host.freed(600, 6, 70);
    host.freed(700, 50, 900);
    let [report] = host.end().try_into().expect("one job is over");
    assert_eq!(figures(&report, MOST)[..2], [Some(9_000_000), Some(90 << 20)]);
}

#[test]
fn what_a_process_used_before_it_served_another_job_is_not_that_job_s() {
    let mut host = Host::default();
    host.sweep(&[(5, 4, 10)], vec![(5, served("slurm:1", 1000))]);
    host.sweep(&[(5, 6, 10)], vec![(5, served("slurm:2", 1000))]);
    host.sweep(&[(5, 9, 10)], Vec::new());
    let mut reports = host.end();
    reports.sort_by(|one, other| one.measured.jobs.cmp(&other.measured.jobs));
    let cpu: Vec<_> = reports.iter().map(|report| figures(report, MOST)[0]).collect();
    assert_eq!(cpu, [Some(6_000_000), Some(3_000_000)]);
}

#[test]
fn a_process_that_a_sweep_missed_is_not_counted_twice() {
    let mut host = Host::default();
    host.sweep(&[(5, 4, 10), (6, 1, 10)], [5, 6].map(|pid| (pid, served("slurm:1", 1000))).to_vec());
    host.sweep(&[(6, 1, 10)], Vec::new());
    host.sweep(&[(5, 5, 10), (6, 1, 10)], vec![(5, served("slurm:1", 1000))]);
    host.sweep(&[(5, 7, 10), (6, 1, 10)], Vec::new());
    let [report] = host.end().try_into().expect("one job is over");
    assert_eq!(figures(&report, MOST)[0], Some(8_000_000));
}

#[test]
fn claims_of_others_are_apart_from_each_other_and_from_what_a_control_group_proves() {
    let mut host = Host::default();
    let living = [(5, 1, 10), (6, 2, 10), (7, 4, 10)];
    let news = vec![(5, proved(1)), (6, served("slurm:1", 1001)), (7, served("slurm:1", 1000))];
    host.sweep(&living, news);
    let with_groups: Vec<_> = host.meter.with_groups().map(|(key, _)| key.clone()).collect();
    let job = JobKey { job: "slurm:1".into(), claimed_by: None };
    assert_eq!(with_groups.as_slice(), std::slice::from_ref(&job));
    host.meter.read_group(&job, GroupReading { cpu_us: Some(5_000_000), ..GroupReading::default() });
    let mut found: Vec<_> =
        host.end().iter().map(|report| (report.measured.is_proved, figures(report, MOST)[0])).collect();
    found.sort_unstable();
    assert_eq!(found, [(false, Some(2_000_000)), (false, Some(4_000_000)), (true, Some(5_000_000))]);
}

#[test]
fn a_user_that_claims_jobs_without_end_is_bounded_and_others_are_measured() {
    let mut host = Host::default();
    let count = CLAIMS_PER_MINUTE_MAX + 50;
    let living: Vec<_> = (1..=count + 1).map(|pid| (pid, 1, 1)).collect();
    let claims = (1..=count).map(|pid| (pid, served(&format!("slurm:{pid}"), 1000)));
    let news = claims.chain([(count + 1, served("slurm:7", 1001))]).collect();
    host.sweep(&living, news);
    assert_eq!((host.meter.count(), host.meter.refused_total()), (CLAIMS_PER_MINUTE_MAX as usize + 1, 50));
    // Minutes later it has as many as a user may have at a time.
    for minute in 0..3 {
        host.secs += 60;
        let first = 10_000 * (minute + 1);
        let more: Vec<_> =
            (first..first + 500).map(|pid| (pid, served(&format!("slurm:{pid}"), 1000))).collect();
        let all: Vec<_> = living.iter().copied().chain((10_000..40_000).map(|pid| (pid, 1, 1))).collect();
        host.sweep(&all, more);
    }
    assert_eq!(host.meter.count(), CLAIMED_OF_USER_MAX + 1);
}

#[test]
fn a_running_job_is_reported_and_a_pause_between_its_steps_does_not_end_it() {
    let mut host = Host::default();
    host.sweep(&[(5, 1, 10)], vec![(5, served("slurm:1", 1000))]);
    let mut reported = Vec::new();
    for secs in 0..700 {
        let reports = host.sweep(&[(5, 1, 10)], Vec::new());
        assert!(reports.iter().all(|report| !report.is_over));
        reported.extend(reports.iter().map(|_| secs));
    }
    assert_eq!(reported, [9, 19, 39, 79, 159, 319, 639]);
    host.sweep(&[], Vec::new());
    host.sweep(&[], Vec::new());
    host.sweep(&[(900, 2, 10)], vec![(900, served("slurm:1", 1000))]);
    let [report] = host.end().try_into().expect("one job is over");
    assert_eq!(figures(&report, MOST)[0], Some(3_000_000));
}

#[test]
fn a_measurement_goes_on_after_a_restart_and_ends_with_what_ended_meanwhile() {
    let mut host = Host::default();
    let both = [5, 6].map(|pid| (pid, served("slurm:1", 1000)));
    host.sweep(&[(5, 1, 10), (6, 2, 10)], both.to_vec());
    let stored = postcard::to_stdvec(&host.meter).expect("plain");
    let mut again = Host {
        meter: postcard::from_bytes(&stored).expect("as written"),
        secs: host.secs + 100,
        ..Host::default()
    };
    // Process 6 ended while nothing was measured: what was known of it counts.
    again.sweep(&[(5, 50, 10)], vec![(5, served("slurm:1", 1000))]);
    let [report] = again.end().try_into().expect("one job is over");
    assert_eq!(figures(&report, MOST), [Some(52_000_000), Some(20 << 20), Some(2), Some(4)]);
    let mut other_boot: Meter = postcard::from_bytes(&stored).expect("as written");
    let [report] = other_boot.end_all().try_into().expect("it is over");
    assert!(report.is_over && other_boot.is_idle());
    assert_eq!(figures(&report, MOST)[0], Some(3_000_000));
}

#[test]
fn a_job_is_of_the_first_user_that_is_not_root() {
    let mut host = Host::default();
    let by = |user: u32| ServedJob { user: Some(user), ..proved(1) };
    host.sweep(&[(5, 1, 10), (6, 1, 10)], vec![(5, by(0)), (6, by(1000))]);
    host.sweep(&[(5, 1, 10), (6, 1, 10), (7, 1, 10)], vec![(7, by(1001))]);
    let [report] = host.end().try_into().expect("one job is over");
    assert_eq!((report.measured.uid, report.measured.processes), (1000, 3));
}

#[test]
fn all_points_of_a_measurement_have_one_start() {
    let mut host = Host::default();
    let at = |secs: u64| Now { boot_ns: secs * SECOND, time: Time::from_micros(0) };
    host.sweep(&[(5, 1, 10)], vec![(5, served("slurm:95", 1000))]);
    let first = host.meter.points(at(host.secs));
    let task = ServedJob { jobs: vec!["slurm:94_1".into(), "slurm:95".into()], ..served("", 1000) };
    // An earlier process, and a better name.
    host.sweep(&[(4, 1, 10), (5, 1, 10)], vec![(4, task)]);
    let next = host.meter.points(at(host.secs));
    let [report] = host.end().try_into().expect("one job is over");
    let (last, _) = report.last_point().expect("it is over");
    assert_eq!(report.measured.started.since(first[0].0.started), Duration::ZERO);
    assert!(report.measured.started < first[0].0.started);
    assert_eq!(last, next[0].0);
    assert_eq!(*last, Whose { jobs: report.measured.jobs.clone(), ..Whose::clone(&first[0].0) });
    // With nothing new the same is used on.
    assert!(Arc::ptr_eq(&last, &next[0].0));
}

#[test]
fn control_groups_are_known_again_after_a_restart() {
    let mut host = Host::default();
    host.sweep(&[(5, 1, 10)], vec![(5, proved(1))]);
    let stored = postcard::to_stdvec(&host.meter).expect("plain");
    let meter = postcard::from_bytes(&stored).expect("as written");
    let mut again = Host { meter, secs: host.secs + 1, ..Host::default() };
    again.sweep(&[(5, 1, 10)], Vec::new());
    assert_eq!(again.meter.with_groups().count(), 0);
    assert_eq!(again.meter.take_urgent(), []);
    again.sweep(&[(5, 1, 10)], vec![(5, proved(1))]);
    assert_eq!(again.meter.with_groups().count(), 1);
    assert_eq!(again.meter.take_urgent().len(), 1, "its limit is not known");
    assert_eq!(again.meter.count(), 1);
}

#[test]
fn control_groups_are_read_at_once_when_a_job_begins_and_when_a_process_of_it_ends() {
    let mut host = Host::default();
    let urgent = |host: &mut Host| -> Vec<(String, Extent)> {
        let urgent = host.meter.take_urgent().into_iter();
        urgent.map(|(key, _, extent)| (key.job.to_string(), extent)).collect()
    };
    let job = |extent: Extent| [("slurm:1".to_owned(), extent)];
    let none: [(String, Extent); 0] = [];
    host.sweep(
        &[(5, 1, 10), (6, 1, 10), (7, 1, 10)],
        vec![(5, proved(1)), (6, proved(1)), (7, served("slurm:2", 1000))],
    );
    assert_eq!(urgent(&mut host), job(Extent::Whole), "the other has no known group");
    host.sweep(&[(5, 1, 10), (6, 2, 10), (7, 1, 10)], Vec::new());
    assert_eq!(urgent(&mut host), none);
    host.sweep(&[(5, 1, 10)], Vec::new());
    assert_eq!(urgent(&mut host), job(Extent::Job));
    host.meter.ended_between(&host.view);
    assert_eq!(urgent(&mut host), none);
    host.view.lives.exit(Life { code: 9, ..life(5, host.secs, Some(1)) });
    host.meter.ended_between(&host.view);
    assert_eq!(urgent(&mut host), job(Extent::Whole), "before the sweep that counts it");
    host.meter.ended_between(&host.view);
    assert_eq!(urgent(&mut host), none);
    host.sweep(&[], Vec::new());
    assert_eq!(urgent(&mut host), job(Extent::Whole), "it is known for some seconds after its last process");
}

#[test]
fn an_array_task_of_slurm_is_one_job_under_all_its_names() {
    let mut host = Host::default();
    let task = ServedJob { jobs: vec!["slurm:94_1".into(), "slurm:95".into()], ..served("", 1000) };
    host.sweep(&[(5, 1, 1), (6, 1, 1)], vec![(5, served("slurm:95", 1000)), (6, task)]);
    let [report] = host.end().try_into().expect("one job is over");
    assert_eq!(report.measured.jobs, ["slurm:94_1", "slurm:95"]);
}

#[test]
fn failures_count_for_their_job_whether_it_was_known_before_or_not() {
    let mut host = Host::default();
    let failed = |pid: u32, code: u32| Life { code, ..life(pid, 1001, Some(1)) };
    host.sweep(&[(1, 1, 10)], vec![(1, served("slurm:7", 1000))]);
    host.view.lives.exit(failed(1, 3 << 8));
    host.view.lives.exit(failed(2, 9));
    host.view.lives.exit(failed(3, 0));
    host.sweep(&[], vec![(2, served("slurm:7", 1000)), (3, served("slurm:7", 1000))]);
    let reports = host.end();
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    let failures = &report.measured.failures;
    let codes: Vec<u32> = failures.stated().iter().map(|failed| failed.code).collect();
    assert_eq!((failures.total(), codes), (2, vec![9, 3 << 8]));
    assert_eq!(figures(report, [Figure::Failed; 4])[0], Some(2));
}

#[test]
fn a_process_whose_end_is_read_after_its_job_counts_with_its_end() {
    let mut host = Host::default();
    host.sweep(&[(1, 1, 10)], vec![(1, served("slurm:7", 1000))]);
    // It began and ended between two sweeps, and its job was read before its end.
    host.sweep(&[(1, 1, 10)], vec![(2, served("slurm:7", 1000)), (3, served("slurm:7", 1000))]);
    host.view.lives.exit(Life { code: 9, ..life(2, 1002, Some(4)) });
    host.view.lives.exit(life(3, 1002, None));
    host.sweep(&[(1, 1, 10)], Vec::new());
    host.freed(3, 5, 1);
    host.view.lives.exit(life(1, 1003, Some(1)));
    let reports = host.end();
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    let wanted = [Figure::CpuTime, Figure::Processes, Figure::Missed, Figure::Failed];
    assert_eq!(figures(report, wanted), [Some(10_000_000), Some(3), None, Some(1)]);
}

#[test]
fn a_process_whose_job_is_known_before_a_sweep_has_it_is_measured() {
    let mut host = Host::default();
    host.sweep(&[], vec![(1, served("slurm:7", 1000))]);
    host.sweep(&[(1, 3, 10)], Vec::new());
    host.sweep(&[(1, 5, 20)], Vec::new());
    let reports = host.end();
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    let wanted = [Figure::CpuTime, Figure::Processes, Figure::Missed, Figure::PeakMemory];
    assert_eq!(figures(report, wanted), [Some(5_000_000), Some(1), None, Some(20 << 20)]);
}
