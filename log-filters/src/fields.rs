//! Splits a record into fields and into `KEY=VALUE` pairs.
//!
//! Pure. Text is copied only where quotes or backslashes change it.

use std::borrow::Cow;
use std::cell::OnceCell;

/// How a filter's records are split (`[fields]` of the format).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cutting {
    pub(crate) separator: Option<u8>,
    pub(crate) quote: Option<u8>,
    /// Numbers of fields that contain the count of the fields after them, from 1, ascending.
    pub(crate) counted: Vec<usize>,
    pub(crate) pairs: bool,
    /// Whether the log has header lines with the names of the columns.
    pub(crate) has_header: bool,
}

/// One field: a text, or several after a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    One(Cow<'a, [u8]>),
    Several(Vec<Cow<'a, [u8]>>),
}

/// Most fields of a record: a hostile line of separators must not cost many times its own size.
const FIELDS_MAX: usize = 8_192;

/// Text of a record, split once and only when needed.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    cutting: &'a Cutting,
    /// Names of the columns, if the log has them.
    columns: &'a [Vec<u8>],
    text: &'a [u8],
    fields: OnceCell<Vec<Field<'a>>>,
    /// Positions of the `=`.
    equals: OnceCell<Vec<usize>>,
}

impl<'a> Record<'a> {
    pub(crate) fn new(cutting: &'a Cutting, text: &'a [u8]) -> Record<'a> {
        Record { cutting, columns: &[], text, fields: OnceCell::new(), equals: OnceCell::new() }
    }

    /// A record with named columns.
    pub(crate) fn with_columns(cutting: &'a Cutting, columns: &'a [Vec<u8>], text: &'a [u8]) -> Record<'a> {
        Record { columns, ..Record::new(cutting, text) }
    }

    /// Whether the number of fields equals the number of columns.
    pub(crate) fn fits_columns(&self) -> bool {
        let fields = self.fields.get_or_init(|| cut(self.cutting, self.text));
        !self.columns.is_empty() && fields.len() == self.columns.len()
    }

    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// A field by its number, from 1.
    pub(crate) fn field(&self, number: usize) -> Option<&Field<'a>> {
        self.fields.get_or_init(|| cut(self.cutting, self.text)).get(number.checked_sub(1)?)
    }

    /// The value of `key` in a record of `KEY=VALUE` pairs.
    pub(crate) fn pair(&self, key: &[u8]) -> Option<Cow<'a, [u8]>> {
        if self.cutting.has_header {
            return self.column(key);
        }
        let equals = self.equals.get_or_init(|| memchr::memchr_iter(b'=', self.text).collect());
        let last = *key.last()?;
        let at = equals.iter().position(|&equals| {
            // The last byte of the key rules out most candidates.
            if equals == 0 || self.text[equals - 1] != last {
                return false;
            }
            let Some(start) = equals.checked_sub(key.len()) else { return false };
            let starts = start == 0 || matches!(self.text[start - 1], b' ' | b'\t' | b',' | b';' | b'\n');
            starts && &self.text[start..equals] == key
        })?;
        let start = equals[at] + 1;
        let value = &self.text[start..];
        if value.first() == Some(&b'"') {
            return Some(quoted(value, b'"').0);
        }
        let end = next_key(self.text, start, &equals[at + 1..]);
        Some(Cow::Borrowed(self.text[start..end].trim_ascii_end()))
    }
}

impl<'a> Record<'a> {
    /// The field of the first column of this name.
    fn column(&self, name: &[u8]) -> Option<Cow<'a, [u8]>> {
        let at = self.columns.iter().position(|column| column == name)?;
        match self.field(at + 1)? {
            Field::One(one) => Some(one.clone()),
            Field::Several(_) => None,
        }
    }
}

/// The columns that a header line names.
pub(crate) fn columns(cutting: &Cutting, line: &[u8]) -> Vec<Vec<u8>> {
    let name = |field: Field<'_>| match field {
        Field::One(name) => name.trim_ascii().to_vec(),
        Field::Several(_) => Vec::new(),
    };
    cut(cutting, line).into_iter().map(name).collect()
}

