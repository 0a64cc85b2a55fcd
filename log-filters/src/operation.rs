//! Operations of expressions: the steps after a `|`.
//!
//! Pure. An operation on a list works on every element, except the operations for lists. Rule: an operation
//! that does not fit its text gives nothing, never an error: logs cannot be corrected.

use crate::json;
use crate::span::seconds;
use crate::value::{VALUE_LEN_MAX_BYTES, Value, items, number, one, owned};
use std::borrow::Cow;

/// Most bytes of the names that a bracket list may expand to.
const HOSTS_LEN_MAX_BYTES: usize = 2 << 20;

/// Most hosts that a bracket list may expand to: the largest clusters have some ten thousand.
pub(crate) const HOSTS_MAX: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Drop(Vec<u8>),
    Before(Vec<u8>),
    After(Vec<u8>),
    BeforeLast(Vec<u8>),
    AfterLast(Vec<u8>),
    Lower,
    Upper,
    Trim,
    Number,
    Seconds,
    Add(i64),
    Sub(i64),
    Mul(i64),
    Mod(i64),
    Div(i64),
    Short,
    Base,
    Replace(Vec<u8>, Vec<u8>),
    Split(Vec<u8>),
    HostList,
    Json(json::Path),
    At(usize),
    First,
    Last,
    Count,
    Unique,
    Join(Vec<u8>),
}

const KNOWN: &str = "drop:TEXT before:TEXT after:TEXT before_last:TEXT after_last:TEXT lower upper trim number seconds \
                     add:N sub:N mul:N mod:N div:N short base replace:A,B split:TEXT hostlist json:NAME at:N first last count unique join:TEXT";

