//! Task of one module: starts it, calls it, replaces it and ends it.
//!
//! Shell. Rules: between a call and its answer the task only waits, so that calls never overlap; a command to
//! replace or stop the module waits for the answer too; every failure goes to `life`, and affects this task
//! alone.
//! Not here: which modules there are (`worker`).

use super::feed::{Feed, Sources};
use super::figure_cache::FigureCache;
use super::life::{Life, RestartPolicy, State};
use super::protocol::{self, Hello, ModuleRequest};
use super::runner::Runner;
use super::spec::Spec;
use super::stderr::Tail;
use super::worker::{ModuleStatus, Order, Shared};
use crate::channel::meter::Meter;
use crate::sample::ticker::running;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// The CPU budget is averaged over this many seconds, so that a rare call may take longer.
const BUDGET_SECS: u32 = 10;
/// How often the CPU time of a module is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The figures of a collector expire after this many of its intervals.
const NEW_INTERVALS: f64 = 2.5;
/// The figures of a handler, which has no interval, expire after this time.
const NEW_OF_HANDLER: Duration = Duration::from_secs(60);
/// Shortest time limit for a hello: loading a program may take longer than an answer.
const HELLO: Duration = Duration::from_secs(10);
/// How long a call under way may still take when the module is to end.
const LAST_CALL: Duration = Duration::from_secs(2);

/// The sensor's names, for the hello.
#[derive(Clone, Debug)]
pub(super) struct SensorNames {
    pub(super) host: String,
    pub(super) domain: String,
}

/// Parameters of a task.
pub(super) struct Parts {
    pub(super) spec: Spec,
    pub(super) names: SensorNames,
    /// Working directory of the module.
    pub(super) folder: PathBuf,
    pub(super) sources: Sources,
    pub(super) figure_cache: FigureCache,
    pub(super) shared: Arc<Shared>,
    pub(super) orders: mpsc::Receiver<Order>,
    /// Cancelled when the module is to end.
    pub(super) ending: CancellationToken,
    pub(super) policy: RestartPolicy,
}

pub(super) struct Task {
    parts: Parts,
    life: Life,
    tail: Tail,
    active: Option<Active>,
    /// Feed of a handler; it survives restarts.
    feed: Option<Feed>,
    /// Calls made to a collector.
    sweep: u64,
    /// CPU time of earlier runs.
    cpu_before: Duration,
}

/// A running module.
struct Active {
    runner: Runner,
    hello: Hello,
    /// Timer of the calls to a collector.
    due: Option<Interval>,
    look: Interval,
    meter: Meter,
    cpu: Duration,
}

/// What to do next.
enum Next {
    End,
    Order(Option<Order>),
    Failed(String),
    Look,
    Call,
}

impl Task {
    pub(super) fn new(parts: Parts) -> Task {
        let life = Life::new(parts.policy, parts.spec.is_on);
        let tail = Tail::default();
        Task { parts, life, tail, active: None, feed: None, sweep: 0, cpu_before: Duration::ZERO }
    }

    /// Runs until the module is to end.
    pub(super) async fn run(mut self) {
        self.publish_status();
        while !self.parts.ending.is_cancelled() {
            if self.life.is_due(running()) {
                self.start().await;
            } else if self.active.is_some() {
                self.work().await;
            } else {
                self.rest().await;
            }
            self.publish_status();
        }
        self.close().await;
    }

