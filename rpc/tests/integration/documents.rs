//! Forwarded answers: a client reads, to the bit, what it would read if each daemon in between had decoded
//! and encoded them.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served::{Served, call};
use proptest::prelude::*;
use rpc::codec::value::Value;
use rpc::codec::value_codec;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::encoded_answer::{Answered, document};
use rpc::dispatch::forward::{Caller, Forward, Forwarding, forwarded};
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::Params;
use rpc::dispatch::permissions::Scope;
use rpc::fault::Fault;
use rpc::http::server::ListenerOptions;
use rpc::limits::Limits;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::query::{Form, Integers, Syntax};

/// Answer of the far daemon.
type FarAnswer = Arc<Mutex<Result<Value, Fault>>>;

/// How the answer is transferred.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// As an encoded value, which the near daemon decodes.
    Packed,
    /// As a document, if one is requested.
    Written,
    /// As this text, whatever is requested.
    Words(&'static str),
}

/// The far daemon as the near one reaches it.
struct Hop {
    far: Arc<Dispatcher>,
    way: Arc<Mutex<Way>>,
}

impl Forward for Hop {
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding> {
        let (far, way, caller) = (Arc::clone(&self.far), *self.way.lock().unwrap(), *caller);
        let params = params.values().to_vec();
        Some(forwarded(Box::pin(async move {
            match (way, form) {
                (Way::Words(words), _) => Ok(Answered::Written(words.into())),
                (Way::Written, Some(form)) => {
                    Ok(match far.call_within(Scope::OPEN, &caller, method, params, Some(form)).await? {
                        Answered::Value(value) => Answered::Written(document(form, &value).into()),
                        written @ Answered::Written(_) => written,
                    })
                }
                (Way::Written, None) | (Way::Packed, _) => {
                    let mut bytes = Vec::new();
                    value_codec::write(&far.call_for(&caller, method, params).await?, &mut bytes);
                    Ok(Answered::Value(value_codec::read(&bytes).unwrap()))
                }
            }
        })))
    }
}

/// A daemon that forwards to another one, with a fixed answer.
struct Pair {
    kept: FarAnswer,
    way: Arc<Mutex<Way>>,
    near: Served,
}

fn declared() -> Declaration {
    Declaration::new("test.far", "what is kept").reading().of_host()
}

impl Pair {
    fn start(limits: Limits) -> Pair {
        let kept: FarAnswer = Arc::new(Mutex::new(Ok(Value::Nil)));
        let (mut far, mut near) = (Registry::new(), Registry::new());
        let returned = Arc::clone(&kept);
        far.add(declared().handler_now(move |_| returned.lock().unwrap().clone())).unwrap();
        near.add(declared().handler_now(|_| Err(Fault::internal("not here")))).unwrap();
        let way = Arc::new(Mutex::new(Way::Packed));
        let far = Arc::new(Dispatcher::new(far, Limits::default(), Arc::default()));
        near.set_elsewhere(Box::new(Hop { far, way: Arc::clone(&way) }));
        Pair { kept, way, near: Served::start_of(near, ListenerOptions::default(), limits) }
    }

    /// Status and body for each form of request.
    fn forwarded(&self, way: Way, integers: &str) -> Vec<(u16, String)> {
        *self.way.lock().unwrap() = way;
        let member = |value: &str| {
            format!(
                "<param><value><struct><member><name>big_integers</name><value>{value}</value></member></struct></value></param>"
            )
        };
        let inner = format!("{{\"methodName\":\"test.far\",\"params\":{{\"big_integers\":\"{integers}\"}}}}");
        let many = format!("{{\"calls\":[{inner},{{\"methodName\":\"system.listMethods\"}}]}}");
        [
            self.near.get(&format!("/api/v1/test.far?big_integers={integers}")),
            self.near.post("/RPC2", call("test.far", &member(integers)).as_bytes()),
            self.near.post("/api/v1/system.multicall", many.as_bytes()),
        ]
        .map(|answer| (answer.status, answer.body))
        .to_vec()
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f64>().prop_map(Value::Double),
        any::<String>().prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6).prop_map(Value::object),
        ]
    })
}

#[test]
fn a_document_that_is_forwarded_equals_one_that_is_written_again() {
    let pair = Pair::start(Limits::default());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    let ran = runner.run(&any_value(), |value| {
        *pair.kept.lock().unwrap() = Ok(value);
        for integers in ["number", "string", "double"] {
            prop_assert_eq!(pair.forwarded(Way::Written, integers), pair.forwarded(Way::Packed, integers));
        }
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn faults_are_faults_with_their_status_whatever_was_asked_for() {
    let pair = Pair::start(Limits::default());
    for fault in [
        Fault::unavailable("the host is away <&> \u{fc}"),
        Fault::not_found("no such host"),
        Fault::new(wire::fault::TIMEOUT, "too late"),
        Fault::new(-7, "an unknown code"),
    ] {
        *pair.kept.lock().unwrap() = Err(fault.clone());
        let written = pair.forwarded(Way::Written, "number");
        assert_eq!(written, pair.forwarded(Way::Packed, "number"));
        assert_eq!((written[0].0, written[1].0), (fault.http_status(), 200));
        assert!(written[1].1.contains("<fault>"), "{written:?}");
    }
}

#[test]
fn a_document_above_the_limit_is_a_fault() {
    let pair = Pair::start(Limits { answer_bytes: 1000, ..Limits::default() });
    *pair.kept.lock().unwrap() = Ok("x".repeat(1000).into());
    let written = pair.forwarded(Way::Written, "number");
    assert_eq!(written[..2], pair.forwarded(Way::Packed, "number")[..2]);
    assert_eq!(written[0].0, 413, "{written:?}");
    assert!(written[1].1.contains("<int>-32001</int>"), "{written:?}");
}

#[test]
fn text_that_is_no_document_ends_where_it_ends_and_is_never_mixed_with_other_text() {
    let pair = Pair::start(Limits::default());
    let words = "}]\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno";
    let answers = pair.forwarded(Way::Words(words), "number");
    assert_eq!(answers[0], (200, words.to_owned()));
    assert_eq!(answers[1], (200, words.to_owned()));
    let head = pair.near.get("/api/v1/test.far").head;
    assert!(head.contains(&format!("content-length: {}", words.len())), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    // In a multicall its text is refused, and the answers of the others are complete.
    assert!(answers[2].1.starts_with("[{\"faultCode\":-32603,"), "{answers:?}");
    assert!(answers[2].1.ends_with("\"test.far\"]]]\n"), "{answers:?}");
}

#[tokio::test]
async fn a_daemon_that_wants_to_read_an_answer_gets_a_value() {
    let mut registry = Registry::new();
    let writing = declared().handler_writing(|_, form| async move {
        Ok(match form {
            Some(form) => Answered::Written(document(form, &"text".into()).into()),
            None => Answered::Value("text".into()),
        })
    });
    registry.add(writing).unwrap();
    let dispatcher = Dispatcher::new(registry, Limits::default(), Arc::default());
    let caller = Caller::client(Duration::from_secs(60));
    assert_eq!(dispatcher.call_for(&caller, "test.far", Vec::new()).await, Ok("text".into()));
    let form = Form { syntax: Syntax::Json, integers: Integers::Number };
    let written = dispatcher.call_within(Scope::OPEN, &caller, "test.far", Vec::new(), Some(form)).await;
    assert_eq!(written, Ok(Answered::Written("\"text\"\n".into())));
}
