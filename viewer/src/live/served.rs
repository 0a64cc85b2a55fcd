//! What happened in a call: its events, and the processes that served it with their samples for exactly its life, of memory
//! and recordings of the hosts where it ran, as `sensor.call_processes` tells.
//!
//! Rule: what is told is bounded, and what is left out is counted. Not here: when it is asked for (`flock`).

use super::answers;
use super::call_events::{self, Event};
use super::http::{Client, Error};
use super::named;
use crate::feed::Served;
use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use crate::series::Series;
use serde_json::Value;
use std::collections::BTreeMap;
use wire::time::Time;

/// Hosts of a call that are asked.
const HOSTS_MAX: usize = 8;
/// Samples asked for at once, the most that a sensor answers, and at most so often.
const LIMIT: u64 = 10_000;
const PAGES_MAX: u32 = 8;
/// Processes of one call that are kept.
const PROCESSES_MAX: usize = 64;

/// What happened in a call, and what served it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedBy {
    /// Its events, by time, where they were asked for.
    pub events: Option<Vec<Event>>,
    /// The processes, by host and number.
    pub processes: Vec<Process>,
    /// Samples in all.
    pub samples: u64,
    /// Processes that are not kept.
    pub left_out: u64,
    /// Hosts that could not be asked, and why; processes that could not be read.
    pub troubles: Vec<String>,
    /// Whether a host could not be asked, which may be otherwise later.
    pub is_partial: bool,
}

impl ServedBy {
    /// Nothing, and why.
    #[must_use]
    pub fn troubled(why: &str) -> ServedBy {
        ServedBy { troubles: vec![why.to_owned()], is_partial: true, ..ServedBy::default() }
    }
}

/// A process that served a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its host.
    pub host: String,
    /// Its number.
    pub pid: u64,
    /// Its program.
    pub name: String,
    /// By what it is known to serve the call.
    pub known_by: String,
    /// Cores that it used.
    pub cpu: Series,
    /// Memory that it held, in bytes.
    pub memory: Series,
}

/// Ask the domain of a call for its events and its hosts for its processes. What one refuses, or that nobody can be asked, is
/// told in the answer.
pub fn ask(client: &mut Client, wanted: &Served) -> ServedBy {
    let mut served = ServedBy::default();
    let ask = |number| call_events::ask(client, &wanted.call, &wanted.domain, number);
    match wanted.events.map(ask).transpose() {
        Ok(events) => served.events = events,
        Err(error @ Error::Unreachable { .. }) => return ServedBy::troubled(&error.to_string()),
        Err(error) => {
            served.is_partial = true;
            served.troubles.push(format!("its events: {error}"));
        }
    }
    for host in wanted.hosts.iter().take(HOSTS_MAX) {
        let Err(error) = of_host(client, wanted, host, &mut served) else { continue };
        served.is_partial = true;
        match error {
            Error::Fault { message, .. } => served.troubles.push(format!("{}: {message}", host.host)),
            Error::Silent { .. } => served.troubles.push(format!("{}: {error}", host.host)),
            Error::Unreachable { .. } | Error::Answer { .. } => {
                served.troubles.push(error.to_string());
                // The others are asked by the same daemon.
                break;
            }
        }
    }
    let beyond = wanted.hosts.len().saturating_sub(HOSTS_MAX);
    if beyond > 0 {
        served.troubles.push(format!("{beyond} more hosts were not asked"));
    }
    served
}

fn of_host(
    client: &mut Client,
    wanted: &Served,
    host: &HostName,
    served: &mut ServedBy,
) -> Result<(), Error> {
    let mut found: BTreeMap<(u64, i64), Process> = BTreeMap::new();
    let mut offset = 0;
    for _ in 0..PAGES_MAX {
        let mut params = named(host);
        (params["call"], params["limit"], params["offset"]) =
            (wanted.call.as_str().into(), LIMIT.into(), offset.into());
        let answer = client.ask("sensor.call_processes", &params)?;
        take(&answer, &host.host, &mut found, served);
        match answer["next"].as_u64() {
            Some(next) if next > offset => offset = next,
            _ => break,
        }
    }
    served.processes.extend(found.into_values());
    Ok(())
}

/// The processes and samples of an answer.
fn take(answer: &Value, host: &str, found: &mut BTreeMap<(u64, i64), Process>, served: &mut ServedBy) {
    for told in answers::items(answer, "processes") {
        let Some(key) = key(told) else { continue };
        if found.len() + served.processes.len() >= PROCESSES_MAX && !found.contains_key(&key) {
            served.left_out += 1;
            continue;
        }
        let text = |name: &str| shown(told[name].as_str().unwrap_or_default()).text;
        let process = found.entry(key).or_default();
        (process.host, process.pid) = (host.to_owned(), key.0);
        (process.name, process.known_by) = (text("name"), text("known_by"));
    }
    for sample in answers::items(answer, "samples") {
        let process = key(sample).and_then(|key| found.get_mut(&key));
        let time = sample["time"].as_f64().filter(|secs| secs.is_finite());
        let (Some(process), Some(time)) = (process, time) else { continue };
        let time = Time::from_secs_f64(time);
        served.samples += 1;
        sample["cpu"].as_f64().into_iter().for_each(|cpu| process.cpu.push(time, cpu));
        sample["rss_bytes"].as_f64().into_iter().for_each(|bytes| process.memory.push(time, bytes));
    }
    if let Some(unreadable) = answer["unreadable"].as_u64().filter(|unreadable| *unreadable > 0) {
        let words = format!("{host}: {unreadable} processes of other users could not be read");
        if !served.troubles.contains(&words) {
            served.troubles.push(words);
        }
    }
}

/// A process's number and start, in microseconds.
#[allow(clippy::cast_possible_truncation)]
fn key(told: &Value) -> Option<(u64, i64)> {
    Some((told["pid"].as_u64()?, (told["start"].as_f64()? * 1e6) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_go_to_their_processes_and_strangers_are_left_out() {
        let answer = json!({
            "processes": [{"pid": 7, "start": 1.5, "name": "burn", "known_by": "cgroup"}, {"pid": "x"}],
            "samples": [
                {"time": 2.0, "pid": 7, "start": 1.5, "rss_bytes": 4096},
                {"time": 2.015_625, "pid": 7, "start": 1.5, "cpu": 0.75, "rss_bytes": 8192},
                {"time": 2.0, "pid": 8, "start": 1.5, "cpu": 1.0},
            ],
            "unreadable": 2,
        });
        let (mut found, mut served) = (BTreeMap::new(), ServedBy::default());
        take(&answer, "wn01", &mut found, &mut served);
        let process = found.values().next().unwrap();
        assert_eq!((found.len(), process.name.as_str(), process.known_by.as_str()), (1, "burn", "cgroup"));
        assert_eq!((process.cpu.newest().map(|(_, cpu)| cpu), served.samples), (Some(0.75), 2));
        assert_eq!(process.memory.samples().count(), 2);
        assert!(served.troubles[0].contains("2 processes"));
    }
}
