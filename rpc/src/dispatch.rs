//! Runs one call: finds the method, checks what was given, waits for the answer no longer than allowed.
//!
//! Invariant: a handler that panics or never ends costs its caller a fault and the daemon nothing else.
//! Not here: how a call was read or its answer is written (`xmlrpc`, `json`, `pages`).

use crate::elsewhere::Caller;
use crate::entrance::Scope;
use crate::fault::{self, Fault};
use crate::introspection::{self, Introspection};
use crate::json;
use crate::limits::Limits;
use crate::method::{Answer, Handler, Located, Method, Reading, Registry};
use crate::params::Params;
use crate::statistics::Statistics;
use crate::value::{BigIntegers, JSON_INTEGERS, Name, Value};
use std::future::{Future, poll_fn};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// The methods of one daemon, ready to be called.
pub struct Dispatcher {
    pub(crate) registry: Registry,
    pub(crate) limits: Limits,
    pub(crate) statistics: Arc<Statistics>,
}

/// For whom a call is run, and what it may reach.
type Whose<'a> = (&'a Caller, &'a Scope);

/// Takes a call out of the count of those in work when it ends, however it ends.
struct InWork<'a>(&'a Statistics);

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.0.calls_in_work.subtract(1);
    }
}

impl Dispatcher {
    /// The methods of `registry`, within `limits`; `statistics` counts.
    #[must_use]
    pub fn new(registry: Registry, limits: Limits, statistics: Arc<Statistics>) -> Dispatcher {
        Dispatcher { registry, limits, statistics }
    }

    /// Calls `name` for another daemon, with named parameters and every integer as it is.
    ///
    /// # Errors
    /// The fault, as a client would get it; a method that changes anything by its caller's word is not called.
    pub async fn call_for(
        &self,
        caller: &Caller,
        name: &str,
        params: Vec<(Name, Value)>,
    ) -> Result<Value, Fault> {
        let changes = |method: &Method| method.declaration.reading == Reading::Changes;
        if self.registry.get(name).is_some_and(changes) {
            return Err(Fault::new(fault::FORBIDDEN, format!("{name} is not called for other daemons")));
        }
        let time_left = caller.time_left.min(self.limits.call_time);
        let run = self.run((caller, Scope::OPEN), name, vec![Value::Struct(params)], &JSON_INTEGERS);
        self.in_time(time_left, run).await
    }

    /// Calls `name` with what the request gave, as far as `scope` allows; integers outside `exact` come as the call
    /// asked.
    pub(crate) async fn call(
        &self,
        scope: &Scope,
        name: &str,
        arguments: Vec<Value>,
        exact: &RangeInclusive<i64>,
    ) -> Result<Value, Fault> {
        let caller = Caller::client(self.limits.call_time);
        self.in_time(self.limits.call_time, self.run((&caller, scope), name, arguments, exact)).await
    }

    async fn in_time(
        &self,
        time_left: Duration,
        call: impl Future<Output = Result<Value, Fault>>,
    ) -> Result<Value, Fault> {
        let before = self.statistics.calls_in_work.add(1);
        let _in_work = InWork(&self.statistics);
        let answer = if before >= self.limits.calls_in_work as u64 {
            let limit = self.limits.calls_in_work;
            Err(Fault::new(fault::BUSY, format!("expected at most {limit} calls in work; call again later")))
        } else {
            tokio::time::timeout(time_left, call).await.unwrap_or_else(|_| {
                let secs = time_left.as_secs_f64();
                Err(Fault::new(fault::TIMEOUT, format!("expected an answer within {secs} s, found none")))
            })
        };
        if answer.is_err() {
            self.statistics.faults_total.add(1);
        }
        answer
    }

    async fn run(
        &self,
        whose: Whose<'_>,
        name: &str,
        arguments: Vec<Value>,
        exact: &RangeInclusive<i64>,
    ) -> Result<Value, Fault> {
        let method = self.registry.get(name).ok_or_else(|| Fault::method_not_found(name))?;
        if matches!(method.handler, Handler::Introspection(Introspection::Multicall)) {
            let (params, integers) = check(method, arguments, &self.limits, Scope::OPEN)?;
            let answers = self.multicall(whose, &params, exact).await?;
            return Ok(answers.with_integers(integers, exact));
        }
        let (answer, integers) = self.one(whose, method, arguments).await?;
        Ok(answer.with_integers(integers, exact))
    }

