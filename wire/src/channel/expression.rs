//! Text syntax of filters and conditions: parser and formatter.
//!
//! ```text
//! filter     cpu > 0.5 and name ~ "^slurm" and rss_bytes changes by 1M and rate of read_bytes >= 4k
//!            state != "sleeping" and child of 4711 and parent of 17
//!            threads > 1 top 10 by rss_bytes
//! condition  sum cpu > 3.5 until 2.5 for 10 s
//!            count < 1
//! ```
//!
//! Pure. Rule: an error states what was expected, what was found and at which character. The fields are not
//! known here, so an unknown one is detected when the result is compiled. Numbers may end in k, M, G or T
//! (powers of 1000), in ki, Mi, Gi, Ti (powers of 1024), each also followed by B, or in % (hundredths).
//! Not here: splitting a text into tokens (`words`).

use super::TEXT_LEN_MAX_BYTES;
use super::filter::{Comparison, Condition, Filter, HOLD_MAX_SECS, Measure, PREDICATES_MAX, Predicate, Top};
use compact_str::CompactString;
use std::fmt;
use words::{Token, Words};

mod words;

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found} at character {at}")]
pub struct Error {
    /// What was expected at this position.
    pub expected: String,
    /// What was found there.
    pub found: String,
    /// Position of the character, from 1.
    pub at: usize,
}

/// Parse a filter; an empty text matches everything.
///
/// # Errors
/// If it is too long or invalid.
pub fn filter(text: &str) -> Result<Filter, Error> {
    let mut words = Words::new(text, TEXT_LEN_MAX_BYTES)?;
    let mut filter = Filter::default();
    if words.is_at_end() {
        return Ok(filter);
    }
    if !words.is_next("top") {
        loop {
            let at = words.at();
            filter.predicates.push(predicate(&mut words)?);
            if filter.predicates.len() > PREDICATES_MAX {
                let expected = format!("at most {PREDICATES_MAX} predicates");
                return Err(Error { expected, found: "one more".to_owned(), at });
            }
            if !words.take("and") {
                break;
            }
        }
    }
    if words.take("top") {
        let count = whole(&mut words, "how many: a whole number")?;
        words.need("by")?;
        filter.top = Some(Top { count, field: words.name("a field")? });
    }
    words.end("and, top or the end (there is no or: use two subscriptions, or a script)")?;
    Ok(filter)
}

/// Parse a condition.
///
/// # Errors
/// If it is too long or invalid.
pub fn condition(text: &str) -> Result<Condition, Error> {
    let mut words = Words::new(text, TEXT_LEN_MAX_BYTES)?;
    let measure = measure(&mut words)?;
    let at = words.at();
    let is_high = match words.comparison("> or <")? {
        Comparison::Above | Comparison::AtLeast => true,
        Comparison::Below | Comparison::AtMost => false,
        other @ (Comparison::Equal | Comparison::Other) => {
            return Err(Error { expected: "> or <".to_owned(), found: other.to_string(), at });
        }
    };
    let on = words.number()?;
    let at = words.at();
    let off = if words.take("until") { words.number()? } else { on };
    if is_high && off > on || !is_high && off < on {
        let expected =
            format!("until with a bound that is not {} {on}", if is_high { "above" } else { "below" });
        return Err(Error { expected, found: off.to_string(), at });
    }
    let mut hold_secs = 0.0;
    if words.take("for") {
        let at = words.at();
        hold_secs = words.number()?;
        words.take("s");
        if !(0.0..=HOLD_MAX_SECS).contains(&hold_secs) {
            let expected = format!("0 to {HOLD_MAX_SECS} seconds");
            return Err(Error { expected, found: hold_secs.to_string(), at });
        }
    }
    words.end("until, for or the end")?;
    Ok(Condition { measure, is_high, on, off, hold_secs })
}

fn measure(words: &mut Words<'_>) -> Result<Measure, Error> {
    const EXPECTED: &str = "count, or sum, max, min or mean of a field";
    let at = words.at();
    let word = words.name(EXPECTED)?;
    let of: fn(CompactString) -> Measure = match word.as_str() {
        "count" => return Ok(Measure::Count),
        "sum" => Measure::Sum,
        "max" => Measure::Max,
        "min" => Measure::Min,
        "mean" => Measure::Mean,
        _ => return Err(Error { expected: EXPECTED.to_owned(), found: format!("{word:?}"), at }),
    };
    Ok(of(words.name("a field")?))
}

