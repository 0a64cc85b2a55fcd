//! Table `calls`: a row is a job, transfer or request that has ended.
//!
//! Pure. Rule: the day of a call is that of its latest time. Not here: which calls there are (`domain.calls`).

use crate::column::{batch, known_texts, known_times, lists, small, texts};
use arrow_array::RecordBatch;
use wire::api::UnixTime;
use wire::api::calls::Call;
use wire::event::Outcome;
use wire::time::Time;

/// The rows of these calls, in their order.
#[must_use]
pub fn rows(calls: &[Call]) -> RecordBatch {
    let all = || calls.iter();
    let time = |time: Option<UnixTime>| -> Option<Time> { time.map(|UnixTime(time)| time) };
    batch(vec![
        texts("id", all().map(|call| call.id.as_str())),
        texts("product", all().map(|call| product(&call.id))),
        texts("job", all().map(|call| call.job.as_str())),
        known_texts("name", all().map(|call| call.name.as_str())),
        known_texts("user", all().map(|call| call.user.as_str())),
        known_texts("submitted_from", all().map(|call| call.from.as_str())),
        known_times("submitted", all().map(|call| time(call.submitted))),
        known_times("offered", all().map(|call| time(call.offered))),
        known_times("selected", all().map(|call| time(call.selected))),
        known_times("started", all().map(|call| time(call.started))),
        known_times("ended", all().map(|call| time(call.ended))),
        known_texts("outcome", all().map(|call| call.outcome.map_or("", Outcome::as_str))),
        known_texts("exit_code", all().map(|call| call.code.as_str())),
        known_texts("signal", all().map(|call| call.signal.as_str())),
        known_texts("reason", all().map(|call| call.reason.as_str())),
        lists("offers", all().map(|call| call.offers.as_slice())),
        lists("hosts", all().map(|call| call.hosts.as_slice())),
        small("tries", all().map(|call| call.tries)),
        small("events", all().map(|call| call.events)),
    ])
}

/// The product of a call: the start of its id.
fn product(id: &str) -> &str {
    id.split_once(':').map_or("", |(product, _)| product)
}