/// Position of the blank before the next ` KEY=`, or the end of the line; `equals` are the positions after
/// `start`.
fn next_key(text: &[u8], start: usize, equals: &[usize]) -> usize {
    let before_key = |&equals: &usize| {
        let value = &text[start..equals];
        let blank = value.iter().rposition(|&b| !is_in_key(b))?;
        (value[blank] == b' ' && is_key(&value[blank + 1..])).then_some(start + blank)
    };
    let end = equals.iter().find_map(before_key).unwrap_or(text.len());
    memchr::memchr(b'\n', &text[start..end]).map_or(end, |len| start + len)
}

fn is_in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn is_key(key: &[u8]) -> bool {
    key.first().is_some_and(u8::is_ascii_alphabetic) && key.iter().all(|&b| is_in_key(b))
}

/// Split `text` into its fields.
fn cut<'a>(cutting: &Cutting, text: &'a [u8]) -> Vec<Field<'a>> {
    let Some(separator) = cutting.separator else { return Vec::new() };
    let mut plain = Plain { text, at: Some(0), separator, quote: cutting.quote }.take(FIELDS_MAX);
    let mut fields = Vec::new();
    while let Some(field) = plain.next() {
        let counts = cutting.counted.contains(&(fields.len() + 1));
        let count = if counts { number(&field) } else { None };
        fields.push(Field::One(field));
        if counts {
            fields.push(Field::Several(plain.by_ref().take(count.unwrap_or(0)).collect()));
        }
    }
    fields
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

struct Plain<'a> {
    text: &'a [u8],
    at: Option<usize>,
    separator: u8,
    quote: Option<u8>,
}

impl<'a> Iterator for Plain<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let start = self.at?;
        let rest = &self.text[start..];
        let (field, len) = match self.quote {
            Some(quote) if rest.first() == Some(&quote) => quoted(rest, quote),
            _ => {
                let len = memchr::memchr(self.separator, rest).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..len]), len)
            }
        };
        let mut end = len + memchr::memchr(self.separator, &rest[len..]).unwrap_or(rest.len() - len);
        let more = end < rest.len();
        if self.separator == b' ' {
            while rest.get(end + 1) == Some(&b' ') {
                end += 1;
            }
        }
        self.at = (more && !(self.separator == b' ' && end + 1 >= rest.len())).then_some(start + end + 1);
        Some(field)
    }
}

/// Parse a quoted text at the start of `text`. Returns it with its length including the quotes.
fn quoted(text: &[u8], quote: u8) -> (Cow<'_, [u8]>, usize) {
    let mut owned: Option<Vec<u8>> = None;
    let (mut kept, mut at) = (1, 1);
    while let Some(len) = memchr::memchr2(quote, b'\\', &text[at..]) {
        at += len;
        let next = text.get(at + 1).copied();
        let is_escape = match text[at] {
            b'\\' if quote != b'\\' => matches!(next, Some(next) if next == quote || next == b'\\'),
            _ => next == Some(quote),
        };
        if is_escape {
            // The first of two quotes is skipped.
            owned.get_or_insert_default().extend_from_slice(&text[kept..at]);
            kept = at + 1;
            at += 2;
        } else if text[at] == quote {
            return (finish(owned, &text[kept..at]), at + 1);
        } else {
            at += 1;
        }
    }
    (finish(owned, text.get(kept..).unwrap_or_default()), text.len())
}

