//! Jobs of three batch systems, from their recorded logs: every job that they accounted for is one job, over the query
//! interface and on the command line, and another user sees of it what a queue shows.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::{command, visperf, workspace};
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout until all logs are read.
const READ: Duration = Duration::from_secs(120);

/// Folders of logs, and their filters by a part of the file name.
const LOGS: [(&str, &[(&str, &str)]); 3] = [
    (
        "slurm/22.05.8-alpha",
        &[("jobcomp.log", "slurm-jobcomp"), ("slurmctld.log", "slurmctld"), ("slurmd.wn01.log", "slurmd")],
    ),
    ("gridengine/8.1.9-alpha", &[("accounting", "gridengine-accounting")]),
    ("torque/2.4.16-delta", &[("accounting.20261120", "torque-accounting")]),
];

fn logs() -> PathBuf {
    workspace().join("log-filters/logs")
}

fn config(folder: &Path) -> PathBuf {
    let mut text = "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nzone = \"UTC\"\n".to_owned();
    for (cluster, files) in LOGS {
        for (file, filter) in files {
            let path = logs().join(cluster).join(file);
            text +=
                &format!("[[sensor.tail]]\npath = {path:?}\nfilter = {filter:?}\nstart = \"beginning\"\n");
        }
    }
    let path = folder.join("visperf.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The jobs that the accounting has, with their ends, each once: its last record.
fn accounted() -> BTreeMap<String, String> {
    let read = |cluster: usize, file: &str| {
        std::fs::read_to_string(logs().join(LOGS[cluster].0).join(file)).unwrap()
    };
    let mut jobs = BTreeMap::new();
    for line in read(0, "jobcomp.log").lines() {
        let value = |name: &str| Some(line.split_once(name)?.1.split(' ').next()?.to_owned());
        let task = value("ArrayJobId=").zip(value("ArrayTaskId="));
        let number = task.map_or_else(|| value("JobId=").unwrap(), |(array, task)| format!("{array}_{task}"));
        let outcome = match value(" JobState=").unwrap().as_str() {
            "COMPLETED" => "ok",
            "CANCELLED" => "cancelled",
            "TIMEOUT" => "timeout",
            "NODE_FAIL" => "node_fail",
            _ => "failed",
        };
        jobs.insert(format!("slurm:{number}"), outcome.to_owned());
    }
    for line in read(1, "accounting").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(':').collect();
        let (number, task) = (fields[5], fields[35]);
        let id = if task == "0" { number.to_owned() } else { format!("{number}.{task}") };
        jobs.insert(format!("gridengine:{id}"), String::new());
    }
    for line in read(2, "accounting.20261120").lines() {
        let fields: Vec<&str> = line.splitn(4, ';').collect();
        if fields[1] == "E" {
            jobs.insert(format!("torque:{}", fields[2]), String::new());
        }
    }
    jobs
}

struct Site {
    folder: tempfile::TempDir,
    _daemon: Daemon,
}

impl Site {
    /// Starts a sensor over the logs, and waits until all accounted jobs have ended.
    fn start(expected: &BTreeMap<String, String>) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
        let (daemon, _) = Daemon::start(&folder.path().join("state"), &arguments).unwrap();
        let site = Site { folder, _daemon: daemon };
        wait::until(READ, "all jobs", || {
            let ended: BTreeSet<String> =
                site.search(&json!({"state": "ended"})).into_iter().map(id).collect();
            let missing = expected.keys().filter(|id| !ended.contains(*id)).count();
            Ok(if missing == 0 { Seen::Done(()) } else { Seen::NotYet(format!("{missing} are missing")) })
        })
        .unwrap();
        site
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        query::local_result(&self.state().join("sensor.sock"), method, params).unwrap()
    }

    fn search(&self, params: &Value) -> Vec<Value> {
        let mut params = params.clone();
        params["limit"] = json!(10_000);
        self.ask("jobs.search", &params)["jobs"].as_array().unwrap().clone()
    }

    fn visperf(&self, words: &[&str]) -> (i32, String) {
        let output =
            command(visperf().unwrap()).args(words).arg("--state").arg(self.state()).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap_or(-1), text)
    }
}

