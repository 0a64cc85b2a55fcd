//! Questions, asked by a few threads: one domain that answers late keeps no other waiting.
//!
//! Rule: each thread has one question at a time and a connection of its own; it ends when who asks is gone. Not here:
//! what is asked when (`known`), what answers mean (`answers`).

use super::answers::{self, Host};
use super::ask::Client;
use super::calls::{Told, Wanted, latest};
use super::named;
use super::rates::Counter;
use super::turn::Due;
use super::via::Where;
use crate::feed::Poker;
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::grid::builder::{CALLS_MAX, DOMAINS_MAX};
use crate::sensors::At;
use crate::sensors::health::Health;
use client::Error;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use wire::time::Time;

/// Threads that ask, each with a connection.
pub(super) const ASKERS: usize = 8;
/// How long nothing may come of an answer; a daemon of another domain is given up then, and tried again later.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Calls asked for at once; the most that a daemon answers.
const CALLS_ASKED: usize = 10_000;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// How a domain is; the daemon's own where none is named.
    Domain { asked: Option<String>, due: Due, calls: Wanted },
    /// Which domains the directory knows.
    Domains,
    /// Figures of a host, from a time on.
    Figures { host: HostName, metrics: Arc<[Metric]>, since: Time },
    /// How a sensor is.
    Sensor(At),
    /// The term of who represents a domain.
    Term(String),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Answer {
    Domain { asked: Option<String>, due: Due, looked: Looked },
    Domains(Result<Vec<String>, Error>),
    Figures { host: HostName, metrics: Arc<[Metric]>, counters: Result<Vec<Counter>, Error> },
    Sensor { at: At, health: Result<Health, Error> },
    Term { domain: String, term: Option<u64> },
}

/// What was learnt of a domain.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Its name, its hosts, and how many were too many.
    pub(super) hosts: Option<(String, Vec<Host>, u64)>,
    /// Its calls.
    pub(super) calls: Option<Told>,
    /// Why there is no more.
    pub(super) error: Option<Error>,
}

/// The threads.
pub(super) struct Askers {
    questions: Vec<SyncSender<Question>>,
    idle: Vec<usize>,
    answers: Receiver<(usize, Answer, Duration)>,
}

impl Askers {
    /// Begin them; `poker` is poked at each answer.
    pub(super) fn begin(address: &Where, poker: &Poker) -> std::io::Result<Askers> {
        let (sender, answers) = sync_channel(ASKERS);
        let mut questions = Vec::new();
        for number in 0..ASKERS {
            let (question, asked) = sync_channel::<Question>(1);
            let (sender, poker) = (sender.clone(), poker.clone());
            let mut client = client(address.clone());
            let ask = move || {
                while let Ok(question) = asked.recv() {
                    let begun = crate::clock::instant();
                    let answer = ask(&mut client, question);
                    if sender.send((number, answer, begun.elapsed())).is_err() {
                        return;
                    }
                    poker.poke();
                }
            };
            std::thread::Builder::new().name("viewer-ask".into()).spawn(ask)?;
            questions.push(question);
        }
        Ok(Askers { questions, idle: (0..ASKERS).collect(), answers })
    }

