//! XML-RPC client: the `xmlrpc` crate over this program's connection, and its values to JSON and back.
//!
//! The crate is an independent implementation, so `visperf call` also verifies that daemons speak XML-RPC as
//! others do.

use crate::client::{Client, PATIENCE};
use ::client::Error;
use data_encoding::BASE64;
use serde_json::{Map, Value};
use std::io::Cursor;
use xmlrpc::{Request, Transport, Value as Xml};

/// Call a method over XML-RPC.
///
/// # Errors
/// See [`Error`].
pub(crate) fn call(client: &mut Client, method: &str, argument: Option<&Value>) -> Result<Value, Error> {
    let mut request = Request::new(method);
    if let Some(argument) = argument {
        request = request.arg(to_xml(argument));
    }
    let mut failure = None;
    let result = request.call(Posting { client, failure: &mut failure });
    if let Some(error) = failure {
        return Err(error);
    }
    result.map(from_xml).map_err(|error| match error.fault() {
        Some(fault) => Error::Fault { code: fault.fault_code.into(), message: fault.fault_string.clone() },
        None => Error::Answer { address: client.address(), found: error.to_string() },
    })
}

/// Transport of the crate over [`Client`]; our errors bypass the crate, which would reduce them to text.
struct Posting<'a> {
    client: &'a mut Client,
    failure: &'a mut Option<Error>,
}

impl Transport for Posting<'_> {
    type Stream = Cursor<Vec<u8>>;

    fn transmit(
        self,
        request: &Request<'_>,
    ) -> Result<Self::Stream, Box<dyn std::error::Error + Send + Sync>> {
        let mut body = Vec::new();
        request.write_as_xml(&mut body)?;
        let mut fail = |error: Error| {
            let text = error.to_string();
            *self.failure = Some(error);
            text.into()
        };
        match self.client.post("/RPC2", "text/xml; charset=utf-8", body, PATIENCE) {
            Ok(answer) if answer.status == 200 => Ok(Cursor::new(answer.body)),
            Ok(answer) => {
                let found = format!("HTTP status {}", answer.status);
                Err(fail(Error::Answer { address: self.client.address(), found }))
            }
            Err(error) => Err(fail(error)),
        }
    }
}

fn to_xml(value: &Value) -> Xml {
    match value {
        Value::Null => Xml::Nil,
        Value::Bool(flag) => Xml::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(Xml::Int64(whole), Xml::Int),
            // A number that does not fit a signed 64-bit integer is sent as its digits, which daemons accept.
            None if number.is_u64() => Xml::String(number.to_string()),
            None => Xml::Double(number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => Xml::String(text.clone()),
        Value::Array(items) => Xml::Array(items.iter().map(to_xml).collect()),
        Value::Object(members) => {
            Xml::Struct(members.iter().map(|(name, value)| (name.clone(), to_xml(value))).collect())
        }
    }
}

fn from_xml(value: Xml) -> Value {
    match value {
        Xml::Nil => Value::Null,
        Xml::Bool(flag) => flag.into(),
        Xml::Int(number) => number.into(),
        Xml::Int64(number) => number.into(),
        Xml::Double(number) => number.into(),
        Xml::String(text) => text.into(),
        Xml::Base64(bytes) => BASE64.encode(&bytes).into(),
        Xml::DateTime(time) => time.to_string().into(),
        Xml::Array(items) => items.into_iter().map(from_xml).collect(),
        Xml::Struct(members) => Value::Object(
            members.into_iter().map(|(name, value)| (name, from_xml(value))).collect::<Map<_, _>>(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_come_back() {
        let value = json!({"a": [1, 4_294_967_296_i64, 1.5, true, null, "ü"], "b": {"c": -1}});
        assert_eq!(from_xml(to_xml(&value)), value);
        assert_eq!(from_xml(to_xml(&json!(u64::MAX))), json!("18446744073709551615"));
        assert_eq!(from_xml(Xml::Base64(vec![1, 2, 3])), json!("AQID"));
    }
}
