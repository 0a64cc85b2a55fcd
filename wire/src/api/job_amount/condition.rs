//! Conditions on amounts, as text: `cpu_efficiency < 20 %`, `ran >= 1h30m and peak_memory > 2 GiB`.
//!
//! Pure. Rule: each error says what was expected and what was found.

use super::{Dimension, Job, JobAmount};
use crate::near_names::suggestion;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest text of conditions, in bytes.
const LEN_MAX_BYTES: usize = 1000;

/// Without a percent sign, a larger share of one is a mistake.
const SHARE_MAX: f64 = 2.0;

const TIMES: &[(&str, f64)] = &[
    ("ms", 0.001),
    ("s", 1.0),
    ("min", 60.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("K", 1024.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MiB", 1_048_576.0),
    ("M", 1_048_576.0),
    ("MB", 1e6),
    ("GiB", 1_073_741_824.0),
    ("G", 1_073_741_824.0),
    ("GB", 1e9),
    ("TiB", 1_099_511_627_776.0),
    ("T", 1_099_511_627_776.0),
    ("TB", 1e12),
];

/// How an amount is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// Equal.
    Equal,
}

/// The longer signs first: one begins as another.
const COMPARISONS: [Comparison; 5] = [
    Comparison::LessOrEqual,
    Comparison::GreaterOrEqual,
    Comparison::Less,
    Comparison::Greater,
    Comparison::Equal,
];

impl Comparison {
    /// Its sign, which is that of SQL, too.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Equal => "=",
        }
    }

    #[allow(clippy::float_cmp, reason = "numbers of pieces are whole")]
    fn holds(self, amount: f64, value: f64) -> bool {
        match self {
            Comparison::Less => amount < value,
            Comparison::LessOrEqual => amount <= value,
            Comparison::Greater => amount > value,
            Comparison::GreaterOrEqual => amount >= value,
            Comparison::Equal => amount == value,
        }
    }
}

/// Condition on an amount of a job, in JSON as its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Condition {
    /// Amount.
    pub amount: JobAmount,
    /// How it is compared.
    pub comparison: Comparison,
    /// Value, in the unit of the amount: a share of one, seconds, bytes, pieces.
    pub value: f64,
}

/// Text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(String);

impl Condition {
    /// Creates a condition.
    #[must_use]
    pub const fn new(amount: JobAmount, comparison: Comparison, value: f64) -> Condition {
        Condition { amount, comparison, value }
    }

    /// Whether a job meets it; not if the amount is not known.
    #[must_use]
    pub fn fits(&self, job: &Job, now: Time) -> bool {
        self.amount.of(job, Some(now)).is_some_and(|amount| self.comparison.holds(amount, self.value))
    }
}

/// Reads conditions that are joined by `and`.
///
/// # Errors
/// The first that is none.
pub fn conditions(text: &str) -> Result<Vec<Condition>, ConditionError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.iter().any(|word| word.eq_ignore_ascii_case("or")) {
        return Err(ConditionError(
            "conditions are joined by `and` alone; expected a search for each side of `or`".into(),
        ));
    }
    words.split(|word| word.eq_ignore_ascii_case("and")).map(|words| words.join(" ").parse()).collect()
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let text = text.trim();
        if text.len() > LEN_MAX_BYTES {
            return Err(ConditionError(format!(
                "expected at most {LEN_MAX_BYTES} bytes, found {}",
                text.len()
            )));
        }
        let form = || {
            ConditionError(format!(
                "expected an amount, one of < <= > >= =, and a value, as in cpu_efficiency < 20 %; found {text:?}"
            ))
        };
        let at = text.find(['<', '>', '=']).ok_or_else(form)?;
        let (name, rest) = text.split_at(at);
        let is_sign = |comparison: &&Comparison| rest.starts_with(comparison.sign());
        let comparison = *COMPARISONS.iter().find(is_sign).ok_or_else(form)?;
        let value = rest[comparison.sign().len()..].trim();
        let value =
            value.strip_prefix('=').filter(|_| comparison == Comparison::Equal).unwrap_or(value).trim();
        let amount = amount(name.trim())?;
        match value.is_empty() {
            true => Err(form()),
            false => Ok(Condition { amount, comparison, value: value_of(amount, value)? }),
        }
    }
}

impl TryFrom<String> for Condition {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Condition, ConditionError> {
        text.parse()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.amount, self.comparison.sign(), self.value)?;
        f.write_str(if self.amount.dimension() == Dimension::Time { "s" } else { "" })
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> String {
        match condition.amount.dimension() {
            // In percent a share of any size is accepted.
            Dimension::Share => {
                let Condition { amount, comparison, value } = condition;
                format!("{amount} {} {}%", comparison.sign(), value * 100.0)
            }
            Dimension::Time | Dimension::Bytes | Dimension::Count => condition.to_string(),
        }
    }
}