    /// Whether another question can be asked now.
    pub(super) fn has_room(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Ask; there must be room.
    pub(super) fn ask(&mut self, question: Question) {
        if let Some(number) = self.idle.pop() {
            // Its thread waits for it, and ends only after this end.
            let _ = self.questions[number].send(question);
        }
    }

    /// An answer that came, and how long it took.
    pub(super) fn answer(&mut self) -> Option<(Answer, Duration)> {
        let (number, answer, took) = self.answers.try_recv().ok()?;
        self.idle.push(number);
        Some((answer, took))
    }
}

/// A daemon that is given up when it says nothing.
pub(super) fn client(address: Where) -> Client {
    Client::within(address, SILENCE_MAX)
}

/// Ask, and wait.
pub(super) fn ask(client: &mut Client, question: Question) -> Answer {
    match question {
        Question::Domain { asked, due, calls } => {
            let mut looked = Looked::default();
            looked.error = look(client, asked.as_deref(), due, calls, &mut looked).err();
            Answer::Domain { asked, due, looked }
        }
        Question::Domains => Answer::Domains(domains(client)),
        Question::Figures { host, metrics, since } => {
            let counters = figures(client, &host, &metrics, since);
            Answer::Figures { host, metrics, counters }
        }
        Question::Sensor(at) => {
            let health = match &at {
                At::Host(host) => health(client, &named(host), false),
                At::Address(address) => {
                    health(&mut super::asking::client((*address).into()), &json!({}), true)
                }
            };
            Answer::Sensor { at, health }
        }
        Question::Term(domain) => {
            let answer = client.ask("directory.resolve", &json!({ "domain": domain }));
            Answer::Term { domain, term: answer.ok().and_then(|answer| answer["term"].as_u64()) }
        }
    }
}

fn look(
    client: &mut Client,
    asked: Option<&str>,
    due: Due,
    wanted: Wanted,
    looked: &mut Looked,
) -> Result<(), Error> {
    if due == Due::All {
        looked.hosts = Some(answers::hosts(&client.ask("domain.hosts", &of_domain(asked, json!({})))?));
    }
    let mut params = of_domain(asked, json!({ "limit": CALLS_ASKED, "order": "newest" }));
    if let Wanted::Since(since) = wanted {
        params["since"] = since.secs_f64().into();
    }
    let answer = client.ask("domain.calls", &params)?;
    let mut calls = answers::calls(&answer);
    let total = answer["total"].as_u64().unwrap_or(0).max(calls.len() as u64);
    if wanted == Wanted::All {
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
            // More of one time than one answer has: there is no way behind them.
            if calls.len() == before {
                break;
            }
        }
    }
    looked.calls = Some(Told { wanted, calls, total });
    Ok(())
}

fn of_domain(asked: Option<&str>, mut params: Value) -> Value {
    if let Some(domain) = asked {
        params["domain"] = domain.into();
    }
    params
}

/// All domains that a directory knows, as many as are kept.
fn domains(client: &mut Client) -> Result<Vec<String>, Error> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let after = all.last().cloned().unwrap_or_default();
        let answer = client.ask("directory.domains", &json!({ "after": after }))?;
        let names = answers::domains(&answer);
        let has_more = answer["more"] == json!(true) && !names.is_empty();
        all.extend(names);
        // One more than fits, so that it is counted.
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
        let mut params = named(host);
        (params["name"], params["since"]) = (name.into(), since.secs_f64().into());
        params["history"] = true.into();
        counters.extend(answers::metrics(&client.ask("domain.metrics", &params)?));
    }
    Ok(counters)
}

/// Takes one answer of a sensor into what is known of it.
type Take = fn(&mut Health, &Value);

/// How a sensor is; one that is asked itself tells of itself as a daemon too. What it does not tell, since it is a directory or
/// the account may not know, is left out; one that tells nothing could not be asked.
fn health(client: &mut Client, params: &Value, is_itself: bool) -> Result<Health, Error> {
    let mut health = Health::default();
    let mut refused = None;
    let mut is_told = is_itself;
    if is_itself {
        health.take_info(&client.ask("daemon.info", params)?);
    }
    let mut one = params.clone();
    one["limit"] = 1.into();
    let parts: [(&str, &Value, Take); 3] = [
        ("sensor.processes", &one, Health::take_sweeps),
        ("sensor.subscriptions", params, Health::take_channels),
        ("sensor.modules", params, Health::take_modules),
    ];
    for (method, params, take) in parts {
        match client.ask(method, params) {
            Ok(told) => {
                take(&mut health, &told);
                is_told = true;
            }
            Err(fault @ Error::Fault { .. }) => refused = refused.or(Some(fault)),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(fault) if !is_told => Err(fault),
        Some(_) | None => Ok(health),
    }
}
