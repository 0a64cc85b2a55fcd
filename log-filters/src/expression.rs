//! Expressions: compute the fields of an event from captures, fields and remembered values.
//!
//! Pure. An expression is compiled once, with capture names resolved to slots, and evaluated for each record
//! without looking up a name in a table larger than the rule.

use crate::fields::{Field, Record};
use crate::operation::Operation;
use crate::relation::Relation;
use crate::value::{VALUE_LEN_MAX_BYTES, Value, number};
use compact_str::CompactString;
use std::borrow::Cow;
use wire::event::{Content, Value as Attribute};

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Template(Vec<Piece>),
    Map { value: Box<Expression>, arms: Vec<(Key, Expression)>, default: Option<Box<Expression>> },
    First(Vec<Expression>),
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Literal(Vec<u8>),
    Reference { source: Reference, operations: Vec<Step> },
}

/// One step of the evaluation of a reference.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Plain(Operation),
    With(Relation, Reference),
}

/// Target of `${…}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A capture, by its slot in the rule's list of names.
    Capture(usize),
    /// A field, counted from 1.
    Field(usize),
    Pair(CompactString),
    Recalled(CompactString),
    Part(CompactString),
    Own(CompactString),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Exact(Vec<u8>),
    Begins(Vec<u8>),
    Ends(Vec<u8>),
    Holds(Vec<u8>),
    /// Whole numbers in a range, both ends included.
    Range(i64, i64),
}

impl Key {
    pub(crate) fn parse(text: &str) -> Key {
        let whole = |text: &str| text.trim().parse::<i64>().ok();
        if let Some((low, high)) = text.split_once("..")
            && let (Some(low), Some(high)) = (whole(low), whole(high))
        {
            return Key::Range(low, high);
        }
        for (sign, to_range) in [
            (">=", (|n| (n, i64::MAX)) as fn(i64) -> (i64, i64)),
            ("<=", |n| (i64::MIN, n)),
            (">", |n: i64| (n.saturating_add(1), i64::MAX)),
            ("<", |n: i64| (i64::MIN, n.saturating_sub(1))),
        ] {
            if let Some(number) = text.strip_prefix(sign).and_then(whole) {
                let (low, high) = to_range(number);
                return Key::Range(low, high);
            }
        }
        if let Some(part) = text.strip_prefix('*').and_then(|text| text.strip_suffix('*'))
            && !part.is_empty()
        {
            return Key::Holds(part.into());
        }
        match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(end), _) if !end.is_empty() => Key::Ends(end.into()),
            (_, Some(start)) if !start.is_empty() => Key::Begins(start.into()),
            _ => Key::Exact(text.into()),
        }
    }

    fn fits(&self, text: &[u8]) -> bool {
        match self {
            Key::Exact(exact) => text == exact.as_slice(),
            Key::Begins(start) => text.starts_with(start),
            Key::Ends(end) => text.ends_with(end),
            Key::Holds(part) => text.windows(part.len()).any(|found| found == part),
            Key::Range(low, high) => {
                let signed = match text.strip_prefix(b"-") {
                    Some(magnitude) => number(magnitude).map(|n| -n),
                    None => number(text),
                };
                signed.is_some_and(|n| (*low..=*high).contains(&n))
            }
        }
    }
}

/// Input of the evaluation.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a, 't> {
    pub(crate) record: &'a Record<'t>,
    /// Positions of the captures, by slot.
    pub(crate) spans: &'a [Option<(usize, usize)>],
    pub(crate) recalled: &'a [(CompactString, CompactString)],
    pub(crate) parts: &'a [(CompactString, CompactString)],
    pub(crate) own: Option<&'a Content>,
}

