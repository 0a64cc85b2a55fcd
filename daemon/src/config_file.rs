//! Configuration files: parses TOML text into a typed value, or reports an error with its position.
//!
//! Rule: an error names the file, the line and the column, what was found and what was expected, and for an
//! unknown key the known keys. The value's type should refuse unknown keys (`#[serde(deny_unknown_fields)]`).
//! Not here: the meaning of the values (each daemon's `config`), which reports its errors by
//! [`ConfigError::at_key`].

mod all;

pub use all::load_all;

use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Longest file, in bytes: far above any real one, low enough that a device or a log named by mistake does
/// not fill the memory.
pub const FILE_LEN_MAX_BYTES: usize = 1 << 20;

/// Error in a configuration file, with its position.
#[derive(Debug)]
pub struct ConfigError(Box<Report>);

#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{place}: {message}")]
struct Report {
    place: String,
    message: String,
    #[source_code]
    text: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
    #[help]
    hint: String,
}

impl ConfigError {
    /// An error about the value of a well-formed key: `keys` is the path to it, such as
    /// `["sensor", "listen"]`; elements of arrays are given by their index from 0:
    /// `["sensor", "tail", "2", "path"]`. The error points at the whole file if there is no such key.
    #[must_use]
    pub fn at_key(path: &Path, text: &str, keys: &[&str], message: &str, hint: &str) -> ConfigError {
        let span = span_of_key(text, keys);
        let is_number = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
        let named: Vec<&str> = keys.iter().copied().filter(|key| !is_number(key)).collect();
        let message = format!("{}: {message}", named.join("."));
        ConfigError::new(path, text, span, message, hint.to_owned())
    }

    /// Position of the error, in bytes from the start of the text; 0 for an error about the whole file.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.span.map_or(0, |span| span.offset())
    }

    /// Advice on how to correct the error.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.0.hint
    }

    fn new(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        message: String,
        hint: String,
    ) -> ConfigError {
        let name = path.display().to_string();
        let place = match &span {
            Some(span) => {
                let (line, column) = line_and_column(text, span.start);
                format!("{name}:{line}:{column}")
            }
            None => name.clone(),
        };
        let text = NamedSource::new(name, text.to_owned()).with_language("toml");
        ConfigError(Box::new(Report { place, message, text, span: span.map(SourceSpan::from), hint }))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ConfigError {}

impl Diagnostic for ConfigError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help()
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.0.source_code()
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.0.labels()
    }
}

/// Read the file at `path`, for [`load`].
///
/// # Errors
/// If it cannot be read, is not UTF-8 or is longer than [`FILE_LEN_MAX_BYTES`].
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let refuse = |message: String, hint: &str| ConfigError::new(path, "", None, message, hint.to_owned());
    let file = std::fs::File::open(path).map_err(|error| {
        refuse(format!("cannot be opened: {error}"), "give the path of a file that is there")
    })?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_LEN_MAX_BYTES).expect("a mebibyte") + 1;
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(format!("cannot be read: {error}"), "give the path of a regular file"))?;
    if bytes.len() > FILE_LEN_MAX_BYTES {
        let message = format!("longer than {FILE_LEN_MAX_BYTES} bytes, the most a configuration may have");
        return Err(refuse(message, "check that this is the configuration file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let good = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        let (line, column) = line_and_column(&good, at);
        refuse(format!("not UTF-8 at line {line}, column {column}"), "TOML files are UTF-8; save it as such")
    })
}

/// Parse the text of the file at `path` into a `T`. The path is only used in errors.
///
/// # Errors
/// If the text is not TOML or not a `T`.
pub fn load<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| refusal(path, text, &error))
}

fn refusal(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let span = error.span().map(|span| narrow(text, span));
    let found = span.clone().and_then(|span| text.get(span)).unwrap_or("");
    let (message, hint) = explain(error.message(), found);
    ConfigError::new(path, text, span, message, hint)
}

