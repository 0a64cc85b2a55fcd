//! A daemon that returns canned answers, on the real RPC server.

use rpc::codec::value::Value;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::{Parameter, Params, Type};
use rpc::dispatch::typed;
use rpc::fault::Fault;
use rpc::limits::Limits;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::calls::Call;
use wire::api::events::{self as api, Attribute, DomainEventsParams, Event, Source};
use wire::api::{Named, UnixTime};
use wire::call::State;
use wire::event::{Kind, Outcome};
use wire::time::Time;

/// Name of a call, wider than its column.
pub(crate) const LONG_CALL: &str =
    "gridftp:se02//srv/gridftp/se02/incoming/of/a/long/path/rep.16629.dat@4-36179";

/// Events of a daemon; a cursor is a number of them.
pub(crate) type Events = Arc<Mutex<Vec<Event>>>;

/// A daemon that runs until it is dropped.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    /// One message for each time a client waits for an event.
    pub(crate) asked_to_wait: Receiver<()>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Listen on `address` (port 0: any).
    pub(crate) fn start(address: &str, events: &Events) -> Daemon {
        let (waits, asked_to_wait) = sync_channel(10_000);
        Daemon::with(address, registry(events, waits), asked_to_wait)
    }

    /// A directory, which only describes itself.
    pub(crate) fn directory() -> Daemon {
        let mut registry = Registry::new();
        let info = Value::object([("kind", Value::from("directory"))]);
        registry
            .add(Declaration::new("daemon.info", "canned").handler_now(move |_| Ok(info.clone())))
            .unwrap();
        Daemon::with("127.0.0.1:0", registry, sync_channel(1).1)
    }

    /// A sensor with five calls, at most two in one answer; a cursor is the number of those already returned.
    pub(crate) fn paged() -> Daemon {
        const ALL: usize = 5;
        const PAGE: usize = 2;
        let declared = Declaration::new("domain.calls", "canned")
            .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "any"))
            .parameter(Parameter::new("order", Type::Text, "any"))
            .parameter(Parameter::new("call", Type::Text, "any"))
            .parameter(Parameter::new("cursor", Type::Text, "any"));
        let method = declared.handler_now(|params| {
            let from = params.text("cursor")?.map_or(0, |text| text.parse().unwrap());
            let limit = usize::try_from(params.whole("limit")?.unwrap_or(1_000)).unwrap().min(PAGE);
            let of_id = params.text("call")?;
            let ids = (1..=ALL).map(|number| format!("slurm:{number}0"));
            let fitting: Vec<_> = ids.filter(|id| of_id.is_none_or(|of| of == id)).collect();
            let shown = fitting.iter().skip(from).take(limit);
            let shown = shown.map(|id| call(id, &[]));
            let mut members =
                vec![("calls", Value::array(shown)), ("total", Value::from(fitting.len() as u64))];
            let next = from + limit;
            members.extend((next < fitting.len()).then(|| ("next", Value::from(next.to_string()))));
            Ok(Value::object(members))
        });
        let mut registry = Registry::new();
        registry.add(method).unwrap();
        Daemon::with("127.0.0.1:0", registry, sync_channel(1).1)
    }

    fn with(address: &str, registry: Registry, asked_to_wait: Receiver<()>) -> Daemon {
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let address = address.to_owned();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = rpc::http::server::bind(address.parse().unwrap()).await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                let limits = Limits { drain_time: Duration::ZERO, ..Limits::default() };
                rpc::http::server::serve(listener, registry, limits, Arc::default(), token).await.unwrap();
            });
        });
        Daemon { address: receiver.recv().unwrap(), asked_to_wait, shutdown, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) fn event(number: usize) -> Event {
    let time = Time::from_micros(1_795_178_489_500_000).plus(Duration::from_secs(number as u64)).into();
    Event {
        id: format!("e-{number}").into(),
        kind: Kind::JobStart,
        time,
        seen: time,
        call: "".into(),
        job: number.to_string().into(),
        user: "müller".into(),
        from: "".into(),
        to: "wn01".into(),
        outcome: None,
        submitted: None,
        started: None,
        ended: None,
        attributes: Named(vec![("host".into(), Attribute::Text("wn01".into()))]),
        source: Source::default(),
    }
}

fn registry(events: &Events, waits: SyncSender<()>) -> Registry {
    let mut registry = Registry::new();
    let mut canned = |name, answer: Value| {
        let declared = Declaration::new(name, "canned")
            .parameter(Parameter::new("state", Type::Text, "any"))
            .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "any"))
            .parameter(Parameter::new("order", Type::Text, "any"))
            .parameter(Parameter::new("name", Type::Text, "any"));
        registry.add(declared.handler_now(move |_| Ok(answer.clone()))).unwrap();
    };
    canned(
        "domain.calls",
        Value::object([
            (
                "calls",
                Value::array([call("slurm:1", &["wn01", "wn02"]), call(LONG_CALL, &["se02.alpha.example"])]),
            ),
            ("total", Value::from(7)),
        ]),
    );
    let metric = Value::object([
        ("name", Value::from("node_big_total")),
        ("labels", Value::object([("device", "sda")])),
        ("value", Value::from(9_007_199_254_740_993_i64)),
        ("unit", "total".into()),
        ("host", "wn01".into()),
    ]);
    canned("sensor.files", Value::object([("files", Value::array(files()))]));
    let figures = Value::object([("events_total", Value::from(7)), ("lines_total", 9.into())]);
    let info = [
        ("name", Value::from("visperf")),
        ("uptime", 300.0.into()),
        ("health", Value::array(["the disk is full"])),
        ("statistics", Value::object([("sensor", figures)])),
    ];
    canned("daemon.info", Value::object(info));
    let declared = Declaration::new("directory.resolve", "canned")
        .parameter(Parameter::new("domain", Type::Text, "any").required());
    registry.add(declared.handler_now(resolve)).unwrap();
    registry.add(hosts_method()).unwrap();
    registry.add(metrics_method(metric)).unwrap();
    registry.add(events_method(events, waits)).unwrap();
    registry
}

