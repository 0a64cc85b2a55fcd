//! The command line as clap reads it: the subcommands, and the options that several of them share.
//!
//! Not here: what a subcommand does and its own options (`command`).

use crate::client::target::Target;
use crate::command::Command;
use crate::exit;
use crate::output::{Output, times};
use ::client::typed::About;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser};
use std::ops::RangeInclusive;
use wire::time::Time;

const ABOUT: &str = "See what a grid is doing: events from the logs of unmodified middleware, and host load";

const LONG_ABOUT: &str = "\
visperf reads the logs of grid middleware (Slurm, HTCondor, Grid Engine, Torque, GridFTP ...) as they are \
written, turns their lines into events (job submitted, started, ended ...), joins the events of each job or \
transfer to a call, samples the load of the host, and answers questions about all of it.

To look around:
  visperf filter try /var/log/slurm/slurmctld.log   what is in a log, without any daemon
  visperf up                                        watch this machine, no configuration needed
  visperf events --follow                           the events as they come";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "visperf", version, about = ABOUT, long_about = LONG_ABOUT, after_long_help = exit::HELP)]
#[command(after_help = "More: visperf help COMMAND, visperf COMMAND --help", disable_help_subcommand = false)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the daemon is, and how to print its answer: the options of every query.
#[derive(Debug, Clone, Args)]
pub(crate) struct Query {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print JSON, one object per line, as the daemon sent it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// How wide tables are.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Width {
    /// Print full names and all columns, even if they do not fit the terminal (default for pipes)
    #[arg(long)]
    wide: bool,
}

impl Width {
    /// Standard output of this width.
    pub(crate) fn output(&self) -> Output {
        match self.wide {
            true => Output::stdout().whole(),
            false => Output::stdout(),
        }
    }
}

/// Domain to query.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OfDomain {
    /// Domain to query [default: the domain of the queried daemon]
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    pub(crate) domain: Option<String>,
}

impl Place {
    /// The place of a typed call.
    pub(crate) fn about(&self) -> About {
        About { domain: self.domain.clone(), host: self.host.clone() }
    }
}

impl OfDomain {
    /// The place of a typed call.
    pub(crate) fn about(&self) -> About {
        About { domain: self.domain.clone(), host: None }
    }
}

/// Domain and host to query.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Place {
    /// Domain to query [default: the domain of the queried daemon]
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    pub(crate) domain: Option<String>,
    /// Host to query [default: the host of the queried daemon]
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    pub(crate) host: Option<String>,
}

/// Time range.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Between {
    /// Only records at this time or later: 2026-11-20T12:24:17Z, 2026-11-20T12:24 (local), 10m or 2h (ago),
    /// or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) since: Option<Time>,
    /// Only records at this time or earlier, in the same formats
    #[arg(long, value_name = "TIME", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) until: Option<Time>,
}

/// Value parser for names to select by. An empty one is refused: it would select what has no name, or
/// everything.
///
/// # Errors
/// States what was expected.
pub(crate) fn chosen(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("nothing to choose by; leave the option out for all".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Value parser for users. A number is also accepted in the form in which it is shown (`uid 1000`).
///
/// # Errors
/// As [`chosen`].
pub(crate) fn user(text: &str) -> Result<String, String> {
    chosen(text.strip_prefix("uid ").unwrap_or(text))
}

/// Value parser for whole numbers within bounds.
pub(crate) fn whole(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.trim().parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| match *bounds.end() {
            u64::MAX => format!("expected a whole number, {} or more", bounds.start()),
            end => format!("expected a whole number from {} to {end}", bounds.start()),
        })
    }
}

/// Value parser for one of these words; the error for any other lists them.
pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

impl Between {
    /// Refuse bounds that contain no time.
    ///
    /// # Errors
    /// If the first is later than the last.
    pub(crate) fn check(&self) -> Result<(), exit::Failure> {
        let (Some(since), Some(until)) = (self.since, self.until) else { return Ok(()) };
        if since <= until {
            return Ok(());
        }
        let zone = jiff::tz::TimeZone::system();
        let shown = |time| times::shown(time, &zone);
        Err(exit::Failure::Usage(format!(
            "--since {} is later than --until {}: nothing lies between them; exchange the two",
            shown(since),
            shown(until)
        )))
    }
}

fn moment(text: &str) -> Result<Time, String> {
    times::parse(text, times::now(), &jiff::tz::TimeZone::system())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_and_words_are_refused_in_sentences() {
        assert_eq!(whole(1..=9)("9"), Ok(9));
        for bad in ["", "abc", "0", "10", "-1", "1.5", "99999999999999999999"] {
            assert_eq!(whole(1..=9)(bad), Err("expected a whole number from 1 to 9".to_owned()), "{bad}");
        }
        assert_eq!(whole(1..=u64::MAX)("0"), Err("expected a whole number, 1 or more".to_owned()));
        assert_eq!(user("uid 1000"), Ok("1000".to_owned()));
        assert!(user("").is_err() && chosen("  ").is_err());
    }

    #[test]
    fn examples_stay_whole_on_a_narrow_terminal() {
        fn check(command: &clap::Command) -> usize {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            usize::from(!help.is_empty()) + command.get_subcommands().map(check).sum::<usize>()
        }
        assert!(check(&Cli::command()) > 10);
    }
}
