//! Error reports for filter and configuration files: the place in the text, and what to do.
//!
//! Pure. Not here: the errors themselves (`log_filters`, `daemon::config_file`).

use daemon::config_file::ConfigError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};
use std::fmt::Write as _;

#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{place}: {message}")]
struct RefusedFilter {
    place: String,
    message: String,
    #[source_code]
    text: NamedSource<String>,
    #[label("here")]
    span: SourceSpan,
    #[help]
    hint: Option<String>,
}

/// Report on a refused filter, with the lines around the place, for standard error.
pub(crate) fn filter(error: &log_filters::error::Error, text: &str, colors: bool) -> String {
    let start = offset(text, error.line, error.column);
    let span = match token_len(&text[start..]) {
        // At the end of a line there is only the character before it to point at.
        0 => text.floor_char_boundary(start.saturating_sub(1))..start,
        len => start..start + len,
    };
    show(
        &RefusedFilter {
            place: format!("{}:{}:{}", error.file, error.line, error.column),
            message: error.message.clone(),
            text: NamedSource::new(&error.file, text.to_owned()).with_language("toml"),
            span: span.into(),
            hint: Some(hint(&error.message).to_owned()),
        },
        colors,
    )
}

/// Report on every mistake in a configuration file, in the file's order, for standard error.
pub(crate) fn configuration(mut mistakes: Vec<ConfigError>, colors: bool) -> String {
    mistakes.sort_by_key(ConfigError::offset);
    let shown: Vec<String> = mistakes.iter().map(|mistake| show(mistake, colors)).collect();
    let many = match shown.len() {
        1 => String::new(),
        many => format!("\n{many} mistakes"),
    };
    shown.join("\n") + many.as_str()
}

/// Render a report that has its own source text, for standard error.
fn show(report: &dyn Diagnostic, colors: bool) -> String {
    let theme = if colors { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut shown = String::new();
    match GraphicalReportHandler::new_themed(theme).with_width(100).render_report(&mut shown, report) {
        Ok(()) => format!("error: {}", shown.trim_start().trim_start_matches("× ")),
        Err(_) => {
            shown.clear();
            let _ = write!(shown, "error: {report}");
            shown
        }
    }
}

/// Byte offset of a line and column, both counted from 1; columns count characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let in_line = text[start..].char_indices().nth(column.saturating_sub(1));
    in_line.map_or(text.len(), |(at, _)| start + at)
}

/// Length of the token that starts here: a quoted text, or a word; never beyond the end of the line.
fn token_len(rest: &str) -> usize {
    let line = rest.lines().next().unwrap_or("");
    match line.chars().next() {
        Some(quote @ ('"' | '\'')) => line[1..].find(quote).map_or(line.len(), |end| end + 2),
        Some(_) => line.find([' ', '=', ',', '\t']).unwrap_or(line.len()).max(1),
        None => 0,
    }
}

/// Advice for an error message.
fn hint(message: &str) -> &'static str {
    let says = |part: &str| message.contains(part);
    if says("look-around") || says("look-ahead") || says("look-behind") || says("backreference") {
        "the regex engine has neither look-around nor back-references: match the line plainly and exclude \
         others with `unless`"
    } else if says("escape") {
        "put regexes in single quotes, where a backslash is literal: match = '^job (?P<job>\\d+)'"
    } else if says("unknown field") {
        "docs/filter-format.md lists the keys of every table; see a whole filter with `visperf filter show NAME`"
    } else if says("time format") {
        "write the stamp with %Y %m %d %H %M %S and what stands between; `epoch` for seconds since 1970"
    } else if says("regex") || says("pattern") {
        "put regexes in single quotes, where a backslash is literal: match = '^job (?P<job>\\d+)'"
    } else if says("expected `") || says("invalid ") || says("unclosed") {
        "this must be TOML: `key = value` lines below a [table], texts in quotes"
    } else if says("missing field") {
        "every filter needs [filter] with a name and at least one [[rule]] with a match; \
         `visperf filter new NAME LOGFILE` writes a beginning"
    } else {
        "docs/filter-format.md lists what is allowed here; see a whole filter with `visperf filter show NAME`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log_filters::filter::Filter;

    #[test]
    fn a_refused_filter_shows_its_line() {
        let text = "[filter]\nname = \"x\"\nproduct = \"X\"\n\n[[rule]]\nmatch = '^a(?=b)'\n";
        let error = Filter::parse("x.toml", text).unwrap_err();
        let shown = filter(&error, text, false);
        for expected in ["x.toml:6:9", "match = '^a(?=b)'", "unless", "here"] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
        assert!(!shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn a_regex_in_double_quotes_gets_the_hint_to_use_single_ones() {
        let text = "[filter]\nname = \"x\"\nproduct = \"X\"\n[[rule]]\nmatch = \"^a \\d\"\n";
        let shown = filter(&Filter::parse("x.toml", text).unwrap_err(), text, false);
        assert!(shown.contains("single quotes"), "{shown}");
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        assert_eq!(offset("ab\ncd", 2, 2), 4);
        assert_eq!(offset("äb", 1, 2), 2);
        assert_eq!(offset("ab", 9, 9), 2);
        assert_eq!(
            (token_len("'a b' x"), token_len("key = 1"), token_len("\nx"), token_len("")),
            (5, 3, 0, 0)
        );
    }
}
