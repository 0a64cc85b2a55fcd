//! The beginning of a filter for a log that none reads: its stamp guessed, its most frequent lines as rules.
//!
//! Pure. What is written here is itself a filter that compiles and passes its own test, so that its writer
//! goes from one working state to the next.

use crate::trial::known_stamps;
use crate::trial::shape::{Piece, pieces};
use crate::trial::unknown::Unknown;
use log_filters::filter::Filter;
use log_filters::timestamp::Format;
use std::fmt::Write as _;

/// Lines that are looked at: enough to meet what is frequent.
pub(crate) const LINES_MAX: usize = 20_000;
/// Shapes that become rules.
const RULES: usize = 12;
/// Longest line that becomes a rule, in bytes: a pattern may have 4 KiB.
const RULE_LINE_LEN_MAX_BYTES: usize = 600;

/// A filter called `name` for a log of this file name with these first lines.
///
/// # Errors
/// If the name cannot be one, or there is no line to begin with.
pub(crate) fn write(name: &str, file_name: &str, lines: &[Vec<u8>]) -> Result<String, String> {
    let raw: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let stamp = known_stamps::guess(&raw);
    let format = stamp.as_deref().map(|text| Format::parse(text).expect("the guess is one of the known"));
    let mut shapes = Unknown::default();
    for (number, line) in lines.iter().enumerate() {
        let cut = format.as_ref().and_then(|format| format.read(line)).map_or(0, |(_, len)| len);
        let usable = std::str::from_utf8(line).is_ok() && line.len() <= RULE_LINE_LEN_MAX_BYTES;
        if usable && line.len() > cut && !line.contains(&b'\r') {
            shapes.add(0, number as u64 + 1, &line[cut..]);
        }
    }
    let examples = shapes.examples(RULES);
    let Some((_, first)) = examples.first() else {
        return Err("expected at least one line of UTF-8 text to begin with, found none".to_owned());
    };
    let whole =
        lines.iter().find(|line| line.ends_with(first.as_bytes())).expect("the example is from there");
    let mut text = head(name, file_name, stamp.as_deref());
    for (at, (count, example)) in examples.iter().enumerate() {
        text.push_str(&rule(*count, example, at == 0));
    }
    text.push_str(&test(&String::from_utf8_lossy(whole)));
    Filter::parse(name, &text).map(|_| text).map_err(|error| error.message)
}

fn head(name: &str, file_name: &str, stamp: Option<&str>) -> String {
    let stamp = match stamp {
        Some(stamp) => format!("prefix = [{}]", quoted(stamp)),
        None => "# No stamp was recognised at the start of the lines. If there is one:\n\
                 # prefix = [\"%Y-%m-%d %H:%M:%S%.f\"]"
            .to_owned(),
    };
    format!(
        "# A beginning. Try it with   visperf filter try --filter THIS-FILE LOGFILE\n\
         # and run its tests with     visperf filter test THIS-FILE\n\
         # docs/filter-format.md tells every key.\n\n\
         [filter]\nname = {name}\nproduct = {name}\ndescription = \"What it reads, in one sentence\"\n\n\
         [files]\nnames = [{file}]\n\n\
         [time]\n{stamp}\n\
         # zone = \"Europe/Rome\"   # for stamps that print none, if not the log host's own\n\n\
         # Events with the same job belong to the same call.\n\
         [calls]\nnames = [\"${{.job}}\"]\n\n\
         # One rule for each kind of line, most frequent first; the stamp is cut off before they see it.\n\
         # Rename the captures, and choose an event: job_submit job_select job_start job_end job_cancel\n\
         # transfer_start transfer_end node_up node_down service_start workload message ...\n\
         # A rule without `event` knows the line and tells nothing.\n",
        name = quoted(name),
        file = quoted(&glob_escaped(file_name)),
    )
}

