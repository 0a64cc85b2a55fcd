//! Dispatcher: finds the method of a call, checks the parameters, and waits for the answer with a timeout.
//!
//! Invariant: a handler that panics or never ends costs its caller a fault and the daemon nothing else.
//! Not here: parsing a call and writing its answer (`codec`).

use super::openapi;
use crate::codec::json;
use crate::codec::value::{Name, Value, held_by};
use crate::dispatch::encoded_answer::Answered;
use crate::dispatch::forward::{Caller, Forwarding};
use crate::dispatch::introspection::{self, Introspection};
use crate::dispatch::method::{Handler, Located, Method, Reading, Registry};
use crate::dispatch::params::Params;
use crate::dispatch::permissions::{Permit, Scope};
use crate::dispatch::statistics::Statistics;
use crate::fault::Fault;
use crate::limits::Limits;
use bytes::Bytes;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use wire::fault;
use wire::query::{Form, Integers, Syntax, Viewer};
use wire::time::Time;

/// The methods of one daemon, ready to be called.
pub struct Dispatcher {
    pub(crate) registry: Registry,
    pub(crate) limits: Limits,
    pub(crate) statistics: Arc<Statistics>,
    /// OpenAPI document, built when it is first requested.
    openapi: OnceLock<Bytes>,
}

/// Caller and scope of a call.
type Whose<'a> = (&'a Caller, &'a Scope);

/// Requested form of an answer.
#[derive(Clone, Copy)]
enum RequestedForm {
    /// A value with all bits of its integers.
    Value,
    /// For a client of this daemon: a document, or a value whose integers have the requested form.
    Of(Syntax),
    /// For a client of another daemon, which has parsed the request.
    Handed(Form),
}

impl RequestedForm {
    /// Form of a document, given the `integers` of the call.
    fn form(self, integers: Integers) -> Option<Form> {
        match self {
            RequestedForm::Value => None,
            RequestedForm::Of(syntax) => Some(Form { syntax, integers }),
            RequestedForm::Handed(form) => Some(form),
        }
    }

    /// Convert the integers of `value` to the requested form.
    fn shaped(self, value: Value, integers: Integers) -> Value {
        match self.form(integers) {
            None => value,
            Some(form) => value.with_integers(form.integers, held_by(form.syntax)),
        }
    }
}

/// Guard that decrements the number of running calls at the end of a call.
struct InWork<'a>(&'a Statistics);

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.0.calls_in_work.subtract(1);
    }
}

impl Dispatcher {
    /// Create a dispatcher for the methods of `registry`, within `limits`; `statistics` counts the calls.
    #[must_use]
    pub fn new(registry: Registry, limits: Limits, statistics: Arc<Statistics>) -> Dispatcher {
        Dispatcher { registry, limits, statistics, openapi: OnceLock::new() }
    }

    /// OpenAPI document of the methods.
    pub(crate) fn openapi(&self) -> Bytes {
        let write = || {
            let document = openapi::document(env!("CARGO_PKG_VERSION"), self.registry.declarations());
            Bytes::from(document.to_string() + "\n")
        };
        self.openapi.get_or_init(write).clone()
    }

    /// Call `name` for another daemon, with named parameters and unchanged integers.
    ///
    /// # Errors
    /// The fault, as a client would receive it; a method that changes anything on its caller's word alone is
    /// not called.
    pub async fn call_for(
        &self,
        caller: &Caller,
        name: &str,
        params: Vec<(Name, Value)>,
    ) -> Result<Value, Fault> {
        self.call_within(Scope::OPEN, caller, name, params, None).await?.value()
    }

    /// As [`Dispatcher::call_for`], restricted by `scope`. For a client of that daemon, `form` names the form
    /// of the document to return; a value may be returned instead.
    ///
    /// # Errors
    /// As [`Dispatcher::call_for`], and if the scope refuses the call.
    pub async fn call_within(
        &self,
        scope: &Scope,
        caller: &Caller,
        name: &str,
        params: Vec<(Name, Value)>,
        form: Option<Form>,
    ) -> Result<Answered, Fault> {
        let changes = |method: &Method| method.declaration.reading == Reading::Changes;
        if self.registry.get(name).is_some_and(changes) {
            return Err(Fault::new(fault::FORBIDDEN, format!("{name} is not called for other daemons")));
        }
        let time_left = caller.time_left.min(self.limits.call_time);
        let requested = form.map_or(RequestedForm::Value, RequestedForm::Handed);
        let run = self.run((caller, scope), name, vec![Value::Struct(params)], requested);
        self.in_time(time_left, run).await
    }

    /// Call `name` with the parameters of a request, restricted by `scope`. The answer is for a client that
    /// reads `syntax`: integers that such a client may not represent have the form that the call requests.
    pub(crate) async fn call(
        &self,
        scope: &Scope,
        name: &str,
        arguments: Vec<Value>,
        syntax: Syntax,
    ) -> Result<Answered, Fault> {
        let caller = scope.caller(self.limits.call_time);
        self.in_time(
            self.limits.call_time,
            self.run((&caller, scope), name, arguments, RequestedForm::Of(syntax)),
        )
        .await
    }

