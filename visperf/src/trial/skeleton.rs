//! Generator of a filter skeleton for an unknown log: guesses its timestamp format and turns its most
//! frequent lines into rules.
//!
//! Pure. The result is itself a filter that compiles and passes its own test, so that its author can proceed
//! from one working state to the next.

use crate::trial::known_stamps;
use crate::trial::pattern;
use crate::trial::unknown::Unknown;
use log_filters::filter::Filter;
use log_filters::registry::unrotated;
use log_filters::timestamp::Format;
use std::fmt::Write as _;
use wire::harmless::{is_harmless, replaced};
use wire::shown::count;

/// Lines read of a log: enough to contain what is frequent.
pub(crate) const LINES_MAX: usize = 20_000;
/// Number of shapes that become rules.
const RULES: usize = 12;
/// Longest line that becomes a rule, in bytes: a pattern may have 4 KiB.
const RULE_LINE_LEN_MAX_BYTES: usize = 600;

/// Beginning of a log.
pub(crate) struct Sample {
    pub(crate) file_name: String,
    pub(crate) lines: Vec<Vec<u8>>,
}

/// Write one filter called `name` for all of these logs.
///
/// # Errors
/// If the name is invalid, or there is no usable line.
pub(crate) fn write(name: &str, logs: &[Sample]) -> Result<String, String> {
    let stamps = stamps(logs);
    let formats: Vec<Format> =
        stamps.iter().map(|text| Format::parse(text).expect("the guess is one of the known")).collect();
    let (mut shapes, mut indented) = (Unknown::default(), Indented::default());
    for (file, log) in logs.iter().enumerate() {
        let mut before = "";
        for (number, line) in log.lines.iter().enumerate() {
            let cut = formats.iter().find_map(|format| format.read(line)).map(|(_, len)| len);
            let Ok(text) = std::str::from_utf8(&line[cut.unwrap_or(0)..]) else { continue };
            let usable = line.len() <= RULE_LINE_LEN_MAX_BYTES && !text.is_empty() && !text.contains('\r');
            if !formats.is_empty() && cut.is_none() && text.starts_with([' ', '\t']) {
                indented.add(before);
            } else if usable {
                shapes.add(file, number as u64 + 1, text.as_bytes());
                before = text;
            }
        }
    }
    let examples = shapes.examples(RULES);
    let Some((_, first)) = examples.first() else {
        return Err("expected at least one line of UTF-8 text to begin with, found none".to_owned());
    };
    let mut lines = logs.iter().flat_map(|log| &log.lines);
    let whole = lines.find(|line| line.ends_with(first.as_bytes())).expect("the example is from there");
    let mut text = head(name, logs, &stamps);
    text.push_str(&indented.record());
    for (at, (count, example)) in examples.iter().enumerate() {
        text.push_str(&rule(*count, example, at == 0));
    }
    let left = shapes.groups().saturating_sub(examples.len());
    if left > 0 {
        let kinds = count(left as u64, "more kind");
        let _ = write!(text, "\n# {kinds} of lines: `visperf filter try` shows what no rule takes.\n");
    }
    text.push_str(&test(&String::from_utf8_lossy(whole)));
    Filter::parse(name, &text).map(|_| text).map_err(|error| error.message)
}

/// The timestamp formats of the logs, without duplicates; the longest first, as it consumes most of a line
/// that two match.
fn stamps(logs: &[Sample]) -> Vec<String> {
    let mut stamps: Vec<String> = Vec::new();
    for log in logs {
        let raw: Vec<&[u8]> = log.lines.iter().map(Vec::as_slice).collect();
        if let Some(stamp) = known_stamps::guess(&raw).map(|format| with_blank(format, &raw))
            && !stamps.contains(&stamp)
        {
            stamps.push(stamp);
        }
    }
    stamps.sort_by_key(|stamp| std::cmp::Reverse(stamp.len()));
    stamps
}

/// The format including the space after the timestamp, if exactly one follows in every line: rules are easier
/// to write without it.
fn with_blank(format: String, lines: &[&[u8]]) -> String {
    let parsed = Format::parse(&format).expect("the guess is one of the known");
    let mut rests = lines.iter().filter_map(|line| parsed.read(line).map(|(_, len)| &line[len..]));
    let longer = format!("{format} ");
    let one_blank = |rest: &[u8]| matches!(rest, [b' ', next, ..] if !next.is_ascii_whitespace());
    if rests.all(one_blank) && Format::parse(&longer).is_ok() { longer } else { format }
}