impl Operation {
    /// Parse an operation such as `before:@`.
    pub(crate) fn parse(text: &str) -> Result<Operation, String> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let bytes = || match argument {
            Some(argument) if !argument.is_empty() => Ok(argument.as_bytes().to_vec()),
            _ => Err(format!("operation `{name}` needs an argument, as in `{name}:TEXT`")),
        };
        let whole = || {
            let text = argument.unwrap_or_default();
            text.parse::<i64>()
                .map_err(|_| format!("operation `{name}` needs a whole number, found `{text}`"))
        };
        let divisor = || match whole()? {
            0 => Err(format!("operation `{name}` by zero")),
            number => Ok(number),
        };
        let plain = |operation: Operation| match argument {
            None => Ok(operation),
            Some(argument) => Err(format!("operation `{name}` takes no argument, found `{argument}`")),
        };
        match name {
            "drop" => Ok(Operation::Drop(bytes()?)),
            "before" => Ok(Operation::Before(bytes()?)),
            "after" => Ok(Operation::After(bytes()?)),
            "before_last" => Ok(Operation::BeforeLast(bytes()?)),
            "after_last" => Ok(Operation::AfterLast(bytes()?)),
            "lower" => plain(Operation::Lower),
            "upper" => plain(Operation::Upper),
            "trim" => plain(Operation::Trim),
            "number" => plain(Operation::Number),
            "seconds" => plain(Operation::Seconds),
            "add" => Ok(Operation::Add(whole()?)),
            "sub" => Ok(Operation::Sub(whole()?)),
            "mul" => Ok(Operation::Mul(whole()?)),
            "mod" => Ok(Operation::Mod(divisor()?)),
            "div" => Ok(Operation::Div(divisor()?)),
            "short" => plain(Operation::Short),
            "base" => plain(Operation::Base),
            "replace" => replace(argument),
            "split" => Ok(Operation::Split(bytes()?)),
            "hostlist" => plain(Operation::HostList),
            "json" => bytes().map(|_| Operation::Json(json::Path::parse(argument.unwrap_or_default()))),
            "at" => usize::try_from(whole()?)
                .ok()
                .filter(|&number| number > 0)
                .map(Operation::At)
                .ok_or_else(|| "operation `at` counts from 1".to_owned()),
            "first" => plain(Operation::First),
            "last" => plain(Operation::Last),
            "count" => plain(Operation::Count),
            "unique" => plain(Operation::Unique),
            "join" => Ok(Operation::Join(bytes()?)),
            _ => Err(format!("unknown operation `{name}`; expected one of {KNOWN}")),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest work on each text")]
    pub(crate) fn apply<'a>(&self, value: Value<'a>) -> Value<'a> {
        if value == Value::Nothing {
            return Value::Nothing;
        }
        match self {
            Operation::Split(by) => split(value, by),
            Operation::HostList => host_list(value),
            Operation::Json(path) => member(value, path),
            Operation::At(number) => one(items(value).into_iter().nth(number - 1)),
            Operation::First => one(items(value).into_iter().next()),
            Operation::Last => one(items(value).pop()),
            Operation::Count => Value::Text(Cow::Owned(items(value).len().to_string().into_bytes())),
            Operation::Unique => unique(value),
            Operation::Join(by) => Value::Text(Cow::Owned(items(value).join(by.as_slice()))),
            _ => match value {
                Value::Nothing => Value::Nothing,
                Value::Text(text) => one(self.on_text(text)),
                Value::List(list) => {
                    Value::List(list.into_iter().filter_map(|text| self.on_text(text)).collect())
                }
            },
        }
    }

    fn on_text<'a>(&self, text: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
        match self {
            Operation::Drop(what) => (*text != **what).then_some(text),
            Operation::Before(mark) => Some(match memchr::memmem::find(&text, mark) {
                Some(at) => slice(text, 0, at),
                None => text,
            }),
            Operation::BeforeLast(mark) => Some(match memchr::memmem::rfind(&text, mark) {
                Some(at) => slice(text, 0, at),
                None => text,
            }),
            Operation::After(mark) => {
                let at = memchr::memmem::find(&text, mark)?;
                let end = text.len();
                Some(slice(text, at + mark.len(), end))
            }
            Operation::AfterLast(mark) => {
                let at = memchr::memmem::rfind(&text, mark)?;
                let end = text.len();
                Some(slice(text, at + mark.len(), end))
            }
            Operation::Lower => Some(Cow::Owned(text.to_ascii_lowercase())),
            Operation::Upper => Some(Cow::Owned(text.to_ascii_uppercase())),
            Operation::Trim => {
                let start = text.len() - text.trim_ascii_start().len();
                let end = start + text.trim_ascii().len();
                Some(slice(text, start, end))
            }
            Operation::Number => {
                number(&text)?;
                let zeros = text.iter().take_while(|&&b| b == b'0').count().min(text.len() - 1);
                let end = text.len();
                Some(slice(text, zeros, end))
            }
            Operation::Seconds => seconds(&text).map(|number| Cow::Owned(number.to_string().into_bytes())),
            Operation::Add(by) => arithmetic(&text, |n| n.checked_add(*by)),
            Operation::Sub(by) => arithmetic(&text, |n| n.checked_sub(*by)),
            Operation::Mul(by) => arithmetic(&text, |n| n.checked_mul(*by)),
            Operation::Mod(by) => arithmetic(&text, |n| n.checked_rem(*by)),
            Operation::Div(by) => arithmetic(&text, |n| n.checked_div(*by)),
            Operation::Short => Some(short(text)),
            Operation::Base => {
                let start = memchr::memrchr(b'/', &text).map_or(0, |slash| slash + 1);
                let end = text.len();
                Some(slice(text, start, end))
            }
            Operation::Replace(from, to) => Some(replaced(text, from, to)),
            Operation::Split(_)
            | Operation::HostList
            | Operation::Json(_)
            | Operation::At(_)
            | Operation::First
            | Operation::Last
            | Operation::Count
            | Operation::Unique
            | Operation::Join(_) => Some(text),
        }
    }
}