/// Translate a message of the TOML parser into an error text and a hint.
fn explain(message: &str, found: &str) -> (String, String) {
    let known = backticked(message);
    if message.starts_with("unknown field") {
        let (unknown, known) = known.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let nearest = known.iter().find(|name| distance(name, unknown) <= 2);
        let advice = nearest.map_or(String::new(), |name| format!("did you mean {name}? "));
        let listed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("unknown key {unknown}; expected one of the known keys");
        return (message, format!("{advice}the known keys here are: {listed}"));
    }
    if let Some(expected) = message.strip_prefix("expected ") {
        // The section's own type wrote this message.
        return (format!("{message}, found {}", first_line(found)), format!("write {expected}"));
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        let key = rest.trim_matches('`');
        return (format!("the key {key} is missing"), format!("add a line `{key} = ...` to this table"));
    }
    if message.starts_with("unknown variant") {
        let listed = known.get(1..).unwrap_or(&[]).join(", ");
        let unknown = known.first().unwrap_or(&"");
        return (format!("expected one of {listed}; found {unknown:?}"), format!("write one of: {listed}"));
    }
    if let Some(rest) =
        message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))
    {
        let (met, expected) = rest.rsplit_once(", expected ").unwrap_or((rest, "another value"));
        let (met, expected) = (found_words(met), expected_words(expected));
        let hint = format!("write {expected} here instead of {}", first_line(found));
        return (format!("expected {expected}, found {met}"), hint);
    }
    let hint = "check the syntax here: `key = value` lines below a `[section]`, texts in double quotes";
    let message = if found.trim().is_empty() || message.contains(found) {
        message.to_owned()
    } else {
        format!("{message}; found {}", first_line(found))
    };
    (message, hint.to_owned())
}

/// Translate the parser's name of the found value into words of the configuration's author.
fn found_words(met: &str) -> String {
    match met.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        _ => match (met, backticked(met).first()) {
            ("map", _) => "a table".to_owned(),
            ("sequence", _) => "a list".to_owned(),
            (_, Some(value)) => (*value).to_owned(),
            (other, None) => other.to_owned(),
        },
    }
}

/// Translate the parser's name of the expected value likewise.
fn expected_words(expected: &str) -> String {
    let up_to = |most: u32| format!("a whole number from 0 to {most}");
    match expected {
        "u8" => up_to(u8::MAX.into()),
        "u16" => up_to(u16::MAX.into()),
        "u32" => up_to(u32::MAX),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "a map" => "a table".to_owned(),
        // A list of alternatives; do not show names of Rust types.
        other if other.contains("enum ") || other.contains("variant") => "one of the known words".to_owned(),
        other if other.contains("struct ") => "a table".to_owned(),
        other => other.replace('`', "'"),
    }
}

/// The texts in backticks in a message of serde.
fn backticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("nothing")
}

/// Edit distance of two short keys.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Cut a span to its first line, so that an error about a whole table points at its header.
fn narrow(text: &str, span: Range<usize>) -> Range<usize> {
    let end = text.get(span.clone()).and_then(|part| part.find('\n')).map_or(span.end, |n| span.start + n);
    span.start..end
}