fn id(job: Value) -> String {
    job["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_accounted_job_is_one_job_on_every_way_to_it() {
    let expected = accounted();
    assert!(expected.len() > 250, "{} jobs", expected.len());
    let site = Site::start(&expected);
    let all = site.search(&json!({}));
    let ids: BTreeSet<String> = all.iter().cloned().map(id).collect();
    assert_eq!(ids.len(), all.len(), "no job is listed twice");
    for (job, outcome) in expected.iter().filter(|(_, outcome)| !outcome.is_empty()) {
        let found =
            all.iter().find(|found| found["id"] == **job).unwrap_or_else(|| panic!("{job} is missing"));
        assert_eq!(found["outcome"], **outcome, "{found}");
    }
    // Pages have the same jobs.
    let (mut cursor, mut paged) = (Value::Null, Vec::new());
    loop {
        let mut params = json!({"limit": 50});
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let page = site.ask("jobs.search", &params);
        paged.extend(page["jobs"].as_array().unwrap().iter().cloned().map(id));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(paged.len(), all.len());
    assert_eq!(paged.into_iter().collect::<BTreeSet<_>>(), ids);
    // The command line lists them too; filters restrict both in the same way.
    let (code, text) = site.visperf(&["jobs", "--json", "--limit", "10000"]);
    let listed: BTreeSet<String> = text.lines().map(|line| id(serde_json::from_str(line).unwrap())).collect();
    assert_eq!((code, listed), (0, ids));
    for form in ["--csv", "--format=sacct"] {
        let (code, text) = site.visperf(&["jobs", form, "--limit", "10000"]);
        assert_eq!((code, text.lines().count()), (0, all.len() + 1), "{form}");
    }
    let short = site.search(&json!({"queue": "short", "outcome": ["timeout"]}));
    assert!(!short.is_empty() && short.iter().all(|job| job["queue"] == "short"), "{short:?}");
    let (code, text) = site.visperf(&["jobs", "--queue", "short", "--outcome", "timeout", "--json"]);
    assert_eq!((code, text.lines().count()), (0, short.len()));
}

#[test]
fn one_job_is_shown_by_id_or_number_and_an_unknown_one_is_refused() {
    let site = Site::start(&accounted());
    let (code, page) = site.visperf(&["job", "show", "slurm:1"]);
    assert_eq!(code, 0, "{page}");
    for part in [
        "slurm:1  overrun  timeout (TIMEOUT)",
        "queue short",
        "allocated  1 CPU, 1 host, 50.0 MiB",
        "job_end",
    ] {
        assert!(page.contains(part), "{part:?} in\n{page}");
    }
    let record = site.ask("jobs.get", &json!({"job": "slurm:1"}));
    let cpus = record["sources"].as_array().unwrap().iter().find(|source| source["fact"] == "cpus").unwrap();
    assert_eq!((&cpus["value"], &cpus["log"]), (&json!("1"), &json!("accounting")));
    // Its line is found by the event that it names.
    let events = site.ask("domain.events", &json!({"call": "slurm:1"}));
    let events = events["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["id"] == cpus["event"]), "{cpus} in {events:?}");
    let (code, several) = site.visperf(&["job", "show", "9"]);
    assert!(code != 0 && several.contains("several jobs have the number 9"), "{code} {several}");
    let (code, array) = site.visperf(&["job", "show", "slurm:9"]);
    assert!(
        code != 0
            && array.contains("several jobs have the number slurm:9")
            && array.contains("slurm:9_7 (failed)"),
        "{array}"
    );
    let (code, tasks) = site.visperf(&["jobs", "--job", "gridengine:6", "--json"]);
    let tasks: Vec<String> = tasks.lines().map(|line| id(serde_json::from_str(line).unwrap())).collect();
    assert!(
        code == 0 && tasks.len() > 3 && tasks.iter().all(|id| id.starts_with("gridengine:6.")),
        "{tasks:?}"
    );
    let (code, whole) = site.visperf(&["job", "show", "gridengine:6"]);
    assert!(code != 0 && whole.contains("several jobs have the number gridengine:6"), "{whole}");
    let (code, named) = site.visperf(&["job", "show", "torque:47"]);
    assert!(code == 0 && named.starts_with("torque:47.head"), "{named}");
    let (code, unknown) = site.visperf(&["job", "show", "slurm:99999"]);
    assert!(code != 0 && unknown.contains("no job has the id or number slurm:99999"), "{code} {unknown}");
}

#[test]
fn sums_of_jobs_are_those_of_the_jobs_that_are_listed() {
    let site = Site::start(&accounted());
    let ended = site.search(&json!({"state": "ended"}));
    let listed = |fits: &dyn Fn(&Value) -> bool| ended.iter().filter(|job| fits(job)).count() as u64;
    for by in ["user", "account", "queue", "name", "product", "outcome", "month"] {
        let report = site.ask("jobs.report", &json!({"by": by, "limit": 10_000}));
        let groups = report["groups"].as_array().unwrap();
        let sum = |figure: &str| groups.iter().map(|group| group[figure].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("jobs"), &report["total"]["jobs"]),
            (ended.len() as u64, &json!(ended.len())),
            "{by}"
        );
        assert_eq!(sum("failed"), listed(&|job| job["outcome"] == "failed"), "{by}: {report}");
        for group in groups.iter().filter(|_| by != "month") {
            let key = |job: &Value| job[by].as_str().unwrap_or_default().to_owned();
            let of_key = listed(&|job| group["key"] == key(job));
            assert_eq!(group["jobs"], of_key, "{by}: {group}");
        }
    }
    let of_one = site.ask("jobs.report", &json!({"by": "queue", "user": "mrossi"}));
    assert_eq!(of_one["total"]["jobs"], listed(&|job| job["user"] == "mrossi"), "{of_one}");
    let (code, rows) = site.visperf(&["job", "report", "--by", "product", "--since", "3650d", "--csv"]);
    let products: BTreeSet<&str> = rows.lines().filter_map(|row| Some(row.split_once(',')?.0)).collect();
    assert_eq!((code, products), (0, BTreeSet::from(["product", "slurm", "gridengine", "torque"])), "{rows}");
    let (code, page) = site.visperf(&["job", "report", "--since", "3650d", "--html"]);
    assert!(code == 0 && page.starts_with("<!DOCTYPE html>") && page.contains("<td>mrossi</td>"), "{page}");
    // Over TCP no user is known, so no sums are answered.
    let address = std::fs::read_to_string(site.state().join("listen")).unwrap();
    let output = command(visperf().unwrap())
        .args(["job", "report", "--connect", address.lines().next().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("over the local socket"), "{text}");
}

type Fits<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

#[test]
fn searches_by_amount_and_finding_have_the_listed_jobs_that_fit() {
    let site = Site::start(&accounted());
    let all = site.search(&json!({}));
    let number = |job: &Value, field: &str| job[field].as_f64();
    let ran = |job: &Value| Some(number(job, "ended")? - number(job, "started")?);
    let is_over = |amount: Option<f64>, limit: f64| amount.is_some_and(|amount| amount > limit);
    let cases: [(Value, Fits<'_>); 6] = [
        (json!({"where": ["ran > 10s"]}), Box::new(|job| is_over(ran(job), 10.0))),
        (
            json!({"where": ["cpus > 1", "ran > 5"]}),
            Box::new(|job| is_over(ran(job), 5.0) && is_over(number(job, "cpus"), 1.0)),
        ),
        (
            json!({"where": ["memory >= 32 MiB"]}),
            Box::new(|job| is_over(number(job, "memory_bytes"), (32 << 20) as f64 - 1.0)),
        ),
        (json!({"finding": "time_limit"}), Box::new(|job| job["outcome"] == "timeout")),
        (
            json!({"finding": "exit_code"}),
            Box::new(|job| job["findings"].to_string().contains("\"exit_code\"")),
        ),
        (
            json!({"finding": "cancelled", "where": ["ran > 1s"], "user": "mrossi"}),
            Box::new(|job| {
                job["outcome"] == "cancelled" && job["user"] == "mrossi" && is_over(ran(job), 1.0)
            }),
        ),
    ];
    for (search, fits) in cases {
        let expected: Vec<String> = all.iter().filter(|job| fits(job)).cloned().map(id).collect();
        let found: Vec<String> = site.search(&search).into_iter().map(id).collect();
        assert_eq!(found, expected, "{search}");
        assert!(!found.is_empty() && found.len() < all.len(), "{search}: {} of {}", found.len(), all.len());
    }
    let (code, rows) = site.visperf(&["jobs", "--sort", "ran", "--top", "7", "--json"]);
    let longest: Vec<Option<f64>> =
        rows.lines().filter_map(|row| serde_json::from_str(row).ok()).map(|job| ran(&job)).collect();
    let mut expected: Vec<f64> = all.iter().filter_map(ran).collect();
    expected.sort_by(|one, other| other.total_cmp(one));
    assert_eq!((code, longest), (0, expected[..7].iter().copied().map(Some).collect()), "{rows}");
    let one = ["jobs", "--finding", "exit_code", "--limit", "1"];
    let (code, text) = site.visperf(&one);
    let cursor = text.split("--cursor ").nth(1).and_then(|rest| rest.split(' ').next());
    let cursor = cursor.unwrap_or_else(|| panic!("{text}")).trim_matches('\'');
    let (_, next) = site.visperf(&[&one[..], &["--cursor", cursor]].concat());
    let job = |text: &str| text.lines().nth(1).map(str::to_owned);
    assert!(code == 0 && next.contains("exit_code") && job(&next) != job(&text), "{text} {next}");
    for (words, part) in [
        (["--where", "cpu_eficiency < 5"], "did you mean cpu_efficiency"),
        (["--finding", "long_wait"], "invalid value"),
        (["--sort", "speed"], "cpu_efficiency"),
    ] {
        let (code, text) = site.visperf(&[&["jobs"], &words[..]].concat());
        assert!(code != 0 && text.contains(part), "{words:?}: {text}");
    }
}

#[test]
fn another_user_sees_of_a_job_what_a_queue_shows() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to become another user");
        return;
    }
    let site = Site::start(&accounted());
    let folder = site.folder.path();
    for path in [folder.to_owned(), site.state()] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let socket = site.state().join("sensor.sock");
    let as_nobody = |words: &[&str]| {
        let program = visperf().unwrap();
        let words = words.iter().map(OsStr::new);
        let output = command("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program)
            .args(words)
            .arg("--connect")
            .arg(format!("unix:{}", socket.display()))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.success(), text)
    };
    let (ok, text) = as_nobody(&["jobs", "--json", "--limit", "10000"]);
    assert!(ok, "{text}");
    assert!(text.contains("of other users' jobs only what a queue shows"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with('{'));
    let jobs: Vec<Value> = rows.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(jobs.len(), site.search(&json!({})).len(), "they are all listed");
    for job in &jobs {
        assert_eq!(job["is_reduced"], true, "{job}");
        for hidden in ["cpus", "memory_bytes", "account", "code", "uid", "time_limit_secs"] {
            assert!(job[hidden].is_null(), "{hidden} of {job}");
        }
    }
    let (ok, page) = as_nobody(&["job", "show", "slurm:1"]);
    assert!(ok && page.contains("the rest is shown to its user") && !page.contains("cpus="), "{page}");
    let (ok, refused) = as_nobody(&["jobs", "--user", "mrossi", "--charged-to", "physics"]);
    assert!(!ok && refused.contains("root and operators only"), "{refused}");
    // What follows from what a queue shows may be searched; the rest is of own jobs.
    let (ok, rows) = as_nobody(&["jobs", "--where", "ran > 10s", "--json"]);
    assert!(ok && rows.lines().filter(|line| line.starts_with('{')).count() > 3, "{rows}");
    for words in [["--where", "cpus > 0"], ["--finding", "time_limit"], ["--sort", "memory"]] {
        let (ok, none) = as_nobody(&[&["jobs", "--json"], &words[..]].concat());
        assert!(ok && !none.contains("slurm:"), "{words:?}: {none}");
        let (ok, refused) = as_nobody(&[&["jobs", "--user", "mrossi"], &words[..]].concat());
        assert!(!ok && refused.contains("root and operators only"), "{words:?}: {refused}");
    }
}
