//! `visperf kill`: sends a signal to processes of any host, as an operator.
//!
//! Not here: the code shared with `renice` (`super`).

use super::Common;
use crate::exit::Failure;
use std::ffi::OsString;
use wire::control::{Act, Signal};

/// Send a signal to processes of a host, as an operator of its domain
///
/// The command is signed with the operator's key, identifies the process by its id and start time, and is
/// valid for 30 seconds. The sensor of that host verifies it, and executes it if [sensor.control] of its
/// configuration lists the process's user.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf kill localhost 4711                 ask process 4711 here to end
  visperf kill wn01 4711 --signal KILL        end it without asking it
  visperf kill wn01 -9 4711                   the same, as kill(1) has it
  visperf kill wn01 4711 4712 --signal STOP   pause two; CONT lets them go on
  visperf kill wn01 4711 --yes --json         from a script

docs/control.md explains the required permissions. Each command is stored as an
event: visperf events --kind message.")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Signal: HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or TSTP
    #[arg(long, short, value_name = "SIGNAL", default_value = "TERM", allow_negative_numbers = true)]
    signal: Signal,
}

/// Send the signal.
///
/// # Errors
/// If there is no such process, this user is not an operator, or the sensor refuses.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    super::run(&args.common, Act::Signal(args.signal))
}

/// Rewrite `-9` and `-KILL`, as kill(1) accepts them, to `--signal=…`.
pub(crate) fn with_signals(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|command| command != "kill") {
        return arguments;
    }
    let mut is_value = false;
    let of = |argument: OsString| {
        let signal = argument.to_str().and_then(|text| text.strip_prefix('-')?.parse::<Signal>().ok());
        let is_signal = !std::mem::replace(&mut is_value, argument == "-s" || argument == "--signal");
        match signal.filter(|_| is_signal) {
            Some(signal) => format!("--signal={}", signal.as_str()).into(),
            None => argument,
        }
    };
    arguments.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_may_be_given_as_kill_has_it() {
        let check = |given: &str, expected: &str| {
            let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(with_signals(words(given)), words(expected), "{given}");
        };
        check("visperf kill wn01 -9 4711", "visperf kill wn01 --signal=KILL 4711");
        check("visperf kill -TERM wn01 4711 -y", "visperf kill --signal=TERM wn01 4711 -y");
        check("visperf kill wn01 4711 --signal -9", "visperf kill wn01 4711 --signal -9");
        check("visperf kill wn01 4711 -s 9", "visperf kill wn01 4711 -s 9");
        check("visperf kill wn01 -99 4711", "visperf kill wn01 -99 4711");
        check("visperf renice wn01 4711 -9", "visperf renice wn01 4711 -9");
    }
}
