//! `visperf call METHOD --follow`: prints each new answer of a reading method, until Ctrl-C.
//!
//! Rule: skipped answers, a lost daemon and its return are reported on standard error.
//! Not here: the stream, and reconnecting to a lost daemon (`::client::follow`).

use super::call;
use super::interrupt::Interrupt;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{Output, note};
use ::client::follow::Item;
use serde_json::Value;

/// Print the answers of `method`, one every `every` seconds.
///
/// # Errors
/// If the parameters cannot be encoded in a query, no daemon is reached at first, or it answers with a fault.
pub(crate) fn run(
    client: &mut Client,
    (method, argument): (&str, Option<&Value>),
    every: &str,
    is_compact: bool,
) -> Result<(), Failure> {
    let params = argument.and_then(Value::as_object).cloned().unwrap_or_default();
    let _interrupt = Interrupt::catch(|| ())?;
    let mut output = Output::stdout();
    let mut stream = match client.follow(method, params, every) {
        Ok(stream) => stream,
        Err(error) => return Err(client.explain(method, error)),
    };
    let mut faulty = None;
    loop {
        match stream.next_item()? {
            Item::Answer { answer, skipped } => {
                if skipped > 0 {
                    note(&format!(
                        "{skipped} answers were left out before this one: they were not taken in time"
                    ));
                }
                faulty = None;
                call::print(&mut output, &answer, is_compact)?;
            }
            Item::Fault { code, message } => {
                // A repeated fault is reported once.
                if faulty.as_ref() != Some(&message) {
                    note(&format!("{message} (fault {code}); following on (Ctrl-C ends)"));
                }
                faulty = Some(message);
            }
            Item::Lost(error) => note(&format!("{error}; trying again until it answers (Ctrl-C ends)")),
            Item::Restarted => note(&format!(
                "reached {} again; it does not know the last cursor, so its answers start over",
                stream.address()
            )),
            Item::Again => note(&format!("reached {} again, going on", stream.address())),
        }
    }
}
