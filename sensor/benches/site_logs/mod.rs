//! Logs of a busy site: the recorded jobs of a Slurm controller, started at random times by many users on
//! many hosts, for weeks.
//!
//! A recorded job is its lines in the controller's log and in the completion log, with the times between
//! them. Each start of it gets other job numbers, another user, other hosts and other durations of requests.
//! Not here: reading the logs (the benchmarks).

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use wire::time::Time;

/// Hosts and users of the site.
const HOSTS: u64 = 400;
const USERS: u64 = 150;

/// Mean time between two jobs, in microseconds: a job has four to five events, so ten million events are 27 days.
const BETWEEN_US: f64 = 1_080_000.0;

/// A line of a recorded job.
#[derive(Clone)]
struct Line {
    /// Time after the first line of the job, in microseconds.
    after: i64,
    is_completion: bool,
    text: String,
}

/// A job, or a line that is of no job.
#[derive(Default)]
struct Story {
    started: i64,
    first_job: u64,
    jobs: u64,
    lines: Vec<Line>,
}

/// Names of the logs in the folder.
pub(crate) const LOGS: [&str; 2] = ["slurmctld.log", "jobcomp.log"];

/// Writes the logs with this many lines in all; returns their length, in bytes.
pub(crate) fn write(folder: &Path, lines: u64) -> u64 {
    let stories = stories();
    let mut files =
        LOGS.map(|name| BufWriter::with_capacity(1 << 20, std::fs::File::create(folder.join(name)).unwrap()));
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut due, mut job, mut now, mut written) = (BTreeMap::new(), 1_000, 1_795_000_000_000_000_i64, 0_u64);
    let mut bytes = 0;
    while written < lines {
        #[allow(clippy::cast_possible_truncation)]
        let gap = (-(random.fraction().max(1e-12)).ln() * BETWEEN_US) as i64;
        now += gap;
        let story = &stories[usize::try_from(random.below(stories.len() as u64)).unwrap()];
        let change = Change { now, job, user: random.below(USERS), host: random.below(HOSTS) };
        job += story.jobs;
        for (nth, line) in story.lines.iter().enumerate() {
            // Runs are not equally long.
            let at = now + line.after + i64::try_from(random.below(900_000)).unwrap() * i64::from(nth > 0);
            let text = change.apply(story, line, at, &mut random);
            due.insert((at, written + nth as u64, nth), (line.is_completion, text));
        }
        written += story.lines.len() as u64;
        while let Some(first) = due.first_entry().filter(|first| first.key().0 <= now) {
            let (is_completion, text) = first.remove();
            bytes += text.len() as u64;
            files[usize::from(is_completion)].write_all(text.as_bytes()).unwrap();
        }
    }
    for (is_completion, text) in due.into_values() {
        bytes += text.len() as u64;
        files[usize::from(is_completion)].write_all(text.as_bytes()).unwrap();
    }
    files.iter_mut().for_each(|file| file.flush().unwrap());
    bytes
}

/// The recorded jobs.
fn stories() -> Vec<Story> {
    let logs = std::env::var("VISPERF_LOGS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../log-filters/logs").to_owned());
    let read = |name: &str| {
        let path = PathBuf::from(&logs).join("slurm/22.05.8-alpha").join(name);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; set VISPERF_LOGS", path.display()))
    };
    let (mut jobs, mut others) = (BTreeMap::<u64, Story>::new(), Vec::new());
    for line in read("slurmctld.log").lines() {
        let Some(at) = line.get(1..24).and_then(|time| format!("{time}Z").parse().ok()) else { continue };
        add(&mut jobs, &mut others, line, at, false);
    }
    for line in read("jobcomp.log").lines() {
        let Some(at) = value(line, "EndTime=").and_then(|time| format!("{time}Z").parse().ok()) else {
            continue;
        };
        add(&mut jobs, &mut others, line, at, true);
    }
    let mut all: Vec<Story> = jobs.into_values().chain(others).collect();
    for story in &mut all {
        story.lines.sort_by_key(|line| line.after);
    }
    all
}