fn replace(argument: Option<&str>) -> Result<Operation, String> {
    match argument.and_then(|argument| argument.split_once(',')) {
        Some((from, to)) if !from.is_empty() => {
            Ok(Operation::Replace(from.as_bytes().to_vec(), to.as_bytes().to_vec()))
        }
        _ => Err("operation `replace` needs two texts, as in `replace:A,B`".to_owned()),
    }
}

/// A member of each text, which must be a JSON object.
fn member<'a>(value: Value<'a>, path: &json::Path) -> Value<'a> {
    match value {
        Value::Nothing => Value::Nothing,
        Value::Text(Cow::Borrowed(text)) => json::member(text, path),
        Value::Text(Cow::Owned(text)) => owned(json::member(&text, path)),
        Value::List(list) => {
            let each = |text: Cow<'a, [u8]>| items(owned(json::member(&text, path)));
            Value::List(list.into_iter().flat_map(each).collect())
        }
    }
}

fn slice(text: Cow<'_, [u8]>, start: usize, end: usize) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text.drain(..start);
            Cow::Owned(text)
        }
    }
}

fn arithmetic(text: &[u8], apply: impl Fn(i64) -> Option<i64>) -> Option<Cow<'static, [u8]>> {
    let result = match text.strip_prefix(b"-") {
        Some(magnitude) => apply(-number(magnitude)?),
        None => apply(number(text)?),
    };
    result.map(|number| Cow::Owned(number.to_string().into_bytes()))
}

fn short(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let is_address = text.contains(&b':') || text.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    match memchr::memchr(b'.', &text) {
        Some(dot) if dot > 0 && !is_address => slice(text, 0, dot),
        _ => text,
    }
}

fn replaced<'a>(text: Cow<'a, [u8]>, from: &[u8], to: &[u8]) -> Cow<'a, [u8]> {
    let mut found = memchr::memmem::find_iter(&text, from).peekable();
    if found.peek().is_none() {
        drop(found);
        return text;
    }
    let mut result = Vec::with_capacity(text.len());
    let mut rest = 0;
    for at in found {
        result.extend_from_slice(&text[rest..at]);
        result.extend_from_slice(to);
        rest = at + from.len();
        if result.len() > VALUE_LEN_MAX_BYTES {
            break;
        }
    }
    result.extend_from_slice(&text[rest..]);
    result.truncate(VALUE_LEN_MAX_BYTES);
    Cow::Owned(result)
}

fn split<'a>(value: Value<'a>, by: &[u8]) -> Value<'a> {
    let mut parts = Vec::new();
    for item in items(value) {
        let mut rest = item;
        while let Some(at) = memchr::memmem::find(&rest, by) {
            let end = rest.len();
            parts.push(slice(rest.clone(), 0, at));
            rest = slice(rest, at + by.len(), end);
        }
        parts.push(rest);
    }
    parts.retain(|part| !part.is_empty());
    parts.truncate(HOSTS_MAX);
    Value::List(parts)
}