impl Expression {
    /// Evaluate the expression.
    pub(crate) fn value<'a>(&'a self, context: &Context<'a, '_>) -> Value<'a> {
        match self {
            Expression::Template(pieces) => template(pieces, context),
            Expression::Map { value, arms, default } => {
                let found = match value.value(context) {
                    Value::Nothing => Cow::Borrowed(&b""[..]),
                    Value::Text(text) => text,
                    Value::List(list) => Cow::Owned(list.join(&b',')),
                };
                match arms.iter().find(|(key, _)| key.fits(&found)) {
                    Some((_, result)) => result.value(context),
                    None => default.as_ref().map_or(Value::Nothing, |default| default.value(context)),
                }
            }
            Expression::First(several) => several
                .iter()
                .map(|expression| expression.value(context))
                .find(|value| !is_empty(value))
                .unwrap_or(Value::Nothing),
        }
    }

    /// The value as text: empty for nothing; a list joined by commas; invalid UTF-8 replaced.
    pub(crate) fn text(&self, context: &Context<'_, '_>) -> CompactString {
        match self.value(context) {
            Value::Nothing => CompactString::default(),
            Value::Text(text) => compact(&text),
            Value::List(list) => compact(&list.join(&b',')),
        }
    }

    /// The value as an attribute; `None` for nothing or an empty text.
    pub(crate) fn attribute(&self, context: &Context<'_, '_>) -> Option<Attribute> {
        match self.value(context) {
            Value::Nothing => None,
            Value::Text(text) if text.is_empty() => None,
            Value::Text(text) => Some(match std::str::from_utf8(&text) {
                Ok(_) => Attribute::Text(compact(&text)),
                Err(_) => Attribute::Bytes(text[..text.len().min(VALUE_LEN_MAX_BYTES)].to_vec()),
            }),
            Value::List(list) if list.is_empty() => None,
            Value::List(list) => Some(Attribute::List(list.iter().map(|text| compact(text)).collect())),
        }
    }
}

/// Text of an event: at most [`VALUE_LEN_MAX_BYTES`], invalid UTF-8 replaced.
pub(crate) fn compact(bytes: &[u8]) -> CompactString {
    let bytes = &bytes[..bytes.len().min(VALUE_LEN_MAX_BYTES)];
    match std::str::from_utf8(bytes) {
        Ok(text) => CompactString::new(text),
        Err(_) => CompactString::from_utf8_lossy(bytes),
    }
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Nothing => true,
        Value::Text(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
    }
}

fn template<'a>(pieces: &'a [Piece], context: &Context<'a, '_>) -> Value<'a> {
    match pieces {
        [] => Value::Text(Cow::Borrowed(b"")),
        [Piece::Literal(text)] => Value::Text(Cow::Borrowed(text)),
        [Piece::Reference { source, operations }] => reference(source, operations, context),
        several => {
            let mut whole = Vec::new();
            for piece in several {
                if whole.len() > VALUE_LEN_MAX_BYTES {
                    break;
                }
                match piece {
                    Piece::Literal(text) => whole.extend_from_slice(text),
                    Piece::Reference { source, operations } => match reference(source, operations, context) {
                        Value::Nothing => return Value::Nothing,
                        Value::Text(text) if text.is_empty() => return Value::Nothing,
                        Value::Text(text) => whole.extend_from_slice(&text),
                        Value::List(list) => whole.extend_from_slice(&list.join(&b',')),
                    },
                }
            }
            whole.truncate(VALUE_LEN_MAX_BYTES);
            Value::Text(Cow::Owned(whole))
        }
    }
}

fn reference<'a>(source: &'a Reference, operations: &'a [Step], context: &Context<'a, '_>) -> Value<'a> {
    operations.iter().fold(source_value(source, context), |value, step| match step {
        Step::Plain(operation) => operation.apply(value),
        Step::With(relation, other) => relation.apply(value, &source_value(other, context)),
    })
}

fn source_value<'a>(source: &'a Reference, context: &Context<'a, '_>) -> Value<'a> {
    let named = |values: &'a [(CompactString, CompactString)], name: &CompactString| {
        let value = values.iter().find(|(known, _)| known == name);
        value.map_or(Value::Nothing, |(_, value)| Value::Text(Cow::Borrowed(value.as_bytes())))
    };
    match source {
        Reference::Capture(slot) => match context.spans.get(*slot).copied().flatten() {
            Some((start, end)) => Value::Text(Cow::Borrowed(&context.record.text()[start..end])),
            None => Value::Nothing,
        },
        Reference::Field(number) => match context.record.field(*number) {
            None => Value::Nothing,
            Some(Field::One(one)) => Value::Text(Cow::Borrowed(one)),
            Some(Field::Several(several)) => {
                Value::List(several.iter().map(|one| Cow::Borrowed(&**one)).collect())
            }
        },
        Reference::Pair(key) => context.record.pair(key.as_bytes()).map_or(Value::Nothing, Value::Text),
        Reference::Recalled(name) => named(context.recalled, name),
        Reference::Part(name) => named(context.parts, name),
        Reference::Own(name) => own(name, context.own),
    }
}

