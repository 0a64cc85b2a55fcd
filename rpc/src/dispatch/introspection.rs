//! The `system.` methods: introspection, and several calls in one.
//!
//! Pure: no runtime, no file, no socket, no clock. The answers depend only on the registry;
//! `system.multicall` is run by `dispatcher`, which has the handlers.
//! Not here: the `/` page and the JSON list (`http::router`).

use crate::codec::value::Value;
use crate::codec::xml_writer;
use crate::dispatch::method::{Declaration, Handler, Method, Reading, Registry};
use crate::dispatch::params::{Parameter, Params, Type};
use crate::fault::Fault;

/// One of the `system.` methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Introspection {
    ListMethods,
    MethodHelp,
    MethodSignature,
    GetCapabilities,
    Multicall,
}

/// Name of the method that runs several calls.
pub(crate) const MULTICALL: &str = "system.multicall";

/// One call inside a multicall.
#[derive(Debug, PartialEq)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Value>,
}

/// The `system.` methods, for every registry.
pub(crate) fn methods() -> Vec<Method> {
    let name = || Parameter::new("name", Type::Text, "the method").required();
    let calls = Parameter::new("calls", Type::Array, "structures of methodName and params").required();
    [
        (
            Introspection::ListMethods,
            Declaration::new("system.listMethods", "The names of all methods")
                .returns("array", "names, sorted")
                .reading(),
        ),
        (
            Introspection::MethodHelp,
            Declaration::new("system.methodHelp", "What a method does, takes and gives")
                .parameter(name())
                .positional("name")
                .returns("string", "text for people")
                .reading(),
        ),
        (
            Introspection::MethodSignature,
            Declaration::new("system.methodSignature", "The types a method gives and takes")
                .parameter(name())
                .positional("name")
                .returns(
                    "array",
                    "one array for each form of the call: the type of the result, then of each parameter",
                )
                .reading(),
        ),
        (
            Introspection::GetCapabilities,
            Declaration::new("system.getCapabilities", "Which conventions this server keeps")
                .returns("struct", "for each convention, its address and version")
                .reading(),
        ),
        (
            Introspection::Multicall,
            Declaration::new(MULTICALL, "Several calls in one request, answered in order")
                .details(
                    "Each call is a structure {methodName, params}: params is an array of no value or of one \
                     structure, or that structure itself. A call that fails does not stop the others.",
                )
                .parameter(calls)
                .positional("calls")
                .returns(
                    "array",
                    "for each call an array of its one result, or a structure {faultCode, faultString}",
                ),
        ),
    ]
    .into_iter()
    .map(|(introspection, declaration)| Method {
        declaration,
        handler: Handler::Introspection(introspection),
    })
    .collect()
}

/// Answer any `system.` method except the multicall.
pub(crate) fn answer(which: Introspection, registry: &Registry, params: &Params) -> Result<Value, Fault> {
    match which {
        Introspection::ListMethods => Ok(Value::array(registry.names())),
        Introspection::MethodHelp => Ok(Value::from(declared(registry, params)?.help())),
        Introspection::MethodSignature => Ok(signature(declared(registry, params)?)),
        Introspection::GetCapabilities => Ok(capabilities()),
        Introspection::Multicall => Err(Fault::internal("a multicall reached introspection")),
    }
}

/// Parse the calls of a multicall; each may be malformed independently.
pub(crate) fn inner_calls(params: &Params, at_most: usize) -> Result<Vec<Result<Inner, Fault>>, Fault> {
    let calls = params.value("calls").and_then(Value::as_array).unwrap_or_default();
    if calls.len() > at_most {
        return Err(Fault::new(
            wire::fault::TOO_LARGE,
            format!("calls: expected at most {at_most}, found {}; send several requests", calls.len()),
        ));
    }
    Ok(calls.iter().map(inner_call).collect())
}

fn inner_call(call: &Value) -> Result<Inner, Fault> {
    let expected = "expected a structure {methodName, params}";
    let Value::Struct(members) = call else {
        return Err(Fault::invalid_params(format!("{expected}, found {}", call.shown())));
    };
    if let Some((name, _)) = members.iter().find(|(name, _)| name != "methodName" && name != "params") {
        return Err(Fault::invalid_params(format!("{expected}, found {}", Value::from(&**name).shown())));
    }
    let name = call.get("methodName").and_then(Value::as_text);
    let name = name.ok_or_else(|| Fault::invalid_params(format!("{expected}, found no text methodName")))?;
    if name == MULTICALL {
        return Err(Fault::invalid_params(
            "a multicall inside a multicall is refused; send its calls beside the others",
        ));
    }
    let arguments = match call.get("params") {
        None | Some(Value::Nil) => Vec::new(),
        Some(Value::Array(values)) => values.clone(),
        Some(one @ Value::Struct(_)) => vec![one.clone()],
        Some(other) => {
            return Err(Fault::invalid_params(format!(
                "params: expected an array or a structure, found {}",
                other.shown()
            )));
        }
    };
    Ok(Inner { name: name.to_owned(), arguments })
}

