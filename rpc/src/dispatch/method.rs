//! Methods of a daemon: declaration of the name, parameters and result, and the handler.
//!
//! A daemon fills one [`Registry`]; several daemons in one process merge theirs.
//! Invariant: a name is registered once; names under `system.` belong to `introspection`.
//! Not here: the transport of a call (`http`), the check of its parameters (`params`), running it
//! (`dispatcher`).

use crate::codec::value::{Name, Value};
use crate::dispatch::encoded_answer::{Answered, Answering};
use crate::dispatch::forward::{Caller, Forward};
use crate::dispatch::introspection::Introspection;
use crate::dispatch::params::{BIG_INTEGERS, Parameter, Params, Type};
use crate::dispatch::schema::Typed;
use crate::fault::Fault;
use crate::limits::METHOD_NAME_BYTES;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use wire::query::Form;

/// Query parameter that requests a stream; no method has a parameter of this name.
pub(crate) const FOLLOW: &str = "follow";

/// Content type of a stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Future returned by a handler.
pub type Answer = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send>>;

/// Why a registry refuses a method. These are errors in the program, not of its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two methods have one name.
    #[error("expected each method once, found {0} twice; give one of them another name")]
    Duplicate(String),
    /// Not of the form `word.word`.
    #[error("expected a method name such as sensor.events, at most 64 bytes, outside system., found {0:?}")]
    Name(String),
    /// Two parameters have the same name, or one has a built-in name.
    #[error(
        "expected each parameter of {method} once, found {parameter} twice (big_integers and follow are built in)"
    )]
    DuplicateParameter {
        /// Name of the method.
        method: String,
        /// Name of the parameter.
        parameter: String,
    },
    /// A path is registered twice, or its method does not only read.
    #[error("expected the path {path} once, for a method that only reads, found it twice or for {method}")]
    Path {
        /// The refused path.
        path: String,
        /// Name of the method.
        method: String,
    },
}

/// Declaration of a method: name, parameters, documentation.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) summary: Name,
    pub(crate) details: Name,
    pub(crate) reading: Reading,
    pub(crate) located: Located,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) positional: Option<&'static str>,
    pub(crate) result_type: &'static str,
    pub(crate) result_help: Name,
    /// The Rust types of parameters and answer, for a method declared by them.
    pub(crate) typed: Option<Typed>,
}

/// What a call may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It only reads: HTTP GET may call it.
    Only,
    /// It stores something for the caller, and changes nothing for others: POST only, and other daemons may
    /// forward it.
    ForAsker,
    /// It may change something: POST only.
    Changes,
    /// It changes something, and its parameters prove the origin of the order: POST only, and a daemon may
    /// call it for another.
    Signed,
}

/// Which daemon answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// The daemon that receives the call.
    Here,
    /// The daemon that `domain` and `host` name ([`crate::dispatch::forward`]).
    Named,
}

/// A method with its handler.
pub struct Method {
    pub(crate) declaration: Declaration,
    pub(crate) handler: Handler,
}

/// Handler of one method; it may return a document if a form is given.
type Handling = dyn Fn(&Caller, Params, Option<Form>) -> Answering + Send + Sync;

pub(crate) enum Handler {
    Daemon(Box<Handling>),
    Introspection(Introspection),
}

impl Declaration {
    /// Declare a method `daemon.word` with a summary of one line. It may change something unless
    /// [`Self::reading`] is called.
    #[must_use]
    pub fn new(name: &'static str, summary: impl Into<Name>) -> Declaration {
        Declaration {
            name,
            summary: summary.into(),
            details: Name::default(),
            reading: Reading::Changes,
            located: Located::Here,
            parameters: Vec::new(),
            positional: None,
            result_type: "struct",
            result_help: Name::default(),
            typed: None,
        }
    }

