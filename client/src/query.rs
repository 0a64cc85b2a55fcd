//! Query string of a URL, from the parameters of a call.
//!
//! Pure.

use crate::error::Error;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Encode the parameters as `name=value&name=value`; a list repeats its name.
///
/// # Errors
/// [`Error::Mistake`] for a structure or a list of lists, which a query string cannot contain.
pub fn encoded(params: &Map<String, Value>) -> Result<String, Error> {
    let mut query = String::new();
    for (name, value) in params {
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
                    let expected = "in a query a text, a number, true, false, or a list of these";
                    return Err(Error::Mistake(format!("{name}: expected {expected}, found {value}")));
                }
            };
            let separator = if query.is_empty() { "" } else { "&" };
            let _ = write!(query, "{separator}{}={}", percent(name), percent(&text));
        }
    }
    Ok(query)
}

/// Percent-encoding (RFC 3986, section 2): all but unreserved characters as `%XX`.
fn percent(text: &str) -> String {
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
        let check = |params: Value| encoded(params.as_object().expect("parameters"));
        let query = check(json!({"limit": 5, "kind": ["a b", "ü"], "none": null, "is": true}));
        let mut parts: Vec<String> = query.expect("a query").split('&').map(str::to_owned).collect();
        parts.sort();
        assert_eq!(parts, ["is=true", "kind=%C3%BC", "kind=a%20b", "limit=5"]);
        assert_eq!(check(json!({})).as_deref(), Ok(""));
        assert!(check(json!({"calls": [{"methodName": "a.b"}]})).is_err());
    }
}
