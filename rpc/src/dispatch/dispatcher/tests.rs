//! Calls of every kind: valid or not, local or forwarded; handlers that panic or never answer; too many
//! calls.

use super::*;
use crate::dispatch::method::Declaration;
use crate::dispatch::params::{Parameter, Type};

fn dispatcher(limits: Limits) -> Dispatcher {
    let mut registry = Registry::new();
    let echo = Declaration::new("test.echo", "gives back")
        .parameter(Parameter::new("value", Type::Whole { min: i64::MIN, max: i64::MAX }, "what"))
        .handler_now(|params| Ok(params.value("value").cloned().unwrap_or_default()));
    registry.add(echo).unwrap();
    #[allow(unreachable_code)]
    let panics = Declaration::new("test.panic", "fails").handler(|_| async {
        panic!("on purpose");
        Ok(Value::Nil)
    });
    registry.add(panics).unwrap();
    let early = Declaration::new("test.early", "fails").handler_now(|_| panic!("on purpose"));
    registry.add(early).unwrap();
    registry.add(Declaration::new("test.never", "").handler(|_| std::future::pending())).unwrap();
    Dispatcher::new(registry, limits, Arc::default())
}

async fn call(name: &str, arguments: Vec<Value>) -> Result<Value, Fault> {
    on(&dispatcher(Limits::default()), name, arguments).await
}

async fn on(dispatcher: &Dispatcher, name: &str, arguments: Vec<Value>) -> Result<Value, Fault> {
    dispatcher.call(Scope::OPEN, name, arguments, Syntax::Xml).await?.value()
}

fn code(answer: Result<Value, Fault>) -> i32 {
    answer.unwrap_err().code
}

#[tokio::test]
async fn parameters_come_by_name_in_one_structure() {
    assert_eq!(call("test.echo", vec![]).await, Ok(Value::Nil));
    assert_eq!(call("test.echo", vec![Value::object([("value", 3)])]).await, Ok(Value::Int(3)));
    let big = Value::object([("value", Value::Int(1 << 60)), ("big_integers", "string".into())]);
    assert_eq!(call("test.echo", vec![big]).await, Ok(Value::from("1152921504606846976")));
    assert_eq!(call("test.echo", vec![" {\"value\": 3}".into()]).await, Ok(Value::Int(3)));
    assert_eq!(code(call("test.echo", vec!["{\"value\": 3".into()]).await), fault::PARSE);
    assert_eq!(code(call("test.echo", vec!["3".into()]).await), fault::INVALID_PARAMS);
    assert_eq!(code(call("test.echo", vec![Value::Int(3)]).await), fault::INVALID_PARAMS);
    assert_eq!(code(call("test.echo", vec![Value::Nil, Value::Nil]).await), fault::INVALID_PARAMS);
    assert_eq!(code(call("test.nothing", vec![]).await), fault::METHOD_NOT_FOUND);
}

struct Holding(Arc<()>);

impl crate::dispatch::permissions::Permissions for Holding {
    fn may(
        &self,
        _: crate::dispatch::permissions::CallTarget<'_>,
    ) -> Result<crate::dispatch::permissions::Permit, Fault> {
        Ok(Box::new(Arc::clone(&self.0)))
    }
}

#[tokio::test]
async fn what_a_call_holds_is_held_until_it_ends() {
    let one = Arc::new(());
    let scope = Scope { access: Some(Arc::new(Holding(Arc::clone(&one)))), ..Scope::default() };
    let dispatcher = dispatcher(Limits::default());
    let mut waiting = Box::pin(dispatcher.call(&scope, "test.never", vec![], Syntax::Xml));
    assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err(), "it waits for ever");
    assert_eq!(Arc::strong_count(&one), 3);
    drop(waiting);
    assert_eq!(Arc::strong_count(&one), 2);
}

struct Next;

impl crate::dispatch::forward::Forward for Next {
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        _: Option<Form>,
    ) -> Option<Forwarding> {
        let host = params.text("host").ok()??.to_owned();
        let answer = format!("{method} on {host}, {} hops", caller.hops_left);
        // It took a while to find out that the call is for this daemon.
        let found = (host != "n1").then_some(Answered::Value(answer.into()));
        Some(Box::pin(async move { Ok(found) }))
    }
}

