//! Accounting files of five batch systems: a sensor that imports them knows the same jobs as one that follows them.
//!
//! Recorded files; of HTCondor one that is written here. Not here: the accounting of a running Slurm (`slurm_accounting`), copies
//! to standbys (`lab_calls`), what is stored of a job (`call-store/tests`).

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::{command, visperf, workspace};
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout until all files are read.
const READ: Duration = Duration::from_secs(60);

/// Files below the recorded logs, with their filters.
const FILES: [(&str, &str); 5] = [
    ("slurm/15.08.7-linux/jobcomp.log", "slurm-jobcomp"),
    ("slurm/22.05.8-alpha/jobcomp.log", "slurm-jobcomp"),
    ("gridengine/8.1.9-alpha/accounting", "gridengine-accounting"),
    ("torque/2.4.16-delta/accounting.20261120", "torque-accounting"),
    ("lsf/from-apel-tests/lsb.acct", "lsf-acct"),
];

/// Jobs that ended well, failed, and were removed.
const CONDOR: &str = r#"ClusterId = 1
QDate = 1795178329
JobCurrentStartDate = 1795178346
ExitBySignal = false
ExitCode = 3
JobStatus = 4
JobBatchName = "fit"
RequestCpus = 2
LastRemoteHost = "slot1_1@ex02.cat.example"
*** Offset = 0 ClusterId = 1 ProcId = 0 Owner = "mrossi" CompletionDate = 1795178350
QDate = 1795178329
JobStatus = 3
EnteredCurrentStatus = 1795178343
*** Offset = 800 ClusterId = 5 ProcId = 0 Owner = "mrossi" CompletionDate = 0
"#;