fn predicate(words: &mut Words<'_>) -> Result<Predicate, Error> {
    if words.take_two("parent", "of") {
        return Ok(Predicate::ParentOf(whole(words, "the number of a process")?));
    }
    if words.take_two("child", "of") {
        return Ok(Predicate::ChildOf(whole(words, "the number of a process")?));
    }
    if words.take_two("rate", "of") {
        let field = words.name("a field")?;
        let comparison = words.comparison("a comparison (> >= < <= = !=)")?;
        return Ok(Predicate::Growth { field, comparison, bound: words.number()? });
    }
    let field = words.name("a field, rate of, child of or parent of")?;
    if words.take("changes") {
        let by = if words.take("by") { words.number()? } else { 0.0 };
        return Ok(Predicate::Changes { field, by });
    }
    if let Some(is_wanted) = words.likeness() {
        return Ok(Predicate::Matches { field, pattern: words.text()?, is_wanted });
    }
    let comparison = words.comparison("a comparison (> >= < <= = != ~ !~) or changes")?;
    let is_wanted = comparison == Comparison::Equal;
    if (is_wanted || comparison == Comparison::Other) && words.is_text_next() {
        return Ok(Predicate::Is { field, text: words.text()?, is_wanted });
    }
    Ok(Predicate::Threshold { field, comparison, bound: words.number()? })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked to be whole and within bounds.
fn whole(words: &mut Words<'_>, expected: &str) -> Result<u32, Error> {
    let at = words.at();
    let number = words.number()?;
    if number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number) {
        return Ok(number as u32);
    }
    Err(Error { expected: expected.to_owned(), found: number.to_string(), at })
}

/// The text syntax; parsing it gives the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, predicate) in self.predicates.iter().enumerate() {
            write!(f, "{}{predicate}", if number == 0 { "" } else { " and " })?;
        }
        let Some(Top { count, field }) = &self.top else { return Ok(()) };
        write!(f, "{}top {count} by {field}", if self.predicates.is_empty() { "" } else { " " })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Threshold { field, comparison, bound } => write!(f, "{field} {comparison} {bound}"),
            Predicate::Changes { field, by } => write!(f, "{field} changes by {by}"),
            Predicate::Growth { field, comparison, bound } => {
                write!(f, "rate of {field} {comparison} {bound}")
            }
            Predicate::Matches { field, pattern, is_wanted } => {
                write!(f, "{field} {} {}", if *is_wanted { "~" } else { "!~" }, Token::quoted(pattern))
            }
            Predicate::Is { field, text, is_wanted } => {
                write!(f, "{field} {} {}", if *is_wanted { "=" } else { "!=" }, Token::quoted(text))
            }
            Predicate::ParentOf(pid) => write!(f, "parent of {pid}"),
            Predicate::ChildOf(pid) => write!(f, "child of {pid}"),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Count => f.write_str("count"),
            Measure::Sum(field) => write!(f, "sum {field}"),
            Measure::Max(field) => write!(f, "max {field}"),
            Measure::Min(field) => write!(f, "min {field}"),
            Measure::Mean(field) => write!(f, "mean {field}"),
        }
    }
}

