//! Which process ended a failed job.
//!
//! Pure. Rules: a script that fails because a program failed ends with the status of the program, so equal ends are followed
//! from the last process of the job that ended as the job did, down to a child. The processes that a launcher starts through
//! a daemon have another parent: below a launcher, one that just ended so is taken. An equal status is no proof: the
//! finding says how much later the script ended, which others ended so, and what failed before.
//! Not here: how the job ended (`job_end`), which failures are known (`job_usage`).

use super::Known;
use super::cause::{self, SIGKILL};
use super::job_end::{JobEnd, signal_text, status_text};
use wire::api::findings::{Finding, FindingKind};
use wire::call::failed_process::{FailedProcess, passes_on};
use wire::call::usage::Usage;
use wire::shown::tenths;

/// How long before the end of a job, whose status is unknown, the process may have failed that ended it.
const JUST_BEFORE_SECS: f64 = 3.0;

/// How long after the failure of a process its launcher ends.
const LAUNCHER_ENDS_AFTER_SECS: f64 = 5.0;

/// How long after the failure of a process a script that ends because of it may go on, to clean up.
const SCRIPT_ENDS_AFTER_SECS: f64 = 1.0;

/// Earlier failures that a finding names.
const BEFORE_MAX: usize = 2;

/// Programs that start the processes of a parallel job through daemons.
const LAUNCHERS: [&str; 9] =
    ["srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "aprun", "jsrun", "charmrun"];

/// Programs that report a failure of those that they run by a status of their own.
const WRAPPERS: [&str; 12] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "make",
    "gmake",
    "ninja",
    "xargs",
    "parallel",
    "timeout",
    "time",
    "snakemake",
];

/// How a host of a job ended.
struct Ended<'a> {
    usage: &'a Usage,
    /// The last process that ended as the job did.
    last: &'a FailedProcess,
    /// The one below it that failed first.
    first: &'a FailedProcess,
    /// How long before the last its child ended that it passed on, in seconds.
    gap_secs: f64,
    /// Others that ended so beside the first.
    beside: Vec<&'a FailedProcess>,
}

/// The process that ended a failed job, if one is known.
pub(super) fn of(known: &Known<'_>, end: JobEnd) -> Option<Finding> {
    let all = known.usages.iter().filter_map(|usage| ended(known, usage, end));
    let ended = all.min_by_key(|ended| ended.first.ended)?;
    let Ended { usage, last, first, gap_secs, ref beside } = ended;
    let mut text = match beside.as_slice() {
        [] => format!("{} on {} {}", subject(known, first), usage.host, how(first)),
        several => {
            let others: Vec<String> = several.iter().map(|other| named(other)).collect();
            format!(
                "Its processes {} and {} on {} {}",
                others.join(", "),
                named(first),
                usage.host,
                how(first)
            )
        }
    };
    if gap_secs > SCRIPT_ENDS_AFTER_SECS {
        let last = object(known, last);
        text.push_str(&format!(
            ", and {last} ended so {} later: it may have chosen that itself",
            tenths(gap_secs)
        ));
    } else if first != last {
        text.push_str(", and the job with it");
    }
    text.push('.');
    let before = if passes_on_otherwise(known, first) { before(known, &ended) } else { Vec::new() };
    if !before.is_empty() {
        let before: Vec<String> = before.iter().map(|one| format!("{} {}", named(one), how(one))).collect();
        text.push_str(&format!(" Before, {}.", before.join(", and ")));
    }
    let found = Finding::new(FindingKind::FailedProcess, text);
    Some(Finding { hosts: vec![usage.host.to_string()], events: vec![usage.line.event.to_string()], ..found })
}