/// Lines without a timestamp that start with whitespace, in a log with timestamps.
#[derive(Default)]
struct Indented {
    lines: u64,
    /// The line before the first of them.
    first_before: String,
}

impl Indented {
    fn add(&mut self, before: &str) {
        if self.lines == 0 {
            before.clone_into(&mut self.first_before);
        }
        self.lines += 1;
    }

    /// A commented-out section that joins them with the line before.
    fn record(&self) -> String {
        if self.lines == 0 || self.first_before.is_empty() {
            return String::new();
        }
        let start = pattern::without_captures(&self.first_before);
        format!(
            "\n# {} without a stamp, indented: open this, and the rules see a line that matches `start` and\n\
             # those after it as one text, joined by \\n (end a `match` with (?s).* instead of $ there).\n\
             # [[record]]\n# start = {}\n# continue = '^\\s'\n",
            count(self.lines, "line"),
            quoted(&start),
        )
    }
}

fn head(name: &str, logs: &[Sample], stamps: &[String]) -> String {
    let mut files: Vec<String> = Vec::new();
    for log in logs {
        let glob = quoted(&glob_escaped(unrotated(&log.file_name).unwrap_or(&log.file_name)));
        if !files.contains(&glob) {
            files.push(glob);
        }
    }
    let stamp = match stamps {
        [_, ..] => {
            let stamps: Vec<String> = stamps.iter().map(|stamp| quoted(stamp)).collect();
            format!("prefix = [{}]", stamps.join(", "))
        }
        [] => "# No stamp was recognised at the start of the lines. If there is one:\n\
                 # prefix = [\"%Y-%m-%d %H:%M:%S%.f\"]"
            .to_owned(),
    };
    format!(
        "# A beginning. Try it with   visperf filter try --filter THIS-FILE LOGFILE\n\
         # and run its tests with     visperf filter test THIS-FILE\n\
         # docs/filter-format.md explains every key.\n\n\
         [filter]\nname = {name}\nproduct = {name}\ndescription = \"What it reads, in one sentence\"\n\n\
         [files]\nnames = [{file}]\n\n\
         [time]\n{stamp}\n\
         # zone = \"Europe/Rome\"   # for stamps that print none, if not the log host's own\n\n\
         # Events with the same job belong to the same call.\n\
         [calls]\nnames = [\"${{.job}}\"]\n\n\
         # One rule for each kind of line, most frequent first; the stamp is cut off before they see it.\n\
         # Take out the `# ` before the rules you want, rename their captures, and choose an event:\n\
         # job_submit job_select job_start job_end job_cancel transfer_start transfer_end node_up node_down\n\
         # service_start workload message ... A rule without `event` matches the line and gives no event.\n",
        name = quoted(name),
        file = files.join(", "),
    )
}

fn rule(times: u64, example: &str, active: bool) -> String {
    let (pattern, captures) = pattern::of(example);
    let mut lines = vec![
        "[[rule]]".to_owned(),
        format!("match = {}", quoted(&pattern)),
        "event = \"message\"".to_owned(),
    ];
    if let Some(job) = captures.iter().find(|name| matches!(name.as_str(), "job" | "jobid" | "job_id" | "id"))
    {
        lines.push(format!("job = \"${{{job}}}\""));
    }
    let mut text = format!("\n# {times} x, such as: {}\n", one_line(example));
    for line in lines {
        let _ = writeln!(text, "{}{line}", if active { "" } else { "# " });
    }
    text
}

fn test(line: &str) -> String {
    format!(
        "\n[[test]]\nname = \"a first line\"\nlines = {}\nevents = [{{ kind = \"message\", line = 1 }}]\n",
        quoted(line)
    )
}

/// A TOML string: in single quotes if possible, because they keep regexes readable.
fn quoted(text: &str) -> String {
    let plain = text.chars().all(is_harmless);
    match plain && !text.contains('\'') {
        true if !text.contains(['\\', '"']) => format!("\"{text}\""),
        true => format!("'{text}'"),
        false if plain => toml::Value::String(text.to_owned()).to_string(),
        false => format!("\"{}\"", text.chars().map(escaped).collect::<String>()),
    }
}

/// A character inside a double-quoted TOML string, which allows known escapes only.
fn escaped(c: char) -> String {
    match c {
        '"' | '\\' => format!("\\{c}"),
        c if is_harmless(c) => c.to_string(),
        c => format!("\\U{:08X}", u32::from(c)),
    }
}