/// The text syntax; parsing it gives the same condition.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { measure, is_high, on, off, hold_secs } = self;
        write!(f, "{measure} {} {on} until {off} for {hold_secs} s", if *is_high { ">" } else { "<" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_what_it_says() {
        let parsed = filter(
            r#"cpu > 0.5 and name ~ "^a\"b" and rss_bytes changes by 1Mi and rate of read_bytes >= 4k and state != "sleeping" and child of 7 and threads=2 top 10 by rss_bytes"#,
        );
        let field = CompactString::from;
        let expected = vec![
            Predicate::Threshold { field: field("cpu"), comparison: Comparison::Above, bound: 0.5 },
            Predicate::Matches { field: field("name"), pattern: "^a\"b".into(), is_wanted: true },
            Predicate::Changes { field: field("rss_bytes"), by: 1_048_576.0 },
            Predicate::Growth { field: field("read_bytes"), comparison: Comparison::AtLeast, bound: 4000.0 },
            Predicate::Is { field: field("state"), text: "sleeping".into(), is_wanted: false },
            Predicate::ChildOf(7),
            Predicate::Threshold { field: field("threads"), comparison: Comparison::Equal, bound: 2.0 },
        ];
        let top = Some(Top { count: 10, field: field("rss_bytes") });
        assert_eq!(parsed, Ok(Filter { predicates: expected, top: top.clone() }));
        assert_eq!(filter("top 10 by rss_bytes"), Ok(Filter { predicates: Vec::new(), top }));
        assert_eq!(filter("  "), Ok(Filter::default()));
    }

    #[test]
    fn numbers_are_taken_as_tables_print_them() {
        let check = |text: &str, expected: &str| assert_eq!(filter(text), filter(expected), "{text}");
        check("cpu > 50 % and threads > 1", "cpu > 0.5 and threads > 1");
        check("cpu > 50% top 5 by cpu", "cpu > 0.5 top 5 by cpu");
        check("rss_bytes > 1G", "rss_bytes > 1000000000");
        check("rss_bytes > 1.5GiB", "rss_bytes > 1610612736");
        check("read_bytes changes by 512B", "read_bytes changes by 512");
        for wrong in ["child of 50 %", "top 5 % by cpu", "cpu > % 5", "cpu > 1X", "cpu > B"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
        assert_eq!(condition("sum cpu > 300 % for 10 s"), condition("sum cpu > 3 for 10 s"));
    }

    #[test]
    fn an_error_points_to_the_place() {
        let check = |text: &str, expected: &str| {
            assert_eq!(filter(text).expect_err(text).to_string(), expected, "{text}");
        };
        check("cpu >", "expected a number, found the end at character 6");
        check("cpu > \"a\"", "expected a number, found \"a\" at character 7");
        check("cpu >> 1", "expected a number, found > at character 6");
        check("cpu 0.5", "expected a comparison (> >= < <= = != ~ !~) or changes, found 0.5 at character 5");
        check(
            "cpu > 0.5 name ~ \"a\"",
            "expected and, top or the end (there is no or: use two subscriptions, or a script), found name at character 11",
        );
        check("name ~ slurm", "expected a text in quotes, found slurm at character 8");
        check(
            "name ~ \"slurm",
            "expected the end of the text that began here: \", found the end at character 8",
        );
        check("top 0 by cpu", "expected how many: a whole number, found 0 at character 5");
        check("top 5 cpu", "expected by, found cpu at character 7");
        check("> 1", "expected a field, rate of, child of or parent of, found > at character 1");
        check(
            "ü > 1",
            "expected a name, a number, a comparison or a text in quotes, found 'ü' at character 1",
        );
        let long = format!("name = \"{}\"", "a".repeat(TEXT_LEN_MAX_BYTES));
        check(&long, "expected at most 1024 bytes, found 1033 bytes at character 1");
        let many = vec!["cpu > 1"; PREDICATES_MAX + 1].join(" and ");
        check(&many, "expected at most 16 predicates, found one more at character 193");
    }

    #[test]
    fn a_condition_is_what_it_says() {
        let parsed = condition("sum cpu > 3.5 until 2.5 for 10 s");
        let measure = Measure::Sum("cpu".into());
        assert_eq!(parsed, Ok(Condition { measure, is_high: true, on: 3.5, off: 2.5, hold_secs: 10.0 }));
        let parsed = condition("count < 1");
        let measure = Measure::Count;
        assert_eq!(parsed, Ok(Condition { measure, is_high: false, on: 1.0, off: 1.0, hold_secs: 0.0 }));
        let check = |text: &str, expected: &str| {
            assert_eq!(condition(text).expect_err(text).to_string(), expected, "{text}");
        };
        check("cpu > 1", "expected count, or sum, max, min or mean of a field, found \"cpu\" at character 1");
        check("max cpu = 1", "expected > or <, found = at character 9");
        check(
            "max cpu > 1 until 2",
            "expected until with a bound that is not above 1, found 2 at character 13",
        );
        check("max cpu > 1 for 9000 s", "expected 0 to 3600 seconds, found 9000 at character 17");
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(
            bound in -1e12..1e12_f64, text in ".{0,20}", pid in 1..u32::MAX, is_wanted: bool, count in 1..1000_u32,
        ) {
            let field = CompactString::from("read_bytes");
            let predicates = vec![
                Predicate::Threshold { field: field.clone(), comparison: Comparison::AtMost, bound },
                Predicate::Matches { field: field.clone(), pattern: text.as_str().into(), is_wanted },
                Predicate::Is { field: field.clone(), text: text.as_str().into(), is_wanted },
                Predicate::Growth { field: field.clone(), comparison: Comparison::Other, bound },
                Predicate::Changes { field: field.clone(), by: bound },
                Predicate::ParentOf(pid),
                Predicate::ChildOf(pid),
            ];
            let built = Filter { predicates, top: Some(Top { count, field: field.clone() }) };
            proptest::prop_assert_eq!(filter(&built.to_string()), Ok(built));
            let built = Condition { measure: Measure::Min(field), is_high: true, on: bound, off: bound - 1.0, hold_secs: 2.5 };
            proptest::prop_assert_eq!(condition(&built.to_string()), Ok(built));
        }

        #[test]
        fn no_text_breaks_it(text in ".{0,60}") {
            // The result does not matter here.
            let _ = (filter(&text), condition(&text));
        }
    }
}
