//! Thread pool for requests: a domain that answers slowly blocks one thread only.
//!
//! Rule: each thread has one request at a time and its own connection; it ends when [`Askers`] is dropped.
//! Not here: which request is sent when (`cache`), parsing of answers (`answers`).

use super::about;
use super::answers::{self, Host};
use super::ask::Client;
use super::calls::{CallsRequest, CallsResponse, latest};
use super::history::{self, TileAnswer};
use super::past_calls::{self, PastCallsAnswer};
use super::poll_schedule::Due;
use super::rates::Counter;
use super::via::Where;
use crate::feed::Wakeup;
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::graphs::tiles::TileRequest;
use crate::grid::builder::{CALLS_MAX, DOMAINS_MAX};
use crate::sensors::At;
use crate::sensors::health::Health;
use client::Error;
use client::typed::About;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::channels::SubscriptionsParams;
use wire::api::daemon::InfoParams;
use wire::api::directory::{DomainsParams, ResolveParams};
use wire::api::metrics::{DomainMetricsParams, MetricsParams};
use wire::api::modules::ModulesParams;
use wire::api::processes::ProcessesParams;
use wire::time::Time;

/// Threads that send requests, each with a connection.
pub(super) const ASKERS: usize = 8;
/// Timeout between two parts of an answer; a daemon of another domain is abandoned then and retried later.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Calls per request, which is the most that a daemon answers.
const CALLS_ASKED: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// State of a domain; of the daemon's own where none is named.
    Domain { asked: Option<String>, due: Due, calls: CallsRequest },
    /// Domains that the directory knows.
    Domains,
    /// Metrics of a host since a time.
    Figures { host: HostName, metrics: Arc<[Metric]>, since: Time },
    /// Metrics of a host in the past.
    Tile(TileRequest),
    /// Oldest values that a domain has stored; the daemon's own where none is named.
    Oldest(Option<String>),
    /// So many calls of a domain on each side of a time; of the daemon's own where none is named.
    PastCalls { asked: Option<String>, at: Time, side_max: usize },
    /// Health of a sensor.
    Sensor(At),
    /// Term of the representative of a domain.
    Term(String),
}

/// Result of a question.
#[derive(Debug)]
pub(super) enum Answer {
    Domain { asked: Option<String>, due: Due, polled: PollResult },
    Domains(Result<Vec<String>, Error>),
    Figures { host: HostName, metrics: Arc<[Metric]>, counters: Result<Vec<Counter>, Error> },
    Tile { tile: TileRequest, answer: Result<TileAnswer, Error> },
    Oldest { asked: Option<String>, oldest: Result<Option<Time>, Error> },
    PastCalls { asked: Option<String>, answer: Result<PastCallsAnswer, Error> },
    Sensor { at: At, health: Result<Health, Error> },
    Term { domain: String, term: Option<u64> },
}

/// What a daemon answered about a domain.
#[derive(Debug, Default)]
pub(super) struct PollResult {
    /// Name of the domain, its hosts, and the number of hosts beyond the limit.
    pub(super) hosts: Option<(String, Vec<Host>, u64)>,
    pub(super) calls: Option<CallsResponse>,
    /// The error that stopped the query, after which the other fields may be empty.
    pub(super) error: Option<Error>,
}

/// The thread pool.
pub(super) struct Askers {
    questions: Vec<SyncSender<Question>>,
    idle: Vec<usize>,
    answers: Receiver<(usize, Answer, Duration)>,
}

impl Askers {
    /// Start the threads; each answer wakes the thread behind `wakeup`.
    pub(super) fn begin(address: &Where, wakeup: &Wakeup) -> std::io::Result<Askers> {
        let (sender, answers) = sync_channel(ASKERS);
        let mut questions = Vec::new();
        for number in 0..ASKERS {
            let (question, asked) = sync_channel::<Question>(1);
            let (sender, wakeup) = (sender.clone(), wakeup.clone());
            let mut client = client(address.clone());
            let ask = move || {
                while let Ok(question) = asked.recv() {
                    let started = crate::clock::instant();
                    let answer = ask(&mut client, question);
                    if sender.send((number, answer, started.elapsed())).is_err() {
                        return;
                    }
                    wakeup.wake();
                }
            };
            std::thread::Builder::new().name("viewer-ask".into()).spawn(ask)?;
            questions.push(question);
        }
        Ok(Askers { questions, idle: (0..ASKERS).collect(), answers })
    }

