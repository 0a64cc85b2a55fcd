//! Job that a process names: in the paths of its control groups, and in its environment.
//!
//! Pure. Rule: the middleware sets a control group, but the process's user can set the environment. So the
//! group comes first, and results state the evidence. A variable that other programs also use (`JOB_ID`)
//! counts only beside one that they do not.
//! Not here: reading `/proc` (`read`), processes that name no job (`job_table`).

use compact_str::{CompactString, format_compact};

/// Names of the job that a process may serve, as `PRODUCT:JOB`, the best first.
pub type Jobs = Vec<CompactString>;

/// Job that an environment names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentJob {
    /// Names of the job.
    pub jobs: Jobs,
    /// File of HTCondor that describes the job.
    pub job_ad: Option<CompactString>,
}

/// Control groups of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroups {
    /// Names of the job.
    pub jobs: Jobs,
    /// Controllers, separated by commas and empty in the unified hierarchy, and the path of the job's group in the
    /// hierarchy of these.
    pub paths: Vec<(CompactString, CompactString)>,
}

/// Returns the job in a `/proc/PID/cgroup`: lines of `number:controllers:path`. Empty if it names none.
#[must_use]
pub fn by_cgroup(text: &str) -> ControlGroups {
    let mut found = ControlGroups::default();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let Some((controllers, path)) = fields.next().zip(fields.next()) else { continue };
        let Some((jobs, len)) = by_path(path) else { continue };
        if found.jobs.is_empty() {
            found.jobs = jobs;
        } else if found.jobs != jobs {
            continue;
        }
        if path.split('/').all(|part| part != "..") {
            found.paths.push((controllers.into(), path[..len].into()));
        }
    }
    found
}

/// Parses `…/slurm/uid_N/job_N/…` and `…slurmstepd.scope/job_N/…`; `…/torque/JOB/…`; `…/sge/JOB.TASK/…`,
/// `…/UGE/JOB.TASK/…`. Returns the names of the job, and the length of the path of its own group.
fn by_path(path: &str) -> Option<(Jobs, usize)> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let (parts, ends): (Vec<&str>, Vec<usize>) =
        path.split('/').zip(ends).filter(|(part, _)| !part.is_empty()).unzip();
    parts.iter().enumerate().find_map(|(at, part)| {
        let rest = &parts[at + 1..];
        let (jobs, own) = match *part {
            part if part.ends_with("slurmstepd.scope") => (vec![slurm(rest.first()?, &rest[1..])?], 0),
            part if part.starts_with("slurm") && rest.first()?.starts_with("uid_") => {
                (vec![slurm(rest.get(1)?, &rest[2..])?], 1)
            }
            "torque" => (vec![job_of_torque(rest.first()?)?], 0),
            "sge" | "UGE" => {
                let (job, task) = rest.first()?.split_once('.')?;
                let jobs =
                    || vec![format_compact!("gridengine:{job}.{task}"), format_compact!("gridengine:{job}")];
                (is_number(job) && is_number(task)).then(jobs).map(|jobs| (jobs, 0))?
            }
            _ => return None,
        };
        Some((jobs, *ends.get(at + 1 + own)?))
    })
}

/// Returns the name that all processes of a job on one host have: of a task of Slurm's arrays its own number, as not
/// all know that of the array.
#[must_use]
pub fn common(jobs: &Jobs) -> Option<&CompactString> {
    if jobs.iter().all(|job| job.starts_with("slurm:")) { jobs.last() } else { jobs.first() }
}

fn slurm(part: &str, rest: &[&str]) -> Option<CompactString> {
    // The control group of a step's daemon is beside that of its tasks: it belongs to Slurm, not to the job.
    let is_keeper =
        rest.first().is_some_and(|step| step.starts_with("step_")) && rest.get(1) == Some(&"slurm");
    let job = part.strip_prefix("job_").filter(|job| is_number(job))?;
    (!is_keeper).then(|| format_compact!("slurm:{job}"))
}

/// Parses `171.server`, `94[3].server`.
fn job_of_torque(job: &str) -> Option<CompactString> {
    let begins = job.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]".contains(&byte);
    (begins && job.len() <= JOB_LEN_MAX_BYTES && job.bytes().all(fits))
        .then(|| format_compact!("torque:{job}"))
}

/// Longest accepted name of a job, in bytes.
const JOB_LEN_MAX_BYTES: usize = 256;

/// Returns the job in a `/proc/PID/environ`: `NAME=VALUE`, each ended by a zero byte.
#[must_use]
pub fn by_environment(environ: &[u8]) -> EnvironmentJob {
    let value = |name: &str| {
        let mut all = environ.split(|byte| *byte == 0);
        let value = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        std::str::from_utf8(value).ok().filter(|value| !value.is_empty() && value.len() <= JOB_LEN_MAX_BYTES)
    };
    let number = |name: &str| value(name).filter(|value| is_number(value));
    let mut found = EnvironmentJob::default();
    if let Some(job) = number("SLURM_JOB_ID").or_else(|| number("SLURM_JOBID")) {
        let array = number("SLURM_ARRAY_JOB_ID").zip(number("SLURM_ARRAY_TASK_ID"));
        found.jobs.extend(array.map(|(array, task)| format_compact!("slurm:{array}_{task}")));
        found.jobs.push(format_compact!("slurm:{job}"));
    }
    if let Some(job) = value("PBS_JOBID").and_then(job_of_torque) {
        found.jobs.push(job);
    }
    if let (Some(job), Some(task)) = (number("JOB_ID"), value("SGE_TASK_ID")) {
        if is_number(task) {
            found.jobs.push(format_compact!("gridengine:{job}.{task}"));
        }
        found.jobs.push(format_compact!("gridengine:{job}"));
    }
    found.job_ad = value("_CONDOR_JOB_AD").map(CompactString::from);
    found
}