fn rule(count: u64, example: &str, active: bool) -> String {
    let (pattern, captures) = pattern(example);
    let event = if active { "message" } else { "job_start" };
    let mut lines =
        vec!["[[rule]]".to_owned(), format!("match = {}", quoted(&pattern)), format!("event = \"{event}\"")];
    if let Some(first) = captures.first() {
        lines.push(format!("{}job = \"${{{first}}}\"", if active { "# " } else { "" }));
    }
    let mut text = format!("\n# {count} x, such as: {}\n", one_line(example));
    for line in lines {
        let _ = writeln!(text, "{}{line}", if active || line.starts_with('#') { "" } else { "# " });
    }
    text
}

/// A regex for lines of this shape, and the names of its captures.
fn pattern(example: &str) -> (String, Vec<String>) {
    let mut regex = "^".to_owned();
    let mut captures = Vec::new();
    for piece in pieces(example) {
        let (name, inner) = match piece {
            Piece::Literal(text) => {
                regex.push_str(&regex::escape(text));
                continue;
            }
            Piece::Number(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => ("n", r"\d+"),
            Piece::Number(_) => ("n", r"\d[\d.,:-]*"),
            Piece::Hex(_) => ("hex", "[0-9A-Za-z]+"),
            Piece::Uuid(_) => ("uuid", "[0-9A-Fa-f-]{36}"),
            Piece::Quoted(text) if text.starts_with('"') => ("text", "\"[^\"]*\""),
            Piece::Quoted(_) => ("text", "'[^']*'"),
        };
        let name = format!("{name}{}", captures.len() + 1);
        let _ = write!(regex, "(?P<{name}>{inner})");
        captures.push(name);
    }
    regex.push('$');
    (regex, captures)
}

fn test(line: &str) -> String {
    format!(
        "\n[[test]]\nname = \"a first line\"\nlines = {}\nevents = [{{ kind = \"message\", line = 1 }}]\n",
        quoted(line)
    )
}

/// A TOML string: in single quotes where that is possible, for regexes are easiest to read so.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(|c| !c.is_control());
    match plain && !text.contains('\'') {
        true if !text.contains(['\\', '"']) => format!("\"{text}\""),
        true => format!("'{text}'"),
        false => toml::Value::String(text.to_owned()).to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn glob_escaped(name: &str) -> String {
    let mut escaped = String::new();
    for c in name.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => _ = write!(escaped, "[{c}]"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn lines(text: &str) -> Vec<Vec<u8>> {
        text.lines().map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_beginning_compiles_and_passes_its_test() {
        let log = "Nov 20 12:24:17 job 1 started on wn01 for 'a'\nNov 20 12:24:18 job 2 started on wn02 for 'b'\n\
                   Nov 20 12:24:19 odd \\ line \"x\" 0xff it's 3f2504e0-4f89-11d3-9a0c-0305e82c3301\n";
        let text = write("my-app", "my[app].log", &lines(log)).unwrap();
        let filter = Arc::new(Filter::parse("f", &text).unwrap());
        assert_eq!(log_filters::test_lines::run(&filter), []);
        assert_eq!((filter.rules(), filter.tests()), (1, 1));
        assert!(text.contains("prefix = [\"%b %e %H:%M:%S\"]"), "{text}");
        assert!(text.contains(r"job (?P<n1>\d+) started on wn(?P<n2>\d+) for (?P<text3>'[^']*')$"), "{text}");
    }

    #[test]
    fn every_commented_rule_works_when_uncommented() {
        let log = "a 1\na 2\nb 3\nit's \"q\" 0xff\nc\n\tx\\d (y) [z]\n";
        let text = write("x", "x.log", &lines(log)).unwrap();
        let is_toml = |line: &str| {
            line.starts_with("# [[")
                || line.starts_with("# match")
                || line.starts_with("# event")
                || line.starts_with("# job = ")
        };
        let opened: Vec<&str> =
            text.lines().map(|line| if is_toml(line) { &line[2..] } else { line }).collect();
        let filter = Filter::parse("f", &opened.join("\n")).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(filter.rules(), 5, "{text}");
    }

    #[test]
    fn what_cannot_be_a_filter_is_refused() {
        assert!(write("Bad Name", "x", &lines("a\n")).is_err());
        assert!(write("x", "x", &[]).is_err());
        assert!(write("x", "x", &[vec![0xff, 0xfe]]).is_err());
    }
}
