//! Methods of the sensor as called by a client, on a sensor that follows a recorded log.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::encoded_answer::{Answered, document};
use rpc::dispatch::forward::Caller;
use rpc::dispatch::permissions::Scope;
use rpc::limits::Limits;
use sensor::config::{Config, FirstStartWord, RawConfig, RawTail};
use sensor::run::Sensor;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::query::{Form, Integers, Syntax};

const LOG: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");

struct Running {
    _directory: tempfile::TempDir,
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
    run: JoinHandle<Result<(), sensor::run::Error>>,
}

impl Running {
    /// Starts a sensor that has read the log and, alone in its domain, reported it to itself.
    async fn start() -> Running {
        let directory = tempfile::tempdir().unwrap();
        let tail = RawTail {
            path: LOG.into(),
            filter: Some("slurmctld".into()),
            cluster: String::new(),
            host: None,
            zone: None,
            start: None,
            roots: Vec::new(),
        };
        let first_start = Some(FirstStartWord::Beginning);
        let raw = RawConfig { first_start, tail: vec![tail], ..RawConfig::default() };
        let config = Config::new(raw, "head", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &directory.path().join("state")).unwrap();
        let methods = sensor.methods().unwrap();
        let dispatcher = Arc::new(Dispatcher::new(methods, Limits::default(), Arc::default()));
        let status = sensor.status();
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        let running = Running { _directory: directory, dispatcher, shutdown, run };
        let figures = || status.statistics();
        let is_read = || figures().contains(&("lag_bytes", 0)) && !figures().contains(&("lines_total", 0));
        let read = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            while !is_read() || running.stored().await != Some(status.events_next()) {
                look.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("the log is not read");
        running
    }

    /// Number of events in the domain's store; `None` until the sensor has started to represent the domain.
    async fn stored(&self) -> Option<u64> {
        let answer = ask(&self.dispatcher, "domain.summary", &[]).await;
        match answer.map(|answer| answer.get("events").cloned()) {
            Ok(Some(Value::UInt(events))) => Some(events),
            Err(fault) if fault.code == wire::fault::UNAVAILABLE => None,
            other => panic!("{other:?}"),
        }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap().unwrap();
    }

    /// Ids of the calls that the method returns for this parameter.
    async fn calls(&self, name: &'static str, wanted: &str) -> Vec<String> {
        let answer = call(&self.dispatcher, "sensor.calls", &[(name, wanted.into())]).await;
        let Some(Value::Array(calls)) = answer.get("calls").cloned() else { panic!("{answer:?}") };
        calls.iter().map(|call| text(call, "id").to_owned()).collect()
    }

    async fn events(&self, params: &[(&'static str, Value)]) -> Vec<Value> {
        let events = |answer: Value| match answer.get("events").cloned() {
            Some(Value::Array(events)) => events,
            _ => panic!("{answer:?}"),
        };
        let of_domain = events(call(&self.dispatcher, "domain.events", params).await);
        let of_sensor = events(call(&self.dispatcher, "sensor.events", params).await);
        assert_eq!(of_domain.len(), of_sensor.len(), "{params:?}");
        for (of_domain, of_sensor) in of_domain.iter().zip(&of_sensor) {
            assert_eq!(of_domain, of_sensor);
        }
        of_domain
    }
}

async fn call(dispatcher: &Dispatcher, method: &str, params: &[(&'static str, Value)]) -> Value {
    ask(dispatcher, method, params).await.unwrap()
}

async fn ask(
    dispatcher: &Dispatcher,
    method: &str,
    params: &[(&'static str, Value)],
) -> Result<Value, rpc::fault::Fault> {
    let params: Vec<_> = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
    let caller = Caller::client(Duration::from_secs(60));
    let answer = dispatcher.call_for(&caller, method, params.clone()).await;
    // Events are encoded directly, without intermediate values: a client must read the same.
    if let ("sensor.events" | "domain.events", Ok(value)) = (method, &answer) {
        for (syntax, integers) in [(Syntax::Json, Integers::Number), (Syntax::Xml, Integers::Text)] {
            let form = Form { syntax, integers };
            let written = dispatcher
                .call_within(Scope::OPEN, &caller, method, params.clone(), Some(form))
                .await
                .unwrap();
            assert!(written == Answered::Written(document(form, value).into()), "{method} {params:?}");
        }
    }
    answer
}

fn text<'a>(event: &'a Value, name: &str) -> &'a str {
    match event.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

#[tokio::test]
async fn the_declared_methods_are_those_that_a_sensor_serves() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(RawConfig::default(), "head", jiff::tz::TimeZone::UTC).unwrap();
    let sensor = Sensor::open(config, &folder.path().join("state")).unwrap();
    let registry = sensor.methods().unwrap();
    let served = registry.names().filter(|name| !name.starts_with("system."));
    let mut declared: Vec<_> =
        sensor::query::declared::all().iter().map(rpc::dispatch::method::Declaration::name).collect();
    declared.sort_unstable();
    assert_eq!(declared, served.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_found_by_job_user_and_host() {
    let running = Running::start().await;
    let limit = ("limit", Value::Int(10_000));
    let all = running.events(std::slice::from_ref(&limit)).await;
    let party = |event: &Value, host: &str| {
        [text(event, "from"), text(event, "to")].iter().any(|party| party.split(',').any(|name| name == host))
    };
    let job = all.iter().map(|event| text(event, "job")).find(|job| !job.is_empty()).unwrap().to_owned();
    let user = all.iter().map(|event| text(event, "user")).find(|user| !user.is_empty()).unwrap().to_owned();
    let to = |event: &&Value| !text(event, "to").is_empty();
    let host = text(all.iter().find(to).unwrap(), "to").split(',').next().unwrap().to_owned();
    for (name, wanted) in [("job", &job), ("user", &user), ("on_host", &host)] {
        let calls = if name == "on_host" { Vec::new() } else { running.calls(name, wanted).await };
        let fits = |event: &&Value| match name {
            "on_host" => party(event, wanted),
            _ => text(event, name) == wanted || calls.iter().any(|call| call == text(event, "call")),
        };
        let expected: Vec<_> = all.iter().filter(fits).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{name} {wanted} distinguishes nothing");
        assert_eq!(
            running.events(&[limit.clone(), (name, wanted.as_str().into())]).await,
            expected,
            "{name} {wanted}"
        );
        assert_eq!(running.events(&[limit.clone(), (name, "none such".into())]).await, [], "{name}");
    }
}

/// The texts of an event that an expression is matched against.
fn texts(event: &Value) -> Vec<String> {
    let mut texts: Vec<String> =
        ["job", "user", "from", "to"].map(|name| text(event, name).to_owned()).into();
    let Some(Value::Struct(attributes)) = event.get("attributes") else {
        panic!("no attributes in {event:?}")
    };
    for (_, value) in attributes {
        let list = if let Value::Array(all) = value { all.as_slice() } else { std::slice::from_ref(value) };
        texts.extend(list.iter().filter_map(Value::as_text).map(str::to_owned));
    }
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_found_by_an_expression_that_a_text_of_theirs_matches() {
    let running = Running::start().await;
    let limit = ("limit", Value::Int(10_000));
    let all = running.events(std::slice::from_ref(&limit)).await;
    let attribute =
        all.iter().flat_map(|event| texts(event).split_off(4)).find(|text| !text.is_empty()).unwrap();
    let exact = format!("^{}$", regex::escape(&attribute));
    let in_capitals = format!("(?i){}", regex::escape(&attribute.to_uppercase()));
    for expression in [exact.as_str(), in_capitals.as_str(), "^n[0-9]*1$|^1[0-9]$", "^$"] {
        let regex = regex::Regex::new(expression).unwrap();
        let fits = |event: &&Value| texts(event).iter().any(|text| regex.is_match(text));
        let expected: Vec<_> = all.iter().filter(fits).cloned().collect();
        assert!(!expected.is_empty(), "{expression} finds nothing");
        for method in ["sensor.events", "domain.events"] {
            let answer =
                call(&running.dispatcher, method, &[limit.clone(), ("regex", expression.into())]).await;
            let Some(Value::Array(found)) = answer.get("events") else { panic!("{answer:?}") };
            assert_eq!(found.len(), expected.len(), "{method} {expression}");
        }
        assert_eq!(
            running.events(&[limit.clone(), ("regex", expression.into())]).await,
            expected,
            "{expression}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_chosen_by_one_outcome_or_several() {
    let running = Running::start().await;
    let total = async |outcomes: &[&str]| {
        let wanted = Value::array(outcomes.iter().map(|outcome| Value::from(*outcome)));
        let params = [("outcome", wanted), ("limit", Value::Int(1))];
        let answer = call(&running.dispatcher, "sensor.calls", &params).await;
        match answer.get("total") {
            Some(Value::UInt(total)) => *total,
            other => panic!("{other:?}"),
        }
    };
    let all = ["ok", "failed", "cancelled", "timeout", "node_fail", "finished"];
    let mut sum = 0;
    for outcome in all {
        sum += total(&[outcome]).await;
        assert_eq!(
            running.calls("outcome", outcome).await.len() as u64,
            total(&[outcome]).await,
            "{outcome}"
        );
    }
    assert!(sum > 0, "no call of this log ended");
    assert_eq!(total(&all).await, sum);
    assert_eq!(total(&["ok", "failed"]).await, total(&["ok"]).await + total(&["failed"]).await);
    let refused = ask(&running.dispatcher, "sensor.calls", &[("outcome", "fine".into())]).await.unwrap_err();
    assert!(refused.message.contains("expected one of ok, failed"), "{refused}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_come_page_by_page_from_the_sensor_and_the_domain_alike() {
    let running = Running::start().await;
    for order in ["newest", "oldest"] {
        let whole = [("limit", Value::Int(10_000)), ("order", order.into())];
        let whole = call(&running.dispatcher, "sensor.calls", &whole).await;
        let Some(Value::Array(whole_calls)) = whole.get("calls") else { panic!("{whole:?}") };
        assert!(whole_calls.len() > 20 && whole.get("next").is_none(), "one page has all");
        let (mut cursor, mut read, mut pages) = (None::<Value>, Vec::new(), 0);
        loop {
            // The two methods accept each other's cursors.
            let method = ["sensor.calls", "domain.calls"][pages % 2];
            let limit = Value::Int(whole_calls.len() as i64 / 4);
            let mut params = vec![("limit", limit), ("order", order.into())];
            params.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page = call(&running.dispatcher, method, &params).await;
            let Some(Value::Array(calls)) = page.get("calls") else { panic!("{page:?}") };
            assert_eq!(page.get("total"), whole.get("total"), "{order}");
            read.extend(calls.clone());
            pages += 1;
            match page.get("next") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert!(pages >= 4 && &read == whole_calls, "{order}: {pages} pages");
    }
    let first = call(&running.dispatcher, "sensor.calls", &[("limit", Value::Int(1))]).await;
    let next = first.get("next").unwrap().clone();
    for (cursor, expected) in [(next, "expected one of order oldest"), ("x".into(), "as an answer gave it")] {
        let params = [("cursor", cursor), ("order", "oldest".into())];
        let refused = ask(&running.dispatcher, "domain.calls", &params).await.unwrap_err();
        assert!(refused.message.contains(expected), "{refused}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_taken_in_every_form_of_a_time() {
    let running = Running::start().await;
    let total = async |bound: &'static str, value: Value| {
        let answer = call(&running.dispatcher, "domain.calls", &[(bound, value)]).await;
        answer.get("total").cloned()
    };
    let all = total("until", "now".into()).await;
    assert_eq!(total("since", Value::Double(0.0)).await, all);
    assert_eq!(total("since", "1970-01-01T01:00:00+01:00".into()).await, all);
    assert_eq!(total("since", "1s".into()).await, Some(Value::UInt(0)), "the log is old");
    assert_eq!(total("until", "1d ago".into()).await, all);
    let refused = ask(&running.dispatcher, "domain.events", &[("since", "2026-11-20T12:00:00".into())]).await;
    assert!(refused.unwrap_err().message.contains("since: expected a time"), "it has no offset");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shortened_id_and_a_name_with_gaps_find_their_calls() {
    let running = Running::start().await;
    let asked = |parameter: &'static str, wanted: String| {
        let params = [(parameter, Value::from(wanted.as_str())), ("limit", Value::Int(10_000))];
        let running = &running;
        async move { call(&running.dispatcher, "sensor.calls", &params).await }
    };
    let listed = |answer: &Value, name: &str| match answer.get("calls") {
        Some(Value::Array(calls)) => calls.iter().map(|call| text(call, name).to_owned()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let all = asked("name", "*".to_owned()).await;
    let ids = listed(&all, "id");
    let id = ids.iter().max_by_key(|id| id.len()).unwrap();
    let shortened = format!("{}…{}", &id[..3], &id[id.len() - 3..]);
    let expected: Vec<_> =
        ids.iter().filter(|it| it.starts_with(&id[..3]) && it.ends_with(&id[id.len() - 3..])).collect();
    assert_eq!(listed(&asked("call", shortened.clone()).await, "id").iter().collect::<Vec<_>>(), expected);
    assert!(!running.events(&[("call", shortened.as_str().into())]).await.is_empty(), "{shortened}");
    // This log names no job, so no name matches.
    assert_eq!(listed(&asked("name", "relax*".to_owned()).await, "id"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_events_that_fit_come_oldest_first_and_are_gone_on_from() {
    let running = Running::start().await;
    let all = running.events(&[("limit", Value::Int(10_000))]).await;
    let ends: Vec<_> = all.iter().filter(|event| text(event, "kind") == "job_end").cloned().collect();
    let last = |limit: i64| [("last", Value::Bool(true)), ("limit", Value::Int(limit))];
    assert!(all.len() > 100 && ends.len() > 5, "{} {}", all.len(), ends.len());
    assert_eq!(running.events(&last(3)).await, all[all.len() - 3..]);
    assert_eq!(running.events(&last(10_000)).await, all);
    let of_kind = [&last(2)[..], &[("kind", "job_end".into())]].concat();
    assert_eq!(running.events(&of_kind).await, ends[ends.len() - 2..]);
    let first = text(&all[0], "call").to_owned();
    let of_first: Vec<_> = all.iter().filter(|event| text(event, "call") == first).cloned().collect();
    let of_call = [&last(100)[..], &[("call", first.as_str().into())]].concat();
    assert_eq!(running.events(&of_call).await, of_first, "far back");
    for method in ["sensor.events", "domain.events"] {
        let answer = call(&running.dispatcher, method, &last(1)).await;
        let cursor = text(&answer, "cursor").to_owned();
        let after = call(&running.dispatcher, method, &[("cursor", cursor.as_str().into())]).await;
        assert_eq!(after.get("events"), Some(&Value::Array(Vec::new())), "{method}");
    }
    for (name, value) in [("cursor", Value::from("0")), ("wait", Value::Double(1.0))] {
        let params = last(1).into_iter().chain([(name, value)]);
        let params = params.map(|(name, value)| (Name::Borrowed(name), value)).collect();
        let caller = Caller::client(Duration::from_secs(60));
        let fault = running.dispatcher.call_for(&caller, "sensor.events", params).await.unwrap_err();
        assert!(fault.to_string().contains("last: "), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_refused_by_every_journal_but_its_own() {
    let (one, other) = (Running::start().await, Running::start().await);
    let end = call(&one.dispatcher, "sensor.events", &[("cursor", "end".into())]).await;
    let cursor = text(&end, "cursor").to_owned();
    let refusal = async |running: &Running, cursor: &str| {
        let params = vec![(Name::Borrowed("cursor"), cursor.into())];
        let caller = Caller::client(Duration::from_secs(60));
        running.dispatcher.call_for(&caller, "sensor.events", params).await.unwrap_err().to_string()
    };
    let after = call(&one.dispatcher, "sensor.events", &[("cursor", cursor.as_str().into())]).await;
    assert_eq!(text(&after, "cursor"), cursor);
    let refused = refusal(&other, &cursor).await;
    assert!(refused.contains("created again") && refused.contains(&cursor), "{refused}");
    for no_cursor in ["0", "17", "next", "000000000000000a.", ".3"] {
        let refused = refusal(&one, no_cursor).await;
        assert!(refused.contains("cursor: expected a cursor of an earlier answer"), "{refused}");
    }
    one.end().await;
    other.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_on_the_time_of_metrics_imply_the_history() {
    let running = Running::start().await;
    let dispatcher = &running.dispatcher;
    let all = ["sensor.metrics", "domain.metrics"].map(|method| {
        [("since", Value::Double(1.0)), ("until", Value::Double(4e9))].map(|bound| (method, bound))
    });
    for (method, bound) in all.into_iter().flatten() {
        let parameters = [("name", Value::from("node_load1")), bound];
        let swept = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            loop {
                look.tick().await;
                let answer = ask(dispatcher, method, &parameters).await;
                match answer.as_ref().map(|answer| answer.get("metrics")) {
                    Ok(Some(Value::Array(metrics))) if !metrics.is_empty() => return metrics[0].clone(),
                    _ => {}
                }
            }
        };
        let metric = tokio::time::timeout(Duration::from_secs(60), swept).await.expect("no sweep");
        assert!(
            matches!(metric.get("samples"), Some(Value::Array(_))),
            "{method} {parameters:?}: {metric:?}"
        );
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_adds_amounts_and_no_moments() {
    let running = Running::start().await;
    let dispatcher = &running.dispatcher;
    let summed = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let answer = call(dispatcher, "domain.summary", &[]).await;
            match answer.get("metrics") {
                Some(Value::Array(metrics)) if metrics.len() > 10 => return metrics.clone(),
                _ => {}
            }
        }
    };
    let metrics = tokio::time::timeout(Duration::from_secs(60), summed).await.expect("no sweep");
    let metric = |name: &str| metrics.iter().find(|metric| text(metric, "name") == name).unwrap();
    for (name, additive) in [("node_boot_time_seconds", false), ("node_load1", true)] {
        assert_eq!(metric(name).get("additive"), Some(&Value::Bool(additive)), "{name}");
        assert_eq!(metric(name).get("sum").is_some(), additive, "{name}");
        assert!(["min", "mean", "max"].iter().all(|figure| metric(name).get(figure).is_some()), "{name}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_events_is_answered_when_the_sensor_ends() {
    let running = Running::start().await;
    for method in ["sensor.events", "domain.events"] {
        let end = call(&running.dispatcher, method, &[("cursor", "end".into())]).await;
        assert_eq!(end.get("events"), Some(&Value::Array(Vec::new())), "{method}");
    }
    let waiting = ["sensor.events", "domain.events"].map(|method| {
        let dispatcher = Arc::clone(&running.dispatcher);
        let params = [("cursor", "end".into()), ("wait", Value::Double(25.0))];
        let params = params.map(|(name, value)| (Name::Borrowed(name), value)).to_vec();
        let caller = Caller::client(Duration::from_secs(60));
        tokio::spawn(async move { dispatcher.call_for(&caller, method, params).await })
    });
    running.end().await;
    for waiting in waiting {
        let answer = tokio::time::timeout(Duration::from_secs(15), waiting).await;
        match answer.expect("it waited on").unwrap() {
            Ok(answer) => assert_eq!(answer.get("events"), Some(&Value::Array(Vec::new()))),
            // The call came when the sensor no longer represented the domain.
            Err(fault) => assert_eq!(fault.code, wire::fault::UNAVAILABLE, "{fault}"),
        }
    }
}
