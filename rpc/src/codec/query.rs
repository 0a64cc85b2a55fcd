//! Parser of query strings: `name=value&name=value`, percent-encoded UTF-8.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Values stay text here; `params` converts them to the declared type of each parameter.

use crate::codec::value::{Name, Value};
use crate::fault::Fault;
use crate::limits::Limits;
use percent_encoding::percent_decode;
use wire::fault;

/// Parse a query string; a parameter that `is_list` collects all its values.
pub(crate) fn parse_params(
    query: &str,
    is_list: impl Fn(&str) -> bool,
    limits: &Limits,
) -> Result<Vec<Value>, Fault> {
    let mut members: Vec<(Name, Value)> = Vec::new();
    for (at, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        if at >= limits.query_parameters {
            let message =
                format!("expected at most {} parameters, found more; use POST", limits.query_parameters);
            return Err(Fault::new(fault::TOO_COMPLEX, message));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, Value::Text(decode(value)?));
        let is_list = is_list(&name);
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Value::Array(values))) if is_list => values.push(value),
            // The check of the parameters refuses a duplicate name.
            Some(_) | None => {
                members.push((Name::Owned(name), if is_list { Value::Array(vec![value]) } else { value }))
            }
        }
    }
    Ok(if members.is_empty() { Vec::new() } else { vec![Value::Struct(members)] })
}

fn decode(text: &str) -> Result<String, Fault> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| {
        Fault::new(fault::CHARACTER, "expected UTF-8 behind the %XX of the query, found something else")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<Vec<Value>, i32> {
        parse_params(query, |name| name == "kind", &Limits::default()).map_err(|fault| fault.code)
    }

    #[test]
    fn pairs_become_a_structure_of_texts() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("&&"), Ok(vec![]));
        let read = parse("limit=5&kind=a+b&x=%C3%BC%26&kind=c&flag").unwrap();
        let expected = Value::Struct(vec![
            ("limit".into(), "5".into()),
            ("kind".into(), Value::array(["a b", "c"])),
            ("x".into(), "\u{fc}&".into()),
            ("flag".into(), "".into()),
        ]);
        assert_eq!(read, vec![expected]);
        assert_eq!(parse("x=%FF"), Err(fault::CHARACTER));
        assert_eq!(parse(&"a=b&".repeat(65)), Err(fault::TOO_COMPLEX));
    }
}
