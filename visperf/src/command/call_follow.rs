//! `visperf call METHOD --follow`: the answers of a reading method, one after the other, until Ctrl-C.
//!
//! Rule: what was reached once is come back to, each time after another time; what was left out is said on standard error.
//! Not here: the stream (`client::follow`).

use super::call;
use super::interrupt::Interrupt;
use crate::client::course::{self, Course};
use crate::client::follow::{Following, Told};
use crate::client::{Client, Error};
use crate::exit::Failure;
use crate::output::{Output, note};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// A client that lost its connection waits so long, and up to twice that, where the daemon did not say.
const COMES_BACK: Duration = Duration::from_secs(2);

/// Print the answers of `method` each `every` seconds.
///
/// # Errors
/// If the parameters cannot stand in a query, no daemon is reached at first, or it answers with a fault.
pub(crate) fn run(
    client: &mut Client,
    (method, argument): (&str, Option<&Value>),
    every: &str,
    is_compact: bool,
) -> Result<(), Failure> {
    let query = query(argument, every)?;
    let _interrupt = Interrupt::catch(|| ())?;
    let mut output = Output::stdout();
    let mut following = client.follow(method, &query).map_err(|error| client.explain(method, error))?;
    let mut faulty = None;
    loop {
        match following.next() {
            Ok(Some(Told::Answer(answer, skipped))) => {
                if skipped > 0 {
                    note(&format!(
                        "{skipped} answers were left out before this one: they were not taken in time"
                    ));
                }
                faulty = None;
                call::print(&mut output, &answer, is_compact)?;
            }
            // What was asked for is wrong or not granted; that does not pass.
            Ok(Some(Told::Fault { code, message })) if course::of_fault(code, true) == Course::End => {
                return Err(Error::Fault { code, message }.into());
            }
            Ok(Some(Told::Fault { code, message })) => {
                // Said once, however often it comes.
                if faulty.as_ref() != Some(&message) {
                    note(&format!("{message} (fault {code}); following on (Ctrl-C ends)"));
                }
                faulty = Some(message);
            }
            Ok(None) => following = again(client, (method, &query), following.retry, "it ended the answers")?,
            Err(error @ (Error::Lost { .. } | Error::Unreachable(_))) => {
                following = again(client, (method, &query), following.retry, &error.to_string())?;
            }
            Err(error @ (Error::Fault { .. } | Error::Answer { .. } | Error::Mistake(_))) => {
                return Err(error.into());
            }
        }
    }
}

/// Until somebody answers again.
fn again(
    client: &mut Client,
    (method, query): (&str, &str),
    retry: Duration,
    why: &str,
) -> Result<Following, Failure> {
    note(&format!("{why}; trying again until it answers (Ctrl-C ends)"));
    let mut pause = retry;
    loop {
        std::thread::sleep(pause);
        match client.follow(method, query) {
            Ok(following) => {
                note(&format!("reached {} again, going on", client.address()));
                return Ok(following);
            }
            Err(error) if course::course(&error, true) == Course::End => return Err(error.into()),
            Err(_) => {}
        }
        pause = COMES_BACK.mul_f64(1.0 + jitter());
    }
}

/// Any number from 0 to 1, so that not all come back at once.
fn jitter() -> f64 {
    let mut drawn = [0; 2];
    match getrandom::fill(&mut drawn) {
        Ok(()) => f64::from(u16::from_le_bytes(drawn)) / f64::from(u16::MAX),
        Err(_) => 0.5,
    }
}

/// The parameters as a query has them.
fn query(argument: Option<&Value>, every: &str) -> Result<String, Failure> {
    let mut query = format!("follow={}", encoded(every));
    let members = argument.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in members {
        let values = match value {
            Value::Null => continue,
            Value::Array(values) => values.iter().collect(),
            one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => vec![one],
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let expected = "with --follow a text, a number, true, false, or a list of texts";
                    return Err(Failure::Usage(format!("{name}: expected {expected}, found {value}")));
                }
            };
            let _ = write!(query, "&{}={}", encoded(name), encoded(&text));
        }
    }
    Ok(query)
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => _ = write!(out, "%{other:02X}"),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_stand_in_the_query() {
        let value = json!({"limit": 5, "kind": ["a b", "ü"], "none": null, "is": true});
        assert_eq!(query(Some(&value), "0.5").unwrap(), "follow=0.5&limit=5&kind=a%20b&kind=%C3%BC&is=true");
        assert_eq!(query(None, "1").unwrap(), "follow=1");
        let nested = json!({"calls": [{"methodName": "a.b"}]});
        assert!(query(Some(&nested), "1").is_err());
    }
}
