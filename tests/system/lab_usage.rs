//! What a job used is known in the whole domain, by the host on which it ran alone, although the sensor there is killed while
//! the job runs, and the representative after its end.
//!
//! All hosts of the lab see all processes, so each sensor measures the job: only what the host states on which the
//! job ran, by its accounting, may count.
//! Not here: usage of real jobs against the kernel's own figures (`slurm_usage`).

use serde_json::Value;
use std::io::Write as _;
use std::process::Child;
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, sensor, settled, state, take, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program::command;
use system_tests::wait::Seen;

/// Timeout for a job and its usage to be answered.
const SOON: Duration = Duration::from_secs(60);

/// A job that computes before and after the file `go` is there, and writes what it used. It lives on for some seconds, as the
/// sensors of the lab are unprivileged: they know a process as of the last sweep before its end.
const JOB: &str = r#"
work() { i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; }
work
touch began
while [ ! -e go ]; do sleep 0.5; done
work
times > truth.new
mv truth.new truth
sleep 3
"#;

fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(overlay::clock::calendar().micros()).unwrap()
}

fn log_of(host: &Host) -> String {
    host.folder().join("jobcomp.log").display().to_string()
}

fn tail(host: &Host) -> Vec<String> {
    std::fs::OpenOptions::new().create(true).append(true).open(log_of(host)).unwrap();
    vec!["--tail".to_owned(), format!("{}=slurm-jobcomp", log_of(host))]
}

fn start_job(host: &Host) -> Child {
    command("sh").args(["-c", JOB]).env("SLURM_JOB_ID", "41").current_dir(host.folder()).spawn().unwrap()
}

/// CPU seconds of the job, as its shell printed them: minutes and seconds, of itself and of its children.
fn truth(host: &Host) -> f64 {
    let text = std::fs::read_to_string(host.folder().join("truth")).unwrap();
    let secs = |word: &str| {
        let (minutes, secs) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + secs.parse::<f64>().unwrap()
    };
    text.split_whitespace().map(secs).sum()
}