fn finish<'a>(owned: Option<Vec<u8>>, rest: &'a [u8]) -> Cow<'a, [u8]> {
    match owned {
        None => Cow::Borrowed(rest),
        Some(mut owned) => {
            owned.extend_from_slice(rest);
            Cow::Owned(owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cutting: &Cutting, text: &str, expected: &[&str]) {
        let shown: Vec<String> = cut(cutting, text.as_bytes())
            .iter()
            .map(|field| match field {
                Field::One(one) => String::from_utf8_lossy(one).into_owned(),
                Field::Several(several) => {
                    let texts: Vec<_> = several.iter().map(|s| String::from_utf8_lossy(s)).collect();
                    format!("[{}]", texts.join(","))
                }
            })
            .collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn fields_are_cut() {
        let colon = Cutting { separator: Some(b':'), ..Cutting::default() };
        check(&colon, "a::b:", &["a", "", "b", ""]);
        let blank =
            Cutting { separator: Some(b' '), quote: Some(b'"'), counted: vec![2], ..Cutting::default() };
        check(
            &blank,
            r#""JOB" 2 "h 1" h2 "say ""x"" \"y\"" end"#,
            &["JOB", "2", "[h 1,h2]", r#"say "x" "y""#, "end"],
        );
        check(&blank, "a 0  b ", &["a", "0", "[]", "b"]);
        check(&blank, "\"open", &["open"]);
        check(&blank, "\"", &[""]);
    }

    #[test]
    fn pairs_are_found() {
        let text =
            br#"JobId=13 Name=my job x NodeList=wn04 WorkDir= Tres=cpu=1,mem=50M msg="a \"b\" c" End=1 "#;
        let cutting = Cutting { pairs: true, ..Cutting::default() };
        for (key, expected) in [
            ("JobId", Some("13")),
            ("Name", Some("my job x")),
            ("List", None),
            ("WorkDir", Some("")),
            ("Tres", Some("cpu=1,mem=50M")),
            ("msg", Some("a \"b\" c")),
            ("End", Some("1")),
            ("Nope", None),
        ] {
            let found = Record::new(&cutting, text).pair(key.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{key}");
        }
    }

    /// Reference implementation of `quoted`, byte by byte.
    fn quoted_plainly(text: &[u8], quote: u8) -> (Vec<u8>, usize) {
        let (mut inner, mut at) = (Vec::new(), 1);
        while at < text.len() {
            let next = text.get(at + 1).copied();
            let escaped = match text[at] {
                b'\\' => next.filter(|&next| next == quote || next == b'\\'),
                byte if byte == quote => next.filter(|&next| next == quote),
                _ => None,
            };
            match escaped {
                Some(escaped) => {
                    inner.push(escaped);
                    at += 2;
                }
                None if text[at] == quote => return (inner, at + 1),
                None => {
                    inner.push(text[at]);
                    at += 1;
                }
            }
        }
        (inner, text.len())
    }

    /// Reference implementation of a pair's value, checking every position.
    fn pair_plainly(text: &[u8], key: &[u8]) -> Option<Vec<u8>> {
        let is_separator = |b: u8| matches!(b, b' ' | b'\t' | b',' | b';' | b'\n');
        let at = (0..text.len()).find(|&at| {
            (at == 0 || is_separator(text[at - 1]))
                && text[at..].starts_with(key)
                && text.get(at + key.len()) == Some(&b'=')
        })?;
        let value = &text[at + key.len() + 1..];
        if value.first() == Some(&b'"') {
            return Some(quoted_plainly(value, b'"').0);
        }
        let line = value.split(|&b| b == b'\n').next().unwrap_or_default();
        let ends = |&at: &usize| {
            let key = line[at..].strip_prefix(b" ").and_then(|rest| rest.split(|&b| b == b'=').next());
            line[at..].contains(&b'=') && key.is_some_and(is_key)
        };
        let end = (0..line.len()).find(ends).unwrap_or(line.len());
        Some(line[..end].trim_ascii_end().to_vec())
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, cases: 4_000, ..Default::default() })]

        #[test]
        fn pairs_are_those_found_by_looking_at_every_place(text in r#"[ab=" ,\n1_\\;]{0,24}"#, key in "[ab1]{1,3}") {
            let cutting = Cutting { pairs: true, ..Cutting::default() };
            let record = Record::new(&cutting, text.as_bytes());
            let found = record.pair(key.as_bytes()).map(Cow::into_owned);
            proptest::prop_assert_eq!(found, pair_plainly(text.as_bytes(), key.as_bytes()));
        }

        #[test]
        fn quotes_are_read_as_byte_by_byte(inner in r#"[a'"\\]{0,16}"#, quote in r#"['"]"#) {
            let (text, quote) = (format!("{quote}{inner}"), quote.as_bytes()[0]);
            let (found, len) = quoted(text.as_bytes(), quote);
            proptest::prop_assert_eq!((found.into_owned(), len), quoted_plainly(text.as_bytes(), quote));
        }
    }
}
