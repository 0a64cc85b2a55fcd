//! The real program on lab hosts: it answers on each, and is killed, stopped, paused and throttled.
//!
//! Rule: what a fault takes away is verified to be there before and after it.
//! Not here: interactions of daemons on several hosts.

use anyhow::Result;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;
use system_tests::lab::{self, Daemon, Stage, Step, Stopwatch, play};
use system_tests::wait::Seen;

/// Timeout for an answer that should come at once.
const AT_ONCE: Duration = Duration::from_secs(30);
/// How long a measurement that a busy machine disturbed is repeated.
const ANEW_MAX: Duration = Duration::from_secs(60);
/// Time without an answer after which a daemon counts as unresponsive.
const SILENCE: Duration = Duration::from_millis(500);
/// Time over which the processor usage is measured.
const MEASURED: Duration = Duration::from_secs(2);
/// Concurrent clients, so that the daemon has work even if the machine is busy.
const ASKERS: usize = 6;

/// Arguments for a host. All hosts use the same address, as each has its own loopback.
fn up(host: &str) -> Vec<String> {
    let words = ["up", "--listen", "127.0.0.1:7317", "--domain"].map(str::to_owned);
    words.into_iter().chain([format!("domain-{host}")]).collect()
}

fn ask(daemon: &Daemon) -> Value {
    daemon.result("daemon.info", &json!({})).unwrap()
}

/// Whether a daemon sends any answer in time.
fn answers_within(daemon: &Daemon, limit: Duration) -> bool {
    let address = daemon.address().unwrap();
    let answer = daemon.host().run(|| -> Result<bool> {
        use std::io::{Read, Write};
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        Ok(stream.read(&mut [0; 16])? > 0)
    });
    answer.unwrap_or(false)
}

#[test]
fn a_daemon_answers_in_each_host_until_it_is_killed_or_stopped() {
    let name = "lab_daemons::a_daemon_answers_in_each_host_until_it_is_killed_or_stopped";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(2).unwrap();
    let daemons = network.each(|host| host.daemon(&up(host.name()))).unwrap();
    for daemon in &daemons {
        assert_eq!(daemon.address().unwrap().to_string(), "127.0.0.1:7317");
        let domains = daemon.result("directory.domains", &json!({})).unwrap().to_string();
        assert!(domains.contains(&format!("domain-{}", daemon.host().name())), "{domains}");
    }
    assert_ne!(ask(&daemons[0])["pid"], ask(&daemons[1])["pid"]);

    let [one, two] = <[Daemon; 2]>::try_from(daemons).unwrap();
    one.pause().unwrap();
    assert!(!answers_within(&one, SILENCE), "a paused daemon answered");
    assert!(answers_within(&two, AT_ONCE));
    one.resume().unwrap();
    assert!(answers_within(&one, AT_ONCE), "it does not go on");

    let pid = one.pid();
    one.kill().unwrap();
    let one = network.host("h1").daemon(&up("h1")).unwrap();
    assert_ne!(one.pid(), pid);
    two.pause().unwrap();
    assert!(two.stop().unwrap().success(), "one that was paused ends well too");
    assert!(one.stop().unwrap().success());
}

/// Share of one core that a daemon uses while it is queried as fast as it answers.
fn busy(daemon: &Daemon) -> f64 {
    // User and system time, in seconds from ticks of a hundredth.
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    };
    let (before, watch) = (used(), Stopwatch::start());
    std::thread::scope(|scope| {
        let ask = || {
            while watch.elapsed() < MEASURED {
                let _ = answers_within(daemon, AT_ONCE);
            }
        };
        (0..ASKERS).for_each(|_| _ = scope.spawn(ask));
    });
    (used() - before) / watch.elapsed().as_secs_f64()
}

#[test]
fn a_starved_host_has_its_part_of_a_core() {
    let Some(lab) = lab::enter("lab_daemons::a_starved_host_has_its_part_of_a_core").unwrap() else { return };
    let network = lab.network(1).unwrap();
    let daemon = network.host("h1").daemon(&up("h1")).unwrap();
    // Other processes on the machine may reduce its share; then it is measured again.
    let look = || {
        let free = busy(&daemon);
        network.starve("h1", 5)?;
        let starved = busy(&daemon);
        network.feed("h1");
        let fed = busy(&daemon);
        let shares = format!("free {free:.3}, starved to 0.05 {starved:.3}, fed again {fed:.3}");
        println!("parts of a core: {shares}");
        let is_noticed = starved > 0.01 && starved < 0.08 && free > starved * 2.0 && fed > starved * 2.0;
        Ok(if is_noticed { Seen::Done(()) } else { Seen::NotYet(shares) })
    };
    Stopwatch::start().until(ANEW_MAX, "a daemon that uses what it is given", look).unwrap();
}

#[test]
fn a_scenario_is_played_and_a_step_that_fails_is_named() {
    let name = "lab_daemons::a_scenario_is_played_and_a_step_that_fails_is_named";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let mut stage = Stage::new(lab.network(2).unwrap());
    stage.start_all(|host| up(host.name())).unwrap();
    assert_eq!(stage.running().collect::<Vec<_>>(), ["h1", "h2"]);
    let silent = |stage: &Stage| {
        let answers = answers_within(stage.daemon("h2")?, SILENCE);
        Ok(if answers { Seen::NotYet("it answers".into()) } else { Seen::Done(()) })
    };
    let answers = |stage: &Stage| {
        let answers = answers_within(stage.daemon("h2")?, AT_ONCE);
        Ok(if answers { Seen::Done(()) } else { Seen::NotYet("no answer".into()) })
    };
    let steps = vec![
        Step::Kill("h1"),
        Step::Stays { what: "h2 answering", time: SILENCE, so: Box::new(answers) },
        Step::Partition(&[&["h1"], &["h2"]]),
        Step::Pause("h2"),
        Step::Wait { what: "silence of h2", limit: AT_ONCE, until: Box::new(silent) },
        Step::Resume("h2"),
        Step::Wait { what: "an answer of h2", limit: AT_ONCE, until: Box::new(answers) },
        Step::HealAll,
        Step::Start("h1", up("h1")),
        Step::Stop("h2"),
    ];
    let times = play(&mut stage, steps).unwrap();
    assert_eq!(times.len(), 10);
    assert!(times.is_sorted_by_key(|(_, at)| *at) && times[1].1 - times[0].1 >= SILENCE, "{times:?}");
    assert_eq!(stage.running().collect::<Vec<_>>(), ["h1"]);
    let failed = format!("{:#}", play(&mut stage, vec![Step::Kill("h2"), Step::Stop("h1")]).unwrap_err());
    assert!(failed.contains("in the step: kill h2") && failed.contains("found none"), "{failed}");
    assert!(stage.daemon("h1").is_ok(), "no step after the one that failed");
}

#[test]
fn a_daemon_that_cannot_start_is_reported_with_its_host() {
    let Some(lab) = lab::enter("lab_daemons::a_daemon_that_cannot_start_is_reported_with_its_host").unwrap()
    else {
        return;
    };
    let network = lab.network(1).unwrap();
    let refused = network.host("h1").daemon(&["up", "--no-such-flag"]).unwrap_err();
    let message = format!("{refused:#}");
    assert!(message.contains("on h1") && message.contains("--no-such-flag"), "{message}");
}
