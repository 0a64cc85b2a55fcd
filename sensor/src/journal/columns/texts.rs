//! Column of texts: each distinct text once, and numbers within texts as differences.
//!
//! Pure. A text is a code: 0 for a new one, else how many new ones ago it was new. A new text is a pattern and
//! the numbers in it: `slurm:1001` after `slurm:1000` is the same pattern and a difference of 1. Patterns have
//! codes in the same form.
//! Not here: which texts a column holds (`records`).

use super::numbers::{Cursor, put, put_bytes, put_signed};
use compact_str::CompactString;
use std::collections::HashMap;

/// Digits of a number in a text: more could overflow.
const DIGITS_MAX: usize = 18;

/// Mark of a number without leading zeros in a pattern.
const PLAIN: char = '\u{1}';

/// Marks of numbers of two to nineteen digits that start with zero.
const PADDED: u32 = 0xE000;

/// Streams of a column, in the order in which they are stored.
pub(super) const STREAMS: usize = 3;

/// Texts that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    codes: Vec<u8>,
    patterns: Vec<u8>,
    numbers: Vec<u8>,
    known: HashMap<CompactString, u64>,
    known_patterns: HashMap<String, u64>,
    last: Vec<Vec<i64>>,
}

impl Writer {
    pub(super) fn push(&mut self, text: &str) {
        let count = self.known.len() as u64;
        if let Some(at) = self.known.get(text) {
            put(&mut self.codes, count - at);
            return;
        }
        self.known.insert(text.into(), count);
        put(&mut self.codes, 0);
        let (pattern, numbers) = split(text);
        let count = self.known_patterns.len() as u64;
        let at = match self.known_patterns.get(&pattern) {
            Some(at) => {
                put(&mut self.patterns, count - at);
                *at
            }
            None => {
                put(&mut self.patterns, 0);
                put_bytes(&mut self.patterns, pattern.as_bytes());
                self.known_patterns.insert(pattern, count);
                self.last.push(vec![0; numbers.len()]);
                count
            }
        };
        let at = usize::try_from(at).expect("patterns fit in memory");
        for (number, last) in numbers.iter().zip(&mut self.last[at]) {
            put_signed(&mut self.numbers, number - *last);
            *last = *number;
        }
    }

    pub(super) fn finish(self, streams: &mut Vec<Vec<u8>>) {
        streams.extend([self.codes, self.patterns, self.numbers]);
    }
}

/// Texts that are read.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    codes: Cursor<'a>,
    patterns: Cursor<'a>,
    numbers: Cursor<'a>,
    known: Vec<CompactString>,
    known_patterns: Vec<(&'a str, Vec<i64>)>,
}

impl<'a> Reader<'a> {
    /// Reads the column at the start of these streams, and removes them.
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, rest) = streams.split_at_checked(STREAMS)?;
        *streams = rest;
        let [codes, patterns, numbers] = own else { return None };
        let (codes, patterns, numbers) = (Cursor(codes), Cursor(patterns), Cursor(numbers));
        Some(Reader { codes, patterns, numbers, known: Vec::new(), known_patterns: Vec::new() })
    }

    pub(super) fn next(&mut self) -> Option<CompactString> {
        let code = self.codes.length()?;
        if code > 0 {
            return self.known.get(self.known.len().checked_sub(code)?).cloned();
        }
        let code = self.patterns.length()?;
        let at = if code == 0 {
            let pattern = std::str::from_utf8(self.patterns.bytes()?).ok()?;
            let numbers = pattern.chars().filter(|char| width(*char).is_some()).count();
            self.known_patterns.push((pattern, vec![0; numbers]));
            self.known_patterns.len() - 1
        } else {
            self.known_patterns.len().checked_sub(code)?
        };
        let (pattern, last) = self.known_patterns.get_mut(at)?;
        let text = join(pattern, last, &mut self.numbers)?;
        self.known.push(text.clone());
        Some(text)
    }
}

/// Splits a text into its pattern and its numbers.
fn split(text: &str) -> (String, Vec<i64>) {
    let (mut pattern, mut numbers) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if width(char).is_some() {
            // A text that has a mark itself is stored as it is: an escape would help no real one.
            return (format!("{ESCAPED}{text}"), Vec::new());
        }
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 || len > DIGITS_MAX {
            let len = len.max(char.len_utf8());
            pattern.push_str(&rest[..len]);
            rest = &rest[len..];
            continue;
        }
        let (digits, after) = rest.split_at(len);
        numbers.push(digits.parse().expect("at most eighteen digits"));
        pattern.push(match u32::try_from(len) {
            Ok(len) if len > 1 && digits.starts_with('0') => {
                char::from_u32(PADDED + len).expect("of the private area")
            }
            _ => PLAIN,
        });
        rest = after;
    }
    (pattern, numbers)
}

/// Start of a pattern that is a text without numbers.
const ESCAPED: char = '\u{2}';

/// Digits of the number that a mark in a pattern represents: 0 for as many as it needs.
fn width(mark: char) -> Option<usize> {
    match mark {
        PLAIN | ESCAPED => Some(0),
        mark => {
            usize::try_from(u32::from(mark).checked_sub(PADDED)?).ok().filter(|width| *width <= DIGITS_MAX)
        }
    }
}

fn join(pattern: &str, last: &mut [i64], numbers: &mut Cursor<'_>) -> Option<CompactString> {
    if let Some(text) = pattern.strip_prefix(ESCAPED) {
        return Some(text.into());
    }
    let mut text = CompactString::default();
    let mut last = last.iter_mut();
    for char in pattern.chars() {
        let Some(width) = width(char) else {
            text.push(char);
            continue;
        };
        let last = last.next()?;
        *last = last.checked_add(numbers.signed()?)?;
        std::fmt::Write::write_fmt(&mut text, format_args!("{last:0width$}")).ok()?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(texts: &[String]) -> usize {
        let mut writer = Writer::default();
        texts.iter().for_each(|text| writer.push(text));
        let mut streams = Vec::new();
        writer.finish(&mut streams);
        let mut rest = streams.as_slice();
        let mut reader = Reader::new(&mut rest).expect("three streams");
        for text in texts {
            assert_eq!(reader.next().as_deref(), Some(text.as_str()));
        }
        assert_eq!(reader.next(), None);
        streams.iter().map(Vec::len).sum()
    }

    #[test]
    fn numbers_that_rise_cost_a_byte_each() {
        let texts: Vec<String> = (1000..2000).map(|job| format!("slurm/wn007:{job}@00{}", job + 5)).collect();
        assert!(check(&texts) < 5 * texts.len() + 100);
    }

    #[test]
    fn odd_texts_come_back() {
        let odd =
            ["", "0", "00", "007", "7", "\u{1}5", "5\u{2}", "\u{e003}9", "999999999999999999999", "ü1ü"];
        let odd: Vec<String> = odd.iter().chain(&odd).map(|text| (*text).to_owned()).collect();
        check(&odd);
    }

    proptest! {
        #[test]
        fn every_text_comes_back(texts in prop::collection::vec("[a-b0-2\u{1}\u{2}\u{e001}-\u{e003}ü]{0,6}|.*", 0..40)) {
            check(&texts);
        }
    }
}
