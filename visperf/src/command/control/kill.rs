//! `visperf kill`: a signal to processes of any host, by an operator.
//!
//! Not here: what it shares with `renice` (`super`).

use super::Common;
use crate::exit::Failure;
use wire::control::{Act, Signal};

/// Send a signal to processes of a host, as an operator of its domain
///
/// The order is signed by the operator's key, names the process by its number and start, and holds 30 seconds; the sensor
/// of that host itself checks it, and obeys where its configuration lists the process's user under [sensor.control].
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf kill localhost 4711                 ask process 4711 here to end
  visperf kill wn01 4711 --signal KILL        end it without asking it
  visperf kill wn01 4711 4712 --signal STOP   pause two; CONT lets them go on
  visperf kill wn01 4711 --yes --json         from a script

Who is an operator: docs/control.md. Each order is an event: visperf events
--kind message.")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or TSTP
    #[arg(long, short, value_name = "SIGNAL", default_value = "TERM", allow_negative_numbers = true)]
    signal: Signal,
}

/// Send it.
///
/// # Errors
/// If there is no such process, this user is no operator, or the sensor refuses.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    super::run(&args.common, Act::Signal(args.signal))
}