#[tokio::test]
async fn a_located_method_is_answered_where_it_belongs() {
    let mut dispatcher = dispatcher(Limits::default());
    let located = Declaration::new("test.here", "").reading().of_host();
    dispatcher.registry.add(located.handler_now(|_| Ok("here".into()))).unwrap();
    dispatcher.registry.set_elsewhere(Box::new(Next));
    let there = || vec![Value::object([("host", "n2")])];
    let call = |name, arguments| on(&dispatcher, name, arguments);
    assert_eq!(call("test.here", vec![]).await, Ok("here".into()));
    assert_eq!(call("test.here", there()).await, Ok("test.here on n2, 3 hops".into()));
    let by_now_here = vec![Value::object([("host", "n1")])];
    assert_eq!(call("test.here", by_now_here).await, Ok("here".into()));
    assert_eq!(code(call("test.echo", there()).await), fault::INVALID_PARAMS);
    let caller = Caller { hops_left: 1, ..Caller::client(Duration::from_secs(1)) };
    let handed_on = dispatcher.call_for(&caller, "test.here", vec![("host".into(), "n2".into())]).await;
    assert_eq!(handed_on, Ok("test.here on n2, 1 hops".into()));
    assert_eq!(code(dispatcher.call_for(&caller, "test.echo", vec![]).await), fault::FORBIDDEN);
    let signed = Declaration::new("test.signed", "").signed().handler_now(|_| Ok("done".into()));
    dispatcher.registry.add(signed).unwrap();
    assert_eq!(dispatcher.call_for(&caller, "test.signed", vec![]).await, Ok("done".into()));
}

#[tokio::test]
async fn a_panic_is_a_fault_and_is_counted() {
    let dispatcher = dispatcher(Limits::default());
    for name in ["test.panic", "test.early"] {
        assert_eq!(code(on(&dispatcher, name, vec![]).await), fault::INTERNAL);
    }
    let counted = dispatcher.statistics.snapshot();
    assert_eq!((counted.panics_total, counted.faults_total, counted.calls_in_work), (2, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_method_that_never_answers_is_given_up() {
    assert_eq!(code(call("test.never", vec![]).await), fault::TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_are_refused() {
    let dispatcher = dispatcher(Limits { calls_in_work: 1, ..Limits::default() });
    let never = on(&dispatcher, "test.never", vec![]);
    let second = on(&dispatcher, "test.echo", vec![]);
    let (first, second) = tokio::join!(never, second);
    assert_eq!((code(first), code(second)), (fault::TIMEOUT, fault::BUSY));
    assert_eq!(on(&dispatcher, "test.echo", vec![]).await, Ok(Value::Nil));
}

#[tokio::test]
async fn a_multicall_answers_each_call_for_itself() {
    let inner = |name: &str| Value::object([("methodName", Value::from(name))]);
    let calls = Value::array([
        inner("test.echo"),
        inner("test.nothing"),
        inner("test.panic"),
        inner("system.multicall"),
    ]);
    let answers = call("system.multicall", vec![calls]).await.unwrap();
    let codes: Vec<i64> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer.get("faultCode").and_then(Value::as_int).unwrap_or(0))
        .collect();
    assert_eq!(codes, vec![0, -32601, -32603, -32602]);
    let text = r#"{"calls": [{"methodName": "test.echo", "params": [{"value": 7}]}]}"#;
    let answers = call("system.multicall", vec![text.into()]).await.unwrap();
    assert_eq!(answers, Value::array([Value::array([7])]), "a client without structures");
    let many = Value::Array(vec![inner("test.echo"); 101]);
    assert_eq!(code(call("system.multicall", vec![many]).await), fault::TOO_LARGE);
}

#[tokio::test]
async fn a_multicall_stops_at_the_largest_answer() {
    let dispatcher = dispatcher(Limits { answer_bytes: 100, ..Limits::default() });
    let inner = Value::object([("methodName", Value::from("system.listMethods"))]);
    let calls = vec![Value::Array(vec![inner; 3])];
    let answers = on(&dispatcher, "system.multicall", calls).await.unwrap();
    let last = answers.as_array().and_then(|answers| answers.last()).unwrap();
    assert_eq!(last.get("faultCode"), Some(&Value::from(fault::TOO_LARGE)));
}