fn own<'a>(name: &str, content: Option<&'a Content>) -> Value<'a> {
    let Some(content) = content else { return Value::Nothing };
    let text = match name {
        "job" => &content.job,
        "user" => &content.user,
        "from" => &content.from,
        "to" => &content.to,
        _ => {
            return match content.attribute(name) {
                None => Value::Nothing,
                Some(Attribute::Text(text)) => Value::Text(Cow::Borrowed(text.as_bytes())),
                Some(Attribute::Bytes(bytes)) => Value::Text(Cow::Borrowed(bytes)),
                Some(Attribute::List(list)) => {
                    Value::List(list.iter().map(|text| Cow::Borrowed(text.as_bytes())).collect())
                }
            };
        }
    };
    if text.is_empty() { Value::Nothing } else { Value::Text(Cow::Borrowed(text.as_bytes())) }
}

/// Parse a template. `slot` resolves a reference, including its sign, to a slot or returns why it is invalid.
pub(crate) fn parse(
    text: &str,
    slot: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        literal.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            literal.push(b'$');
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let Some((inner, after)) = inner else {
            return Err(format!("a `$` in `{text}` begins no `${{NAME}}`; write `$$` for a dollar"));
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(parse_reference(inner, slot)?);
        rest = after;
    }
    literal.extend_from_slice(rest.as_bytes());
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn parse_reference(
    inner: &str,
    slot: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Piece, String> {
    let mut parts = inner.split('|');
    let source = parse_source(parts.next().unwrap_or_default().trim(), inner, slot)?;
    let step = |text: &str| match Relation::parse(text) {
        Some((relation, other)) => Ok(Step::With(relation, parse_source(other, inner, slot)?)),
        None => Operation::parse(text).map(Step::Plain),
    };
    let operations = parts.map(step).collect::<Result<_, String>>()?;
    Ok(Piece::Reference { source, operations })
}

/// Parse a reference name with its sign; `inner` is the whole reference, for messages.
fn parse_source(
    name: &str,
    inner: &str,
    slot: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Reference, String> {
    let rest = name.get(1..).unwrap_or_default();
    if name.is_empty()
        || (!name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && rest.is_empty())
    {
        return Err(format!("`${{{inner}}}` names nothing"));
    }
    let slot = slot(name)?;
    Ok(match name.as_bytes()[0] {
        b'#' => match rest.parse() {
            Ok(number) if number > 0 => Reference::Field(number),
            _ => return Err(format!("`${{{inner}}}`: fields are numbered from 1")),
        },
        b'=' => Reference::Pair(rest.into()),
        b'<' => Reference::Recalled(rest.into()),
        b'@' => Reference::Part(rest.into()),
        b'.' => Reference::Own(rest.into()),
        _ => Reference::Capture(slot),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_keys_fit_what_they_say() {
        for (key, fits, fits_not) in [
            ("ok", "ok", "okay"),
            ("CANCELLED*", "CANCELLED by 0", "xCANCELLED"),
            ("*.example", "a.example", "a.example.b"),
            ("*cancel*", "was cancelled", "can cel"),
            (">256", "271", "256"),
            (">=0", "0", "-1"),
            ("<0", "-3", "0"),
            ("1..255", "255", "256"),
            ("", "", "x"),
            ("*", "*", "x"),
        ] {
            let parsed = Key::parse(key);
            assert!(parsed.fits(fits.as_bytes()), "{key} {fits}");
            assert!(!parsed.fits(fits_not.as_bytes()), "{key} {fits_not}");
        }
    }

    #[test]
    fn templates_are_read_or_explained() {
        let mut slot = |name: &str| {
            if name == "a" || name.starts_with(['#', '=']) { Ok(0) } else { Err(format!("no `{name}`")) }
        };
        assert_eq!(parse("x$$${a|lower}y", &mut slot).map(|pieces| pieces.len()), Ok(3));
        assert_eq!(parse("${a|sub:$#2|drop:$=k|drop:$}", &mut slot).map(|pieces| pieces.len()), Ok(1));
        for bad in [
            "${a|sub:$b}",
            "${a|sub:$#0}",
            "${a|sub:$=}",
            "$a",
            "${b}",
            "${",
            "${}",
            "${#0}",
            "${=}",
            "${a|what}",
        ] {
            assert!(parse(bad, &mut slot).is_err(), "{bad}");
        }
    }
}
