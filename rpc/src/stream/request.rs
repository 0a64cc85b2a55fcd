//! Parser of the stream parameters of a request: whether it requests a stream, and its interval.
//!
//! Pure. A stream is requested by `follow=SECONDS` in the query, or by the field `Accept: text/event-stream`
//! with the default interval. Not here: which methods may be followed (`mod`).

use crate::codec::moment;
use crate::dispatch::method::{EVENT_STREAM, FOLLOW};
use crate::fault::Fault;
use crate::stream_limits::{EVERY_SECS, EVERY_SECS_DEFAULT};
use std::time::Duration;

/// A request for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamRequest {
    /// Interval between two answers, in whole milliseconds.
    pub(crate) every: Duration,
    /// The query without `follow`.
    pub(crate) query: String,
}

impl StreamRequest {
    /// Parse this query and this field `Accept`; `None` if they request a single answer.
    pub(crate) fn of(query: &str, accept: Option<&str>) -> Result<Option<StreamRequest>, Fault> {
        let is_it = |pair: &&str| pair.split_once('=').map_or(*pair, |(name, _)| name) == FOLLOW;
        let mut given = query.split('&').filter(is_it);
        let text = match (given.next(), given.next()) {
            (Some(_), Some(_)) => {
                return Err(Fault::invalid_params("follow: expected it once, found it twice"));
            }
            (Some(pair), None) => Some(pair.split_once('=').map_or("", |(_, text)| text)),
            (None, _) if accept.is_some_and(takes_events) => None,
            (None, _) => return Ok(None),
        };
        let query: Vec<&str> = query.split('&').filter(|pair| !is_it(pair)).collect();
        Ok(Some(StreamRequest { every: every(text)?, query: query.join("&") }))
    }
}

fn takes_events(accept: &str) -> bool {
    let one = |range: &str| range.split(';').next().is_some_and(|kind| kind.trim() == EVENT_STREAM);
    accept.split(',').any(one)
}

/// Parse `5` or `5s` to seconds.
fn secs(text: &str) -> Option<f64> {
    moment::span(text).map(|span| span.as_secs_f64()).or_else(|| text.parse().ok())
}

fn every(text: Option<&str>) -> Result<Duration, Fault> {
    let secs = match text {
        None | Some("") => EVERY_SECS_DEFAULT,
        Some(text) => secs(text).filter(|secs| EVERY_SECS.contains(secs)).ok_or_else(|| {
            let (least, most) = (EVERY_SECS.start(), EVERY_SECS.end());
            Fault::invalid_params(format!(
                "follow: expected seconds from {least} to {most} between two answers, found {:?}",
                text.chars().take(40).collect::<String>()
            ))
        })?,
    };
    // Round, so that nearly equal intervals share a subscription.
    Ok(Duration::from_millis((secs * 10.0).round().max(1.0) as u64 * 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_is_wanted_unless_it_is_said() {
        let check = |query: &str, accept: Option<&str>, expected: Option<(u64, &str)>| {
            let found = StreamRequest::of(query, accept).unwrap();
            let found = found.as_ref().map(|wanted| (wanted.every.as_millis() as u64, wanted.query.as_str()));
            assert_eq!(found, expected, "{query} {accept:?}");
        };
        check("", None, None);
        check("limit=5", Some("application/json, */*;q=0.1"), None);
        check("limit=5", Some("text/event-stream"), Some((1_000, "limit=5")));
        check("", Some("text/html, text/event-stream;q=0.5"), Some((1_000, "")));
        check("follow", None, Some((1_000, "")));
        check("a=1&follow=0.5&b=2", None, Some((500, "a=1&b=2")));
        check("follow=0.14", Some("text/event-stream"), Some((100, "")));
        check("following=1", None, None);
        check("follow=60", None, Some((60_000, "")));
        check("follow=500ms", None, Some((500, "")));
        check("follow=1m", None, Some((60_000, "")));
    }

    #[test]
    fn another_interval_is_refused_with_those_that_may_be() {
        for query in
            ["follow=0", "follow=0.05", "follow=61", "follow=x", "follow=NaN", "follow=-1", "follow=inf"]
        {
            let fault = StreamRequest::of(query, None).unwrap_err();
            assert!(fault.message.contains("seconds from 0.1 to 60"), "{query}: {fault}");
        }
        assert!(StreamRequest::of("follow=1&follow=2", None).unwrap_err().message.contains("twice"));
    }
}
