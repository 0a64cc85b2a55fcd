//! How much following a daemon takes on.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Each bound is a named constant with its reason; [`StreamLimits`] carries them so that tests and a proxy can have others.
//! Not here: what happens at a bound (`stream`, `http::guarded_stream`).

use std::ops::RangeInclusive;
use std::time::Duration;

/// Seconds between two answers: fast enough for a picture that moves, and slow enough that a forgotten one is noticed.
pub const EVERY_SECS: RangeInclusive<f64> = 0.1..=60.0;
/// Default interval between two answers, in seconds.
pub const EVERY_SECS_DEFAULT: f64 = 1.0;
/// Followers at a time of a daemon on loopback: half of its connections.
pub const FOLLOWERS: usize = 1_000;
/// Of these, from one address (IPv6: one /64): one host leaves room for others.
pub const FOLLOWERS_OF_SOURCE: usize = 600;
/// Of these, of one account.
pub const FOLLOWERS_OF_ACCOUNT: usize = 256;
/// Different questions at a time; each may be in work at once, and leaves most calls in work to others.
pub const QUESTIONS: usize = 256;
/// Of these, of one account: a page of figures of one domain's hosts.
pub const QUESTIONS_OF_ACCOUNT: usize = 32;
/// Largest answer that is followed: more belongs into a question of its own.
pub const ANSWER_BYTES: usize = 4 << 20;
/// Total size of answers that are older than the latest and still being sent to a client.
pub const HELD_BYTES: usize = 256 << 20;
/// How long one answer may take: longer than a new representative is looked for, shorter than a client's patience.
pub const ASK_TIME: Duration = Duration::from_secs(10);
/// After so long without anything a comment is sent: translators of addresses forget what is silent for 30 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often the permissions of streams are checked again.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A client that lost its connection comes back after so many milliseconds, each after another time of these.
pub const RETRY_MS: RangeInclusive<u64> = 1_000..=5_000;
/// Bytes that the system keeps for one follower before it has taken them, as they are asked for: the kernel doubles it for its
/// own bookkeeping (socket(7), `SO_SNDBUF`), and says that there is room when a third is free. So a client that takes some hundred bytes
/// a second is seen to take them within [`crate::limits::WRITE_TIME`].
pub const SOCKET_BYTES: usize = 4 << 10;
/// The same where answers are larger than that: far away a client gets so much in each round trip and no more.
pub const SOCKET_BYTES_LARGE: usize = 16 << 10;
/// Bytes that are encrypted and not yet written: with those of the socket at most 64 KiB wait for one follower.
pub const ENCRYPTED_BYTES: usize = 32 << 10;

/// The bounds of one server.
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
