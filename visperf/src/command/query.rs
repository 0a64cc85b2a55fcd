//! Shared code of the queries: call once, and print a list as JSON lines or as a table.
//!
//! Not here: the connection (`client`), the columns of each list (the commands).

use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::options::Query;
use crate::output::{Output, note};
use ::client::typed::{About, Answered};
use serde_json::Value;
use wire::api::Request;

/// Call a method once.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn request<R: Request>(
    query: &Query,
    request: &R,
    about: &About,
) -> Result<Answered<R::Answer>, Failure> {
    let mut client = Client::new(&query.target);
    client.request(request, about, PATIENCE).map_err(|error| client.explain(R::METHOD, error))
}

/// Most calls or processes in one answer.
pub(crate) const LIMIT_MAX: u64 = 10_000;

/// Print a note on how many items of a list an answer left out, and how to get them.
pub(crate) fn note_left_out(shown: usize, total: u64, name: &str) {
    let shown = shown as u64;
    if total > shown {
        note(&left_out(shown, total, name));
    }
}

/// Text of [`note_left_out`].
pub(crate) fn left_out(shown: u64, total: u64, name: &str) -> String {
    let more = match total <= LIMIT_MAX {
        true => format!("--limit {total} shows all"),
        false if shown < LIMIT_MAX => format!("--limit {LIMIT_MAX} shows most"),
        false => "choose fewer to see all of them".to_owned(),
    };
    format!("{shown} of {total} {name}; {more}")
}

/// Print a note on hosts whose events and calls the answer may lack: the representative changed while they
/// were away.
pub(crate) fn note_missing(hosts: &[impl AsRef<str>]) {
    let hosts: Vec<&str> = hosts.iter().map(AsRef::as_ref).collect();
    if !hosts.is_empty() {
        note(&format!(
            "away since before the present representative took over: {}; their events that it never received are missing \
             until they are back",
            hosts.join(", ")
        ));
    }
}

/// Print the items: as JSON lines as they were received, or through `table`.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn print_typed<T>(
    query: &Query,
    raw: &[Value],
    items: &[T],
    nothing: &str,
    table: impl FnOnce(&[T], &mut Output) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut output = query.width.output();
    if query.json {
        raw.iter().try_for_each(|item| output.json(item))?;
    } else if items.is_empty() {
        note(nothing);
    } else {
        table(items, &mut output)?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_reported_with_a_limit_that_is_taken() {
        assert_eq!(left_out(30, 10_000, "processes"), "30 of 10000 processes; --limit 10000 shows all");
        assert_eq!(left_out(1_000, 10_001, "calls"), "1000 of 10001 calls; --limit 10000 shows most");
        assert_eq!(
            left_out(10_000, 10_001, "calls"),
            "10000 of 10001 calls; choose fewer to see all of them"
        );
    }
}
