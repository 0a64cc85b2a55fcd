//! Signed command to signal or renice one process of one host.
//!
//! Pure. Rule: a command names everything that it is about (the domain by its root key, the host, the process
//! by its pid and start, the action), so a signature for one target is useless for another. It also has an
//! expiry time, and a sequence number of its signer.
//! Not here: verification (`overlay::identity::signed_command`), execution (`sensor::control`).

use crate::credential::Chain;
use crate::id::{DomainName, HostName, PeerKey};
use crate::process::ProcessKey;
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest validity of a command: enough to reach the host over two hops, too short to be stored for later.
pub const LIFE_MAX: Duration = Duration::from_secs(30);

/// A signal that may be sent: those that end, stop, continue or notify a process. The other signals report
/// faults of the process itself, and cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// Hangup: the terminal is gone; daemons reload their configuration.
    Hup,
    /// Interrupt, as Ctrl-C.
    Int,
    /// Quit, as Ctrl-\, with a core file.
    Quit,
    /// Kill: ends the process, which cannot catch it.
    Kill,
    /// User-defined signal 1.
    Usr1,
    /// User-defined signal 2.
    Usr2,
    /// Terminate: requests the process to end.
    Term,
    /// Continue a stopped process.
    Cont,
    /// Stop: pauses the process, which cannot catch it.
    Stop,
    /// Terminal stop, as Ctrl-Z.
    Tstp,
}

impl Signal {
    /// All signals.
    pub const ALL: [Signal; 10] = [
        Signal::Hup,
        Signal::Int,
        Signal::Quit,
        Signal::Kill,
        Signal::Usr1,
        Signal::Usr2,
        Signal::Term,
        Signal::Cont,
        Signal::Stop,
        Signal::Tstp,
    ];

    /// Name without `SIG` (signal(7)).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Signal::Hup => "HUP",
            Signal::Int => "INT",
            Signal::Quit => "QUIT",
            Signal::Kill => "KILL",
            Signal::Usr1 => "USR1",
            Signal::Usr2 => "USR2",
            Signal::Term => "TERM",
            Signal::Cont => "CONT",
            Signal::Stop => "STOP",
            Signal::Tstp => "TSTP",
        }
    }

    /// Number on most architectures (signal(7)).
    const fn number(self) -> u8 {
        match self {
            Signal::Hup => 1,
            Signal::Int => 2,
            Signal::Quit => 3,
            Signal::Kill => 9,
            Signal::Usr1 => 10,
            Signal::Usr2 => 12,
            Signal::Term => 15,
            Signal::Cont => 18,
            Signal::Stop => 19,
            Signal::Tstp => 20,
        }
    }

    /// Whether its default action ends the process.
    #[must_use]
    pub const fn ends(self) -> bool {
        !matches!(self, Signal::Cont | Signal::Stop | Signal::Tstp)
    }
}

/// Error of a text that is not a signal that may be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no signal that can be sent; expected HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or TSTP, or \
     its number"
)]
pub struct NoSignal {
    /// The invalid text.
    pub found: String,
}

impl FromStr for Signal {
    type Err = NoSignal;

    /// Parse a name, with or without `SIG`, in any case, or a number.
    fn from_str(text: &str) -> Result<Signal, NoSignal> {
        let upper = text.trim().to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let number: Option<u8> = name.parse().ok();
        let is_meant = |signal: &Signal| signal.as_str() == name || number == Some(signal.number());
        let found = || NoSignal { found: text.chars().take(40).collect() };
        Signal::ALL.into_iter().find(is_meant).ok_or_else(found)
    }
}

/// Niceness of a process, from -20 (highest priority) to 19 (lowest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i8", into = "i8")]
pub struct Nice(i8);

impl Nice {
    /// The niceness as a number.
    #[must_use]
    pub const fn value(self) -> i8 {
        self.0
    }
}

/// Error of a number that is not a niceness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} is no niceness; expected -20 (goes first) to 19 (gives way)")]
pub struct NoNice {
    /// The invalid number.
    pub found: i8,
}

impl TryFrom<i8> for Nice {
    type Error = NoNice;
    fn try_from(found: i8) -> Result<Nice, NoNice> {
        if (-20..=19).contains(&found) { Ok(Nice(found)) } else { Err(NoNice { found }) }
    }
}

impl From<Nice> for i8 {
    fn from(nice: Nice) -> i8 {
        nice.0
    }
}

/// Action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Act {
    /// Send this signal.
    Signal(Signal),
    /// Set the niceness of all threads.
    Renice(Nice),
}

/// `TERM`, `nice=10`.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Signal(signal) => f.write_str(signal.as_str()),
            Act::Renice(nice) => write!(f, "nice={}", nice.0),
        }
    }
}

/// Random number that makes a command unique; also its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Content of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Domain of the host.
    pub domain: DomainName,
    /// Root key of the domain: anyone may use a name, not a key.
    pub root: PeerKey,
    /// Host of the process.
    pub host: HostName,
    /// Target process.
    pub process: ProcessKey,
    /// Action to execute.
    pub act: Act,
    /// Random number of this command.
    pub nonce: Nonce,
    /// Sequence number of the signer's commands: it only increases.
    pub sequence: u64,
    /// Start of the validity, by the signer's clock.
    pub issued: Time,
    /// End of the validity: at most [`LIFE_MAX`] later.
    pub expires: Time,
}

impl Sealable for Order {
    const LABEL: &'static str = "order";
    const BODY_LEN_MAX_BYTES: usize = 1024;
}

/// A signed command with the certificate chain of its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedOrder {
    /// The signed command.
    pub order: Sealed<Order>,
    /// Certificate chain of its signer.
    pub chain: Chain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_as_kill_knows_them() {
        for signal in Signal::ALL {
            for text in [signal.as_str().to_owned(), format!("sig{signal:?}"), signal.number().to_string()] {
                assert_eq!(text.parse(), Ok(signal), "{text}");
            }
        }
        for bad in ["", "SIG", "0", "11", "SEGV", "-9", "TERM KILL", "256"] {
            assert!(bad.parse::<Signal>().is_err(), "{bad}");
        }
        assert!(Signal::Term.ends() && !Signal::Stop.ends());
    }

    #[test]
    fn a_niceness_out_of_range_is_refused_also_when_it_is_read() {
        for (number, good) in [(-21, false), (-20, true), (0, true), (19, true), (20, false)] {
            assert_eq!(Nice::try_from(number).is_ok(), good, "{number}");
            let bytes = postcard::to_stdvec(&number).expect("a number");
            assert_eq!(postcard::from_bytes::<Nice>(&bytes).is_ok(), good, "{number}");
        }
        assert_eq!(Act::Renice(Nice(-5)).to_string(), "nice=-5");
    }

    #[test]
    fn the_longest_order_fits() {
        let long = "x".repeat(crate::id::NAME_LEN_MAX_BYTES);
        let order = Order {
            domain: DomainName::try_from(long.as_str()).expect("a name"),
            root: PeerKey([255; 32]),
            host: HostName::try_from(long.as_str()).expect("a name"),
            process: ProcessKey { pid: u32::MAX, start_ns: u64::MAX },
            act: Act::Renice(Nice(19)),
            nonce: Nonce([255; 16]),
            sequence: u64::MAX,
            issued: Time::from_micros(i64::MIN),
            expires: Time::from_micros(i64::MIN),
        };
        let sealed = Sealed::new(&order, PeerKey([1; 32]), |_| [0; 64]).expect("short enough");
        assert_eq!(sealed.unverified(), Ok(order.clone()));
        assert_eq!(order.nonce.to_string(), "ff".repeat(16));
    }
}