fn unique(value: Value<'_>) -> Value<'_> {
    let mut seen = std::collections::BTreeSet::new();
    let mut kept = items(value);
    kept.retain(|item| seen.insert(item.to_vec()));
    Value::List(kept)
}

fn host_list(value: Value<'_>) -> Value<'_> {
    let mut hosts = Vec::new();
    for item in items(value) {
        for part in outside_brackets(&item) {
            unfold(part, &mut hosts);
        }
    }
    Value::List(hosts.into_iter().map(Cow::Owned).collect())
}

/// Split at the commas outside brackets.
fn outside_brackets(text: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0u32, 0);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Expand the first bracket of `text`, and those after it, into `hosts`.
fn unfold(text: &[u8], hosts: &mut Vec<Vec<u8>>) {
    let mut open = vec![text.to_vec()];
    let mut held: usize = hosts.iter().map(Vec::len).sum();
    while let Some(name) = open.pop() {
        if hosts.len() + open.len() >= HOSTS_MAX {
            return;
        }
        let Some((head, inner, tail)) = first_bracket(&name) else {
            held += name.len();
            hosts.push(name);
            continue;
        };
        let mut numbers = Vec::new();
        for range in inner.split(|&b| b == b',') {
            range_numbers(range, &mut numbers);
        }
        let waiting: usize = open.iter().map(Vec::len).sum();
        let room = HOSTS_LEN_MAX_BYTES.saturating_sub(held + waiting);
        numbers.truncate(room / name.len().max(1));
        // The last is pushed first, so that the first is expanded first.
        for number in numbers.iter().rev() {
            open.push([head, number.as_slice(), tail].concat());
        }
    }
}

fn first_bracket(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let start = memchr::memchr(b'[', text)?;
    let end = start + memchr::memchr(b']', &text[start..])?;
    Some((&text[..start], &text[start + 1..end], &text[end + 1..]))
}

fn range_numbers(range: &[u8], numbers: &mut Vec<Vec<u8>>) {
    let mut ends = range.splitn(2, |&b| b == b'-');
    let (first, last) = (ends.next().unwrap_or_default(), ends.next());
    match (number(first), last.and_then(number)) {
        (Some(low), Some(high)) if high >= low => {
            for number in (low..=high).take(HOSTS_MAX.saturating_sub(numbers.len())) {
                numbers.push(format!("{number:0width$}", width = first.len()).into_bytes());
            }
        }
        _ => numbers.push(range.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(operations: &str, text: &str, expected: &str) {
        let mut value = Value::Text(Cow::Borrowed(text.as_bytes()));
        for operation in operations.split('|') {
            value = Operation::parse(operation).expect(operation).apply(value);
        }
        let shown = match value {
            Value::Nothing => "-".to_owned(),
            Value::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::List(list) => String::from_utf8_lossy(&list.join(&b' ')).into_owned(),
        };
        assert_eq!(shown, expected, "{text} | {operations}");
    }

    #[test]
    fn operations_do_what_the_format_says() {
        check("drop:(null)", "(null)", "-");
        check("before:@", "leepro@anaka", "leepro");
        check("before:@", "leepro", "leepro");
        check("after:@", "leepro", "-");
        check("after:@", "a@b@c", "b@c");
        check("after_last:@", "a@b@c", "c");
        check("before_last:@", "a@b@c", "a@b");
        check("number", "007", "7");
        check("number", "000", "0");
        check("number", "0x", "-");
        check("seconds", "1-00:01:30", "86490");
        check("seconds", "12.9", "12");
        check("sub:256", "271", "15");
        check("div:256|add:1", "1024", "5");
        check("short", "neo15.sinrg.cs.utk.edu", "neo15");
        check("short", "10.1.2.3", "10.1.2.3");
        check("short", "fe80::1.2", "fe80::1.2");
        check("base", "/a/b/c.d", "c.d");
        check("replace:a,bb", "banana", "bbbnbbnbb");
        check("split:+|before:/|unique", "n01/0+n01/1+n02/0", "n01 n02");
        check("hostlist", "wn[01-02,04],x", "wn01 wn02 wn04 x");
        check("hostlist", "r[1-2]n[08-10]", "r1n08 r1n09 r1n10 r2n08 r2n09 r2n10");
        check("hostlist", "odd[", "odd[");
        check("split:,|at:2", "a,b,c", "b");
        check("split:,|count", "a,b,c", "3");
        check("split:,|join:;", "a,b,c", "a;b;c");
    }

    #[test]
    fn a_hostile_host_list_is_bounded() {
        let value = Operation::HostList.apply(Value::Text(Cow::Borrowed(b"n[0-99999999][0-99999999]")));
        assert!(items(value).len() <= HOSTS_MAX);
    }

    #[test]
    fn what_is_no_operation_is_explained() {
        for bad in ["nope", "before", "add:x", "mod:0", "at:0", "lower:x", "replace:x"] {
            assert!(Operation::parse(bad).is_err(), "{bad}");
        }
    }
}
