//! `visperf renice`: sets the niceness of processes of any host, as an operator.
//!
//! Not here: the code shared with `kill` (`super`).

use super::Common;
use crate::exit::Failure;
use wire::control::{Act, Nice};

/// Set the nice value of processes of a host, as an operator of its domain
///
/// Authorized and executed as in `visperf kill`, for all threads of the process. Lowering the value requires
/// CAP_SYS_NICE for the sensor.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf renice wn01 4711 --nice 10
  visperf renice localhost 4711 4712 --nice 19 --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Nice value, from -20 (highest priority) to 19 (lowest priority)
    #[arg(long, short, value_name = "N", allow_negative_numbers = true, value_parser = nice)]
    nice: Nice,
}

fn nice(text: &str) -> Result<Nice, String> {
    let number: i8 = text.trim().parse().map_err(|_| "expected a whole number from -20 to 19".to_owned())?;
    Nice::try_from(number).map_err(|error| error.to_string())
}

/// Set the niceness.
///
/// # Errors
/// If there is no such process, this user is not an operator, or the sensor refuses.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    super::run(&args.common, Act::Renice(args.nice))
}