fn ended<'a>(known: &Known<'_>, usage: &'a Usage, end: JobEnd) -> Option<Ended<'a>> {
    let is_just_before = |process: &FailedProcess| {
        let ended = known.call.ended.map(|ended| ended.secs_f64() - process.ended.secs_f64());
        ended.is_some_and(|before| before.abs() <= JUST_BEFORE_SECS)
    };
    let is_it = |process: &&FailedProcess| match end.is_unknown() {
        true => is_just_before(process),
        false => end.is_of(process.code),
    };
    let last = usage.failed.iter().find(is_it)?;
    let (mut first, mut beside, mut child) = (last, Vec::new(), None);
    // Each step leads to one that is listed later, so this ends.
    let is_full = cause::is_used_up(known, usage);
    while let Some((next, others)) = below(first, &usage.failed, is_full) {
        (first, beside) = (next, others);
        child.get_or_insert(next);
    }
    if is_script(known, first) {
        // A shell that cannot execute a command ends so in a process of its own first.
        return Some(Ended { usage, last, first: last, gap_secs: 0.0, beside: Vec::new() });
    }
    let gap_secs = child.map_or(0.0, |child| secs_between(child, last));
    Some(Ended { usage, last, first, gap_secs, beside })
}

/// The failure below `failure` that it passed on, the last one, and others that it may have passed on as well. If memory was
/// used up (`is_full`), a launcher passes on by a status of its own that a process was killed.
fn below<'a>(
    failure: &FailedProcess,
    all: &'a [FailedProcess],
    is_full: bool,
) -> Option<(&'a FailedProcess, Vec<&'a FailedProcess>)> {
    let at = all.iter().position(|other| other == failure)?;
    let earlier = &all[at + 1..];
    let is_passed_on = |other: &&FailedProcess| passes_on(failure.code, other.code);
    let mut children = earlier.iter().filter(is_passed_on).filter(|other| other.parent == failure.pid);
    if let Some(child) = children.next() {
        let mut others: Vec<&FailedProcess> = children.filter(|other| other.name != child.name).collect();
        others.reverse();
        return Some((child, others));
    }
    if !LAUNCHERS.contains(&failure.name.as_str()) {
        return None;
    }
    let is_just_ended = |other: &&FailedProcess| secs_between(other, failure) <= LAUNCHER_ENDS_AFTER_SECS;
    let has_parent_here = |other: &&FailedProcess| all.iter().any(|parent| parent.pid == other.parent);
    let is_killed = |other: &&FailedProcess| is_full && other.signal() == Some(SIGKILL);
    let mut started =
        earlier.iter().filter(|other| is_passed_on(other) || is_killed(other)).filter(is_just_ended);
    started.find(|other| !has_parent_here(other)).map(|process| (process, Vec::new()))
}

/// Whether it is a script, or a program that runs others and reports their failures by a status of its own.
fn passes_on_otherwise(known: &Known<'_>, process: &FailedProcess) -> bool {
    is_script(known, process) || WRAPPERS.contains(&process.name.as_str())
}

/// Other failures before the end, the last ones.
fn before<'a>(known: &Known<'_>, ended: &Ended<'a>) -> Vec<&'a FailedProcess> {
    let Ended { usage, last, first, beside, .. } = ended;
    let is_named = |one: &FailedProcess| one == *first || beside.contains(&one);
    let is_between = |one: &FailedProcess| passes_on(last.code, one.code) && one.ended >= first.ended;
    let others = usage.failed.iter().filter(|one| one.ended <= last.ended && *one != *last);
    let others = others.filter(|one| !is_script(known, one));
    others.filter(|one| !is_named(one) && !is_between(one)).take(BEFORE_MAX).collect()
}

fn secs_between(one: &FailedProcess, later: &FailedProcess) -> f64 {
    later.ended.secs_f64() - one.ended.secs_f64()
}

fn how(process: &FailedProcess) -> String {
    match (process.signal(), process.exit_status()) {
        (Some(signal), _) => format!("was killed by {}", signal_text(signal)),
        (None, Some(124)) if process.name == "timeout" => {
            "ended with exit status 124: its time ran out".to_owned()
        }
        (None, Some(status)) => format!("ended with exit status {status}{}", status_text(status)),
        (None, None) => "failed".to_owned(),
    }
}

