//! Scenario: a list of steps: faults, stops and starts of daemons, and what is expected to follow.
//!
//! Rule: each step is printed when it starts, with the time since the first one; a step that fails ends the
//! list and is named. Not here: the implementation of the steps ([`super::network`], [`super::daemon`]).

use super::Daemon;
use super::delay::Delay;
use super::measure::Stopwatch;
use super::network::Network;
use crate::wait::{self, Seen};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A network, and the daemon that runs on each of its hosts.
#[derive(Debug)]
pub struct Stage {
    pub network: Network,
    daemons: BTreeMap<String, Daemon>,
}

impl Stage {
    /// A network without daemons.
    #[must_use]
    pub fn new(network: Network) -> Stage {
        Stage { network, daemons: BTreeMap::new() }
    }

    /// Start `visperf ARGUMENTS…` on all hosts at the same time, and wait until each answers.
    ///
    /// # Errors
    /// The first error of a host.
    pub fn start_all(&mut self, arguments: impl Fn(&super::Host) -> Vec<String> + Sync) -> Result<()> {
        let started = self.network.each(|host| host.daemon(&arguments(host)))?;
        let named = started.into_iter().map(|daemon| (daemon.host().name().to_owned(), daemon));
        self.daemons.extend(named);
        Ok(())
    }

    /// The daemon of a host.
    ///
    /// # Errors
    /// If there is none.
    pub fn daemon(&self, host: &str) -> Result<&Daemon> {
        self.daemons.get(host).with_context(|| format!("expected a daemon on {host}, found none"))
    }

    /// Names of the hosts with a daemon.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.daemons.keys().map(String::as_str)
    }

    fn take(&mut self, host: &str) -> Result<Daemon> {
        self.daemons.remove(host).with_context(|| format!("expected a daemon on {host}, found none"))
    }
}

/// A condition that is polled.
pub type Condition<'a> = Box<dyn FnMut(&Stage) -> Result<Seen<()>> + 'a>;