/// A call that ended well after five minutes.
fn call(id: &str, hosts: &[&str]) -> Value {
    let time = |secs| Some(UnixTime(Time::from_secs_f64(secs)));
    let call = Call {
        id: id.to_owned(),
        job: "1".to_owned(),
        name: String::new(),
        user: String::new(),
        from: String::new(),
        state: State::Ended,
        submitted: None,
        offered: None,
        selected: None,
        started: time(10.0),
        ended: time(310.0),
        offers: Vec::new(),
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        outcome: Some(Outcome::Ok),
        code: String::new(),
        signal: String::new(),
        reason: String::new(),
        tries: 1,
        events: 2,
    };
    rpc::codec::value(&call, &[]).unwrap()
}

/// One host, which does not report in the domain `away`.
fn hosts_method() -> rpc::dispatch::method::Method {
    let declared =
        Declaration::new("domain.hosts", "canned").parameter(Parameter::new("domain", Type::Text, "any"));
    declared.handler_now(|params| {
        let state = if params.text("domain")? == Some("away") { "last_seen" } else { "live" };
        let host = Value::object([
            ("host", Value::from("wn01")),
            ("health", Value::array(["no daemon lets this one in: revoked"])),
            ("state", state.into()),
            ("load1", 0.5.into()),
            ("memory_total", Value::from(2_u64 << 30)),
        ]);
        Ok(Value::object([("domain", Value::from("d")), ("hosts", Value::array([host]))]))
    })
}

/// One metric: its newest value, or its samples where the history is requested by its own parameter.
fn metrics_method(newest: Value) -> rpc::dispatch::method::Method {
    Declaration::new("domain.metrics", "canned")
        .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "any"))
        .parameter(Parameter::new("name", Type::Text, "any"))
        .parameter(Parameter::new("host", Type::Text, "any"))
        .parameter(Parameter::new("history", Type::Flag, "any"))
        .parameter(Parameter::new("since", Type::Time, "any"))
        .parameter(Parameter::new("until", Type::Time, "any"))
        .handler_now(move |params| {
            let is_of_this = params.text("name")?.is_none_or(|name| name == "node_big_total");
            let mut metric = newest.clone();
            if let (Value::Struct(members), Some(true)) = (&mut metric, params.flag("history")?) {
                members.retain(|(name, _)| name != "value");
                let sample = Value::object([("time", Value::from(1_795_178_489.5)), ("value", 41.into())]);
                members.push(("samples".into(), Value::array([sample])));
            }
            let metrics = is_of_this.then_some(metric).into_iter().collect();
            Ok(Value::object([("metrics", Value::Array(metrics))]))
        })
}

/// A log that is followed, and one that is awaited.
fn files() -> [Value; 2] {
    let file = |path: &str, state: &str, health: &str| {
        Value::object([
            ("path", Value::from(path)),
            ("filter", "slurmctld".into()),
            ("state", state.into()),
            ("size_bytes", 123_456_789.into()),
            ("lag_bytes", 4096.into()),
            ("lines", 1_234_567.into()),
            ("events", 345_678.into()),
            ("unknown", 1234.into()),
            ("gaps", 1.into()),
            ("health", health.into()),
        ])
    };
    [
        file("/var/log/slurm/of/a/long/path/slurmctld.log", "following", ""),
        file("/l", "awaited", "there is no such file yet; it is read as soon as it comes"),
    ]
}

fn resolve(params: &Params) -> Result<Value, Fault> {
    match params.text("domain")? {
        Some("UT-ICL") => Ok(Value::object([
            ("domain", Value::from("UT-ICL")),
            ("host", "rep".into()),
            ("port", 7317.into()),
        ])),
        _ => Err(Fault::not_found("no domain of this name")),
    }
}

fn events_method(events: &Events, asked_to_wait: SyncSender<()>) -> rpc::dispatch::method::Method {
    let events = Arc::clone(events);
    typed::method(move |_, DomainEventsParams(params)| {
        let (events, asked_to_wait) = (Arc::clone(&events), asked_to_wait.clone());
        async move {
            let waits = !params.wait.0.is_zero();
            let limit = usize::try_from(params.limit).unwrap();
            let held = || events.lock().unwrap().clone();
            let from = match params.cursor.as_deref().unwrap_or("") {
                "" => 0,
                "end" => held().len(),
                number => number.parse().unwrap(),
            };
            if waits {
                let _may_be_closed = asked_to_wait.try_send(());
            }
            while waits && held().len() <= from {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let is =
                |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
            let fits = |event: &Event| {
                is(&params.job, &event.job) && is(&params.user, &event.user) && is(&params.on_host, &event.to)
            };
            let (mut page, mut next) = (Vec::new(), from);
            if params.last {
                next = held().len();
                page = held().into_iter().filter(fits).collect();
                page.drain(..page.len().saturating_sub(limit));
            }
            for event in held().into_iter().skip(next) {
                if page.len() == limit {
                    break;
                }
                next += 1;
                page.extend(Some(event).filter(fits));
            }
            let missed = u64::from(from == 0 && limit == 3);
            Ok(api::Events { events: page, cursor: next.to_string(), missed, ..api::Events::default() })
        }
    })
}