fn add(
    jobs: &mut BTreeMap<u64, Story>,
    others: &mut Vec<Story>,
    line: &str,
    at: jiff::Timestamp,
    is_completion: bool,
) {
    let at = at.as_microsecond();
    let story = match numbers(line).first() {
        Some(job) => jobs.entry(*job).or_default(),
        None => {
            others.push(Story::default());
            others.last_mut().unwrap()
        }
    };
    if story.lines.is_empty() {
        (story.started, story.first_job) = (at, numbers(line).first().copied().unwrap_or(0));
    }
    let most = numbers(line).into_iter().max().unwrap_or(0);
    story.jobs = story.jobs.max((most + 1).saturating_sub(story.first_job)).max(1);
    story.lines.push(Line { after: at - story.started, is_completion, text: line.to_owned() });
}

/// Numbers of jobs in a line: `51` and `55` of `JobId=51_0(55)`.
fn numbers(line: &str) -> Vec<u64> {
    let Some(text) = value(line, "JobId=") else { return Vec::new() };
    let parts = text.split(['(', ')']).map(|part| part.split('_').next().unwrap_or_default());
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split([' ', ',']).next()
}

/// What a start of a job changes.
struct Change {
    now: i64,
    job: u64,
    user: u64,
    host: u64,
}

impl Change {
    fn apply(&self, story: &Story, line: &Line, at: i64, random: &mut Random) -> String {
        let mut out = String::with_capacity(line.text.len() + 16);
        let mut words = line.text.as_str();
        if line.is_completion {
            words = &line.text;
        } else {
            out.push_str(&format!("[{}]", stamp(at, 3)));
            words = &words[words.find(']').unwrap() + 1..];
        }
        for (nth, word) in words.split(' ').enumerate() {
            if nth > 0 {
                out.push(' ');
            }
            self.word(story, word, random, &mut out);
        }
        out.push('\n');
        out
    }

    fn word(&self, story: &Story, word: &str, random: &mut Random, out: &mut String) {
        let (name, text) = word.split_once('=').unwrap_or(("", word));
        if !name.is_empty() {
            out.push_str(name);
            out.push('=');
        }
        match name {
            "JobId" => self.renumber(story, text, out),
            "usec" => out.push_str(&(200 + random.below(700)).to_string()),
            "UserId" | "GroupId" => out.push_str(&format!("user{:03}({})", self.user, 1000 + self.user)),
            "uid" => out.push_str(&(1000 + self.user).to_string()),
            "WorkDir" => out.push_str(&format!("/home/user{:03}", self.user)),
            "StartTime" | "EndTime" | "SubmitTime" | "EligibleTime" => {
                match format!("{text}Z").parse::<jiff::Timestamp>() {
                    Ok(time) => out.push_str(&stamp(time.as_microsecond() - story.started + self.now, 0)),
                    Err(_) => out.push_str(text),
                }
            }
            _ => self.rehost(text, out),
        }
    }

    fn renumber(&self, story: &Story, text: &str, out: &mut String) {
        let mut is_task = false;
        for part in text.split_inclusive(['_', '(', ')', ',']) {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            match part[..digits].parse::<u64>() {
                Ok(number) if !is_task && number >= story.first_job => {
                    out.push_str(&(number - story.first_job + self.job).to_string());
                    out.push_str(&part[digits..]);
                }
                _ => out.push_str(part),
            }
            is_task = part.ends_with('_');
        }
    }

    /// Replaces names of hosts: `wn03` and `wn[01-02]`.
    fn rehost(&self, text: &str, out: &mut String) {
        let Some(at) = text.find("wn") else { return out.push_str(text) };
        let digits = text[at + 2..].bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(&text[..at]);
        match text[at + 2..at + 2 + digits].parse::<u64>() {
            Ok(host) => {
                out.push_str(&format!("wn{:03}{}", (self.host + host) % HOSTS, &text[at + 2 + digits..]))
            }
            Err(_) => match text[at..].find(']') {
                Some(end) => {
                    let last = (self.host + 1).min(HOSTS - 1);
                    out.push_str(&format!("wn[{:03}-{last:03}{}", self.host.min(last), &text[at + end..]));
                }
                None => out.push_str(&text[at..]),
            },
        }
    }
}

fn stamp(micros: i64, digits: usize) -> String {
    let time = jiff::Timestamp::from_microsecond(Time::from_micros(micros).micros()).unwrap();
    let text = format!("{time:.digits$}");
    text.trim_end_matches('Z').to_owned()
}

/// Random numbers (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    #[allow(clippy::cast_precision_loss)]
    fn fraction(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1_u64 << 40) as f64
    }
}
