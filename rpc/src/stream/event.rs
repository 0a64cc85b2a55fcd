//! Server-sent events: the wire format of answers in a stream (WHATWG HTML living standard, section 9.2).
//!
//! ```text
//! retry: 2317                                                     once, at the start
//!
//! id: 17
//! data: {"skipped":0,"time":1795178489.512345,"answer":{…}}       an answer
//!
//! event: fault
//! id: 18
//! data: {"skipped":0,"time":1795178490.512345,"error":{"code":-32011,"message":"…"}}
//!
//! :                                                               a comment, if nothing else was sent for a while
//! ```
//! Pure. Rules: an event is encoded once for all streams; only the number of skipped answers is in a separate
//! header. Each event is one line of data, whatever the answer contains: a newline within it could forge
//! another event.
//! Not here: the choice of the stream's next event (`table`).

use crate::codec::json;
use crate::fault::Fault;
use crate::stream_limits::RETRY_MS;
use bytes::Bytes;
use wire::time::Time;

/// Keepalive comment.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    Fault,
}

/// An encoded event.
#[derive(Debug)]
pub(crate) struct Event {
    number: u64,
    kind: Kind,
    whole: Bytes,
    /// Offset from which on it is the same for all streams.
    shared_from: usize,
}

impl Event {
    /// Encode the answer `json`, created at `time`, as the event number `number`.
    pub(crate) fn answer(number: u64, time: Time, json: &str) -> Event {
        Event::new(number, Kind::Answer, time, &format!("\"answer\":{}", one_line(json)))
    }

    /// Encode a fault in place of an answer.
    pub(crate) fn fault(number: u64, time: Time, fault: &Fault) -> Event {
        let text = one_line(&json::write_fault(fault));
        let inner =
            text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or("\"error\":null");
        Event::new(number, Kind::Fault, time, inner)
    }

    fn new(number: u64, kind: Kind, time: Time, what: &str) -> Event {
        let head = head(kind, number, 0);
        let shared_from = head.len();
        let text = format!("{head}\"time\":{:.6},{what}}}\n\n", time.secs_f64());
        Event { number, kind, whole: Bytes::from(text), shared_from }
    }

    /// Number of the event within its subscription, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Length in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.whole.len()
    }

    /// The bytes for a stream that skipped `skipped` answers before it: a separate header, if any, and the
    /// shared part.
    pub(crate) fn bytes(&self, skipped: u64) -> (Option<Bytes>, Bytes) {
        if skipped == 0 {
            return (None, self.whole.clone());
        }
        (Some(Bytes::from(head(self.kind, self.number, skipped))), self.whole.slice(self.shared_from..))
    }
}

fn head(kind: Kind, number: u64, skipped: u64) -> String {
    let kind = match kind {
        Kind::Answer => "",
        Kind::Fault => "event: fault\n",
    };
    format!("{kind}id: {number}\ndata: {{\"skipped\":{skipped},")
}

/// Replace newlines by spaces: JSON has newlines only between tokens.
fn one_line(json: &str) -> String {
    json.trim().replace(['\n', '\r'], " ")
}

/// The first line of every stream: the client's reconnection delay. It varies with `seed`, so that clients do
/// not all reconnect at the same moment.
pub(crate) fn retry(seed: u64) -> Bytes {
    let (least, most) = (*RETRY_MS.start(), *RETRY_MS.end());
    // Fibonacci hashing: adjacent seeds give distant values.
    let spread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Bytes::from(format!("retry: {}\n\n", least + spread % (most - least + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: &Event, skipped: u64) -> String {
        let (own, shared) = event.bytes(skipped);
        let bytes = [own.unwrap_or_default(), shared].concat();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_one_line_of_data_whatever_the_answer_holds() {
        let time = Time::from_micros(1_795_178_489_512_345);
        let event = Event::answer(17, time, "{\"a\":\n1,\r\n\"b\":\"x\"}\n");
        let expected = "id: 17\ndata: {\"skipped\":0,\"time\":1795178489.512345,\"answer\":{\"a\": 1,  \"b\":\"x\"}}\n\n";
        assert_eq!(text(&event, 0), expected);
        assert_eq!(text(&event, 3), expected.replace("\"skipped\":0", "\"skipped\":3"));
        assert_eq!(event.len_bytes(), expected.len());
        // A malicious answer that contains an event of its own.
        let forged = text(&Event::answer(1, time, "1}\n\nevent: fault\ndata: {}"), 2);
        assert_eq!(forged.matches('\n').count(), 3, "{forged:?}");
    }

    #[test]
    fn a_fault_is_an_event_of_its_own_kind() {
        let fault = Fault::unavailable("h1 is away,\nh2 too");
        let written = text(&Event::fault(18, Time::from_micros(1_000_000), &fault), 1);
        let expected = "event: fault\nid: 18\ndata: {\"skipped\":1,\"time\":1.000000,\"error\":{\"code\":-32011,\
                        \"message\":\"h1 is away,\\nh2 too\"}}\n\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn what_is_shared_is_not_copied() {
        let event = Event::answer(1, Time::default(), &format!("\"{}\"", "x".repeat(1 << 20)));
        let (_, whole) = event.bytes(0);
        let (own, tail) = event.bytes(9);
        let within = whole.as_ptr_range();
        assert!(within.contains(&tail.as_ptr()), "the same bytes");
        assert!(own.unwrap().len() < 64);
    }

    #[test]
    fn clients_come_back_after_different_times() {
        let mut delays: Vec<u64> = (0..1000)
            .map(|seed| {
                let text = String::from_utf8(retry(seed).to_vec()).unwrap();
                text.trim_end().strip_prefix("retry: ").unwrap().parse().unwrap()
            })
            .collect();
        delays.sort_unstable();
        assert!(RETRY_MS.contains(&delays[0]) && RETRY_MS.contains(&delays[999]));
        let quarter = (RETRY_MS.end() - RETRY_MS.start()) / 4;
        for part in 0..4 {
            let from = RETRY_MS.start() + part * quarter;
            let within = delays.iter().filter(|ms| (from..from + quarter).contains(ms)).count();
            assert!((200..=300).contains(&within), "{within} of 1000 within a quarter");
        }
    }
}