fn one_line(text: &str) -> String {
    replaced(text, ' ').trim().to_owned()
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

    fn sample(file_name: &str, text: &str) -> Sample {
        let lines = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        Sample { file_name: file_name.to_owned(), lines }
    }

    fn write_one(name: &str, file_name: &str, text: &str) -> Result<String, String> {
        write(name, &[sample(file_name, text)])
    }

    #[test]
    fn the_beginning_compiles_and_passes_its_test() {
        let log = "Nov 20 12:24:17 job 1 started on wn01 for 'a'\nNov 20 12:24:18 job 2 started on wn02 for 'b'\n\
                   Nov 20 12:24:19 odd \\ line \"x\" 0xff it's 3f2504e0-4f89-11d3-9a0c-0305e82c3301\n";
        let text = write_one("my-app", "my[app].log.1", log).unwrap();
        assert!(text.contains("names = [\"my[[]app[]].log\"]"), "{text}");
        let filter = Arc::new(Filter::parse("f", &text).unwrap());
        assert_eq!(log_filters::test_lines::run(&filter), []);
        assert_eq!((filter.rules(), filter.tests()), (1, 1));
        assert!(text.contains("prefix = [\"%b %e %H:%M:%S \"]"), "{text}");
        assert!(
            text.contains(r"^job (?P<job>\d+) started on (?P<id2>[\w.@-]+) for (?P<text3>'[^']*')$"),
            "{text}"
        );
    }

    #[test]
    fn a_string_holds_any_text_and_shows_no_control_character() {
        for text in [
            "plain",
            "C:\\new \"x\"",
            "it's \\ \"odd\"",
            "right\u{202e}to\u{1b}[31m left\u{85}",
            "\u{e0041}é",
        ] {
            let quoted = quoted(text);
            assert!(quoted.chars().all(is_harmless), "{quoted:?}");
            let read: toml::Table = format!("a = {quoted}").parse().unwrap();
            assert_eq!(read["a"].as_str(), Some(text));
        }
    }

    #[test]
    fn indented_lines_are_offered_as_a_record() {
        let log = "2026-11-20 12:24:17 report job 5\n  rc: 0\n  cpu: 3\n2026-11-20 12:24:18 report job 6\n  rc: 1\n";
        let text = write_one("x", "x.log", log).unwrap();
        assert!(text.contains("prefix = [\"%Y-%m-%d %H:%M:%S%.f \"]"), "{text}");
        assert!(text.contains("# 3 lines without a stamp"), "{text}");
        assert!(!text.contains("such as: rc"), "{text}");
        let opened: String = text
            .lines()
            .map(|line| {
                if line.contains("[[record") || line.contains("start =") || line.contains("continue =") {
                    &line[2..]
                } else {
                    line
                }
            })
            .map(|line| line.replace("$'", "(?s).*'") + "\n")
            .collect();
        let filter =
            Arc::new(Filter::parse("f", &opened).unwrap_or_else(|error| panic!("{error}\n{opened}")));
        assert_eq!(log_filters::test_lines::run(&filter), []);
    }

    #[test]
    fn every_commented_rule_works_when_uncommented() {
        let log = "a 1\na 2\nb 3\nit's \"q\" 0xff\nc\n\tx\\d (y) [z]\n";
        let text = write_one("x", "x.log", log).unwrap();
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
    fn several_logs_are_drafted_as_one_filter() {
        let daemon = sample("appd.log.1", "261120 13:16:34 12 job 5 in\n261120 13:16:35 12 job 6 in\n");
        let other = sample("appd.log", "261120 13:17:34 12 job 7 in\n");
        let worker =
            sample("worker.log", "2026-11-20T13:16:36 ran 5 on wn01\n2026-11-20T13:16:37 ran 6 on wn02\n");
        let text = write("app", &[daemon, other, worker]).unwrap();
        assert!(text.contains("names = [\"appd.log\", \"worker.log\"]"), "{text}");
        assert!(text.contains("prefix = [\"%Y-%m-%dT%H:%M:%S%.f \", \"%y%m%d %H:%M:%S%.f \"]"), "{text}");
        assert!(
            text.contains("# 3 x, such as: 12 job 5 in") && text.contains("# 2 x, such as: ran 5 on"),
            "{text}"
        );
        let filter = Arc::new(Filter::parse("f", &text).unwrap());
        assert_eq!(log_filters::test_lines::run(&filter), []);
    }

    #[test]
    fn what_cannot_be_a_filter_is_refused() {
        assert!(write_one("Bad Name", "x", "a\n").is_err());
        assert!(write("x", &[]).is_err());
        assert!(write("x", &[Sample { file_name: "x".to_owned(), lines: vec![vec![0xff, 0xfe]] }]).is_err());
    }
}