    /// Name of the method.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it has a parameter of this name.
    #[must_use]
    pub fn takes(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|known| known.name == parameter)
    }

    /// Whether its parameter of this name is a list.
    pub(crate) fn is_list(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|known| known.name == parameter && known.kind.is_list())
    }

    /// Whether its parameter of this name is a time.
    pub(crate) fn is_time(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|known| known.name == parameter && matches!(known.kind, Type::Time))
    }

    /// Whether it changes nothing for others on its caller's word alone, as
    /// [`crate::dispatch::permissions::Permissions::may`] receives it.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.reading != Reading::Changes
    }

    /// Declare that it only reads, so GET may call it.
    #[must_use]
    pub fn reading(mut self) -> Declaration {
        self.reading = Reading::Only;
        self
    }

    /// Declare that it stores something for the caller, and changes nothing for others: other daemons may
    /// forward it, but not by GET.
    #[must_use]
    pub fn for_asker(mut self) -> Declaration {
        self.reading = Reading::ForAsker;
        self
    }

    /// Declare that it changes something, and that its parameters prove the origin of the order, whichever
    /// daemon forwards it.
    #[must_use]
    pub fn signed(mut self) -> Declaration {
        self.reading = Reading::Signed;
        self
    }

    /// Declare that it is about a domain, named by the parameter `domain`; a daemon that cannot answer
    /// forwards the call to one that can.
    #[must_use]
    pub fn of_domain(mut self) -> Declaration {
        self.located = Located::Named;
        let domain = "of this domain; the daemon's own unless given";
        self.parameters.push(Parameter::new("domain", Type::Text, domain));
        self
    }

    /// Declare that it is about a host of a domain, named by `host` and `domain`; calls are forwarded
    /// likewise.
    #[must_use]
    pub fn of_host(mut self) -> Declaration {
        self = self.of_domain();
        self.parameters.push(Parameter::new(
            "host",
            Type::Text,
            "of this host; the daemon's own unless given",
        ));
        self
    }

    /// Set the details that `system.methodHelp` shows after the summary.
    #[must_use]
    pub fn details(mut self, details: impl Into<Name>) -> Declaration {
        self.details = details.into();
        self
    }

    /// Add a parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: Parameter) -> Declaration {
        self.parameters.push(parameter);
        self
    }

    /// Accept a single value that is not a structure as this parameter (as the `system.` methods of other
    /// servers do).
    #[must_use]
    pub(crate) fn positional(mut self, parameter: &'static str) -> Declaration {
        self.positional = Some(parameter);
        self
    }

    /// Set the XML-RPC type of the result (default `struct`) and its description.
    #[must_use]
    pub fn returns(mut self, result_type: &'static str, help: impl Into<Name>) -> Declaration {
        (self.result_type, self.result_help) = (result_type, help.into());
        self
    }

    /// Set an asynchronous handler, which completes the method.
    #[must_use]
    pub fn handler<H, F>(self, handler: H) -> Method
    where
        H: Fn(Params) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Value, Fault>> + Send + 'static,
    {
        self.handler_for(move |_, params| handler(params))
    }

    /// As [`Declaration::handler`], for an answer that depends on the caller.
    #[must_use]
    pub fn handler_for<H, F>(self, handler: H) -> Method
    where
        H: Fn(&Caller, Params) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Value, Fault>> + Send + 'static,
    {
        let boxed = move |caller: &Caller, params, _: Option<Form>| {
            let answer = handler(caller, params);
            Box::pin(async move { answer.await.map(Answered::Value) }) as Answering
        };
        Method { declaration: self, handler: Handler::Daemon(Box::new(boxed)) }
    }

    /// As [`Declaration::handler_for`], for an answer that may be encoded at once in the given form.
    #[must_use]
    pub fn handler_writing<H, F>(self, handler: H) -> Method
    where
        H: Fn(Params, Option<Form>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Answered, Fault>> + Send + 'static,
    {
        let boxed = move |_: &Caller, params, form| Box::pin(handler(params, form)) as Answering;
        Method { declaration: self, handler: Handler::Daemon(Box::new(boxed)) }
    }

    /// Set a synchronous handler. It runs on a runtime thread and must not block.
    #[must_use]
    pub fn handler_now<H>(self, handler: H) -> Method
    where
        H: Fn(&Params) -> Result<Value, Fault> + Send + Sync + 'static,
    {
        self.handler(move |params| std::future::ready(handler(&params)))
    }
}

