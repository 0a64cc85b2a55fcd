//! Reports all errors of a configuration file, although its parser stops at the first.
//!
//! Pure. An entry with an error is removed and the rest is parsed again, until no error is left: so each
//! error is reported with its position, and the valid entries can be checked further. A required key that was
//! removed in this way is filled in, so that it is not reported as missing.
//! Not here: syntax errors. After one nothing is certain, so only the first is reported.

use super::{ConfigError, load, refusal};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Most errors reported for one file.
const MISTAKES_MAX: usize = 64;

/// Placeholder for a text that is missing or invalid; an absolute path, so that it is also valid as a path.
const STAND_IN: &str = "/";

/// Position of an entry that is not in the text.
const NOWHERE: Range<usize> = usize::MAX..usize::MAX;

/// A step from a table or array to one of its elements.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Number(usize),
}

/// As [`load`], but returns all errors that can be found, and the value of the valid entries if there is one.
#[must_use]
pub fn load_all<T: DeserializeOwned>(path: &Path, text: &str) -> (Option<T>, Vec<ConfigError>) {
    let Ok(root) = DeTable::parse(text) else {
        return match load::<T>(path, text) {
            Ok(value) => (Some(value), Vec::new()),
            Err(error) => (None, vec![error]),
        };
    };
    let mut root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
    let (mut mistakes, mut left_out) = (Vec::new(), Vec::new());
    while mistakes.len() < MISTAKES_MAX {
        let error = match T::deserialize(ValueDeserializer::from(root.clone())) {
            Ok(value) => return (Some(value), mistakes),
            Err(error) => error,
        };
        let Some(place) = error.span().filter(|place| *place != NOWHERE) else { break };
        let missing = error.message().strip_prefix("missing field ");
        let missing = missing.map(|key| (place.clone(), key.trim_matches('`').to_owned()));
        if missing.as_ref().is_none_or(|missing| !left_out.contains(missing)) {
            mistakes.push(refusal(path, text, &error));
        }
        let is_mended = match missing {
            Some((table, key)) => fill_in(&mut root, &table, key),
            None => leave_out(&mut root, &place).map(|entry| left_out.push(entry)).is_some(),
        };
        if !is_mended {
            break;
        }
    }
    (None, mistakes)
}

/// Remove the smallest entry that contains the position. Returns the position of its table, and its key.
fn leave_out(root: &mut Spanned<DeValue<'_>>, place: &Range<usize>) -> Option<(Range<usize>, String)> {
    let mut smallest: Option<(usize, Range<usize>, Vec<Step>, String)> = None;
    for_tables(root, &mut Vec::new(), &mut |table, at, way| {
        for (key, value) in table {
            for span in [key.span(), value.span()] {
                let holds = span.start <= place.start && place.end <= span.end;
                if holds && smallest.as_ref().is_none_or(|(len, ..)| span.len() < *len) {
                    smallest = Some((span.len(), at.clone(), way.to_vec(), key.get_ref().to_string()));
                }
            }
        }
    });
    let (_, at, way, key) = smallest?;
    table_mut(root, &way)?.remove(key.as_str())?;
    Some((at, key))
}

/// Insert a missing key into the table at a position. Returns whether there is such a table.
fn fill_in(root: &mut Spanned<DeValue<'_>>, place: &Range<usize>, key: String) -> bool {
    let mut found = None;
    for_tables(root, &mut Vec::new(), &mut |_, at, way| {
        if at == *place {
            found = Some(way.to_vec());
        }
    });
    let Some(table) = found.and_then(|way| table_mut(root, &way)) else { return false };
    let value = DeValue::String(Cow::Borrowed(STAND_IN));
    table.insert(Spanned::new(NOWHERE, Cow::Owned(key)), Spanned::new(NOWHERE, value)).is_none()
}

/// Call `show` for every table in a value, with its position and its path.
fn for_tables(
    value: &Spanned<DeValue<'_>>,
    way: &mut Vec<Step>,
    show: &mut impl FnMut(&DeTable<'_>, Range<usize>, &[Step]),
) {
    if let DeValue::Table(table) = value.get_ref() {
        show(table, value.span(), way);
        for (key, value) in table {
            way.push(Step::Key(key.get_ref().to_string()));
            for_tables(value, way, show);
            way.pop();
        }
    } else if let DeValue::Array(items) = value.get_ref() {
        for (number, value) in items.iter().enumerate() {
            way.push(Step::Number(number));
            for_tables(value, way, show);
            way.pop();
        }
    }
}

/// The table at a path.
fn table_mut<'a, 'i>(value: &'a mut Spanned<DeValue<'i>>, way: &[Step]) -> Option<&'a mut DeTable<'i>> {
    let mut value = value.get_mut();
    for step in way {
        value = match (value, step) {
            (DeValue::Table(table), Step::Key(key)) => table.get_mut(key.as_str())?.get_mut(),
            (DeValue::Array(items), Step::Number(number)) => items.get_mut(*number)?.get_mut(),
            _ => return None,
        };
    }
    if let DeValue::Table(table) = value { Some(table) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        one: Option<One>,
        two: Option<Two>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct One {
        port: Option<u16>,
        names: Option<Vec<String>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Two {
        #[serde(default)]
        log: Vec<Log>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Log {
        path: String,
        zone: Option<String>,
    }

    fn check(text: &str, expected: &[&str]) -> Option<Raw> {
        let (value, mistakes) = load_all::<Raw>(Path::new("f"), text);
        let found: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
        value
    }

    #[test]
    fn every_mistake_of_every_section_is_reported_with_its_place() {
        let value = check(
            "[one]\nprot = 1\nport = \"x\"\nnames = [\"a\", 5]\n[tow]\na = 1\n[two]\n[[two.log]]\nzone = 5\n\
             [[two.log]]\npath = 7\nzone = \"UTC\"\nzeon = 1\n",
            &[
                "f:2:1: unknown key prot; expected one of the known keys",
                "f:3:8: expected a whole number from 0 to 65535, found the text \"x\"",
                "f:4:15: expected a text in quotes, found 5",
                "f:5:2: unknown key tow; expected one of the known keys",
                "f:9:8: expected a text in quotes, found 5",
                "f:8:1: the key path is missing",
                "f:11:8: expected a text in quotes, found 7",
                "f:13:1: unknown key zeon; expected one of the known keys",
            ],
        );
        let log = |zone: Option<&str>| Log { path: "/".into(), zone: zone.map(str::to_owned) };
        let two = Some(Two { log: vec![log(None), log(Some("UTC"))] });
        assert_eq!(value, Some(Raw { one: Some(One { port: None, names: None }), two }), "what is left");
    }

    #[test]
    fn what_is_right_has_no_mistakes_and_syntax_stops() {
        assert!(check("", &[]).is_some());
        assert!(check("[one]\nport = 1\n", &[]).is_some());
        let (value, mistakes) = load_all::<Raw>(Path::new("f"), "[one]\nprot = 1\nport = = 1\n");
        assert!(value.is_none() && mistakes.len() == 1, "{mistakes:?}");
        assert!(mistakes[0].to_string().starts_with("f:3:"), "{mistakes:?}");
    }

    #[test]
    fn mistakes_without_end_end() {
        let text: String = (0..1000).map(|number| format!("key{number} = 1\n")).collect();
        assert_eq!(load_all::<Raw>(Path::new("f"), &text).1.len(), MISTAKES_MAX);
    }
}