/// Answer to one call inside a multicall.
pub(crate) fn inner_answer(answer: Result<Value, Fault>) -> Value {
    match answer {
        Ok(value) => Value::Array(vec![value]),
        Err(fault) => xml_writer::fault_value(&fault),
    }
}

fn declared<'a>(registry: &'a Registry, params: &Params) -> Result<&'a Declaration, Fault> {
    let name = params.need_text("name")?;
    let method = registry.get(name).ok_or_else(|| Fault::method_not_found(name))?;
    Ok(&method.declaration)
}

fn signature(declaration: &Declaration) -> Value {
    let result = declaration.result_type;
    let kind = |parameter: &Parameter| match parameter.kind {
        Type::Text | Type::Choice(_) => "string",
        Type::Whole { .. } => "int",
        Type::Number | Type::Time | Type::Span => "double",
        Type::Flag => "boolean",
        Type::Choices(_) | Type::Texts | Type::Array => "array",
        Type::Struct | Type::Fields(_) => "struct",
        // XML-RPC has no type for it; introspecting clients accept this word.
        Type::Any => "undef",
    };
    let mut forms = Vec::new();
    if !declaration.parameters.iter().any(|parameter| parameter.required) {
        forms.push(Value::array([result]));
    }
    let positional = declaration.positional;
    let positional = declaration.parameters.iter().find(|parameter| Some(&*parameter.name) == positional);
    if let Some(positional) = positional {
        forms.push(Value::array([result, kind(positional)]));
    }
    forms.push(Value::array([result, "struct"]));
    Value::Array(forms)
}

fn capabilities() -> Value {
    let convention = |url: &str, version: i32| {
        Value::object([("specUrl", Value::from(url)), ("specVersion", Value::from(version))])
    };
    Value::object([
        ("xmlrpc", convention("http://xmlrpc.com/spec.md", 1)),
        ("introspection", convention("http://xmlrpc-c.sourceforge.net/introspection.html", 1)),
        ("system.multicall", convention("https://mirrors.talideon.com/articles/multicall.html", 1)),
        (
            "faults_interop",
            convention("http://xmlrpc-epi.sourceforge.net/specs/rfc.fault_codes.php", 20_010_516),
        ),
        ("nil", convention("http://ws.apache.org/xmlrpc/types.html", 1)),
        ("i8", convention("http://ws.apache.org/xmlrpc/types.html", 1)),
    ])
}

/// List of all methods with their summaries, for `GET /api/v1`.
pub(crate) fn listing(registry: &Registry) -> Value {
    let method = |declaration: &Declaration| {
        let parameters = declaration.parameters.iter().map(|parameter| {
            Value::object([
                ("name", Value::from(&*parameter.name)),
                ("type", Value::from(parameter.kind.describe())),
                ("required", Value::from(parameter.required)),
                ("default", parameter.default.clone().unwrap_or_default()),
                ("help", Value::from(&*parameter.help)),
            ])
        });
        Value::object([
            ("name", Value::from(declaration.name)),
            ("help", Value::from(&*declaration.summary)),
            ("details", Value::from(&*declaration.details)),
            ("get", Value::from(declaration.reading == Reading::Only)),
            ("parameters", Value::array(parameters)),
            ("result", Value::from(&*declaration.result_help)),
        ])
    };
    Value::object([("methods", Value::array(registry.declarations().map(method)))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_list_each_form_of_a_call() {
        let check = |name: &str, expected: Value| {
            let registry = Registry::new();
            let given = vec![("name".into(), Value::from(name))];
            let declared = registry.get("system.methodSignature").unwrap();
            let (params, _) =
                Params::check(&declared.declaration.parameters, given, wire::time::Time::default()).unwrap();
            assert_eq!(answer(Introspection::MethodSignature, &registry, &params), Ok(expected));
        };
        check(
            "system.listMethods",
            Value::array([Value::array(["array"]), Value::array(["array", "struct"])]),
        );
        check(
            "system.methodHelp",
            Value::array([Value::array(["string", "string"]), Value::array(["string", "struct"])]),
        );
    }

    #[test]
    fn inner_calls_are_read_each_for_itself() {
        let read = |call: Value| inner_call(&call);
        let good = Value::object([("methodName", Value::from("a.b")), ("params", Value::Array(vec![]))]);
        assert_eq!(read(good), Ok(Inner { name: "a.b".into(), arguments: vec![] }));
        let short = Value::object([("methodName", Value::from("a.b"))]);
        assert!(read(short).is_ok());
        for bad in [
            Value::Nil,
            Value::object([("params", Value::Array(vec![]))]),
            Value::object([("methodName", Value::from(1))]),
            Value::object([("methodName", Value::from(MULTICALL))]),
            Value::object([("methodName", Value::from("a.b")), ("params", Value::from(1))]),
            Value::object([("methodName", Value::from("a.b")), ("more", Value::from(1))]),
        ] {
            assert_eq!(read(bad.clone()).unwrap_err().code, wire::fault::INVALID_PARAMS, "{bad:?}");
        }
    }
}
