//! Errors of a call.
//!
//! Pure. Not here: what to do about it (`recovery`), the codes of faults (`wire::fault`).

use std::time::Duration;

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No daemon could be reached, so nothing was sent. The text says what was tried and what to do.
    #[error("{0}")]
    Unreachable(String),
    /// The caller's input is invalid: an address, a file, a parameter.
    #[error("{0}")]
    Mistake(String),
    /// The connection broke before the answer was complete. The daemon may have executed the request.
    #[error("the daemon at {address} did not answer: {what}")]
    Lost {
        /// Address of the daemon.
        address: String,
        /// What happened to the connection.
        what: String,
    },
    /// No answer came in time. The daemon may have executed the request.
    #[error("the daemon at {address} did not answer: no answer within {} s", .after.as_secs_f64())]
    Late {
        /// Address of the daemon.
        address: String,
        /// How long the client waited.
        after: Duration,
    },
    /// The daemon answered with a fault.
    #[error("{message} (fault {code})")]
    Fault {
        /// One of the codes of [`wire::fault`].
        code: i64,
        /// What the daemon expected, what it found and what to do.
        message: String,
    },
    /// The answer is not from a visperf daemon, or from a version that this client cannot read.
    #[error("expected the answer of a visperf daemon from {address}, found {found}")]
    Answer {
        /// Address of the server.
        address: String,
        /// What was received.
        found: String,
    },
}

impl Error {
    /// First line of the error, without the code of a fault: for a message of one line.
    #[must_use]
    pub fn first_line(&self) -> String {
        let text = match self {
            Error::Fault { message, .. } => message.clone(),
            Error::Unreachable(_)
            | Error::Mistake(_)
            | Error::Lost { .. }
            | Error::Late { .. }
            | Error::Answer { .. } => self.to_string(),
        };
        text.lines().next().unwrap_or_default().trim_end_matches("; tried:").to_owned()
    }

    /// Whether the connection broke or no answer came in time.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Lost { .. } | Error::Late { .. })
    }
}