pub enum Step<'a> {
    /// Start `visperf ARGUMENTS…` on a host and wait until it answers.
    Start(&'a str, Vec<String>),
    /// Send SIGKILL.
    Kill(&'a str),
    /// Send SIGTERM and wait for a successful exit.
    Stop(&'a str),
    /// Send SIGSTOP.
    Pause(&'a str),
    /// Send SIGCONT.
    Resume(&'a str),
    /// [`Network::cut`].
    Cut(&'a str, &'a str),
    /// [`Network::cut_one_way`].
    CutOneWay { from: &'a str, to: &'a str },
    /// [`Network::heal`].
    Heal(&'a str, &'a str),
    /// [`Network::partition`].
    Partition(&'a [&'a [&'a str]]),
    /// [`Network::heal_all`].
    HealAll,
    /// [`Network::loss`].
    Loss { host: &'a str, percent: u32 },
    /// [`Network::rate`].
    Rate { host: &'a str, kbit: u32 },
    /// [`Network::delay`].
    Late(&'a str, Delay),
    /// [`Network::link_down`].
    LinkDown(&'a str),
    /// [`Network::link_up`].
    LinkUp(&'a str),
    /// [`Network::starve`].
    Starve { host: &'a str, percent: u32 },
    /// [`Network::feed`].
    Feed(&'a str),
    /// [`Network::forget_names`].
    ForgetNames,
    /// [`Network::know_names`].
    KnowNames,
    /// Wait for this time.
    Last(Duration),
    /// Poll every 10 ms until a condition is true.
    Wait { what: &'a str, limit: Duration, until: Condition<'a> },
    /// Poll every 10 ms, for this time, that a condition stays true.
    Stays { what: &'a str, time: Duration, so: Condition<'a> },
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Start(host, arguments) => write!(f, "start {} on {host}", arguments.join(" ")),
            Step::Kill(host) => write!(f, "kill {host}"),
            Step::Stop(host) => write!(f, "stop {host}"),
            Step::Pause(host) => write!(f, "pause {host}"),
            Step::Resume(host) => write!(f, "resume {host}"),
            Step::Cut(one, other) => write!(f, "cut {one} and {other}"),
            Step::CutOneWay { from, to } => write!(f, "cut {from} to {to}"),
            Step::Heal(one, other) => write!(f, "heal {one} and {other}"),
            Step::Partition(groups) => {
                let groups: Vec<_> = groups.iter().map(|group| group.join(" ")).collect();
                write!(f, "partition {}", groups.join(" | "))
            }
            Step::HealAll => write!(f, "heal all"),
            Step::Loss { host, percent } => write!(f, "lose {percent} % at {host}"),
            Step::Rate { host, kbit } => write!(f, "limit {host} to {kbit} kbit/s"),
            Step::Late(host, delay) => write!(f, "make {host} late by {:?} ± {:?}", delay.time, delay.jitter),
            Step::LinkDown(host) => write!(f, "pull the cable of {host}"),
            Step::LinkUp(host) => write!(f, "put the cable of {host} back"),
            Step::Starve { host, percent } => write!(f, "starve {host} to {percent} % of a core"),
            Step::Feed(host) => write!(f, "feed {host}"),
            Step::ForgetNames => write!(f, "forget the names"),
            Step::KnowNames => write!(f, "know the names"),
            Step::Last(time) => write!(f, "let it be for {time:?}"),
            Step::Wait { what, .. } => write!(f, "wait for {what}"),
            Step::Stays { what, time, .. } => write!(f, "{what} stays for {time:?}"),
        }
    }
}

/// Run the steps in order; returns each with the time, since the start of the first, at which it was done.
///
/// # Errors
/// The error of the first step that fails, with the step; the stage keeps its state of that moment.
pub fn play(stage: &mut Stage, steps: Vec<Step<'_>>) -> Result<Vec<(String, Duration)>> {
    let mut watch = Stopwatch::start();
    for mut step in steps {
        let name = step.to_string();
        super::report(&format!("{:9.3} s  {name}", watch.elapsed().as_secs_f64()));
        take(stage, &mut step).with_context(|| format!("in the step: {name}"))?;
        watch.mark(&name);
    }
    super::report(&format!("{:9.3} s  done", watch.elapsed().as_secs_f64()));
    Ok(watch.marks().to_vec())
}

fn take(stage: &mut Stage, step: &mut Step<'_>) -> Result<()> {
    let network = &stage.network;
    match step {
        Step::Start(host, arguments) => {
            ensure!(!stage.daemons.contains_key(*host), "expected no daemon on {host}, found one");
            let daemon = network.host(host).daemon(arguments)?;
            stage.daemons.insert((*host).to_owned(), daemon);
            Ok(())
        }
        Step::Kill(host) => stage.take(host)?.kill(),
        Step::Stop(host) => {
            let ended = stage.take(host)?.stop()?;
            ensure!(ended.success(), "expected a daemon that ends well, found {ended}");
            Ok(())
        }
        Step::Pause(host) => stage.daemon(host)?.pause(),
        Step::Resume(host) => stage.daemon(host)?.resume(),
        Step::Cut(one, other) => network.cut(one, other),
        Step::CutOneWay { from, to } => network.cut_one_way(from, to),
        Step::Heal(one, other) => network.heal(one, other),
        Step::Partition(groups) => network.partition(groups),
        Step::HealAll => network.heal_all(),
        Step::Loss { host, percent } => network.loss(host, *percent),
        Step::Rate { host, kbit } => network.rate(host, *kbit),
        Step::Late(host, delay) => network.delay(host, *delay),
        Step::LinkDown(host) => network.link_down(host),
        Step::LinkUp(host) => network.link_up(host),
        Step::Starve { host, percent } => network.starve(host, *percent),
        Step::Feed(host) => {
            network.feed(host);
            Ok(())
        }
        Step::ForgetNames => network.forget_names(),
        Step::KnowNames => network.know_names(),
        Step::Last(time) => stays(stage, *time, &mut |_| Ok(Seen::Done(()))),
        Step::Wait { what, limit, until } => wait::until(*limit, what, || until(stage)),
        Step::Stays { time, so, .. } => stays(stage, *time, so),
    }
}

fn stays(stage: &Stage, time: Duration, so: &mut dyn FnMut(&Stage) -> Result<Seen<()>>) -> Result<()> {
    let ends = wait::now() + time;
    while wait::now() < ends {
        if let Seen::NotYet(found) = so(stage)? {
            anyhow::bail!("it was no longer so {:?} before the time was over; {found}", ends - wait::now());
        }
        std::thread::sleep(wait::PAUSE);
    }
    Ok(())
}
