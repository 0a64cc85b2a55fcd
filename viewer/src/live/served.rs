//! Details of a call: its events, and the processes that served it with their samples for exactly the time of
//! the call, from the memory and recordings of its hosts, as `sensor.call_processes` returns them.
//!
//! Rule: the result is bounded, and what is left out is counted. Not here: when it is requested (`flock`).

use super::answers;
use super::ask::Client;
use super::call_events;
use super::named;
use crate::feed::Served;
use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use crate::served::{PROCESSES_MAX, Process, ServedBy};
use client::Error;
use serde_json::Value;
use std::collections::BTreeMap;
use wire::time::Time;

/// Hosts of a call that are queried.
const HOSTS_MAX: usize = 8;
/// Samples per page, which is the most that a sensor sends, and pages per host.
const LIMIT: u64 = 10_000;
const PAGES_MAX: u32 = 8;
/// Query the domain of a call for its events and its hosts for its processes. Refusals and errors are part of
/// the result.
pub fn ask(client: &mut Client, wanted: &Served) -> ServedBy {
    let mut served = ServedBy::default();
    let ask = |number| call_events::ask(client, &wanted.call, &wanted.domain, number);
    match wanted.events.map(ask).transpose() {
        Ok(events) => served.events = events,
        Err(error @ (Error::Unreachable(_) | Error::Lost { .. })) => {
            return ServedBy::troubled(&error.to_string());
        }
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
            Error::Late { .. } => served.troubles.push(format!("{}: {error}", host.host)),
            Error::Unreachable(_) | Error::Mistake(_) | Error::Lost { .. } | Error::Answer { .. } => {
                served.troubles.push(error.to_string());
                // The other hosts would be queried through the same daemon.
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

/// Merge an answer into `found` and `served`.
fn take(answer: &Value, host: &str, found: &mut BTreeMap<(u64, i64), Process>, served: &mut ServedBy) {
    for item in answers::items(answer, "processes") {
        let Some(key) = key(item) else { continue };
        if found.len() + served.processes.len() >= PROCESSES_MAX && !found.contains_key(&key) {
            served.left_out += 1;
            continue;
        }
        let text = |name: &str| shown(item[name].as_str().unwrap_or_default()).text;
        let process = found.entry(key).or_default();
        (process.host, process.pid, process.start_micros) = (host.to_owned(), key.0, key.1);
        (process.name, process.known_by) = (text("name"), text("known_by"));
        process.start_ns = item["start_ns"].as_u64();
    }
    // The name of a process that ended is known only from its end or from its samples.
    for item in answers::items(answer, "ended").chain(answers::items(answer, "samples")) {
        let process = key(item).and_then(|key| found.get_mut(&key)).filter(|process| process.name.is_empty());
        if let (Some(process), Some(name)) = (process, item["name"].as_str()) {
            process.name = shown(name).text;
        }
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

/// PID and start time in microseconds.
#[allow(clippy::cast_possible_truncation)]
fn key(item: &Value) -> Option<(u64, i64)> {
    Some((item["pid"].as_u64()?, (item["start"].as_f64()? * 1e6) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_go_to_their_processes_and_strangers_are_left_out() {
        let answer = json!({
            "processes": [{"pid": 7, "start": 1.5, "start_ns": 9, "name": "burn", "known_by": "cgroup"}, {"pid": "x"}],
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
        assert_eq!(process.start_ns, Some(9));
        assert_eq!(process.memory.samples().count(), 2);
        assert!(served.troubles[0].contains("2 processes"));
    }

    #[test]
    fn a_process_that_has_ended_has_the_name_of_its_end_or_its_samples() {
        let answer = json!({
            "processes": [{"pid": 7, "start": 1.5}, {"pid": 8, "start": 1.5}, {"pid": 9, "start": 1.5}],
            "samples": [{"time": 2.0, "pid": 8, "start": 1.5, "name": "burn"}],
            "ended": [
                {"time": 2.0, "pid": 7, "start": 1.5, "name": "bash"},
                {"time": 2.0, "pid": 8, "start": 9.5, "name": "another of this number"},
            ],
        });
        let (mut found, mut served) = (BTreeMap::new(), ServedBy::default());
        take(&answer, "wn01", &mut found, &mut served);
        let names: Vec<&str> = found.values().map(|process| process.name.as_str()).collect();
        assert_eq!(names, ["bash", "burn", ""]);
    }

    #[test]
    fn what_sensors_forget_is_kept_here() {
        let answered = |from: u32, names: &[(u64, &str)]| {
            let process = |&(pid, name): &(u64, &str)| {
                // Each answer computes the start some microseconds differently.
                let (start_micros, start_ns) = (i64::from(from), Some(5));
                let mut process =
                    Process { host: "wn01".into(), pid, name: name.into(), ..Process::default() };
                (process.start_micros, process.start_ns) = (start_micros, start_ns);
                for secs in from..10 {
                    let time = Time::from_secs_f64(f64::from(secs));
                    process.cpu.push(time, 0.5);
                    process.memory.push(time, 1.0);
                }
                process
            };
            let processes: Vec<Process> = names.iter().map(process).collect();
            ServedBy { samples: u64::from(10 - from) * names.len() as u64, processes, ..ServedBy::default() }
        };
        let before = answered(0, &[(7, "bash"), (8, "burn")]);
        let mut later = answered(6, &[(7, "")]);
        later.keep(&before);
        let kept: Vec<_> = later
            .processes
            .iter()
            .map(|it| (it.pid, it.name.as_str(), it.cpu.samples().count(), it.memory.samples().count()))
            .collect();
        assert_eq!(kept, [(7, "bash", 10, 10), (8, "burn", 10, 10)]);
        assert_eq!((later.forgotten, later.samples), (16, 20));
        let mut again = answered(8, &[(7, "bash"), (8, "burn")]);
        again.keep(&later);
        assert_eq!((again.forgotten, again.samples), (16, 20), "what was kept is kept on");
    }
}