/// Line and column, both from 1; columns count characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn span_of_key(text: &str, keys: &[&str]) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let (first, way) = keys.split_first()?;
    let mut value = root.get_ref().get(*first)?;
    for key in way {
        let within: &DeValue<'_> = value.get_ref();
        value = match within.as_table() {
            Some(table) => table.get(*key)?,
            None => within.as_array()?.get(key.parse::<usize>().ok()?)?,
        };
    }
    Some(narrow(text, value.span()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        sensor: Option<Section>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Section {
        listen: String,
        rate_hz: Option<f64>,
        port: Option<u16>,
        start: Option<Start>,
        #[serde(default)]
        tail: Vec<BTreeMap<String, String>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Start {
        Beginning,
        End,
    }

    fn check(text: &str, expected: &str, hint: &str) {
        let error = load::<Raw>(Path::new("/etc/visperf.toml"), text).expect_err(text);
        assert_eq!(error.to_string(), format!("/etc/visperf.toml:{expected}"), "{text}");
        assert_eq!(error.hint(), hint, "{text}");
    }

    #[test]
    fn a_good_file_is_loaded() {
        let text = "[sensor]\nlisten = \"127.0.0.1:1\"\nport = 7\n[labels]\nsite = \"x\"\n";
        let raw: Raw = load(Path::new("x"), text).expect("good");
        assert_eq!(raw.sensor.expect("given").port, Some(7));
        assert_eq!(raw.labels["site"], "x");
    }

    #[test]
    fn an_unknown_key_lists_the_known_ones() {
        check(
            "# c\n[sensor]\nlisten = \"x\"\n  lisen = \"y\"\n",
            "4:3: unknown key lisen; expected one of the known keys",
            "did you mean listen? the known keys here are: listen, rate_hz, port, start, tail",
        );
        check(
            "[sensr]\n",
            "1:2: unknown key sensr; expected one of the known keys",
            "did you mean sensor? the known keys here are: sensor, labels",
        );
        check(
            "quite_other = 1\n",
            "1:1: unknown key quite_other; expected one of the known keys",
            "the known keys here are: sensor, labels",
        );
    }

    #[test]
    fn a_wrong_type_says_found_and_expected() {
        check(
            "[sensor]\nlisten = \"x\"\nport = \"seven\"\n",
            "3:8: expected a whole number from 0 to 65535, found the text \"seven\"",
            "write a whole number from 0 to 65535 here instead of \"seven\"",
        );
        check(
            "[sensor]\nlisten = \"x\"\nport = 70000\n",
            "3:8: expected a whole number from 0 to 65535, found 70000",
            "write a whole number from 0 to 65535 here instead of 70000",
        );
        check(
            "[sensor]\nlisten = true\n",
            "2:10: expected a text in quotes, found true",
            "write a text in quotes here instead of true",
        );
        check("sensor = 5\n", "1:10: expected a table, found 5", "write a table here instead of 5");
        check(
            "[sensor]\nlisten = \"x\"\nstart = \"now\"\n",
            "3:9: expected one of beginning, end; found \"now\"",
            "write one of: beginning, end",
        );
    }

    #[test]
    fn a_missing_key_points_at_its_table() {
        check(
            "\n[sensor]\nport = 7\n",
            "2:1: the key listen is missing",
            "add a line `listen = ...` to this table",
        );
    }

    #[test]
    fn a_syntax_error_points_at_the_place() {
        let hint = "check the syntax here: `key = value` lines below a `[section]`, texts in double quotes";
        for (text, place) in [
            ("[sensor]\nlisten = 127.0.0.1\n", "2:"),
            ("[sensor\nlisten = \"x\"\n", "1:"),
            ("[sensor]\nlisten \"x\"\n", "2:"),
            ("[sensor]\nlisten = \"x\"\nlisten = \"y\"\n", "3:1: duplicate key"),
        ] {
            let error = load::<Raw>(Path::new("f"), text).expect_err(text);
            assert!(error.to_string().starts_with(&format!("f:{place}")), "{error}");
            assert!(error.to_string().matches(':').count() >= 3, "{error}");
            assert_eq!(error.hint(), hint);
        }
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("ä = 1\nöö = x", 14), (2, 6));
    }

    #[test]
    fn a_daemon_can_complain_about_a_value() {
        let text = "[sensor]\nlisten = \"0.0.0.0:1\"\n";
        let error = ConfigError::at_key(Path::new("f"), text, &["sensor", "listen"], "not loopback", "hint");
        assert_eq!(error.to_string(), "f:2:10: sensor.listen: not loopback");
        let error = ConfigError::at_key(Path::new("f"), text, &["sensor", "port"], "needed", "hint");
        assert_eq!(error.to_string(), "f: sensor.port: needed");
        let text = "[sensor]\n[[sensor.tail]]\npath = 1\n[[sensor.tail]]\npath = 2\n";
        let error = ConfigError::at_key(Path::new("f"), text, &["sensor", "tail", "1", "path"], "no", "hint");
        assert_eq!(error.to_string(), "f:5:8: sensor.tail.path: no");
    }

    #[test]
    fn the_whole_report_shows_the_line() {
        let error = load::<Raw>(Path::new("f.toml"), "[sensor]\nlisten = 1\n").expect_err("wrong type");
        let shown = format!("{:?}", miette::Report::new(error));
        assert!(shown.contains("listen = 1") && shown.contains("write a text in quotes here"), "{shown}");
    }

    #[test]
    fn unreadable_files_are_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let latin = dir.path().join("latin.toml");
        std::fs::write(&latin, b"a = 1\nb = \"\xe9\"\n").expect("written");
        let error = read(&latin).expect_err("not UTF-8").to_string();
        assert!(error.ends_with("latin.toml: not UTF-8 at line 2, column 6"), "{error}");
        let error = read(&dir.path().join("none.toml")).expect_err("missing").to_string();
        assert!(error.contains("none.toml: cannot be opened: "), "{error}");
        assert!(read(dir.path()).is_err(), "a directory");
        let large = dir.path().join("large.toml");
        std::fs::write(&large, vec![b'#'; FILE_LEN_MAX_BYTES + 1]).expect("written");
        let error = read(&large).expect_err("too long").to_string();
        assert!(error.contains("longer than 1048576 bytes"), "{error}");
    }
}