/// Returns the job in a file that `_CONDOR_JOB_AD` names: lines of `Name = value`.
#[must_use]
pub fn by_job_ad(text: &str) -> Option<CompactString> {
    let value = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let mut named = lines.filter(|(known, _)| known.trim().eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.trim()).filter(|value| is_number(value))
    };
    Some(format_compact!("htcondor:{}.{}", value("ClusterId")?, value("ProcId")?))
}

/// Returns whether the call with this id is the job. The product must be the same; the cluster may be any,
/// since a host knows only its own. A number used again (`#2`) is the same job here; the time distinguishes
/// them. The parts of a whole belong to it.
#[must_use]
pub fn is_of(job: &str, call: &str) -> bool {
    let parts = |id: &str| {
        let (scope, name) = id.split_once(':')?;
        let product = scope.split_once('/').map_or(scope, |(product, _)| product);
        let name = name.rsplit_once('#').filter(|(_, life)| is_number(life)).map_or(name, |(name, _)| name);
        Some((CompactString::from(product), CompactString::from(name)))
    };
    let (Some((product, job)), Some((of, call))) = (parts(job), parts(call)) else { return false };
    let rest = (product == of).then(|| job.strip_prefix(call.as_str())).flatten();
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.', '[']))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_known_by_its_control_group() {
        for (text, job) in [
            ("0::/system.slice/slurmstepd.scope/job_171/step_0/user/task_0\n", Some("slurm:171")),
            ("0::/system.slice/wn01_slurmstepd.scope/job_171/step_batch/user/task_0", Some("slurm:171")),
            ("0::/system.slice/slurmstepd.scope/job_171/step_batch/slurm", None),
            ("0::/system.slice/slurmstepd.scope/system", None),
            ("9:cpuset:/\n4:memory:/slurm/uid_1000/job_171/step_0/task_0\n0::/", Some("slurm:171")),
            ("4:memory:/slurm_wn01/uid_0/job_5/step_batch", Some("slurm:5")),
            ("4:cpuset:/torque/171.server.site/vnode0", Some("torque:171.server.site")),
            ("4:cpuset:/UGE/94.3", Some("gridengine:94")),
            ("4:cpuset:/sge/94.1/q", Some("gridengine:94")),
            ("0::/user.slice/user-1000.slice/session-3.scope", None),
            ("0::/system.slice/ci/job_17", None),
            ("0::/system.slice/condor.service/htcondor/condor_execute_slot1_1@wn01", None),
            ("", None),
        ] {
            assert_eq!(by_cgroup(text).jobs.last().map(CompactString::as_str), job, "{text}");
        }
    }

    #[test]
    fn a_job_is_known_by_its_environment() {
        for (environ, jobs) in [
            ("PATH=/bin\0SLURM_JOB_ID=171\0SLURM_JOBID=171\0", vec!["slurm:171"]),
            ("SLURM_JOBID=9\0", vec!["slurm:9"]),
            (
                "SLURM_ARRAY_JOB_ID=94\0SLURM_ARRAY_TASK_ID=1\0SLURM_JOB_ID=99\0",
                vec!["slurm:94_1", "slurm:99"],
            ),
            ("PBS_JOBID=171.server\0", vec!["torque:171.server"]),
            ("JOB_ID=17\0SGE_TASK_ID=undefined\0", vec!["gridengine:17"]),
            ("JOB_ID=17\0SGE_TASK_ID=3\0", vec!["gridengine:17.3", "gridengine:17"]),
            ("JOB_ID=17\0", vec![]),
            ("XSLURM_JOB_ID=171\0SLURM_JOB_ID=\0", vec![]),
            ("SLURM_JOB_ID=1; rm\0", vec![]),
        ] {
            assert_eq!(by_environment(environ.as_bytes()).jobs, jobs, "{environ}");
        }
        let job = by_environment(b"_CONDOR_SLOT=slot1_1\0_CONDOR_JOB_AD=/execute/dir_7/.job.ad\0");
        assert_eq!(job.job_ad.as_deref(), Some("/execute/dir_7/.job.ad"));
        let ad = "Args = \"ProcId = 9\"\nClusterId = 94\nProcId = 0\nOwner = \"ada\"\n";
        assert_eq!(by_job_ad(ad).as_deref(), Some("htcondor:94.0"));
        assert_eq!(by_job_ad("ClusterId = 94\n"), None);
    }

    #[test]
    fn a_call_is_of_the_job_whatever_its_cluster_and_life() {
        for (job, call, expected) in [
            ("slurm:171", "slurm:171", true),
            ("slurm:171", "slurm/alpha:171#2", true),
            ("slurm:171", "slurm:1711", false),
            ("slurm:171", "torque:171", false),
            ("slurm:94_1", "slurm/alpha:94_1", true),
            ("slurm:94_1", "slurm:94", true),
            ("slurm:94", "slurm:94_1", false),
            ("slurm:171", "171", false),
        ] {
            assert_eq!(is_of(job, call), expected, "{job} {call}");
        }
    }
}
