//! Column of texts: each distinct text once, and numbers within texts as differences.
//!
//! Pure. A text is a code: 0 for a new one, else how many new ones ago it was new. A new text is a pattern and
//! the numbers in it: `slurm:1001` after `slurm:1000` is the same pattern and a difference of 1. Patterns have
//! codes in the same form.
//! Not here: which texts a column holds (`records`).

use super::numbers::{Cursor, put, put_bytes, put_signed};
use compact_str::CompactString;
use std::cell::OnceCell;
use std::collections::HashMap;
use wire::text_regex::TextRegex;

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

/// Number of a text of a column: equal texts of a block have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextId(usize);

impl TextId {
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// Texts that are read. A text is made when it is asked for: a query looks at few of them.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    codes: Cursor<'a>,
    patterns: Patterns<'a>,
    known: Vec<Known>,
}

/// A new text: its pattern, where its numbers start, and itself once it was asked for.
#[derive(Debug)]
struct Known {
    pattern: usize,
    numbers: usize,
    text: OnceCell<CompactString>,
}

impl<'a> Reader<'a> {
    /// Reads the column at the start of these streams, and removes them.
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, rest) = streams.split_at_checked(STREAMS)?;
        *streams = rest;
        let [codes, patterns, numbers] = own else { return None };
        Some(Reader { codes: Cursor(codes), patterns: Patterns::new(patterns, numbers), known: Vec::new() })
    }

    /// Reads the next text; `None` if it is damaged.
    pub(super) fn next(&mut self) -> Option<TextId> {
        let code = self.codes.length()?;
        if code > 0 {
            return self.known.len().checked_sub(code).map(TextId);
        }
        let (pattern, numbers) = self.patterns.next()?;
        self.known.push(Known { pattern, numbers, text: OnceCell::new() });
        Some(TextId(self.known.len() - 1))
    }

    /// Returns a text that was read.
    pub(super) fn text(&self, id: TextId) -> &CompactString {
        let known = &self.known[id.0];
        known.text.get_or_init(|| {
            let mut text = Vec::new();
            self.patterns.write(known.pattern, known.numbers, &mut text);
            CompactString::from_utf8(text).expect("parts of texts, and digits")
        })
    }
}

/// What the patterns of a column say about a text of it that matches.
#[derive(Debug)]
pub(super) enum Matched {
    /// Whether there is one.
    Known(bool),
    /// The numbers decide; for each pattern, whether they do in its texts. The other patterns have no match.
    ByNumbers(Vec<bool>),
}

/// Matches the texts of a column by its stream of patterns alone; `None` if it is damaged.
pub(super) fn match_patterns(patterns: &[u8], regex: &TextRegex) -> Option<Matched> {
    let (mut codes, mut undecided) = (Cursor(patterns), Vec::new());
    while !codes.0.is_empty() {
        if codes.length()? > 0 {
            continue;
        }
        let bytes = codes.bytes()?;
        match parse(std::str::from_utf8(bytes).ok()?).parts.as_slice() {
            [] if regex.is_match(b"") => return Some(Matched::Known(true)),
            [Part::Text(text)] if regex.is_match(text.as_bytes()) => return Some(Matched::Known(true)),
            [] | [Part::Text(_)] => undecided.push(false),
            [..] => undecided.push(regex.may_match_around_numbers(bytes)),
        }
    }
    Some(if undecided.contains(&true) { Matched::ByNumbers(undecided) } else { Matched::Known(false) })
}

/// Whether a text of one of the undecided patterns of a column matches; `None` if the streams are damaged.
pub(super) fn has_match(
    patterns: &[u8],
    numbers: &[u8],
    undecided: &[bool],
    regex: &TextRegex,
) -> Option<bool> {
    let mut patterns = Patterns::new(patterns, numbers);
    let mut text = Vec::new();
    while !patterns.codes.0.is_empty() {
        let (pattern, numbers) = patterns.next()?;
        if undecided.get(pattern) == Some(&true) {
            text.clear();
            patterns.write(pattern, numbers, &mut text);
            if regex.is_match(&text) {
                return Some(true);
            }
        }
        patterns.values.clear();
    }
    Some(false)
}

