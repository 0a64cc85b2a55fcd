//! What a job used over time is answered after its host is gone for good, and after every archive that had it at first.
//!
//! All hosts of the lab see all processes, so each sensor measures the job; what counts is the host on which it ran, by its
//! accounting. Not here: what archives do with hosts that lie, or without space (`sensor/tests/integration/archive`).

use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, sensor, settled, state, take, visperf};
use system_tests::lab::{self, Host, Stopwatch};
use system_tests::program::command;
use system_tests::wait::Seen;

/// Timeout for series to be on disk, which takes half a minute, and to be copied.
const SOON: Duration = Duration::from_secs(120);

const ARCHIVE: &str = "[sensor]\nprocess_source = 'procfs'\n\
                       [sensor.archive]\non = true\nround_secs = 1\ntake_over_secs = 10\n";

/// A job that computes for some seconds.
const JOB: &str = "end=$(($(date +%s)+5)); while [ $(date +%s) -lt $end ]; do :; done; sleep 2";

fn log_of(host: &Host) -> String {
    host.folder().join("jobcomp.log").display().to_string()
}

fn run_job(on: &Host) {
    let time = || {
        let now = jiff::Timestamp::from_microsecond(overlay::clock::calendar().micros()).unwrap();
        now.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
    };
    let started = time();
    let mut job =
        command("sh").args(["-c", JOB]).env("SLURM_JOB_ID", "41").current_dir(on.folder()).spawn().unwrap();
    assert!(job.wait().unwrap().success());
    let line = format!(
        "JobId=41 UserId=ada({}) GroupId=users(100) Name=relax JobState=COMPLETED Partition=normal TimeLimit=60 \
         StartTime={started} EndTime={} NodeList={} NodeCnt=1 ProcCnt=1 WorkDir=/home/ada ExitCode=0:0 \n",
        rustix::process::geteuid().as_raw(),
        time(),
        on.name()
    );
    let mut file = std::fs::OpenOptions::new().append(true).open(log_of(on)).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// What a command prints, though it fails as long as a host is away.
fn printed(on: &Host, words: &[&str]) -> String {
    let program = system_tests::program::visperf().unwrap();
    let output = on.run(|| Ok(command(program).args(words).output()?)).unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// Waits until each line of a command's output in JSON is as wanted.
fn until(on: &Host, what: &str, words: &[&str], is_wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let folder = state(on);
    let words = [words, &["--json", "--domain", "UT-ICL", "--state", &folder]].concat();
    let look = || {
        let text = printed(on, &words);
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(if is_wanted(&lines) { Seen::Done(lines) } else { Seen::NotYet(text) })
    };
    Stopwatch::start().until(SOON, what, look).unwrap().1
}

/// Archives with series of a host of so many bytes at least.
fn having(lines: &[Value], host: &str, bytes: u64) -> Vec<String> {
    let has = |line: &&Value| {
        let hosts = line["hosts"].as_array().into_iter().flatten();
        hosts.clone().any(|found| found["host"] == host && found["bytes"].as_u64().unwrap() >= bytes)
    };
    lines.iter().filter(has).map(|line| line["host"].as_str().unwrap().to_owned()).collect()
}

fn curve(lines: &[Value]) -> Option<&Value> {
    let [answer] = lines else { return None };
    let [curve] = answer["curves"].as_array()?.as_slice() else { return None };
    Some(curve)
}

/// The archives that have the series of a host, once there are two, asked from another host.
fn owners(asked: &Host, of: &str, bytes: u64, without: &[&str]) -> Vec<String> {
    let two = |lines: &[Value]| {
        having(lines, of, bytes).iter().filter(|archive| !without.contains(&archive.as_str())).count() == 2
    };
    let mut found = having(&until(asked, "two archives of the series", &["archive"], two), of, bytes);
    found.retain(|archive| !without.contains(&archive.as_str()));
    found
}

#[test]
fn series_outlive_their_host_and_each_archive() {
    let Some(lab) = lab::enter("lab_archive::series_outlive_their_host_and_each_archive").unwrap() else {
        return;
    };
    let network = lab.network(5).unwrap();
    let [asked, worker, archives @ ..] = network.hosts() else { unreachable!("five hosts") };
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    std::fs::write(worker.folder().join("sensor.toml"), "[sensor]\nprocess_source = 'procfs'\n").unwrap();
    archives.iter().for_each(|host| std::fs::write(host.folder().join("sensor.toml"), ARCHIVE).unwrap());
    std::fs::write(log_of(worker), "").unwrap();
    let tail = |host: &Host| match host.name() == worker.name() {
        true => vec!["--tail".to_owned(), format!("{}=slurm-jobcomp", log_of(host))],
        false => Vec::new(),
    };
    let mut daemons = domain.start(&[], tail).unwrap();
    settled(&daemons).unwrap();
    run_job(worker);
    let words = ["job", "series", "slurm:41", "--step", "1s"];
    let measured =
        |lines: &[Value]| curve(lines).is_some_and(|curve| curve["times"].as_array().unwrap().len() >= 6);
    let first = owners(asked, worker.name(), 100, &[]);
    let before = until(asked, "the series of the job", &words, measured);
    assert_eq!((&before[0]["host"], &before[0]["archive"]), (&Value::from(worker.name()), &Value::Null));
    check_text(asked, worker, &first);

    // The host is gone, with its disk.
    take(&mut daemons, worker.name()).kill().unwrap();
    std::fs::remove_dir_all(worker.folder().join("sensor")).unwrap();
    let same = |lines: &[Value]| measured(lines) && curve(lines) == curve(&before);
    let from = |archive: &str, lines: &[Value]| same(lines) && lines[0]["archive"] == archive;
    until(asked, "the series from an archive", &words, |lines| {
        first.iter().any(|archive| from(archive, lines))
    });

    // An archive dies, and the third takes over from the one that is left.
    take(&mut daemons, &first[0]).kill().unwrap();
    agreed(&daemons, None).unwrap();
    let second = owners(asked, worker.name(), 100, &[&first[0]]);
    let third = second.iter().find(|archive| !first.contains(archive)).expect("it has taken over");
    take(&mut daemons, &first[1]).kill().unwrap();
    agreed(&daemons, None).unwrap();
    until(asked, "the series from the third archive", &words, |lines| from(third, lines));

    // One comes back with an empty disk, and gets them again.
    let host = archives.iter().find(|host| host.name() == first[1]).unwrap();
    let folder = host.folder().join("sensor/sensor/archive");
    let had = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    daemons.push(sensor(host, &[]).unwrap());
    assert_eq!(owners(asked, worker.name(), 100, &[&first[0]]).len(), 2);
    assert!(had > 0 && std::fs::read_dir(&folder).unwrap().count() > 0);
}

/// What an operator reads, while all archives are there.
fn check_text(asked: &Host, worker: &Host, owners: &[String]) {
    let folder = state(asked);
    let run = |words: &[&str]| visperf(asked, &[words, &["--domain", "UT-ICL", "--state", &folder]].concat());
    let archives = run(&["archive"]).unwrap();
    assert_eq!(archives.lines().count(), 4, "{archives}");
    let hosts = run(&["archive", "--hosts"]).unwrap();
    for owner in owners {
        let is_row = |line: &&str| line.starts_with(worker.name()) && line.contains(owner.as_str());
        let row = hosts.lines().find(is_row).unwrap_or_else(|| panic!("{owner}: {hosts}"));
        assert!(row.contains("ago"), "{row}");
    }
}
