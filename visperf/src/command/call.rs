//! `visperf call`: calls any method of a daemon over XML-RPC.
//!
//! Rule: the answer is printed as JSON whatever the method, except that plain text is printed as it is. Not
//! here: the transport (`client::xml`).

use super::call_follow;
use crate::client::target::Target;
use crate::client::{Client, xml};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::Output;
use serde_json::{Map, Value};

/// Call any method of a daemon by XML-RPC and print its answer as JSON (a text unchanged)
///
/// `visperf call system.listMethods` lists the methods; `visperf call system.methodHelp name=METHOD` explains
/// one. Whole numbers above 2^63-1 are printed as text.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf call daemon.info
  visperf call sensor.events limit=5 'kind=[\"job_start\",\"job_end\"]'
  visperf call sensor.events '{\"limit\": 5, \"since\": 1795178489.5}'
  visperf call --compact directory.domains
  visperf call domain.hosts --follow=5 --compact")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Name of the method
    #[arg(value_name = "METHOD")]
    method: String,
    /// Parameters: NAME=VALUE each, or one JSON object
    ///
    /// A value that starts with [ or { or a double quote is JSON; any other value is text, which daemons
    /// convert to numbers and true/false as needed.
    #[arg(value_name = "ARGS")]
    arguments: Vec<String>,
    /// Print the answer on one line
    #[arg(long, visible_alias = "json")]
    compact: bool,
    /// Print each changed answer, at most one every SECONDS (0.1 to 60) [default: 1], until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    follow: Option<String>,
}

/// Call the method.
///
/// # Errors
/// If the parameters are malformed, no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let argument = argument(&args.arguments).map_err(|wrong| {
        Failure::Usage(format!("{wrong}{}", parameters_hint(&args.method, &args.arguments)))
    })?;
    let mut client = Client::new(&args.target);
    if let Some(every) = &args.follow {
        return call_follow::run(&mut client, (&args.method, argument.as_ref()), every, args.compact);
    }
    let answer = xml::call(&mut client, &args.method, argument.as_ref())
        .map_err(|error| client.explain(&args.method, error))?;
    print(&mut Output::stdout(), &answer, args.compact)
}

/// Print one answer.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn print(output: &mut Output, answer: &Value, is_compact: bool) -> Result<(), Failure> {
    match answer {
        _ if is_compact => output.json(answer)?,
        // Plain text is easier to read line by line than as a JSON string.
        Value::String(text) => text.lines().try_for_each(|line| output.line(&clean(line)))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            output.json_lines(answer)?;
        }
    }
    output.flush()
}

/// Where to find the parameters of a method, or the exact command if it is known.
fn parameters_hint(method: &str, given: &[String]) -> String {
    match (method, given) {
        ("system.methodHelp" | "system.methodSignature", [one]) if !one.contains(['=', '{']) => {
            format!("; parameters have names: visperf call {method} name={one}")
        }
        _ => format!("; the names are in: visperf call system.methodHelp name={method}"),
    }
}

/// The structure of named parameters; `None` without any.
fn argument(given: &[String]) -> Result<Option<Value>, String> {
    if let [one] = given
        && one.trim_start().starts_with('{')
    {
        let object: Map<String, Value> = serde_json::from_str(one)
            .map_err(|error| format!("expected a JSON object of parameters: {error}, in {one}"))?;
        return Ok(Some(Value::Object(object)));
    }
    let mut members = Map::new();
    for argument in given {
        let Some((name, text)) = argument.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!("expected NAME=VALUE or one JSON object, found {argument:?}"));
        };
        let value = match text.trim_start().chars().next() {
            Some('[' | '{' | '"') => serde_json::from_str(text)
                .map_err(|error| format!("expected JSON as the value of {name}: {error}, in {text}"))?,
            _ => Value::from(text),
        };
        if members.insert(name.to_owned(), value).is_some() {
            return Err(format!(
                "expected each parameter once, found {name} twice; write a list as JSON: '{name}=[...]'"
            ));
        }
    }
    Ok((!members.is_empty()).then_some(Value::Object(members)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(given: &[&str], expected: Result<Option<Value>, &str>) {
        let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
        match (argument(&given), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{given:?}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, expected) => panic!("{given:?}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn parameters_are_pairs_or_an_object() {
        check(&[], Ok(None));
        check(&["limit=5", "job=007"], Ok(Some(json!({"limit": "5", "job": "007"}))));
        check(&["kind=[\"a\",1]", "x=\"y\""], Ok(Some(json!({"kind": ["a", 1], "x": "y"}))));
        check(&["a=b=c", "e="], Ok(Some(json!({"a": "b=c", "e": ""}))));
        check(&["{\"limit\": 5}"], Ok(Some(json!({"limit": 5}))));
        check(&["{}"], Ok(Some(json!({}))));
        check(&["limit"], Err("NAME=VALUE"));
        check(&["=5"], Err("NAME=VALUE"));
        check(&["{\"limit\""], Err("JSON object"));
        check(&["a=[1"], Err("value of a"));
        check(&["a=1", "a=2"], Err("twice"));
    }
}