/// The methods of one listener.
pub struct Registry {
    methods: BTreeMap<&'static str, Method>,
    /// Paths at which GET calls a method.
    paths: BTreeMap<&'static str, &'static str>,
    elsewhere: Option<Box<dyn Forward>>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}

impl Registry {
    /// Create a registry with only the `system.` methods.
    #[must_use]
    pub fn new() -> Registry {
        let methods = crate::dispatch::introspection::methods();
        let methods = methods.into_iter().map(|method| (method.declaration.name, method)).collect();
        Registry { methods, paths: BTreeMap::new(), elsewhere: None }
    }

    /// Set the forwarder for calls of [`Declaration::of_domain`] methods.
    pub fn set_elsewhere(&mut self, elsewhere: Box<dyn Forward>) {
        self.elsewhere = Some(elsewhere);
    }

    pub(crate) fn elsewhere(&self) -> Option<&dyn Forward> {
        self.elsewhere.as_deref()
    }

    /// Add a method.
    ///
    /// # Errors
    /// If its name is taken, malformed or reserved, or a parameter is declared twice; nothing is added then.
    pub fn add(&mut self, method: Method) -> Result<(), Error> {
        let Declaration { name, parameters, .. } = &method.declaration;
        if !is_name(name) || name.starts_with("system.") {
            return Err(Error::Name((*name).to_owned()));
        }
        for (at, parameter) in parameters.iter().enumerate() {
            let taken = parameters[..at].iter().any(|earlier| earlier.is_called_as(parameter));
            if taken || parameter.name == BIG_INTEGERS || parameter.name == FOLLOW {
                let (method, parameter) = ((*name).to_owned(), parameter.name.clone().into_owned());
                return Err(Error::DuplicateParameter { method, parameter });
            }
        }
        if self.methods.contains_key(name) {
            return Err(Error::Duplicate((*name).to_owned()));
        }
        self.methods.insert(method.declaration.name, method);
        Ok(())
    }

    /// Register `path`: a GET of it calls the read method `name` and returns JSON, for programs that expect a
    /// path of their own.
    ///
    /// # Errors
    /// If the path is taken, or there is no such method that only reads; nothing is added then.
    pub fn add_path(&mut self, path: &'static str, name: &'static str) -> Result<(), Error> {
        let reads = self.get(name).is_some_and(|method| method.declaration.reading == Reading::Only);
        if !reads || !is_free(path) || self.paths.contains_key(path) {
            return Err(Error::Path { path: path.to_owned(), method: name.to_owned() });
        }
        self.paths.insert(path, name);
        Ok(())
    }

    /// The paths of [`Registry::add_path`] and their methods, sorted by path.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.paths.iter().map(|(path, name)| (*path, *name))
    }

    /// Add every method and path of another registry.
    ///
    /// # Errors
    /// If a name is taken; nothing is added then.
    pub fn merge(&mut self, other: Registry) -> Result<(), Error> {
        let added = other.methods.into_iter().filter(|(name, _)| !name.starts_with("system."));
        let added: Vec<_> = added.collect();
        if let Some((name, _)) = added.iter().find(|(name, _)| self.methods.contains_key(name)) {
            return Err(Error::Duplicate((*name).to_owned()));
        }
        if let Some((path, name)) = other.paths.iter().find(|(path, _)| self.paths.contains_key(*path)) {
            return Err(Error::Path { path: (*path).to_owned(), method: (*name).to_owned() });
        }
        self.methods.extend(added);
        self.paths.extend(other.paths);
        Ok(())
    }

    /// Names of all methods, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.methods.keys().copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Method> {
        self.methods.get(name)
    }

    pub(crate) fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.methods.values().map(|method| &method.declaration)
    }
}