fn named(process: &FailedProcess) -> String {
    format!("{} ({})", process.name, process.pid)
}

/// Whether it is the script of the job, which middleware starts under a name of its own.
fn is_script(known: &Known<'_>, process: &FailedProcess) -> bool {
    let name = process.name.as_str();
    name == "slurm_script" || name == known.call.job || name.ends_with(".SC")
}

fn subject(known: &Known<'_>, process: &FailedProcess) -> String {
    match is_script(known, process) {
        true => "Its batch script".to_owned(),
        false => format!("Its process {}", named(process)),
    }
}

fn object(known: &Known<'_>, process: &FailedProcess) -> String {
    if is_script(known, process) { "the batch script".to_owned() } else { named(process) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::time::Time;

    fn failure(name: &str, pid: u32, parent: u32, code: u32, millis: i64) -> FailedProcess {
        FailedProcess { name: name.into(), pid, parent, code, ended: Time::from_micros(millis * 1000) }
    }

    /// The failures, given in the order of their ends, as they are stated.
    fn stated(mut all: Vec<FailedProcess>) -> Vec<FailedProcess> {
        all.reverse();
        all
    }

    /// Name of the first failure below the last, and of those beside it.
    fn first(all: Vec<FailedProcess>) -> (String, Vec<String>) {
        first_if(all, false)
    }

    fn first_if(all: Vec<FailedProcess>, is_full: bool) -> (String, Vec<String>) {
        let all = stated(all);
        let (mut first, mut beside) = (&all[0], Vec::new());
        while let Some((next, others)) = below(first, &all, is_full) {
            (first, beside) = (next, others);
        }
        (first.name.to_string(), beside.iter().map(|other| other.name.to_string()).collect())
    }

    const ONE: u32 = 1 << 8;

    #[test]
    fn equal_ends_are_followed_from_the_script_to_the_program() {
        let deep = vec![
            failure("test", 12, 10, 2 << 8, 2),
            failure("python3", 14, 13, ONE, 5),
            failure("time", 13, 10, ONE, 5),
            failure("slurm_script", 10, 1, ONE, 6),
        ];
        assert_eq!(first(deep), ("python3".to_owned(), vec![]));
        let own = vec![failure("grep", 11, 10, ONE, 1), failure("slurm_script", 10, 1, 3 << 8, 6)];
        assert_eq!(first(own).0, "slurm_script", "it chose the status itself");
        let by_shell = vec![failure("crash", 11, 10, 11, 1), failure("bash", 10, 1, 139 << 8, 1)];
        assert_eq!(first(by_shell).0, "crash");
        let two = vec![
            failure("python3", 11, 10, ONE, 1),
            failure("grep", 12, 10, ONE, 2),
            failure("slurm_script", 10, 1, ONE, 3),
        ];
        assert_eq!(first(two), ("grep".to_owned(), vec!["python3".to_owned()]));
    }

    #[test]
    fn below_a_launcher_the_process_that_just_ended_so_is_taken() {
        let srun = vec![
            failure("probe", 19, 18, ONE, 1000),
            failure("solver", 21, 20, ONE, 59_000),
            failure("srun", 11, 10, ONE, 60_000),
            failure("slurm_script", 10, 1, ONE, 60_000),
        ];
        assert_eq!(first(srun).0, "solver");
        let killed = vec![
            failure("probe", 19, 18, ONE, 57_000),
            failure("solver", 21, 20, 9, 59_900),
            failure("srun", 11, 10, ONE, 60_000),
        ];
        assert_eq!(first(killed.clone()).0, "probe");
        assert_eq!(first_if(killed, true).0, "solver", "memory was used up");
        let other = vec![failure("solver", 21, 20, ONE, 59_000), failure("bash", 10, 1, ONE, 60_000)];
        assert_eq!(first(other).0, "bash", "a shell starts its children itself");
    }
}
