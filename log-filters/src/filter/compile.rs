//! Compiler from a filter's text to a [`Filter`]: everything is checked here, once.
//!
//! Pure. Rule: an error names the position of the mistake, and no part of a refused filter is used.

use super::compile_rules::{call_keys, check_unless, compile_rule, rule_set};
use super::embedded_test::{self, Test};
use super::{Calls, FILE_LEN_MAX_BYTES, Filter, Program, RULES_MAX, Record, Until};
use crate::calendar::zone;
use crate::captures::ONE_PASS_ALL_LEN_MAX_BYTES;
use crate::definition::{self as raw, Definition};
use crate::error::Error;
use crate::fields::Cutting;
use crate::pattern::{self, Set};
use crate::references::References;
use crate::timestamp::Format;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::tz::TimeZone;
use regex::bytes::Regex;
use std::ops::Range;
use std::sync::OnceLock;
use toml::Spanned;
use wire::call::Authority;

const RECORD_LINES_MAX: usize = 200;
const RECORD_LINES_LIMIT: usize = 10_000;
/// Most globs of names, and of paths: the shipped filters have a dozen.
const GLOBS_MAX: usize = 128;
/// Longest glob, in bytes.
const GLOB_LEN_MAX_BYTES: usize = 1 << 10;
/// Most regexes on first lines: each is tried on every first line of every file.
const FIRST_LINES_MAX: usize = 64;
/// Most formats of stamps: each is tried on every line until one fits.
const FORMATS_MAX: usize = 32;
/// Most forms of records of several lines: each is tried on every line.
const RECORDS_MAX: usize = 16;

/// Text of the filter, for the positions of errors.
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Place<'_> {
    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> Error {
        Error::at(self.file, self.text, span.start, message.into())
    }

    pub(crate) fn regex(&self, source: &Spanned<String>) -> Result<Regex, Error> {
        pattern::compile(source.get_ref()).map_err(|message| self.error(source.span(), message))
    }

    fn format(&self, source: &Spanned<String>) -> Result<Format, Error> {
        Format::parse(source.get_ref()).map_err(|message| self.error(source.span(), message))
    }
}

/// Compile a filter's text.
pub(crate) fn filter(file: &str, text: &str) -> Result<Filter, Error> {
    let filter = without_program(file, text)?;
    first_lines(file, text)?;
    tests(file, text)?;
    filter.program.set(program(file, text)?).expect("nothing has asked for it yet");
    Ok(filter)
}

/// Compile a filter's rules.
pub(crate) fn program(file: &str, text: &str) -> Result<Program, Error> {
    let place = Place { file, text };
    let raw = definition(&place)?;
    let calls = calls(&place, &raw)?;
    // First, because it is refused as a whole before single patterns have cost much.
    let (set, patterns) = rule_set(&place, &raw)?;
    check_unless(&place, &raw)?;
    let parts = raw.files.parts.as_ref().map(|source| place.regex(source)).transpose()?;
    let references = References::new(&raw, parts.as_ref());
    let mut room = ONE_PASS_ALL_LEN_MAX_BYTES;
    let rules = raw
        .rule
        .iter()
        .map(|rule| compile_rule(&place, rule, calls.as_ref(), &references, &mut room))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Program { set, patterns, rules })
}

