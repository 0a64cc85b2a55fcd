//! Audit trail of commands: a line for each, in a log that the sensor follows like any other.
//!
//! ```text
//! STATE/control/trail.log
//! 2026-11-21T06:08:07.123456Z obeyed order=NONCE act=TERM pid=4711 start_ns=N process="burn" user=1000
//!     operator=KEY from=HOST to=HOST left_out=0 reason=                                    (one line)
//! ```
//!
//! Rules: a line is on disk before its command is executed. Commands of verified operators are always
//! recorded, executed or refused. Refusals of others are rate-limited; the next line states how many were
//! left out. The size is bounded: a full file is stored beside the new one until that is full. Text of
//! unverified senders cannot break a line or pass for another field.
//! Not here: how a line becomes an event (`log-filters/filters/visperf-control.toml`).

use super::rate_limiter::RateLimiter;
use crate::own_log::OwnLog;
use crate::tail::Spec;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};
use wire::control::Order;
use wire::harmless::is_harmless;
use wire::id::{HostName, PeerKey};
use wire::time::{Moment, Time};

/// Name of the log filter of the trail.
pub const FILTER: &str = "visperf-control";
/// Length after which the file is followed by a new one: some ten thousand commands.
const LEN_MAX_BYTES: u64 = 4 << 20;
/// Longest text from outside in a line, in characters.
const TEXT_MAX_CHARS: usize = 400;
/// Burst of recorded refusals of unverified senders.
const STRANGERS_BURST: u32 = 50;
/// Interval of further ones: below 10 MB a day.
const STRANGERS_INTERVAL: Duration = Duration::from_secs(5);

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is executed now.
    Obeyed,
    /// It was refused.
    Refused,
    /// It was tried, after a line that it is executed, and the system did not permit it.
    Failed,
}

impl Outcome {
    /// Returns its name in the trail.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Obeyed => "obeyed",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
        }
    }
}

/// Record of a command.
#[derive(Clone, Copy, Debug)]
pub struct TrailEntry<'a> {
    pub outcome: Outcome,
    /// The command, or what it claimed to be.
    pub order: Option<&'a Order>,
    /// Its operator, or the key that it claimed.
    pub operator: Option<PeerKey>,
    /// Host of its operator, if the signature was verified.
    pub from: Option<&'a HostName>,
    /// Name and user of the process, if it was read.
    pub process: Option<(&'a str, u32)>,
    /// Reason why it was refused or failed.
    pub reason: &'a str,
}

impl TrailEntry<'_> {
    /// Returns whether the command of an operator was verified.
    fn is_proved(&self) -> bool {
        self.from.is_some()
    }
}

/// A line, without its line end.
struct Line<'a> {
    at: Time,
    entry: &'a TrailEntry<'a>,
    to: &'a HostName,
    left_out: u64,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrailEntry { outcome, order, operator, from, process, reason } = self.entry;
        let micros = self.at.micros();
        let at = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
        write!(f, "{at:.6} {}", outcome.as_str())?;
        match order {
            Some(order) => {
                let key = order.process;
                write!(f, " order={} act={}", order.nonce, order.act)?;
                write!(f, " pid={} start_ns={}", key.pid, key.start_ns)?;
            }
            None => write!(f, " order=- act=- pid=- start_ns=-")?,
        }
        let name = process.map_or_else(String::new, |(name, _)| plain(name));
        write!(f, " process=\"{name}\" user={}", OrDash(process.map(|(_, uid)| uid)))?;
        write!(f, " operator={} from={} to={}", OrDash(*operator), OrDash(*from), self.to)?;
        write!(f, " left_out={} reason={}", self.left_out, plain(reason))
    }
}

/// Shows a value, or a dash.
struct OrDash<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for OrDash<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// Replaces characters that could end a line or a field.
fn plain(text: &str) -> String {
    let shown = |c: char| if is_harmless(c) && c != '"' { c } else { '?' };
    text.chars().take(TEXT_MAX_CHARS).map(shown).collect()
}

/// Rate limiter of lines about unverified senders.
#[derive(Debug)]
struct UnverifiedLimiter {
    limiter: RateLimiter,
    left_out: u64,
}

impl UnverifiedLimiter {
    /// Returns whether one more is recorded.
    fn take(&mut self, at: Moment) -> bool {
        let is_recorded = self.limiter.take(at).is_ok();
        self.left_out += u64::from(!is_recorded);
        is_recorded
    }
}

/// The trail, owned by the one executor that writes it.
#[derive(Debug)]
pub struct Trail {
    log: OwnLog,
    host: HostName,
    unverified: UnverifiedLimiter,
}

impl Trail {
    /// Creates the trail below the state folder of a sensor of `host`; no file is created before the first
    /// line.
    #[must_use]
    pub fn new(state: &Path, host: HostName) -> Trail {
        let unverified =
            UnverifiedLimiter { limiter: RateLimiter::new(STRANGERS_BURST, STRANGERS_INTERVAL), left_out: 0 };
        Trail { log: OwnLog::new(folder(state), "trail.log", LEN_MAX_BYTES), host, unverified }
    }