    /// One call that holds no others.
    async fn one(
        &self,
        (caller, scope): Whose<'_>,
        method: &Method,
        arguments: Vec<Value>,
    ) -> Result<(Value, BigIntegers), Fault> {
        self.statistics.calls_total.add(1);
        let within = if matches!(method.handler, Handler::Introspection(_)) { Scope::OPEN } else { scope };
        let (params, integers) = check(method, arguments, &self.limits, within)?;
        let answer = match &method.handler {
            Handler::Introspection(which) => introspection::answer(*which, &self.registry, &params)?,
            Handler::Daemon(handler) => {
                let _held = scope.check(&method.declaration, &params)?;
                let name = method.declaration.name;
                let started = catch_unwind(AssertUnwindSafe(|| {
                    self.elsewhere(caller, method, &params).unwrap_or_else(|| handler(caller, params))
                }));
                let answer = started.map_err(|_| self.panicked(name))?;
                self.caught(name, answer).await?
            }
        };
        Ok((answer, integers))
    }

    /// The answer of another daemon, if the call is for one.
    fn elsewhere(&self, caller: &Caller, method: &Method, params: &Params) -> Option<Answer> {
        match method.declaration.located {
            Located::Here => None,
            Located::Named => self.registry.elsewhere()?.ask(caller, method.declaration.name, params),
        }
    }

    async fn multicall(
        &self,
        whose: Whose<'_>,
        params: &Params,
        exact: &RangeInclusive<i64>,
    ) -> Result<Value, Fault> {
        let calls = introspection::inner_calls(params, self.limits.multicall_calls)?;
        let mut answers = Vec::with_capacity(calls.len());
        let mut weight = 0;
        for call in calls {
            let answer = match call {
                Ok(_) if weight > self.limits.answer_bytes => Err(too_large(self.limits.answer_bytes)),
                Ok(call) => self.inner(whose, &call.name, call.arguments, exact).await,
                Err(fault) => Err(fault),
            };
            if answer.is_err() {
                self.statistics.faults_total.add(1);
            }
            weight += answer.as_ref().map_or(0, Value::weight_bytes);
            answers.push(introspection::inner_answer(answer));
        }
        Ok(Value::Array(answers))
    }

    async fn inner(
        &self,
        whose: Whose<'_>,
        name: &str,
        arguments: Vec<Value>,
        exact: &RangeInclusive<i64>,
    ) -> Result<Value, Fault> {
        let method = self.registry.get(name).ok_or_else(|| Fault::method_not_found(name))?;
        let (answer, integers) = self.one(whose, method, arguments).await?;
        Ok(answer.with_integers(integers, exact))
    }

    /// Waits for a handler, and turns its panic into a fault.
    async fn caught(
        &self,
        name: &str,
        answer: impl Future<Output = Result<Value, Fault>>,
    ) -> Result<Value, Fault> {
        let mut answer = pin!(answer);
        poll_fn(|context| {
            // A handler that panicked is dropped and never polled again, so nothing sees its broken state.
            match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
                Ok(polled) => polled,
                Err(_) => Poll::Ready(Err(self.panicked(name))),
            }
        })
        .await
    }

    fn panicked(&self, name: &str) -> Fault {
        self.statistics.panics_total.add(1);
        tracing::error!(method = name, "a method panicked; its caller was answered with a fault");
        Fault::internal(format!("{name} failed; the daemon's log says where"))
    }
}

/// The fault of an answer above its limit.
pub(crate) fn too_large(at_most: usize) -> Fault {
    Fault::new(
        fault::TOO_LARGE,
        format!("expected an answer of at most {at_most} bytes; ask for less at once"),
    )
}

fn check(
    method: &Method,
    arguments: Vec<Value>,
    limits: &Limits,
    scope: &Scope,
) -> Result<(Params, BigIntegers), Fault> {
    let declaration = &method.declaration;
    let mut given = named(arguments, declaration.positional, limits)?;
    scope.fill(declaration, &mut given)?;
    Params::check(&declaration.parameters, given)
}