/// The files, each with its filter; two clusters of one product, which have equal numbers, in two lists.
fn files(folder: &Path) -> [Vec<(PathBuf, &'static str)>; 2] {
    let path = |file: &str| workspace().join("log-filters/logs").join(file);
    let mut all: Vec<(PathBuf, &str)> = FILES.iter().map(|(file, filter)| (path(file), *filter)).collect();
    let history = folder.join("history");
    std::fs::write(&history, CONDOR).unwrap();
    all.push((history, "htcondor-history"));
    let first = vec![all.remove(0)];
    [first, all]
}

fn sensor(folder: &Path, name: &str, tail: &str) -> Daemon {
    let config = folder.join(format!("{name}.toml"));
    let text = format!(
        "[sensor]\ndomain = \"trial\"\nhost = \"trial-host\"\nzone = \"UTC\"\n[sensor.history]\n{tail}"
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join(name), &arguments).unwrap().0
}

/// What is known of the ended jobs, by their ids.
fn records(socket: &Path) -> BTreeMap<String, Value> {
    let answer =
        query::local_result(socket, "jobs.search", &json!({"state": "ended", "limit": 5000})).unwrap();
    let ids = answer["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned());
    let mut records = BTreeMap::new();
    for id in ids {
        let mut record = query::local_result(socket, "jobs.get", &json!({"job": id})).unwrap();
        let fields = record.as_object_mut().unwrap();
        fields.retain(|name, _| ["job", "runs"].contains(&name.as_str()));
        // Events are not imported.
        fields["job"].as_object_mut().unwrap().remove("findings");
        assert!(records.insert(id, record).is_none());
    }
    records
}

fn run(words: &[&str], input: &[u8]) -> Output {
    let mut program = command(visperf().unwrap());
    program.args(["jobs", "import"]).args(words);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Stored, completed, known, refused.
fn sums(output: &Output) -> [u64; 4] {
    let sums: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    ["stored", "completed", "known", "refused"].map(|name| sums[name].as_u64().unwrap())
}

#[test]
fn imported_accounting_is_what_a_sensor_that_follows_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let files = files(folder);
    let mut tail = "call_days = 20000\n".to_owned();
    for (cluster, files) in ["old", ""].iter().zip(&files) {
        for (path, filter) in files {
            writeln!(tail, "[[sensor.tail]]\npath = {path:?}\nfilter = {filter:?}\nstart = \"beginning\"")
                .unwrap();
            if !cluster.is_empty() {
                writeln!(tail, "cluster = {cluster:?}").unwrap();
            }
        }
    }
    let _following = sensor(folder, "following", &tail);
    let expected = wait::until(READ, "all jobs", || {
        let known = records(&folder.join("following/sensor.sock"));
        let count = |product: &str| known.keys().filter(|id| id.starts_with(product)).count();
        let counts = ["slurm/old:", "slurm:", "gridengine:", "torque:", "lsf:", "htcondor:"].map(count);
        let is_done = counts.iter().zip([90, 230, 120, 100, 3, 2]).all(|(count, least)| *count >= least);
        Ok(if is_done { Seen::Done(known) } else { Seen::NotYet(format!("{counts:?}")) })
    })
    .unwrap();

    let _importing = sensor(folder, "importing", "call_days = 20000\n");
    let state = folder.join("importing").display().to_string();
    let import = |more: &[&str], cluster: &str, files: &[(PathBuf, &str)]| {
        let files: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        run(
            &[&["--zone", "UTC", "--json", "--cluster", cluster, "--state", &state], more, &files].concat(),
            b"",
        )
    };
    let trial = import(&["--dry-run"], "", &files[1]);
    let [old, new] = [import(&[], "old", &files[0]), import(&[], "", &files[1])].map(|output| sums(&output));
    assert_eq!((sums(&trial), old[0] + new[0]), (new, expected.len() as u64));
    let found = records(&folder.join("importing/sensor.sock"));
    for (id, record) in &expected {
        assert_eq!(found.get(id), Some(record), "{id}");
    }
    assert_eq!(found.len(), expected.len());
    assert_eq!(sums(&import(&[], "old", &files[0])), [0, 0, old[0], 0]);
    assert_eq!(sums(&import(&[], "", &files[1])), [0, 0, new[0], 0]);

    // What is followed is known already, whichever way it is read later.
    let state = folder.join("following").display().to_string();
    let torque = &files[1][2].0;
    let again = run(&["--zone", "UTC", "--json", "--state", &state, torque.to_str().unwrap()], b"");
    let [stored, completed, known, refused] = sums(&again);
    assert_eq!((stored, completed, refused), (0, 0, 0), "{}", text(&again));
    assert!(known >= 50, "{known}");
}

/// Jobs as they are printed are imported, and each line that is none is refused by itself.
fn json_lines(state: &str) {
    let lines = concat!(
        r#"{"domain":"far","id":"slurm:77","name":"md","user":"eve","state":"ended","outcome":"ok","started":1740787201.0,"#,
        r#""ended":1740787209.0,"hosts":["wn07"],"tries":1,"cpus":4,"of_a_later_version":{}}"#,
        "\n\n",
        r#"{"id":"slurm:78","state":"running"}"#,
        "\n",
        r#"{"id":"slurm:79","outcome":"great","ended":1740787209.0}"#,
        "\n",
        r#"{"id":"slurm:80","outcome":"ok","ended":1740787209.0,"cpus":"8"}"#,
        "\nnonsense\n"
    );
    let said = text(&run(&["--state", state, "-"], lines.as_bytes()));
    for part in [
        "1 job that ended on 2025-03-01: 1 stored, 0 completed, 0 known, 3 refused",
        "refused: standard input, line 4: outcome: expected one of ok, ",
        "refused: standard input, line 5: expected a job with the fields of jobs.search: invalid type: string \"8\", expected",
        "refused: standard input, line 6: expected a JSON object",
        "1 job without an end",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let jobs =
        command(visperf().unwrap()).args(["jobs", "--json", "--user", "eve", "--state", state]).output();
    let printed = jobs.unwrap().stdout;
    let again = text(&run(&["--state", state, "-"], &printed));
    assert!(again.contains("0 stored, 0 completed, 1 known, 0 refused"), "{again}");
}

#[test]
fn what_cannot_be_imported_is_said_and_the_rest_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _daemon = sensor(folder, "alone", "");
    let state = folder.join("alone").display().to_string();
    let table = b"JobID|JobName|User|State|ExitCode|Submit|Start|End|NodeList\n\
        1|md|bob|COMPLETED|0:0|2025-03-01T00:00:00|2025-03-01T00:00:01|2025-03-01T00:00:09|wn07\n\
        2|md|bob|RUNNING|0:0|2025-03-01T00:00:00|2025-03-01T00:00:01|Unknown|wn07\n\
        3|md|bob|FAILED|1:0|1999-03-01T00:00:00|1999-03-01T00:00:01|1999-03-01T00:00:09|wn07\n\
        4|md|bob|FAILED|1:0|2025-03-01T00:00:00|2025-03-01T00:00:01|2099-03-01T00:00:09|wn07\n\
        5|md|bob|FAILED|1:0|2025-03-01T00:00:00|2025-03-01T00:00:01|01.03.2025 00:00|wn07\n\
        nonsense\n";
    let words = ["--zone", "UTC", "--state", &state, "--filter", "slurm-tables", "-"];
    let output = run(&words, table);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "3 jobs that ended from 1999-03-01 to 2099-03-01: 1 stored, 0 completed, 0 known, 2 refused",
        "2 jobs without an end",
        "1 line that no rule of the filter takes (line 7)",
        "refused: slurm:4: ended: expected a time after 1970",
        "refused: slurm:3: calls are stored for 1826 days (call_days",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let show = command(visperf().unwrap()).args(["job", "show", "1", "--state", &state]).output().unwrap();
    assert!(text(&show).contains("imported   from standard input"), "{}", text(&show));

    // Another time zone, and a caller who is not known.
    let words = ["--zone", "+02:00", "--state", &state, "--filter", "slurm-tables", "-"];
    let said = text(&run(&words, table));
    assert!(said.contains("refused: slurm:1: it is known 2 h later"), "{said}");
    let address = std::fs::read_to_string(folder.join("alone/listen")).unwrap();
    let address = address.lines().next().unwrap();
    let output = run(&["--connect", address, "--filter", "slurm-tables", "-"], table);
    assert!(
        !output.status.success() && text(&output).contains("over TCP no user is known"),
        "{}",
        text(&output)
    );
    let nothing =
        run(&["--state", &state, "--filter", "slurm-tables", "-"], b"User|State|End\nbob|COMPLETED|1\n");
    assert!(text(&nothing).contains("no job that has ended was found") && !nothing.status.success());
    json_lines(&state);
    let gone = run(&["--state", &state, "/no/such/file"], b"");
    assert!(text(&gone).contains("cannot read /no/such/file: there is no such file"), "{}", text(&gone));
}