    /// Whether a thread is idle.
    pub(super) fn has_room(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Hand a question to an idle thread; there must be one ([`Askers::has_room`]).
    pub(super) fn ask(&mut self, question: Question) {
        if let Some(number) = self.idle.pop() {
            // The thread is waiting on this channel, and ends only after this end is dropped.
            let _ = self.questions[number].send(question);
        }
    }

    /// The next answer that arrived, and how long it took.
    pub(super) fn answer(&mut self) -> Option<(Answer, Duration)> {
        let (number, answer, took) = self.answers.try_recv().ok()?;
        self.idle.push(number);
        Some((answer, took))
    }
}

/// A client with the short timeout of this pool.
pub(super) fn client(address: Where) -> Client {
    Client::within(address, SILENCE_MAX)
}

/// Send the requests of a question, and wait for the answers.
pub(super) fn ask(client: &mut Client, question: Question) -> Answer {
    match question {
        Question::Domain { asked, due, calls } => {
            let mut polled = PollResult::default();
            polled.error = look(client, asked.as_deref(), due, calls, &mut polled).err();
            Answer::Domain { asked, due, polled }
        }
        Question::Domains => Answer::Domains(domains(client)),
        Question::Figures { host, metrics, since } => {
            let counters = figures(client, &host, &metrics, since);
            Answer::Figures { host, metrics, counters }
        }
        Question::Tile(tile) => {
            let answer = history::ask(client, &tile);
            Answer::Tile { tile, answer }
        }
        Question::Oldest(asked) => {
            let oldest = history::oldest(client, asked.clone());
            Answer::Oldest { asked, oldest }
        }
        Question::PastCalls { asked, at, side_max } => {
            let answer = past_calls::ask(client, asked.as_deref(), at, side_max);
            Answer::PastCalls { asked, answer }
        }
        Question::Sensor(at) => {
            let health = match &at {
                At::Host(host) => health(client, &about(host), false),
                At::Address(address) => {
                    health(&mut super::asking::client((*address).into()), &About::default(), true)
                }
            };
            Answer::Sensor { at, health }
        }
        Question::Term(domain) => {
            let answer = client.call(&ResolveParams { domain: domain.clone() }, &About::default());
            Answer::Term { domain, term: answer.ok().map(|answer| answer.term) }
        }
    }
}

fn look(
    client: &mut Client,
    asked: Option<&str>,
    due: Due,
    request: CallsRequest,
    polled: &mut PollResult,
) -> Result<(), Error> {
    if due == Due::All {
        polled.hosts = Some(answers::hosts(&client.ask("domain.hosts", &of_domain(asked, json!({})))?));
    }
    let mut params = of_domain(asked, json!({ "limit": CALLS_ASKED, "order": "newest" }));
    if let CallsRequest::Since(since) = request {
        params["since"] = since.secs_f64().into();
    }
    let answer = client.ask("domain.calls", &params)?;
    let mut calls = answers::calls(&answer);
    let total = answer["total"].as_u64().unwrap_or(0).max(calls.len() as u64);
    if request == CallsRequest::All {
        let mut ids: BTreeSet<_> = calls.iter().map(|call| call.id.clone()).collect();
        while (calls.len() as u64) < total && calls.len() < CALLS_MAX {
            let Some(oldest) = calls.iter().filter_map(latest).min() else { break };
            params["until"] = oldest.secs_f64().into();
            let before = calls.len();
            calls.extend(
                answers::calls(&client.ask("domain.calls", &params)?)
                    .into_iter()
                    .filter(|call| ids.insert(call.id.clone())),
            );
            // More calls share one timestamp than one answer holds: paging by time cannot get past them.
            if calls.len() == before {
                break;
            }
        }
    }
    polled.calls = Some(CallsResponse { request, calls, total });
    Ok(())
}

pub(super) fn of_domain(asked: Option<&str>, mut params: Value) -> Value {
    if let Some(domain) = asked {
        params["domain"] = domain.into();
    }
    params
}

/// All domains that a directory knows, up to the limit.
fn domains(client: &mut Client) -> Result<Vec<String>, Error> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let params = DomainsParams { after: all.last().cloned(), ..DomainsParams::default() };
        let answer = client.call(&params, &About::default())?;
        let has_more = answer.more && !answer.domains.is_empty();
        all.extend(answer.domains.into_iter().map(|domain| domain.domain));
        // One more than the limit, so that the excess is noticed.
        if !has_more || all.len() > DOMAINS_MAX {
            return Ok(all);
        }
    }
}

fn figures(
    client: &mut Client,
    host: &HostName,
    metrics: &[Metric],
    since: Time,
) -> Result<Vec<Counter>, Error> {
    let mut counters = Vec::new();
    let names: BTreeSet<&str> = metrics.iter().flat_map(Metric::asked).collect();
    for name in names {
        let metrics = MetricsParams {
            name: Some(name.to_owned()),
            since: Some(UnixTime(since)),
            history: true,
            ..MetricsParams::default()
        };
        let answer = client.call(&DomainMetricsParams { metrics, host: None }, &about(host))?;
        counters.extend(answers::metrics(answer));
    }
    Ok(counters)
}

/// Health of a sensor; one that is asked at its own address also reports its state as a daemon. What it
/// refuses, because it is a directory or the account lacks the permission, is omitted; if it refuses
/// everything, that is an error.
fn health(client: &mut Client, about: &About, is_itself: bool) -> Result<Health, Error> {
    let mut health = Health::default();
    let mut refused = None;
    let mut has_answered = is_itself;
    if is_itself {
        health.take_info(&client.call(&InfoParams {}, about)?);
    }
    let mut allow_refusal = |answered: Result<(), Error>| match answered {
        Ok(()) => {
            has_answered = true;
            Ok(())
        }
        Err(fault @ Error::Fault { .. }) => {
            refused.get_or_insert(fault);
            Ok(())
        }
        Err(error) => Err(error),
    };
    let one = ProcessesParams { limit: 1, ..ProcessesParams::default() };
    allow_refusal(client.call(&one, about).map(|answer| health.take_sweeps(&answer)))?;
    let channels = client.call(&SubscriptionsParams {}, about);
    allow_refusal(channels.map(|answer| health.take_channels(&answer)))?;
    allow_refusal(client.call(&ModulesParams {}, about).map(|answer| health.take_modules(&answer)))?;
    match refused {
        Some(fault) if !has_answered => Err(fault),
        Some(_) | None => Ok(health),
    }
}