    /// Records a command, with the time of day and the time for the rate limiter; on disk when this returns.
    ///
    /// # Errors
    /// If the disk refuses; then it is not recorded.
    pub fn record(&mut self, entry: &TrailEntry<'_>, now: Time, at: Moment) -> io::Result<()> {
        if !entry.is_proved() && !self.unverified.take(at) {
            return Ok(());
        }
        let left_out = self.unverified.left_out;
        let line = format!("{}\n", Line { at: now, entry, to: &self.host, left_out });
        self.log.append(line.as_bytes())?;
        self.unverified.left_out = 0;
        Ok(())
    }
}

fn folder(state: &Path) -> PathBuf {
    state.join("control")
}

/// Returns how a sensor with this state folder follows its trail.
#[must_use]
pub fn spec(state: &Path) -> Spec {
    Spec::of_own_log(&folder(state), "trail", FILTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use wire::control::{Act, Nonce, Signal};
    use wire::id::DomainName;
    use wire::process::ProcessKey;

    fn order() -> Order {
        Order {
            domain: DomainName::try_from("alpha").expect("a name"),
            root: PeerKey([1; 32]),
            host: host(),
            process: ProcessKey { pid: 4711, start_ns: 5 },
            act: Act::Signal(Signal::Term),
            nonce: Nonce([0xab; 16]),
            sequence: 1,
            issued: Time::default(),
            expires: Time::default(),
        }
    }

    fn host() -> HostName {
        HostName::try_from("wn01").expect("a name")
    }

    fn lines(state: &Path) -> Vec<String> {
        let text = fs::read_to_string(folder(state).join("trail.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_whole_whatever_others_claim() {
        let order = order();
        let from = HostName::try_from("ws1").expect("a name");
        let entry = TrailEntry {
            outcome: Outcome::Obeyed,
            order: Some(&order),
            operator: Some(PeerKey([2; 32])),
            from: Some(&from),
            process: Some(("a\"b\nc\u{202e}", 1000)),
            reason: "",
        };
        let line =
            Line { at: Time::from_micros(1_795_240_800_000_001), entry: &entry, to: &host(), left_out: 3 };
        let expected = format!(
            "2026-11-21T06:00:00.000001Z obeyed order={} act=TERM pid=4711 start_ns=5 process=\"a?b?c?\" user=1000 \
             operator={} from=ws1 to=wn01 left_out=3 reason=",
            "ab".repeat(16),
            PeerKey([2; 32])
        );
        assert_eq!(line.to_string(), expected);
        let nothing = TrailEntry {
            outcome: Outcome::Refused,
            order: None,
            operator: None,
            from: None,
            process: None,
            reason: "a\nb\u{2028}\u{2066}",
        };
        let line = Line { at: Time::default(), entry: &nothing, to: &host(), left_out: 0 };
        let expected = "1970-01-01T00:00:00.000000Z refused order=- act=- pid=- start_ns=- process=\"\" user=- operator=- \
                        from=- to=wn01 left_out=0 reason=a?b??";
        assert_eq!(line.to_string(), expected);
    }

    #[test]
    fn strangers_are_counted_and_operators_always_logged() {
        let state = tempfile::tempdir().expect("a folder");
        let mut trail = Trail::new(state.path(), host());
        let from = host();
        let refused = TrailEntry {
            outcome: Outcome::Refused,
            order: None,
            operator: None,
            from: None,
            process: None,
            reason: "no",
        };
        let at = |secs| Moment(Duration::from_secs(secs));
        for _ in 0..1000 {
            trail.record(&refused, Time::default(), at(0)).expect("written");
        }
        assert_eq!(lines(state.path()).len(), STRANGERS_BURST as usize);
        for _ in 0..100 {
            trail
                .record(&TrailEntry { from: Some(&from), ..refused }, Time::default(), at(0))
                .expect("written");
        }
        let recorded = lines(state.path());
        assert_eq!(recorded.len(), STRANGERS_BURST as usize + 100);
        assert!(
            recorded[STRANGERS_BURST as usize].contains("left_out=950 "),
            "{}",
            recorded[STRANGERS_BURST as usize]
        );
        trail.record(&refused, Time::default(), at(5)).expect("written");
        assert!(lines(state.path()).last().is_some_and(|line| line.contains("left_out=0 ")));
    }

    #[test]
    fn the_glob_means_the_trail_wherever_the_state_is() {
        let state = tempfile::tempdir().expect("a folder");
        let odd = state.path().join("a[1]");
        fs::create_dir(&odd).expect("made");
        let mut trail = Trail::new(&odd, host());
        let entry = TrailEntry {
            outcome: Outcome::Refused,
            order: None,
            operator: None,
            from: None,
            process: None,
            reason: "",
        };
        trail.record(&entry, Time::default(), Moment::default()).expect("written");
        let glob = globset::Glob::new(&spec(&odd).glob).expect("a glob").compile_matcher();
        assert!(glob.is_match(odd.join("control/trail.log")));
        assert!(!glob.is_match(odd.join("control/trail.log.1")), "a rotated one is followed by what it is");
    }
}