/// Writes the accounting of the job: it ran on one host, and the log is on another.
fn account(log: &Host, ran_on: &Host, started: jiff::Timestamp) {
    let at = |time: jiff::Timestamp| {
        time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
    };
    let (uid, host) = (rustix::process::geteuid().as_raw(), ran_on.name());
    let line = format!(
        "JobId=41 UserId=ada({uid}) GroupId=users(100) Name=relax JobState=COMPLETED Partition=normal TimeLimit=60 \
         StartTime={} EndTime={} NodeList={host} NodeCnt=1 ProcCnt=1 WorkDir=/home/ada ExitCode=0:0 \n",
        at(started),
        at(now())
    );
    let mut file = std::fs::OpenOptions::new().append(true).open(log_of(log)).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// The record of the job by a daemon, once its usage is complete.
fn record(daemon: &Daemon) -> Value {
    let folder = state(daemon.host());
    let look = || {
        let answer = visperf(daemon.host(), &["job", "show", "slurm:41", "--json", "--state", &folder]);
        let text = answer.unwrap_or_else(|error| error.to_string());
        let record = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let usages = record["usage"].as_array().into_iter().flatten();
        let is_over = usages.clone().any(|usage| usage["is_over"] == true);
        Ok(if is_over { Seen::Done(record.clone()) } else { Seen::NotYet(text) })
    };
    Stopwatch::start().until(SOON, "the usage of the job", look).unwrap().1
}

#[test]
fn the_usage_of_a_job_is_known_in_its_domain_through_crashes() {
    let Some(lab) =
        lab::enter("lab_usage::the_usage_of_a_job_is_known_in_its_domain_through_crashes").unwrap()
    else {
        return;
    };
    let network = lab.network(4).unwrap();
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    // The lab has numbers of processes of its own, which the kernel programs do not know.
    for host in &network.hosts()[1..] {
        std::fs::write(host.folder().join("sensor.toml"), "[sensor]\nprocess_source = 'procfs'\n").unwrap();
    }
    let mut daemons = domain.start(&[], tail).unwrap();
    let (first, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let mut others = network.hosts().iter().rev().filter(|host| host.name() != first);
    let (worker, head, asked) = (others.next().unwrap(), others.next().unwrap(), others.next().unwrap());
    let started = now();
    let mut job = start_job(worker);
    Stopwatch::start()
        .until(SOON, "the first half of the job", || {
            let has_begun = worker.folder().join("began").exists();
            Ok(if has_begun { Seen::Done(()) } else { Seen::NotYet(String::new()) })
        })
        .unwrap();
    // The state is stored at the first sweep with a job.
    std::thread::sleep(Duration::from_secs(4));
    take(&mut daemons, worker.name()).kill().unwrap();
    daemons.push(sensor(worker, &tail(worker)).unwrap());
    std::thread::sleep(Duration::from_secs(3));
    std::fs::write(worker.folder().join("go"), "").unwrap();
    assert!(job.wait().unwrap().success());
    account(head, worker, started);
    let of = |daemons: &[Daemon], host: &Host| {
        let at = daemons.iter().position(|daemon| daemon.host().name() == host.name()).unwrap();
        record(&daemons[at])
    };
    let before = of(&daemons, asked);
    check(&before, worker, truth(worker));
    check_series(&before, asked, worker);
    take(&mut daemons, &first).kill().unwrap();
    agreed(&daemons, Some(&first)).unwrap();
    let after = of(&daemons, asked);
    assert_eq!(after["usage"], before["usage"]);
    assert_eq!(after["job"]["usage"], before["job"]["usage"]);
    let sources = after["sources"].as_array().unwrap().iter().chain(after["usage"].as_array().unwrap());
    check_events(asked, sources.map(|source| &source["event"]).collect());
}

/// The events that facts are from are those of the domain, once all members are connected to the new representative.
fn check_events(asked: &Host, wanted: Vec<&Value>) {
    let look = || {
        let words = ["events", "--json", "--domain", "UT-ICL", "--state", &state(asked)];
        let events = visperf(asked, &words)?;
        let found: Vec<Value> =
            events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
        let is_all = wanted.iter().all(|event| found.contains(event));
        Ok(if is_all { Seen::Done(()) } else { Seen::NotYet(format!("{found:?} of {wanted:?}")) })
    };
    Stopwatch::start().until(SOON, "the events of the facts", look).unwrap();
}

/// Another host gets what the job used over time from the host where it ran: it adds up in spite of the crash.
fn check_series(record: &Value, asked: &Host, worker: &Host) {
    let id = record["job"]["id"].as_str().unwrap();
    let words =
        ["job", "series", id, "--step", "1s", "--json", "--domain", "UT-ICL", "--state", &state(asked)];
    let answer: Value = serde_json::from_str(visperf(asked, &words).unwrap().trim()).unwrap();
    assert_eq!(answer["host"], worker.name(), "{answer}");
    let [curve] = answer["curves"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    let numbers =
        |name: &str| curve[name].as_array().unwrap().iter().filter_map(Value::as_f64).collect::<Vec<_>>();
    let mut before = curve["started"].as_f64().unwrap();
    let mut used = 0.0;
    for (time, cpus) in numbers("times").into_iter().zip(numbers("cpus")) {
        used += cpus * (time - before);
        before = time;
    }
    let all = record["usage"][0]["cpu_secs"].as_f64().unwrap();
    assert!((used - all).abs() < 0.02 * all + 0.05, "{used} of {all}: {answer}");
}

fn check(record: &Value, worker: &Host, truth: f64) {
    let [usage] = record["usage"].as_array().unwrap().as_slice() else {
        panic!("expected the usage of one host: {record}");
    };
    assert_eq!(usage["host"], worker.name(), "{record}");
    let cpu_secs = usage["cpu_secs"].as_f64().unwrap();
    assert!((truth * 0.95 - 0.1..truth * 1.05 + 0.1).contains(&cpu_secs), "{truth} s: {record}");
    assert_eq!(record["job"]["usage"]["hosts"], 1, "{record}");
    assert!(usage["processes"].as_u64().unwrap() >= 2, "{record}");
}
