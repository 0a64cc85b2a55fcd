//! Limits of the resources that a server spends on streams.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Each limit is a named constant with its reason; [`StreamLimits`] contains them so that tests and a proxy
//! can have others.
//! Not here: the behaviour at a limit (`stream`, `http::guarded_stream`).

use std::ops::RangeInclusive;
use std::time::Duration;

/// Allowed interval between two answers in seconds: fast enough for a moving picture, and slow enough that a
/// forgotten one is noticed.
pub const EVERY_SECS: RangeInclusive<f64> = 0.1..=60.0;
/// Default interval between two answers, in seconds.
pub const EVERY_SECS_DEFAULT: f64 = 1.0;
/// Most streams of a daemon on loopback: half of its connections.
pub const FOLLOWERS: usize = 1_000;
/// Most streams from one address (IPv6: one /64), so that one host leaves room for others.
pub const FOLLOWERS_OF_SOURCE: usize = 600;
/// Most streams of one account.
pub const FOLLOWERS_OF_ACCOUNT: usize = 256;
/// Most distinct subscriptions; all may be running at once, and leave most running calls to others.
pub const QUESTIONS: usize = 256;
/// Most distinct subscriptions of one account: a page with the metrics of one domain's hosts.
pub const QUESTIONS_OF_ACCOUNT: usize = 32;
/// Largest answer of a stream: a larger one belongs in a call of its own.
pub const ANSWER_BYTES: usize = 4 << 20;
/// Total size of answers that are older than the latest and still being sent to a client.
pub const HELD_BYTES: usize = 256 << 20;
/// Timeout of one answer: longer than the search for a new representative, shorter than a client's timeout.
pub const ASK_TIME: Duration = Duration::from_secs(10);
/// Keepalive interval: NAT devices forget a connection that is silent for 30 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often the permissions of streams are checked again.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Range of the reconnection delay of a client in milliseconds; each client gets another value.
pub const RETRY_MS: RangeInclusive<u64> = 1_000..=5_000;
/// Kernel send buffer of one stream: the kernel doubles the value for its own bookkeeping (socket(7),
/// `SO_SNDBUF`), and reports room when a third is free. So a client that reads some hundred bytes per second
/// is seen to read them within [`crate::limits::WRITE_TIME`].
pub const SOCKET_BYTES: usize = 4 << 10;
/// Kernel send buffer for larger answers: a remote client gets only this much per round trip.
pub const SOCKET_BYTES_LARGE: usize = 16 << 10;
/// Encrypted bytes that are not yet written: with those of the socket at most 64 KiB wait for one stream.
pub const ENCRYPTED_BYTES: usize = 32 << 10;

/// The limits of one server.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each field is the constant of the same name, documented above
pub struct StreamLimits {
    pub followers: usize,
    pub followers_of_source: usize,
    pub followers_of_account: usize,
    pub questions: usize,
    pub questions_of_account: usize,
    pub answer_bytes: usize,
    pub held_bytes: usize,
    pub ask_time: Duration,
    pub keep_alive: Duration,
    pub look_interval: Duration,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits {
            followers: FOLLOWERS,
            followers_of_source: FOLLOWERS_OF_SOURCE,
            followers_of_account: FOLLOWERS_OF_ACCOUNT,
            questions: QUESTIONS,
            questions_of_account: QUESTIONS_OF_ACCOUNT,
            answer_bytes: ANSWER_BYTES,
            held_bytes: HELD_BYTES,
            ask_time: ASK_TIME,
            keep_alive: KEEP_ALIVE,
            look_interval: LOOK_INTERVAL,
        }
    }
}
