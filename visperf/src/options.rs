//! Options that several subcommands share, as clap reads them, and their value parsers.
//!
//! Not here: the subcommands and their own options (`command`).

use crate::client::target::Target;
use crate::exit;
use crate::output::{Output, times};
use ::client::typed::About;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::ops::RangeInclusive;
use wire::time::Time;

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
    /// Only records at this time or later: 2026-11-20T12:24:17Z, 2026-11-20T12:24 (local), 12:24, yesterday,
    /// yesterday 12:24, 10m or 2h (ago), or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) since: Option<Time>,
    /// Only records at this time or earlier, in the same formats
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) until: Option<Time>,
}

/// Whose jobs, and where they were submitted to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OfJobs {
    /// Only jobs of this user: a name, or the number printed as `uid 1000`
    #[arg(long, value_name = "USER", value_parser = user)]
    pub(crate) user: Option<String>,
    /// Only jobs that are charged to this account
    #[arg(short = 'A', long, value_name = "ACCOUNT", value_parser = chosen)]
    pub(crate) charged_to: Option<String>,
    /// Only jobs of this queue or partition
    #[arg(long, value_name = "QUEUE", value_parser = chosen)]
    pub(crate) queue: Option<String>,
    /// Only jobs to which their user gave this name; * matches any characters
    #[arg(long, value_name = "NAME", value_parser = chosen)]
    pub(crate) name: Option<String>,
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

/// Value parser for times.
///
/// # Errors
/// States what was expected.
pub(crate) fn moment(text: &str) -> Result<Time, String> {
    times::parse(text, times::now(), &jiff::tz::TimeZone::system())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
