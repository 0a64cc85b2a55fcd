//! What every query shares: ask once, and print a list as JSON lines or as a table.
//!
//! Not here: the connection (`client`), the columns of each list (the commands).

use crate::cli::Query;
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::output::Output;
use serde_json::{Map, Value};

/// Named parameters, of those that were given.
#[derive(Debug, Default)]
pub(crate) struct Params(Map<String, Value>);

impl Params {
    /// One more, if there is a value.
    pub(crate) fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Params {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// As an object.
    pub(crate) fn value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Ask a method once.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn ask(query: &Query, method: &str, params: Params) -> Result<Value, Failure> {
    let mut client = Client::new(&query.target);
    client.call(method, &params.value(), PATIENCE).map_err(|error| client.explain(method, error))
}

/// The items of a list in an answer.
pub(crate) fn items(answer: &Value, name: &str) -> Vec<Value> {
    answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Print the items as JSON lines, or hand them to `table`.
///
/// # Errors
/// If the output fails.
pub(crate) fn print(
    query: &Query,
    items: Vec<Value>,
    nothing: &str,
    table: impl FnOnce(&[Value], &mut Output) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut output = query.width.output();
    if query.json {
        items.iter().try_for_each(|item| output.json(item))?;
    } else if items.is_empty() {
        crate::output::note(nothing);
    } else {
        table(&items, &mut output)?;
    }
    output.flush()
}
