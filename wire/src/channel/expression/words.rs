//! Tokenizer of expressions: names, numbers, comparisons and quoted texts, each with its position.
//!
//! Pure. Rule: a position is the number of a character, counted from 1.
//! Not here: the grammar (`expression`).

use super::super::filter::Comparison;
use super::Error;
use compact_str::CompactString;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    /// The value, and the text as it was written.
    Number(f64, &'a str),
    Text(CompactString),
    Comparison(Comparison),
    /// `~` if true, `!~` if false.
    Likeness(bool),
    End,
}

impl Token<'_> {
    /// Format a quoted text.
    pub(super) fn quoted(text: &str) -> String {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) | Token::Number(_, name) => f.write_str(name),
            Token::Text(text) => f.write_str(&Token::quoted(text)),
            Token::Comparison(comparison) => comparison.fmt(f),
            Token::Likeness(true) => f.write_str("~"),
            Token::Likeness(false) => f.write_str("!~"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// The remaining tokens.
pub(super) struct Words<'a> {
    /// Tokens with their positions, the last first.
    left: Vec<(usize, Token<'a>)>,
    end: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str, max_bytes: usize) -> Result<Words<'a>, Error> {
        if text.len() > max_bytes {
            let expected = format!("at most {max_bytes} bytes");
            return Err(Error { expected, found: format!("{} bytes", text.len()), at: 1 });
        }
        let (mut rest, mut left) = (text, Vec::new());
        let place = |rest: &str| text.chars().count() - rest.chars().count() + 1;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let (token, after) =
                token(rest).map_err(|(expected, found)| Error { expected, found, at: place(rest) })?;
            left.push((place(rest), token));
            rest = after;
        }
        left.reverse();
        Ok(Words { left, end: text.chars().count() + 1 })
    }

    /// Position of the next token.
    pub(super) fn at(&self) -> usize {
        self.left.last().map_or(self.end, |(at, _)| *at)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn is_next(&self, name: &str) -> bool {
        matches!(self.left.last(), Some((_, Token::Name(next))) if *next == name)
    }

    /// Consume the next token if it is this name.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let is_next = self.is_next(name);
        if is_next {
            self.left.pop();
        }
        is_next
    }

    /// Consume the next two tokens if they are these names.
    pub(super) fn take_two(&mut self, first: &str, second: &str) -> bool {
        let after = self.left.len().checked_sub(2).and_then(|at| self.left.get(at));
        let is_next = self.is_next(first) && matches!(after, Some((_, Token::Name(next))) if *next == second);
        if is_next {
            self.left.truncate(self.left.len() - 2);
        }
        is_next
    }

    pub(super) fn need(&mut self, name: &str) -> Result<(), Error> {
        if self.take(name) { Ok(()) } else { Err(self.unexpected(name)) }
    }

    pub(super) fn name(&mut self, expected: &str) -> Result<CompactString, Error> {
        match self.left.last() {
            Some((_, Token::Name(name))) => {
                let name = CompactString::from(*name);
                self.left.pop();
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    pub(super) fn number(&mut self) -> Result<f64, Error> {
        match self.left.last() {
            Some((_, Token::Number(number, _))) => {
                let number = *number;
                self.left.pop();
                Ok(number)
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    pub(super) fn comparison(&mut self, expected: &str) -> Result<Comparison, Error> {
        match self.left.last() {
            Some((_, Token::Comparison(comparison))) => {
                let comparison = *comparison;
                self.left.pop();
                Ok(comparison)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Consume `~` (true) or `!~` (false).
    pub(super) fn likeness(&mut self) -> Option<bool> {
        let Some((_, Token::Likeness(is_wanted))) = self.left.last() else { return None };
        let is_wanted = *is_wanted;
        self.left.pop();
        Some(is_wanted)
    }

    pub(super) fn is_text_next(&self) -> bool {
        matches!(self.left.last(), Some((_, Token::Text(_))))
    }

    pub(super) fn text(&mut self) -> Result<CompactString, Error> {
        match self.left.pop() {
            Some((_, Token::Text(text))) => Ok(text),
            other => {
                self.left.extend(other);
                Err(self.unexpected("a text in quotes"))
            }
        }
    }

    pub(super) fn end(&self, expected: &str) -> Result<(), Error> {
        if self.left.is_empty() { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found = self.left.last().map_or(Token::End, |(_, token)| token.clone());
        Error { expected: expected.to_owned(), found: found.to_string(), at: self.at() }
    }
}

/// What was expected, and what was found.
type Unknown = (String, String);

/// Parse the first token of a text that does not start with a space. Returns it with the rest.
fn token(text: &str) -> Result<(Token<'_>, &str), Unknown> {
    let first = text.chars().next().unwrap_or_default();
    if first == '"' {
        return quoted_text(text);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let (name, rest) = split_where(text, |char| !(char.is_ascii_alphanumeric() || char == '_'));
        return Ok((Token::Name(name), rest));
    }
    if first.is_ascii_digit() || matches!(first, '-' | '.') {
        let (word, rest) =
            split_where(text, |char| !(char.is_ascii_alphanumeric() || matches!(char, '.' | '-')));
        let number = number(word)
            .ok_or_else(|| ("a number such as 0.5, 50 %, 10k or 4Mi".to_owned(), format!("{word:?}")))?;
        return Ok(match rest.trim_start().strip_prefix('%') {
            Some(rest) => (Token::Number(number / 100.0, &text[..text.len() - rest.len()]), rest),
            None => (Token::Number(number, word), rest),
        });
    }
    const SIGNS: [(&str, Token<'static>); 9] = [
        (">=", Token::Comparison(Comparison::AtLeast)),
        ("<=", Token::Comparison(Comparison::AtMost)),
        ("!=", Token::Comparison(Comparison::Other)),
        ("==", Token::Comparison(Comparison::Equal)),
        ("!~", Token::Likeness(false)),
        (">", Token::Comparison(Comparison::Above)),
        ("<", Token::Comparison(Comparison::Below)),
        ("=", Token::Comparison(Comparison::Equal)),
        ("~", Token::Likeness(true)),
    ];
    let sign = SIGNS.into_iter().find_map(|(sign, token)| Some((token, text.strip_prefix(sign)?)));
    sign.ok_or_else(|| {
        ("a name, a number, a comparison or a text in quotes".to_owned(), format!("{first:?}"))
    })
}

fn split_where(text: &str, is_after: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_after).unwrap_or(text.len()))
}

fn quoted_text(text: &str) -> Result<(Token<'_>, &str), Unknown> {
    let mut unescaped = CompactString::default();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((Token::Text(unescaped), &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, next @ ('"' | '\\'))) => unescaped.push(next),
                // Regular expressions contain many of them.
                Some((_, next)) => unescaped.extend(['\\', next]),
                None => break,
            },
            other => unescaped.push(other),
        }
    }
    Err(("the end of the text that began here: \"".to_owned(), "the end".to_owned()))
}

fn number(word: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] = [
        ("ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    // As tables print it: 1.5GiB.
    let word = word.strip_suffix('B').unwrap_or(word);
    let split = UNITS.into_iter().find_map(|(unit, factor)| Some((word.strip_suffix(unit)?, factor)));
    let (digits, factor) = split.unwrap_or((word, 1.0));
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let number = digits.parse::<f64>().ok().filter(|_| plain)?;
    Some(number * factor)
}
