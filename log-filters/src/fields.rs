//! Cutting a record into fields and into `KEY=VALUE` pairs.
//!
//! Pure. Nothing is copied but what a quote or a backslash makes different.

use std::borrow::Cow;

/// How a filter's records are cut (`[fields]` of the format).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cutting {
    pub(crate) separator: Option<u8>,
    pub(crate) quote: Option<u8>,
    /// Numbers of fields that count the fields after them, from 1, ascending.
    pub(crate) counted: Vec<usize>,
    pub(crate) pairs: bool,
}

/// One field: a text, or several where a count stood before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    One(Cow<'a, [u8]>),
    Several(Vec<Cow<'a, [u8]>>),
}

/// Most fields of a record: a hostile line of separators must not cost more than its own size many times over.
const FIELDS_MAX: usize = 8_192;

/// Cut `text` into its fields.
pub(crate) fn cut<'a>(cutting: &Cutting, text: &'a [u8]) -> Vec<Field<'a>> {
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

/// The text within quotes at the start of `text`, and how long it is with them.
fn quoted(text: &[u8], quote: u8) -> (Cow<'_, [u8]>, usize) {
    let mut owned: Option<Vec<u8>> = None;
    let mut at = 1;
    while at < text.len() {
        let byte = text[at];
        let escaped = match text.get(at + 1) {
            Some(&next) if byte == b'\\' && (next == quote || next == b'\\') => Some(next),
            Some(&next) if byte == quote && next == quote => Some(quote),
            _ => None,
        };
        if let Some(plain) = escaped {
            owned.get_or_insert_with(|| text[1..at].to_vec()).push(plain);
            at += 2;
            continue;
        }
        if byte == quote {
            break;
        }
        if let Some(owned) = &mut owned {
            owned.push(byte);
        }
        at += 1;
    }
    let inner = owned.map_or(Cow::Borrowed(&text[1.min(at)..at]), Cow::Owned);
    (inner, (at + 1).min(text.len()))
}

/// The value of `key` in a record of `KEY=VALUE` pairs.
pub(crate) fn pair<'a>(text: &'a [u8], key: &[u8]) -> Option<Cow<'a, [u8]>> {
    let finder = memchr::memmem::Finder::new(key);
    let at = finder.find_iter(text).find(|&at| {
        let starts = at == 0 || matches!(text[at - 1], b' ' | b'\t' | b',' | b';' | b'\n');
        starts && text.get(at + key.len()) == Some(&b'=')
    })?;
    let value = &text[at + key.len() + 1..];
    if value.first() == Some(&b'"') {
        return Some(quoted(value, b'"').0);
    }
    let end = next_key(value);
    Some(Cow::Borrowed(value[..end].trim_ascii_end()))
}

/// Where the blank before the next ` KEY=` stands, or the end of the line.
fn next_key(value: &[u8]) -> usize {
    let line_end = memchr::memchr(b'\n', value).unwrap_or(value.len());
    let line = &value[..line_end];
    for equals in memchr::memchr_iter(b'=', line) {
        let key_start = line[..equals].iter().rposition(|&b| b == b' ').map_or(0, |blank| blank + 1);
        let key = &line[key_start..equals];
        let is_key = key.first().is_some_and(u8::is_ascii_alphabetic)
            && key.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        if is_key && key_start > 0 {
            return key_start - 1;
        }
    }
    line_end
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
            let found = pair(text, key.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{key}");
        }
    }
}