fn definition(place: &Place<'_>) -> Result<Definition, Error> {
    let text = place.text;
    if text.len() > FILE_LEN_MAX_BYTES {
        let message =
            format!("the filter has {} bytes; at most {FILE_LEN_MAX_BYTES} are allowed", text.len());
        return Err(place.error(0..0, message));
    }
    let raw: Definition = toml::from_str(text)
        .map_err(|error| place.error(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    check_head(place, &raw)?;
    check_counts(place, &raw)?;
    Ok(raw)
}

fn calls(place: &Place<'_>, raw: &Definition) -> Result<Option<Calls>, Error> {
    let Some(calls) = &raw.calls else { return Ok(None) };
    let parts = raw.files.parts.as_ref().map(|source| place.regex(source)).transpose()?;
    let references = References::new(raw, parts.as_ref());
    call_keys(place, calls.get_ref(), None, calls.span(), &mut |name: &str| references.of_calls(name))
        .map(Some)
}

/// Compile a filter's patterns of first lines.
pub(crate) fn first_lines(file: &str, text: &str) -> Result<Option<Set>, Error> {
    let place = Place { file, text };
    let sources = definition(&place)?.files.first_lines;
    let Some(first) = sources.first() else { return Ok(None) };
    for source in &sources {
        place.regex(source)?;
    }
    let plain: Vec<&str> = sources.iter().map(|source| source.get_ref().as_str()).collect();
    Set::new(&plain).map(Some).map_err(|message| place.error(first.span(), message))
}

/// Compile a filter's tests.
pub(crate) fn tests(file: &str, text: &str) -> Result<Vec<Test>, Error> {
    let place = Place { file, text };
    embedded_test::compile(&place_error(&place), &definition(&place)?.test)
}

/// Compile a filter except its rules, its patterns of first lines, and its tests.
pub(crate) fn without_program(file: &str, text: &str) -> Result<Filter, Error> {
    let place = Place { file, text };
    let raw = definition(&place)?;
    let name = raw.filter.name.get_ref();
    Ok(Filter {
        name: name.as_str().into(),
        product: raw.filter.product.clone(),
        description: raw.filter.description.clone(),
        versions: raw.filter.versions.clone(),
        text: text.to_owned(),
        scope: raw.filter.scope.as_deref().unwrap_or(name).into(),
        authority: authority(raw.filter.authority),
        names: globs(&place, &raw.files.names)?,
        name_globs: raw.files.names.iter().map(|glob| glob.get_ref().clone()).collect(),
        paths: paths(&place, &raw.files.paths)?,
        parts: raw.files.parts.as_ref().map(|source| place.regex(source)).transpose()?,
        first_lines: OnceLock::new(),
        prefix: raw.time.prefix.iter().map(|source| place.format(source)).collect::<Result<_, _>>()?,
        formats: raw.time.formats.iter().map(|source| place.format(source)).collect::<Result<_, _>>()?,
        zone: raw.time.zone.as_ref().map(|source| zone_key(&place, source)).transpose()?.flatten(),
        cutting: cutting(&place, &raw.fields)?,
        header: raw.fields.header.as_ref().map(|source| place.regex(source)).transpose()?,
        records: raw.record.iter().map(|record| compile_record(&place, record)).collect::<Result<_, _>>()?,
        calls: calls(&place, &raw)?,
        file: file.to_owned(),
        rule_count: raw.rule.len(),
        program: OnceLock::new(),
        test_count: raw.test.len(),
    })
}

fn place_error<'a>(place: &'a Place<'a>) -> impl Fn(Range<usize>, String) -> Error + 'a {
    |span, message| place.error(span, message)
}

fn check_head(place: &Place<'_>, raw: &Definition) -> Result<(), Error> {
    let name = &raw.filter.name;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.get_ref().is_empty() || name.get_ref().len() > 64 || !name.get_ref().chars().all(good) {
        return Err(place.error(
            name.span(),
            format!("filter name `{}`; expected 1 to 64 lower case letters, digits and `-`", name.get_ref()),
        ));
    }
    if raw.rule.len() > RULES_MAX {
        let message = format!("the filter has {} rules; at most {RULES_MAX} are allowed", raw.rule.len());
        return Err(place.error(raw.rule[RULES_MAX].span(), message));
    }
    if raw.rule.is_empty() {
        return Err(place.error(name.span(), "the filter has no [[rule]]; expected at least one"));
    }
    Ok(())
}

/// Check the number of items against each limit; the error is at the first item that exceeds it.
fn check_counts(place: &Place<'_>, raw: &Definition) -> Result<(), Error> {
    let (files, time) = (&raw.files, &raw.time);
    for (texts, limit, what) in [
        (&files.names, GLOBS_MAX, "globs in `names`"),
        (&files.paths, GLOBS_MAX, "globs in `paths`"),
        (&files.first_lines, FIRST_LINES_MAX, "regexes in `first_lines`"),
        (&time.prefix, FORMATS_MAX, "formats in `prefix`"),
        (&time.formats, FORMATS_MAX, "formats in `formats`"),
    ] {
        if let Some(excess) = texts.get(limit) {
            let message = format!("the filter has {} {what}; at most {limit} are allowed", texts.len());
            return Err(place.error(excess.span(), message));
        }
    }
    if let Some(excess) = raw.record.get(RECORDS_MAX) {
        let message =
            format!("the filter has {} [[record]]; at most {RECORDS_MAX} are allowed", raw.record.len());
        return Err(place.error(excess.start.span(), message));
    }
    Ok(())
}

fn authority(word: raw::AuthorityWord) -> Authority {
    match word {
        raw::AuthorityWord::Message => Authority::Message,
        raw::AuthorityWord::Scheduler => Authority::Scheduler,
        raw::AuthorityWord::Accounting => Authority::Accounting,
    }
}

fn globs(place: &Place<'_>, sources: &[Spanned<String>]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for source in sources {
        if source.get_ref().len() > GLOB_LEN_MAX_BYTES {
            let message = format!(
                "the glob has {} bytes; at most {GLOB_LEN_MAX_BYTES} are allowed",
                source.get_ref().len()
            );
            return Err(place.error(source.span(), message));
        }
        let glob = GlobBuilder::new(source.get_ref()).literal_separator(true).build().map_err(|error| {
            place.error(source.span(), format!("this glob cannot be read: {}", error.kind()))
        })?;
        set.add(glob);
    }
    set.build().map_err(|error| place.error(0..0, format!("the globs cannot be used: {error}")))
}

fn paths(place: &Place<'_>, sources: &[Spanned<String>]) -> Result<Vec<String>, Error> {
    globs(place, sources)?;
    for source in sources {
        if !source.get_ref().starts_with('/') {
            let message = format!("path `{}`; expected a full path beginning with `/`", source.get_ref());
            return Err(place.error(source.span(), message));
        }
    }
    Ok(sources.iter().map(|source| source.get_ref().clone()).collect())
}

fn zone_key(place: &Place<'_>, source: &Spanned<String>) -> Result<Option<TimeZone>, Error> {
    if source.get_ref() == "local" {
        return Ok(None);
    }
    zone(source.get_ref()).map(Some).map_err(|message| place.error(source.span(), message))
}

fn cutting(place: &Place<'_>, raw: &raw::FieldKeys) -> Result<Cutting, Error> {
    let one = |source: &Option<Spanned<String>>| match source {
        None => Ok(None),
        Some(source) => match source.get_ref().as_bytes() {
            [byte] => Ok(Some(*byte)),
            _ => Err(place.error(source.span(), format!("`{}`; expected one character", source.get_ref()))),
        },
    };
    if let Some(header) = &raw.header {
        let problem = match (&raw.separator, raw.pairs || !raw.counted.is_empty()) {
            (None, _) => "`header` names columns; give the `separator` between them",
            (Some(_), true) => "`header` names columns; leave out `pairs` and `counted`",
            (Some(_), false) => "",
        };
        if !problem.is_empty() {
            return Err(place.error(header.span(), problem));
        }
    }
    Ok(Cutting {
        has_header: raw.header.is_some(),
        separator: one(&raw.separator)?,
        quote: one(&raw.quote)?,
        counted: raw.counted.clone(),
        pairs: raw.pairs,
    })
}

fn compile_record(place: &Place<'_>, raw: &raw::Record) -> Result<Record, Error> {
    let max_lines = match &raw.max_lines {
        None => RECORD_LINES_MAX,
        Some(lines) if (1..=RECORD_LINES_LIMIT).contains(lines.get_ref()) => *lines.get_ref(),
        Some(lines) => {
            let message = format!("`max_lines` is {}; expected 1 to {RECORD_LINES_LIMIT}", lines.get_ref());
            return Err(place.error(lines.span(), message));
        }
    };
    let until = match (&raw.goes_on, &raw.end) {
        (Some(goes_on), None) => Until::Continues(place.regex(goes_on)?),
        (None, Some(end)) => Until::Ends(place.regex(end)?),
        _ => return Err(place.error(raw.start.span(), "a [[record]] needs either `continue` or `end`")),
    };
    Ok(Record { start: place.regex(&raw.start)?, until, max_lines })
}