/// Whether a path is free: not one of the query interface's own, and without patterns of the router.
fn is_free(path: &str) -> bool {
    let is_own = ["/", "/RPC2", "/RPC2/", "/api/v1", "/api/v1/", "/api/v1/openapi.json"].contains(&path);
    let is_method = path.strip_prefix("/api/v1/").is_some_and(is_name);
    path.starts_with('/') && !is_own && !is_method && !path.contains(['{', '}', ':', '*'])
}

fn is_name(name: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_free = name != "openapi.json";
    is_free && name.len() <= METHOD_NAME_BYTES && name.split('.').count() >= 2 && name.split('.').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(name: &'static str) -> Method {
        Declaration::new(name, "says nothing").handler_now(|_| Ok(Value::Nil))
    }

    #[test]
    fn names_are_checked() {
        let check = |name, fits| assert_eq!(Registry::new().add(method(name)).is_ok(), fits, "{name}");
        check("sensor.events", true);
        check("sensor.events_2", true);
        for name in ["sensor", "", ".", "a.", "Sensor.x", "system.new", "a b.c", "a/b.c"] {
            check(name, false);
        }
    }

    #[test]
    fn a_name_is_registered_once() {
        let mut registry = Registry::new();
        registry.add(method("a.b")).unwrap();
        assert_eq!(registry.add(method("a.b")), Err(Error::Duplicate("a.b".into())));
        let mut other = Registry::new();
        other.add(method("a.b")).unwrap();
        other.add(method("a.c")).unwrap();
        assert_eq!(registry.merge(other), Err(Error::Duplicate("a.b".into())));
        assert!(registry.get("a.c").is_none(), "a refused merge adds nothing");
        let mut third = Registry::new();
        third.add(method("b.b")).unwrap();
        registry.merge(third).unwrap();
        assert!(registry.get("b.b").is_some());
    }

    #[test]
    fn a_path_stands_for_one_reading_method() {
        let mut registry = Registry::new();
        registry.add(method("a.b")).unwrap();
        registry.add(Declaration::new("a.c", "reads").reading().handler_now(|_| Ok(Value::Nil))).unwrap();
        let refused = |path: &str, method: &str| Error::Path { path: path.into(), method: method.into() };
        assert_eq!(registry.add_path("/x", "a.b"), Err(refused("/x", "a.b")), "it may change something");
        assert_eq!(registry.add_path("/x", "a.d"), Err(refused("/x", "a.d")));
        registry.add(Declaration::new("a.e", "changes").signed().handler_now(|_| Ok(Value::Nil))).unwrap();
        assert_eq!(registry.add_path("/x", "a.e"), Err(refused("/x", "a.e")), "a proof is no reading");
        for path in
            ["x", "/", "/RPC2", "/api/v1", "/api/v1/a.c", "/api/v1/openapi.json", "/{x}", "/:x", "/*x"]
        {
            assert_eq!(registry.add_path(path, "a.c"), Err(refused(path, "a.c")));
        }
        registry.add_path("/x", "a.c").unwrap();
        assert_eq!(registry.add_path("/x", "a.c"), Err(refused("/x", "a.c")));
        let mut other = Registry::new();
        other.add(Declaration::new("b.c", "reads").reading().handler_now(|_| Ok(Value::Nil))).unwrap();
        other.add_path("/x", "b.c").unwrap();
        assert_eq!(registry.merge(other), Err(refused("/x", "b.c")));
        assert_eq!(registry.paths().collect::<Vec<_>>(), [("/x", "a.c")]);
    }

    #[test]
    fn a_parameter_is_declared_once() {
        for name in ["x", BIG_INTEGERS, FOLLOW] {
            let twice = Declaration::new("a.b", "")
                .parameter(Parameter::new("x", Type::Text, ""))
                .parameter(Parameter::new(name, Type::Text, ""))
                .handler_now(|_| Ok(Value::Nil));
            assert!(matches!(Registry::new().add(twice), Err(Error::DuplicateParameter { .. })));
        }
    }
}