    /// As `call`, with the timeout `time`: for the JSON streams of one viewer, whose clients were authorized
    /// before.
    pub(crate) async fn call_for_all(
        &self,
        viewer: Viewer,
        time: Duration,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Answered, Fault> {
        let caller = Caller { viewer, ..Caller::client(time) };
        let requested = RequestedForm::Of(Syntax::Json);
        self.in_time(time, self.run((&caller, Scope::OPEN), name, arguments, requested)).await
    }

    async fn in_time(
        &self,
        time_left: Duration,
        call: impl Future<Output = Result<Answered, Fault>>,
    ) -> Result<Answered, Fault> {
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
        requested: RequestedForm,
    ) -> Result<Answered, Fault> {
        let method = self.registry.get(name).ok_or_else(|| Fault::method_not_found(name))?;
        if matches!(method.handler, Handler::Introspection(Introspection::Multicall)) {
            let (params, integers) = check(method, arguments, &self.limits, Scope::OPEN)?;
            let answers = self.multicall(whose, &params, requested).await?;
            return Ok(Answered::Value(requested.shaped(answers, integers)));
        }
        Ok(match self.one(whose, method, arguments, requested).await? {
            (Answered::Value(value), integers) => Answered::Value(requested.shaped(value, integers)),
            (written @ Answered::Written(_), _) => written,
        })
    }

    /// Run one call that is not a multicall. Returns the answer with the requested form of its integers.
    async fn one(
        &self,
        (caller, scope): Whose<'_>,
        method: &Method,
        arguments: Vec<Value>,
        requested: RequestedForm,
    ) -> Result<(Answered, Integers), Fault> {
        self.statistics.calls_total.add(1);
        let within = if matches!(method.handler, Handler::Introspection(_)) { Scope::OPEN } else { scope };
        let (params, integers) = check(method, arguments, &self.limits, within)?;
        let form = requested.form(integers);
        let handler = match &method.handler {
            Handler::Introspection(which) => {
                let value = introspection::answer(*which, &self.registry, &params)?;
                return Ok((Answered::Value(value), integers));
            }
            Handler::Daemon(handler) => handler,
        };
        let _held = scope.check(&method.declaration, &params)?;
        let name = method.declaration.name;
        let answer = async {
            if let Some(asking) = self.elsewhere(caller, method, &params, form)
                && let Some(answered) = asking.await?
            {
                return Ok(answered);
            }
            handler(caller, params, form).await
        };
        Ok((self.caught(name, answer).await?, integers))
    }

    /// The answer of another daemon; `None` if the call is for this one.
    fn elsewhere(
        &self,
        caller: &Caller,
        method: &Method,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding> {
        match method.declaration.located {
            Located::Here => None,
            Located::Named => self.registry.elsewhere()?.ask(caller, method.declaration.name, params, form),
        }
    }

    async fn multicall(
        &self,
        whose: Whose<'_>,
        params: &Params,
        requested: RequestedForm,
    ) -> Result<Value, Fault> {
        let calls = introspection::inner_calls(params, self.limits.multicall_calls)?;
        let mut answers = Vec::with_capacity(calls.len());
        let mut weight = 0;
        for call in calls {
            let answer = match call {
                Ok(_) if weight > self.limits.answer_bytes => Err(too_large(self.limits.answer_bytes)),
                Ok(call) => self.inner(whose, &call.name, call.arguments, requested).await,
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

    /// Run one call of a multicall. Its answer becomes part of a larger document, so it is not encoded here.
    async fn inner(
        &self,
        whose: Whose<'_>,
        name: &str,
        arguments: Vec<Value>,
        requested: RequestedForm,
    ) -> Result<Value, Fault> {
        let method = self.registry.get(name).ok_or_else(|| Fault::method_not_found(name))?;
        let (answer, integers) = self.one(whose, method, arguments, RequestedForm::Value).await?;
        Ok(requested.shaped(answer.value()?, integers))
    }

    /// Wait for a handler, and turn its panic into a fault.
    async fn caught(
        &self,
        name: &str,
        answer: impl Future<Output = Result<Answered, Fault>>,
    ) -> Result<Answered, Fault> {
        let mut answer = pin!(answer);
        poll_fn(|context| {
            // A handler that panicked is dropped and never polled again, so its broken state is not used.
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

/// Fault of an answer that exceeds its limit.
pub(crate) fn too_large(at_most: usize) -> Fault {
    Fault::new(
        fault::TOO_LARGE,
        format!("expected an answer of at most {at_most} bytes; ask for less at once"),
    )
}

/// Check the parameters for a method that is not called yet. Returns them with the permit of the call.
pub(crate) fn checked(
    method: &Method,
    arguments: Vec<Value>,
    limits: &Limits,
    scope: &Scope,
) -> Result<(Params, Permit), Fault> {
    let (params, _) = check(method, arguments, limits, scope)?;
    let held = scope.check(&method.declaration, &params)?;
    Ok((params, held))
}

fn check(
    method: &Method,
    arguments: Vec<Value>,
    limits: &Limits,
    scope: &Scope,
) -> Result<(Params, Integers), Fault> {
    let declaration = &method.declaration;
    let mut given = named(arguments, declaration.positional, limits)?;
    scope.fill(declaration, &mut given)?;
    Params::check(&declaration.parameters, given, now())
}

/// Calendar time; spans such as `1h` are relative to it.
#[allow(clippy::disallowed_methods)] // This is the shell that reads the clock.
pub(crate) fn now() -> Time {
    Time::from(std::time::SystemTime::now())
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
mod tests;
