//! Cursor of a page of the past: the last series of the page.
//!
//! Pure. Rule: series are in the order of their hosts and metrics, and a cursor names one of them in full. So a series
//! that is new between two pages moves no other into a page or out of one. Not here: what a page holds (`store::page`).

use data_encoding::BASE64URL_NOPAD;
use std::fmt;
use std::str::FromStr;
use store::page::Place;
use wire::id::HostName;
use wire::sample::Metric;

/// Longest accepted cursor, in bytes: the names and labels of a metric are shorter.
const CURSOR_LEN_MAX_BYTES: usize = 64 << 10;

/// Cursor: the place after which a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(pub(super) Place);

/// A text that could not be parsed as a cursor of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a cursor as an answer gave it in `next`, or an empty one for the first page")]
pub(super) struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cursor(Place { host, metric }) = self;
        let bytes = postcard::to_stdvec(&(host, metric)).map_err(|_| fmt::Error)?;
        f.write_str(&BASE64URL_NOPAD.encode(&bytes))
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        if text.len() > CURSOR_LEN_MAX_BYTES {
            return Err(CursorError);
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| CursorError)?;
        let (host, metric): (HostName, Option<Metric>) =
            postcard::from_bytes(&bytes).map_err(|_| CursorError)?;
        Ok(Cursor(Place { host, metric }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::Semantics;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let metric = Metric {
            name: "node_cpu_seconds_total".into(),
            labels: vec![("cpu".into(), "0".into())],
            unit: "seconds".into(),
            semantics: Semantics::Counter,
        };
        for metric in [Some(metric), None] {
            let cursor = Cursor(Place { host: HostName::try_from("wn07").expect("a name"), metric });
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for wrong in ["x", "!", "AA", &"A".repeat(CURSOR_LEN_MAX_BYTES + 1)] {
            assert_eq!(wrong.parse::<Cursor>(), Err(CursorError), "{wrong}");
        }
    }
}