/// The new texts of a column, as patterns and numbers.
#[derive(Debug, Default)]
struct Patterns<'a> {
    codes: Cursor<'a>,
    numbers: Cursor<'a>,
    known: Vec<Pattern<'a>>,
    /// The numbers of the texts so far.
    values: Vec<i64>,
}

/// A pattern in its parts, and the last text's numbers.
#[derive(Debug)]
struct Pattern<'a> {
    parts: Vec<Part<'a>>,
    last: Vec<i64>,
}

#[derive(Debug)]
enum Part<'a> {
    Text(&'a str),
    /// A number of at least so many digits.
    Number(usize),
}

impl<'a> Patterns<'a> {
    fn new(codes: &'a [u8], numbers: &'a [u8]) -> Patterns<'a> {
        Patterns { codes: Cursor(codes), numbers: Cursor(numbers), known: Vec::new(), values: Vec::new() }
    }

    /// Reads the next new text: its pattern, and where its numbers start.
    fn next(&mut self) -> Option<(usize, usize)> {
        let code = self.codes.length()?;
        let at = if code == 0 {
            self.known.push(parse(std::str::from_utf8(self.codes.bytes()?).ok()?));
            self.known.len() - 1
        } else {
            self.known.len().checked_sub(code)?
        };
        let start = self.values.len();
        for last in &mut self.known.get_mut(at)?.last {
            *last = last.checked_add(self.numbers.signed()?)?;
            self.values.push(*last);
        }
        Some((at, start))
    }

    /// Appends the text of this pattern and of the numbers from `start` on.
    fn write(&self, pattern: usize, start: usize, text: &mut Vec<u8>) {
        let mut numbers = self.values[start..].iter();
        for part in &self.known[pattern].parts {
            match part {
                Part::Text(part) => text.extend_from_slice(part.as_bytes()),
                Part::Number(width) => {
                    let number = numbers.next().expect("a number for each mark");
                    put_digits(*number, *width, text);
                }
            }
        }
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

/// Parses a pattern as [`split`] made it.
fn parse(pattern: &str) -> Pattern<'_> {
    if let Some(text) = pattern.strip_prefix(ESCAPED) {
        return Pattern { parts: vec![Part::Text(text)], last: Vec::new() };
    }
    let (mut parts, mut numbers, mut start) = (Vec::new(), 0, 0);
    for (at, mark) in pattern.char_indices() {
        let Some(width) = width(mark) else { continue };
        parts.extend((start < at).then(|| Part::Text(&pattern[start..at])));
        parts.push(Part::Number(width));
        numbers += 1;
        start = at + mark.len_utf8();
    }
    parts.extend((start < pattern.len()).then(|| Part::Text(&pattern[start..])));
    Pattern { parts, last: vec![0; numbers] }
}

/// Appends a number of at least this many digits. A query writes a thousand of them for each block.
fn put_digits(number: i64, width: usize, text: &mut Vec<u8>) {
    let (mut digits, mut start, mut rest) = ([b'0'; DIGITS_MAX + 2], DIGITS_MAX + 2, number.unsigned_abs());
    while start > 0 && (rest > 0 || start > DIGITS_MAX + 2 - width.max(1)) {
        start -= 1;
        digits[start] += (rest % 10).to_le_bytes()[0];
        rest /= 10;
    }
    // Only a damaged block has a negative number.
    if number < 0 {
        text.push(b'-');
    }
    text.extend_from_slice(&digits[start..]);
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
            let id = reader.next().expect("as many as were written");
            assert_eq!(reader.text(id), text);
        }
        assert_eq!(reader.next(), None);
        let has = |regex: &str| {
            let regex = regex.parse().expect("it is an expression");
            match match_patterns(&streams[1], &regex).expect("whole") {
                Matched::Known(has) => has,
                Matched::ByNumbers(undecided) => {
                    has_match(&streams[1], &streams[2], &undecided, &regex).expect("whole")
                }
            }
        };
        for text in texts {
            assert!(has(&format!("^{}$", regex::escape(text))), "{text:?}");
            let other = format!("{text}7x");
            let is_there = texts.iter().any(|text| text.contains(&other));
            assert_eq!(has(&regex::escape(&other)), is_there, "{other:?}");
        }
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
