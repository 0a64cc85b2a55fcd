//! Exit codes: the failures of a command, what each prints and its exit code.
//!
//! Pure. Rule: `main` prints a failure once, on standard error; [`Failure::Printed`] is one that was already
//! printed, line by line. Text of other daemons is cleaned. The codes are part of the command line's contract
//! (`docs/command-line.md`).

use crate::harmless::clean_lines;
use std::fmt::Display;

/// Something failed: a file, the system, an answer that cannot be read.
const FAILED: u8 = 1;
/// The command line is wrong (clap uses the same code), names an unknown filter, or a secret that cannot be
/// used.
const USAGE: u8 = 2;
/// No daemon answers.
const UNREACHABLE: u8 = 3;
/// The daemon answered with a fault, or refused.
const FAULT: u8 = 4;
/// A filter's embedded tests failed.
const TESTS: u8 = 5;
/// A filter or configuration file is refused.
const REFUSED: u8 = 6;
/// No filter reads the log.
const NO_FILTER: u8 = 7;

/// A host of the domain does not report.
const HOST_AWAY: u8 = 8;

/// Ctrl-C, as a shell reports a program that a signal ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// The codes as `--help` lists them.
pub(crate) const HELP: &str = "Exit codes:
  0  success (also if the reader of the output closed it, as `head` does)
  1  something failed: a file, the system, an answer that cannot be read
  2  the command line is wrong, or names an unknown filter
  3  no daemon could be reached
  4  the daemon answered with a fault, or a domain's issuer refused
  5  an embedded test of a filter failed
  6  a filter or configuration file is invalid
  7  no filter reads the log
  8  a host of the domain does not report (visperf hosts)
  130  Ctrl-C (0 for a daemon)
visperf check: 0 OK, 1 warning, 2 critical, 3 unknown, as monitoring plugins";

/// Failure of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The reader of the output closed it (`head`). Not an error.
    Closed,
    /// Anything without a case of its own.
    Failed(String),
    /// The arguments do not make sense.
    Usage(String),
    /// No daemon answers.
    Unreachable(String),
    /// The daemon's fault.
    Fault {
        /// Fault code (`docs/query-interface.md`).
        code: i64,
        message: String,
    },
    /// A domain's issuer refuses; the text contains its message.
    NotAdmitted(String),
    /// A file is refused; the text shows the place in it.
    Refused(String),
    /// No filter reads the log; the text states what to do.
    NoFilter(String),
    /// Already printed; only the exit code is left.
    Printed(Kind),
    /// State found by `visperf check`, already printed.
    Check(Level),
}

/// The states of a monitoring plugin; the exit codes are theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ok = 0,
    /// Above the first limit.
    Warning = 1,
    /// Above the second limit, or the service does not answer.
    Critical = 2,
    /// The state could not be determined.
    Unknown = 3,
}

/// The kinds of failure that are printed as they occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A file or another item failed, while the others were processed.
    Failed,
    /// A name on the command line that does not exist.
    Usage,
    /// No filter reads one of the logs.
    NoFilter,
    /// A filter's tests failed.
    Tests,
    /// A filter is refused.
    Refused,
    /// No daemon answers; one of several queries.
    Unreachable,
    /// A daemon answered with a fault; one of several queries.
    Fault,
    /// A host of the domain does not report.
    HostAway,
}

impl Failure {
    /// A failure that quotes an error.
    pub(crate) fn of(what: &str, error: impl Display) -> Failure {
        Failure::Failed(format!("{what}: {error}"))
    }

    /// A failure about an option with impossible values: one line for each, with its reason.
    pub(crate) fn of_option(option: &str, errors: &[impl Display]) -> Failure {
        let lines: Vec<String> = errors.iter().map(|error| format!("{option}: {error}")).collect();
        Failure::Usage(lines.join("\n"))
    }

    /// The same failure, marked as printed.
    pub(crate) fn into_printed(self) -> Failure {
        Failure::Printed(match self {
            Failure::Closed => return Failure::Closed,
            Failure::Failed(_) => Kind::Failed,
            Failure::Usage(_) => Kind::Usage,
            Failure::Unreachable(_) => Kind::Unreachable,
            Failure::Fault { .. } | Failure::NotAdmitted(_) => Kind::Fault,
            Failure::Refused(_) => Kind::Refused,
            Failure::NoFilter(_) => Kind::NoFilter,
            Failure::Printed(kind) => kind,
            Failure::Check(_) => return self,
        })
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Closed => 0,
            Failure::Failed(_) | Failure::Printed(Kind::Failed) => FAILED,
            Failure::Usage(_) | Failure::Printed(Kind::Usage) => USAGE,
            Failure::Unreachable(_) | Failure::Printed(Kind::Unreachable) => UNREACHABLE,
            Failure::Fault { .. } | Failure::NotAdmitted(_) | Failure::Printed(Kind::Fault) => FAULT,
            Failure::Printed(Kind::Tests) => TESTS,
            Failure::Refused(_) | Failure::Printed(Kind::Refused) => REFUSED,
            Failure::NoFilter(_) | Failure::Printed(Kind::NoFilter) => NO_FILTER,
            Failure::Printed(Kind::HostAway) => HOST_AWAY,
            Failure::Check(level) => *level as u8,
        }
    }

    /// Text for standard error, if anything is left to print. It is cleaned, except for a report on a file of
    /// this machine, which may be coloured.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::Closed | Failure::Printed(_) | Failure::Check(_) => None,
            Failure::Fault { code, message } => {
                Some(clean_lines(&format!("error: the daemon answered: {message} (fault {code})")))
            }
            Failure::Refused(report) => Some(report.trim_end().to_owned()),
            Failure::Failed(text)
            | Failure::Usage(text)
            | Failure::Unreachable(text)
            | Failure::NotAdmitted(text)
            | Failure::NoFilter(text) => Some(clean_lines(&format!("error: {text}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        let listed: Vec<u8> =
            HELP.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
        assert_eq!(
            listed,
            [0, FAILED, USAGE, UNREACHABLE, FAULT, TESTS, REFUSED, NO_FILTER, HOST_AWAY, INTERRUPTED]
        );
    }

    #[test]
    fn what_a_daemon_says_does_not_steer_the_terminal() {
        let message = "\x1b]52;c;eA==\x07 two\nlines".to_owned();
        let text = Failure::Fault { code: 1, message }.message().unwrap();
        assert_eq!(text, "error: the daemon answered: \\u{1b}]52;c;eA==\\u{7} two\nlines (fault 1)");
        let painted = Failure::Refused("\x1b[31mx\x1b[0m".to_owned());
        assert_eq!(painted.message().unwrap(), "\x1b[31mx\x1b[0m", "a report of ours keeps its colours");
    }

    #[test]
    fn what_was_said_is_not_said_again_and_keeps_its_code() {
        let text = || "x".to_owned();
        let fault = Failure::Fault { code: 1, message: text() };
        for failure in [
            Failure::Closed,
            Failure::Failed(text()),
            Failure::Usage(text()),
            Failure::Unreachable(text()),
            fault,
            Failure::NotAdmitted(text()),
            Failure::Refused(text()),
            Failure::NoFilter(text()),
        ] {
            let printed = failure.clone().into_printed();
            assert_eq!((printed.code(), printed.message()), (failure.code(), None), "{failure:?}");
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        assert_eq!((Failure::Closed.code(), Failure::Closed.message()), (0, None));
    }
}
