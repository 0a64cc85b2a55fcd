//! Member of a JSON object that a log prints inside a line.
//!
//! Pure. Rule: only a well-formed object gives a value; one that is truncated, or nested deeper than
//! [`DEPTH_MAX`], gives nothing. Text after the object is ignored. Numbers are returned as printed.
//! Not here: the position of the object in the line (the rule's `match` captures it).

use crate::value::Value;
use std::borrow::Cow;

/// Deepest nesting of objects and arrays: each level is a call.
const DEPTH_MAX: usize = 64;

/// Path of a member: its name, or a JSON pointer (RFC 6901) if it starts with `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Vec<u8>>);

impl Path {
    /// Parse `user` or `/job/user`.
    pub(crate) fn parse(text: &str) -> Path {
        let Some(pointer) = text.strip_prefix('/') else { return Path(vec![text.into()]) };
        let token = |token: &str| token.replace("~1", "/").replace("~0", "~").into_bytes();
        Path(pointer.split('/').map(token).collect())
    }
}

/// The value of the member at `path`.
pub(crate) fn member<'a>(text: &'a [u8], path: &Path) -> Value<'a> {
    find(text, path).map_or(Value::Nothing, |raw| value(raw))
}

/// The JSON text of the member.
fn find<'a>(text: &'a [u8], path: &Path) -> Option<&'a [u8]> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_blanks();
    let start = scanner.at;
    if scanner.peek()? != b'{' {
        return None;
    }
    scanner.value(0)?;
    let mut raw = &text[start..scanner.at];
    for token in &path.0 {
        raw = match raw.first()? {
            b'{' => members(raw).filter(|(name, _)| unescaped(name) == token.as_slice()).last()?.1,
            b'[' => elements(raw).nth(std::str::from_utf8(token).ok()?.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(raw)
}

/// Convert a JSON text to a value: a list for an array; nothing for `null`.
fn value(raw: &[u8]) -> Value<'_> {
    match raw.first() {
        Some(b'[') => Value::List(elements(raw).filter_map(text).collect()),
        _ => text(raw).map_or(Value::Nothing, Value::Text),
    }
}

/// A string without its quotes and escapes; any other value as printed, and nothing for `null`.
fn text(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    match raw {
        b"null" => None,
        [b'"', ..] => Some(unescaped(raw)),
        _ => Some(Cow::Borrowed(raw)),
    }
}

/// Members of a well-formed object: names with their quotes, and values.
fn members(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut scanner = Scanner { text: raw, at: 1 };
    std::iter::from_fn(move || {
        let name = scanner.next_item(b'}')?;
        scanner.skip_blanks();
        scanner.at += 1;
        scanner.skip_blanks();
        let start = scanner.at;
        scanner.value(0)?;
        Some((name, &raw[start..scanner.at]))
    })
}

/// Elements of a well-formed array.
fn elements(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut scanner = Scanner { text: raw, at: 1 };
    std::iter::from_fn(move || scanner.next_item(b']'))
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skip `byte`, including blanks before it.
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The next value of an array, or name of an object, in text that is known to be well-formed.
    fn next_item(&mut self, end: u8) -> Option<&'a [u8]> {
        self.skip_blanks();
        if self.peek()? == b',' {
            self.at += 1;
            self.skip_blanks();
        }
        if self.peek()? == end {
            return None;
        }
        let start = self.at;
        self.value(0)?;
        Some(&self.text[start..self.at])
    }

    /// Skip a value; `None` if it is not well-formed.
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            b'{' => self.items(b'}', |scanner| {
                scanner.skip_blanks();
                scanner.string()?;
                scanner.expect(b':')?;
                scanner.value(depth + 1)
            }),
            b'[' => self.items(b']', |scanner| scanner.value(depth + 1)),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    /// Skip an object or array with its brackets.
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.skip_blanks();
        if self.peek()? == end {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.skip_blanks();
            self.at += 1;
            match *self.text.get(self.at - 1)? {
                b',' => {}
                byte if byte == end => return Some(()),
                _ => return None,
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let len = memchr::memchr2(b'"', b'\\', &self.text[self.at..])?;
            self.at += len + 1;
            if self.text[self.at - 1] == b'"' {
                return Some(());
            }
            self.peek()?;
            self.at += 1;
        }
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'))
        {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[start..self.at]).ok()?.parse::<f64>().ok().map(|_| ())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let word = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word.as_bytes()))?;
        self.at += word.len();
        Some(())
    }
}