fn amount(name: &str) -> Result<JobAmount, ConditionError> {
    JobAmount::from_word(name).ok_or_else(|| {
        let words: Vec<&str> = JobAmount::ALL.iter().map(|amount| amount.as_str()).collect();
        let near = suggestion(name, words.iter().copied());
        ConditionError(format!("there is no amount {name:?}{near}; expected one of {}", words.join(", ")))
    })
}

/// Reads a value of an amount, in the amount's unit.
fn value_of(amount: JobAmount, text: &str) -> Result<f64, ConditionError> {
    let (expected, value) = match amount.dimension() {
        Dimension::Share => ("a share such as 20 %", share(text)),
        Dimension::Time => ("a time such as 90s, 30m, 1h30m or 2d", sum(text, TIMES)),
        Dimension::Bytes => ("a size such as 512 MiB or 2 GiB", sum(text, SIZES)),
        Dimension::Count => ("a number", text.parse().ok()),
    };
    let valid = value.filter(|value| value.is_finite() && *value >= 0.0);
    valid.ok_or_else(|| ConditionError(format!("{amount}: expected {expected}; found {text:?}")))
}

fn share(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.trim().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok().filter(|share| *share <= SHARE_MAX),
    }
}

/// Adds up numbers that are each followed by a unit: `1h30m`, `2 GiB`. A number alone is in the unit of the amount.
fn sum(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let unit_at = rest.find(|char: char| char.is_ascii_alphabetic())?;
        let (number, tail) = rest.split_at(unit_at);
        let next = tail.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (_, factor) = units.iter().find(|(unit, _)| *unit == &tail[..next])?;
        total += number.trim().parse::<f64>().ok()? * factor;
        rest = tail[next..].trim();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_with_their_units() {
        for (text, value) in [
            ("cpu_efficiency < 20 %", 0.2),
            ("cpu_efficiency<0.2", 0.2),
            ("memory_efficiency >= 110%", 1.1),
            ("ran > 90", 90.0),
            ("ran > 1h30m", 5_400.0),
            ("waited <= 1.5 d", 129_600.0),
            ("wasted >= 10min 5s", 605.0),
            ("peak_memory > 2 GiB", 2_147_483_648.0),
            ("written_bytes > 1GB", 1e9),
            ("memory < 512M", 536_870_912.0),
            ("cpus = 8", 8.0),
            ("tries == 2", 2.0),
        ] {
            let condition: Condition = text.parse().expect(text);
            assert_eq!(condition.value, value, "{text}");
            let word = text.split(|char: char| !char.is_ascii_alphabetic() && char != '_').next();
            assert_eq!(Some(condition.amount.as_str()), word, "{text}");
            let json = serde_json::to_string(&condition).expect("text");
            assert_eq!(serde_json::from_str::<Condition>(&json).expect(&json), condition, "{json}");
        }
        let both = conditions("ran > 1h AND cpu_efficiency < 5 %").expect("two");
        assert_eq!(
            both.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["ran > 3600s", "cpu_efficiency < 0.05"]
        );
        assert_eq!(both[0].comparison, Comparison::Greater);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_was_expected() {
        let long = "ran > 1 and ".repeat(200);
        for (text, part) in [
            ("", "as in cpu_efficiency < 20 %"),
            ("cpus", "as in"),
            ("cpus >", "as in"),
            ("cpus ! 8", "as in"),
            ("cpu_eficiency < 5 %", "did you mean cpu_efficiency"),
            ("cpu_efficiency < 20", "a share such as 20 %; found \"20\""),
            ("ran > 1 fortnight", "a time such as"),
            ("ran > 1h30", "a time such as"),
            ("peak_memory > 2 gigs", "a size such as"),
            ("cpus > many", "a number; found \"many\""),
            ("cpus > -1", "a number"),
            ("cpus > inf", "a number"),
            ("wasted > NaN", "a time"),
            ("ran > 1h or cpus > 2", "joined by `and` alone"),
            ("cpus != 8", "no amount \"cpus !\""),
            (&long, "as in"),
        ] {
            let error = conditions(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn each_comparison_holds_for_what_it_says() {
        for (sign, holds) in
            [("<", [true, false, false]), ("<=", [true, true, false]), ("=", [false, true, false])]
        {
            let comparison = COMPARISONS.into_iter().find(|known| known.sign() == sign).expect("known");
            assert_eq!([1.0, 2.0, 3.0].map(|amount| comparison.holds(amount, 2.0)), holds, "{sign}");
        }
        assert!(Comparison::Greater.holds(3.0, 2.0) && !Comparison::Greater.holds(2.0, 2.0));
        assert!(Comparison::GreaterOrEqual.holds(2.0, 2.0) && !Comparison::GreaterOrEqual.holds(1.0, 2.0));
    }
}