/// The one structure of named parameters. A client that cannot send a structure (the command line client of
/// xmlrpc-c) sends a JSON object as one text.
fn named(
    mut arguments: Vec<Value>,
    positional: Option<&'static str>,
    limits: &Limits,
) -> Result<Vec<(Name, Value)>, Fault> {
    let expected = "expected no parameter or one structure of named ones";
    if arguments.len() > 1 {
        return Err(Fault::invalid_params(format!("{expected}, found {} parameters", arguments.len())));
    }
    match (arguments.pop(), positional) {
        (None | Some(Value::Nil), _) => Ok(Vec::new()),
        (Some(Value::Struct(members)), _) => Ok(members),
        (Some(Value::Text(text)), _) if text.trim_start().starts_with('{') => {
            named(json::parse_params(text.as_bytes(), limits)?, positional, limits)
        }
        (Some(value), Some(name)) => Ok(vec![(Name::Borrowed(name), value)]),
        (Some(value), None) => Err(Fault::invalid_params(format!("{expected}, found {}", value.shown()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Declaration;
    use crate::params::{Parameter, Type};
    use crate::value::XML_INTEGERS;

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
        Dispatcher { registry, limits, statistics: Arc::default() }
    }

    async fn call(name: &str, arguments: Vec<Value>) -> Result<Value, Fault> {
        dispatcher(Limits::default()).call(Scope::OPEN, name, arguments, &XML_INTEGERS).await
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

    impl crate::entrance::Access for Holding {
        fn may(&self, _: crate::entrance::Asked<'_>) -> Result<crate::entrance::Held, Fault> {
            Ok(Box::new(Arc::clone(&self.0)))
        }
    }

    #[tokio::test]
    async fn what_a_call_holds_is_held_until_it_ends() {
        let one = Arc::new(());
        let scope = Scope { access: Some(Arc::new(Holding(Arc::clone(&one)))), ..Scope::default() };
        let dispatcher = dispatcher(Limits::default());
        let mut waiting = Box::pin(dispatcher.call(&scope, "test.never", vec![], &XML_INTEGERS));
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err(), "it waits for ever");
        assert_eq!(Arc::strong_count(&one), 3);
        drop(waiting);
        assert_eq!(Arc::strong_count(&one), 2);
    }

    struct Next;

    impl crate::elsewhere::Elsewhere for Next {
        fn ask(&self, caller: &Caller, method: &'static str, params: &Params) -> Option<Answer> {
            let host = params.text("host").ok()??.to_owned();
            let hops = u64::from(caller.hops_left);
            Some(Box::pin(async move { Ok(Value::from(format!("{method} on {host}, {hops} hops"))) }))
        }
    }

    #[tokio::test]
    async fn a_located_method_is_answered_where_it_belongs() {
        let mut dispatcher = dispatcher(Limits::default());
        let located = Declaration::new("test.here", "").reading().of_host();
        dispatcher.registry.add(located.handler_now(|_| Ok("here".into()))).unwrap();
        dispatcher.registry.set_elsewhere(Box::new(Next));
        let there = || vec![Value::object([("host", "n2")])];
        let call = |name, arguments| dispatcher.call(Scope::OPEN, name, arguments, &XML_INTEGERS);
        assert_eq!(call("test.here", vec![]).await, Ok("here".into()));
        assert_eq!(call("test.here", there()).await, Ok("test.here on n2, 3 hops".into()));
        assert_eq!(code(call("test.echo", there()).await), fault::INVALID_PARAMS);
        let caller = Caller { peer: None, hops_left: 1, time_left: Duration::from_secs(1) };
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
            assert_eq!(
                code(dispatcher.call(Scope::OPEN, name, vec![], &XML_INTEGERS).await),
                fault::INTERNAL
            );
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
        let never = dispatcher.call(Scope::OPEN, "test.never", vec![], &XML_INTEGERS);
        let second = dispatcher.call(Scope::OPEN, "test.echo", vec![], &XML_INTEGERS);
        let (first, second) = tokio::join!(never, second);
        assert_eq!((code(first), code(second)), (fault::TIMEOUT, fault::BUSY));
        assert_eq!(dispatcher.call(Scope::OPEN, "test.echo", vec![], &XML_INTEGERS).await, Ok(Value::Nil));
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
        let answers = dispatcher.call(Scope::OPEN, "system.multicall", calls, &XML_INTEGERS).await.unwrap();
        let last = answers.as_array().and_then(|answers| answers.last()).unwrap();
        assert_eq!(last.get("faultCode"), Some(&Value::from(fault::TOO_LARGE)));
    }
}