/// A string of a well-formed text without its quotes and escapes.
fn unescaped(quoted: &[u8]) -> Cow<'_, [u8]> {
    let inner = &quoted[1..quoted.len() - 1];
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let (mut plain, mut at) = (Vec::with_capacity(inner.len()), 0);
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let escape = inner.get(at).copied().unwrap_or(b'\\');
        at += 1;
        match escape {
            b'n' => plain.push(b'\n'),
            b't' => plain.push(b'\t'),
            b'r' => plain.push(b'\r'),
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'u' => at = unicode(inner, at, &mut plain),
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

/// Append the character of the escape `\u` at `at` (after the `u`), with its second half if it is a surrogate
/// pair. Returns the position after it.
fn unicode(inner: &[u8], at: usize, plain: &mut Vec<u8>) -> usize {
    let unit = |at: usize| {
        let digits = inner.get(at..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(at) else {
        plain.extend_from_slice("\u{fffd}".as_bytes());
        return at;
    };
    let (mut code, mut end) = (first, at + 4);
    if (0xd800..0xdc00).contains(&first)
        && inner.get(end..end + 2) == Some(&br"\u"[..])
        && let Some(second) = unit(end + 2).filter(|second| (0xdc00..0xe000).contains(second))
    {
        code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        end += 6;
    }
    let character = char::from_u32(code).unwrap_or('\u{fffd}');
    plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    fn check(text: &str, path: &str, expected: &[&str]) {
        let found = match member(text.as_bytes(), &Path::parse(path)) {
            Value::Nothing => Vec::new(),
            Value::Text(text) => vec![String::from_utf8_lossy(&text).into_owned()],
            Value::List(list) => list.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect(),
        };
        assert_eq!(found, expected, "{path} of {text}");
    }

    #[test]
    fn members_are_found_by_name_or_pointer() {
        let text = r#" {"id": 7.50, "a/b": "x\"y\u00e4\ud83d\ude00", "job":{"user":"aliu","hosts":["n1","n2"],"none":null},"ok":true, "id2":1e3} tail"#;
        check(text, "id", &["7.50"]);
        check(text, "id2", &["1e3"]);
        check(text, "ok", &["true"]);
        check(text, "a/b", &["x\"y\u{e4}\u{1f600}"]);
        check(text, "/a~1b", &["x\"y\u{e4}\u{1f600}"]);
        check(text, "/job/user", &["aliu"]);
        check(text, "/job/hosts", &["n1", "n2"]);
        check(text, "/job/hosts/1", &["n2"]);
        check(text, "/job/none", &[]);
        check(text, "user", &[]);
        check(r#"{"a":1,"a":2}"#, "a", &["2"]);
    }

    #[test]
    fn what_is_no_whole_object_gives_nothing() {
        for text in [
            "",
            "{",
            r#"{"a":1"#,
            r#"{"a":1,"b":"x"#,
            r#"["a"]"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":tru}"#,
            r#"{a:1}"#,
        ] {
            check(text, "a", &[]);
        }
        let deep = format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        check(&deep, "a", &[]);
    }

    fn json() -> impl proptest::strategy::Strategy<Value = Json> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i64>().prop_map(|n| Json::Number(n.into())),
            "[ -~\u{e4}\u{1f600}\n\"\\\\]{0,6}".prop_map(Json::String),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
                prop::collection::btree_map("[ab/~\"\\\\]{0,2}", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    fn printed(json: &Json) -> Option<String> {
        match json {
            Json::Null => None,
            Json::String(text) => Some(text.clone()),
            Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => Some(json.to_string()),
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

        /// Every member of every object, by its pointer, compared with another JSON parser.
        #[test]
        fn members_are_those_of_another_reader(
            members in proptest::collection::btree_map("[ab/~\"\\\\]{0,2}", json(), 0..4),
            tail in "[ -~]{0,4}",
        ) {
            let whole = Json::Object(members.into_iter().collect());
            for text in [format!("{whole}{tail}"), format!("{whole:#}{tail}")] {
                let mut open = vec![(String::new(), &whole)];
                while let Some((pointer, json)) = open.pop() {
                    if let Json::Object(members) = json {
                        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                        open.extend(members.iter().map(|(name, json)| (format!("{pointer}/{}", escaped(name)), json)));
                    }
                    if pointer.is_empty() || json.is_object() {
                        continue;
                    }
                    let is_nested = |one: &Json| one.is_object() || one.is_array();
                    let expected: Vec<String> = match json.as_array() {
                        Some(list) if list.iter().any(is_nested) => continue,
                        Some(list) => list.iter().filter_map(printed).collect(),
                        None => printed(json).into_iter().collect(),
                    };
                    check(&text, &pointer, &expected.iter().map(String::as_str).collect::<Vec<_>>());
                }
            }
        }

        #[test]
        fn no_text_is_too_odd(text in r#"[{}\[\]:,"\\u0-9atrue. -]{0,40}"#, path in "[a/0-2~]{0,4}") {
            member(text.as_bytes(), &Path::parse(&path));
        }

        /// An object truncated anywhere gives nothing.
        #[test]
        fn a_cut_object_gives_nothing(json in json(), cut in 0usize..64) {
            let text = serde_json::json!({ "a": 1, "b": json }).to_string();
            let cut = cut.min(text.len() - 1);
            if text.is_char_boundary(cut) {
                check(&text[..cut], "a", &[]);
            }
        }
    }
}