    async fn start(&mut self) {
        let Parts { spec, folder, ending, .. } = &self.parts;
        let starting = async {
            let mut runner =
                Runner::start(spec, folder, self.tail.clone()).await.map_err(|error| error.to_string())?;
            let call = protocol::call_hello(&spec.name, &self.parts.names.host, &self.parts.names.domain);
            let answer = match runner.call(call, spec.limits.answer.max(HELLO)).await {
                Ok(line) => protocol::hello(&line).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match answer {
                Ok(hello) => Ok((runner, hello)),
                Err(why) => {
                    runner.kill().await;
                    Err(why)
                }
            }
        };
        let started = tokio::select! {
            started = starting => started,
            () = ending.cancelled() => return,
        };
        let welcomed = match started {
            Ok((runner, hello)) => self.welcome(runner, hello).await,
            Err(why) => Err(why),
        };
        match welcomed {
            Ok(()) => {
                tracing::info!(module = %self.parts.spec.name, "module runs");
                self.life.started();
            }
            Err(why) => self.failed(why).await,
        }
    }

    async fn welcome(&mut self, runner: Runner, hello: Hello) -> Result<(), String> {
        let spec = &self.parts.spec;
        let fed = match &hello.wants {
            ModuleRequest::Collector { .. } => {
                self.feed = None;
                Ok(())
            }
            ModuleRequest::Handler(flow) => match &mut self.feed {
                Some(feed) => feed.alter((**flow).clone()),
                None => Feed::new(&self.parts.sources, (**flow).clone()).map(|feed| self.feed = Some(feed)),
            },
        };
        if let Err(error) = fed {
            runner.kill().await;
            return Err(format!("what it wants cannot be had: {error}"));
        }
        let due = match &hello.wants {
            ModuleRequest::Collector { rate_hz } => {
                let period = Duration::from_secs_f64(1.0 / spec.rate_hz.unwrap_or(*rate_hz));
                let mut due = tokio::time::interval(period);
                due.set_missed_tick_behavior(MissedTickBehavior::Skip);
                Some(due)
            }
            ModuleRequest::Handler(_) => None,
        };
        let cpu = runner.cpu();
        let allowed = f64::from(spec.limits.cpu_ms) / 1e3 * f64::from(BUDGET_SECS);
        let meter = Meter::new(allowed, running() / BUDGET_SECS);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.active = Some(Active { runner, hello, due, look, meter, cpu });
        Ok(())
    }

    async fn work(&mut self) {
        let Some(Active { runner, due, look, .. }) = &mut self.active else { return };
        let feed = &mut self.feed;
        let called = async {
            match (due, feed) {
                (Some(due), _) => drop(due.tick().await),
                (None, Some(feed)) => feed.ready().await,
                (None, None) => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            biased;
            () = self.parts.ending.cancelled() => Next::End,
            order = self.parts.orders.recv() => Next::Order(order),
            error = runner.unasked() => Next::Failed(error.to_string()),
            _ = look.tick() => Next::Look,
            () = called => Next::Call,
        };
        match next {
            Next::End => {}
            Next::Order(order) => self.obey(order).await,
            Next::Failed(why) => self.failed(why).await,
            Next::Look => self.check().await,
            Next::Call => self.call().await,
        }
    }

    async fn rest(&mut self) {
        let wait = self.life.wait(running());
        let waited = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.parts.ending.cancelled() => {}
            order = self.parts.orders.recv() => self.obey(order).await,
            () = waited => {}
        }
    }

    async fn call(&mut self) {
        let Some(active) = &mut self.active else { return };
        let (line, delivered) = match &self.feed {
            Some(feed) => feed.call(),
            None => {
                self.sweep += 1;
                (protocol::call_collect(calendar_secs(), self.sweep), 0)
            }
        };
        let (started, within) = (running(), self.parts.spec.limits.answer);
        let ending = self.parts.ending.clone();
        let given_up = async move {
            ending.cancelled().await;
            tokio::time::sleep(LAST_CALL).await;
        };
        let answered = tokio::select! {
            answered = active.runner.call(line, within) => answered.map_err(|error| error.to_string()),
            () = given_up => return,
        };
        let figures = answered.and_then(|line| protocol::answer(&line).map_err(|error| error.to_string()));
        let figures = match figures {
            Ok(figures) => figures,
            Err(why) => return self.failed(why).await,
        };
        let now = running();
        self.life.answered(now.saturating_sub(started));
        let until = match &active.due {
            Some(due) => now + due.period().mul_f64(NEW_INTERVALS) + self.parts.spec.limits.answer,
            None => now + NEW_OF_HANDLER,
        };
        if let Some(feed) = &mut self.feed {
            feed.mark_delivered(delivered);
        }
        if active.due.is_some() || !figures.is_empty() {
            self.parts.figure_cache.pin(&self.parts.spec.name, &figures, until);
        }
        self.check().await;
    }

    /// Checks the CPU budget and the feed.
    async fn check(&mut self) {
        if let Some(trouble) = self.feed.as_mut().and_then(Feed::trouble) {
            return self.failed(trouble).await;
        }
        let Some(active) = &mut self.active else { return };
        let cpu = active.runner.cpu().max(active.cpu);
        active.meter.spend((cpu - active.cpu).as_secs_f64());
        active.cpu = cpu;
        if !active.meter.has_left(running() / BUDGET_SECS) {
            let allowed = self.parts.spec.limits.cpu_ms;
            let why = format!(
                "expected at most {allowed} ms of CPU time a second over {BUDGET_SECS} s, found more; ask it less often \
                 (rate), or raise cpu_ms"
            );
            self.failed(why).await;
        }
    }

    async fn failed(&mut self, why: String) {
        self.give_up().await;
        self.life.failed(why, running());
        let (name, why) = (&self.parts.spec.name, self.life.last_error().unwrap_or_default());
        match self.life.state() {
            State::Quarantined => {
                // Nothing takes from its subscription any more.
                self.feed = None;
                tracing::warn!(module = %name, why, "module failed too often: quarantined");
            }
            State::Due | State::Running | State::Waiting { .. } | State::Stopped | State::Off => {
                tracing::warn!(module = %name, why, "module failed");
            }
        }
    }

    /// Kills the running module, and removes its figures.
    async fn give_up(&mut self) {
        self.parts.figure_cache.clear(&self.parts.spec.name);
        if let Some(Active { runner, cpu, .. }) = self.active.take() {
            self.cpu_before += cpu;
            runner.kill().await;
        }
    }

    /// Ends the running module in order, and removes its figures.
    async fn close(&mut self) {
        self.parts.figure_cache.clear(&self.parts.spec.name);
        if let Some(Active { runner, cpu, .. }) = self.active.take() {
            self.cpu_before += cpu.max(runner.cpu());
            runner.end().await;
        }
    }

    async fn obey(&mut self, order: Option<Order>) {
        let reply = match order {
            None => {
                // The registry is gone, so no command can follow.
                self.parts.ending.cancel();
                None
            }
            Some(Order::Replace(spec)) => {
                self.close().await;
                self.parts.spec = *spec;
                self.life.start(self.parts.spec.is_on);
                self.forget_feed_unless_on();
                None
            }
            Some(Order::Reload(reply)) => {
                self.close().await;
                self.life.start(self.parts.spec.is_on);
                Some(reply)
            }
            Some(Order::Start(reply)) => {
                self.close().await;
                self.life.start(true);
                Some(reply)
            }
            Some(Order::Stop(reply)) => {
                self.close().await;
                self.life.stop();
                self.feed = None;
                Some(reply)
            }
        };
        // Reported before the reply: the client queries the status next.
        self.publish_status();
        // The client may be gone.
        let _ = reply.map(|reply| reply.send(()));
    }

    fn forget_feed_unless_on(&mut self) {
        if !self.parts.spec.is_on {
            self.feed = None;
        }
    }

    /// Reports the status.
    fn publish_status(&self) {
        let active = self.active.as_ref();
        let spec = &self.parts.spec;
        self.parts.shared.set_status(ModuleStatus {
            name: spec.name.clone(),
            runs: spec.runs.clone(),
            state: self.life.state(),
            hello: active.map(|active| active.hello.clone()),
            rate_hz: active
                .and_then(|active| active.due.as_ref())
                .map(|due| 1.0 / due.period().as_secs_f64()),
            pid: active.and_then(|active| active.runner.pid()),
            counts: self.life.counts(),
            cpu: self.cpu_before + active.map_or(Duration::ZERO, |active| active.cpu),
            waiting: self.feed.as_ref().map_or(0, Feed::waiting),
            last_error: self.life.last_error().map(ToOwned::to_owned),
            tail: self.tail.clone(),
        });
    }
}

#[allow(clippy::disallowed_methods)] // The shell that gives modules the time.
fn calendar_secs() -> f64 {
    wire::time::Time::from(std::time::SystemTime::now()).secs_f64()
}
