//! Line splitter: bytes of a log, as they are read, into lines with their offsets.
//!
//! Pure. Rules: a line ends with LF, and a CR before it is not part of it; NUL bytes where a line should
//! start are holes that a writer left after its file was cut, and are skipped and counted; of a line longer
//! than [`LINE_LEN_MAX_BYTES`] only the beginning is given, with the length and hash of the whole line; a
//! last line without its end is held back.
//! Invariant: the lines and their offsets do not depend on how the bytes were divided into pushes, and
//! [`Splitter::start`], where reading may start again, is always the start of a line.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Longest line that is given whole, in bytes: far above any useful log line, and small enough to be
/// buffered for each file.
pub const LINE_LEN_MAX_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset of its start, in bytes.
    pub offset: u64,
    /// The line without its end.
    pub bytes: &'a [u8],
    /// Set if `bytes` is only the beginning.
    pub cut: Option<Cut>,
}

/// Length and hash of a line that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its length without the LF, in bytes.
    pub len_bytes: u64,
    /// XXH3 of it.
    pub hash: u64,
}

/// Splits one file into lines.
pub struct Splitter {
    held: Vec<u8>,
    start: u64,
    position: u64,
    counted_to: u64,
    too_long: Option<Box<Xxh3>>,
    within_line: bool,
    nul_bytes: u64,
    takes_holes_for_lines: bool,
}

impl Splitter {
    /// Start at this offset. NULs before `counted_to` were counted by an earlier run. With `within_line` the
    /// rest of a line is skipped first.
    #[must_use]
    pub fn new(offset: u64, counted_to: u64, within_line: bool) -> Splitter {
        Splitter {
            held: Vec::new(),
            start: offset,
            position: offset,
            counted_to,
            too_long: None,
            within_line,
            nul_bytes: 0,
            takes_holes_for_lines: false,
        }
    }

    /// Give NULs where a line should start as part of the line: for tests that show why they are skipped.
    #[must_use]
    pub fn taking_holes_for_lines(self) -> Splitter {
        Splitter { takes_holes_for_lines: true, ..self }
    }

    /// Offset of the next byte to be pushed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Offset of the line that is not complete; equal to [`Splitter::position`] if there is none.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of the line that is not complete; 0 if there is none.
    #[must_use]
    pub fn incomplete_len_bytes(&self) -> u64 {
        self.position - self.start
    }

    /// NUL bytes skipped since the last call.
    pub fn take_nul_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.nul_bytes)
    }

    /// Add the next bytes; `take` gets every line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let is_hole = self.position == self.start && !self.within_line && rest[0] == 0;
            if is_hole && !self.takes_holes_for_lines {
                rest = self.skip_nuls(rest);
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', rest) else {
                self.hold(rest);
                return;
            };
            let next = self.position + end as u64 + 1;
            if self.within_line {
                self.within_line = false;
            } else if self.position == self.start && end <= LINE_LEN_MAX_BYTES {
                take(Line { offset: self.start, bytes: without_cr(&rest[..end]), cut: None });
            } else {
                self.hold(&rest[..end]);
                let cut = self
                    .too_long
                    .take()
                    .map(|hash| Cut { len_bytes: self.position - self.start, hash: hash.digest() });
                let bytes = if cut.is_some() { &self.held } else { without_cr(&self.held) };
                take(Line { offset: self.start, bytes, cut });
                self.held.clear();
            }
            (self.position, self.start) = (next, next);
            rest = &rest[end + 1..];
        }
        // The memory of one long line must not be held for ever.
        if self.held.is_empty() && self.held.capacity() > LINE_LEN_MAX_BYTES / 16 {
            self.held = Vec::new();
        }
    }

    fn skip_nuls<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let nuls = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
        let next = self.position + nuls as u64;
        self.nul_bytes += next.saturating_sub(self.counted_to.max(self.position));
        (self.position, self.start) = (next, next);
        &rest[nuls..]
    }

    fn hold(&mut self, part: &[u8]) {
        self.position += part.len() as u64;
        if self.within_line {
            self.start = self.position;
            return;
        }
        if self.too_long.is_none() && self.held.len() + part.len() > LINE_LEN_MAX_BYTES {
            let mut hash = Box::new(Xxh3::new());
            hash.update(&self.held);
            self.too_long = Some(hash);
        }
        if let Some(hash) = &mut self.too_long {
            hash.update(part);
        }
        let room = LINE_LEN_MAX_BYTES - self.held.len();
        self.held.extend_from_slice(&part[..part.len().min(room)]);
    }
}

/// XXH3 of a whole line: what [`Cut::hash`] would be.
#[must_use]
pub fn hash_of(line: &[u8]) -> u64 {
    xxh3_64(line)
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = (u64, Vec<u8>, Option<Cut>);

    fn split(pushes: &[&[u8]]) -> (Vec<Owned>, Splitter) {
        let (mut splitter, mut lines) = (Splitter::new(0, 0, false), Vec::new());
        for bytes in pushes {
            splitter.push(bytes, |line| lines.push((line.offset, line.bytes.to_vec(), line.cut)));
        }
        (lines, splitter)
    }

    fn check(text: &[u8], expected: &[(u64, &[u8])], held: u64, nuls: u64) {
        for step in 1..=text.len() {
            let (lines, mut splitter) = split(&text.chunks(step).collect::<Vec<_>>());
            let found: Vec<_> = lines.iter().map(|(at, bytes, _)| (*at, &bytes[..])).collect();
            assert_eq!(found, expected, "pushed {step} bytes at a time");
            assert_eq!(splitter.incomplete_len_bytes(), held, "pushed {step} bytes at a time");
            assert_eq!(splitter.take_nul_bytes(), nuls, "pushed {step} bytes at a time");
        }
    }

    #[test]
    fn both_line_ends_and_empty_lines() {
        check(b"a\r\n\nbc\n\r\nd", &[(0, b"a"), (3, b""), (4, b"bc"), (7, b"")], 1, 0);
    }

    #[test]
    fn a_carriage_return_within_a_line_stays() {
        check(b"a\rb\r\r\n", &[(0, b"a\rb\r")], 0, 0);
    }

    #[test]
    fn holes_where_a_line_should_begin_are_skipped_and_counted() {
        check(b"\0\0\0one\n\0two\nth\0ree\n\0\0", &[(3, b"one"), (8, b"two"), (12, b"th\0ree")], 0, 6);
    }

    #[test]
    fn the_rest_of_a_line_is_passed_over_at_the_start() {
        let (mut splitter, mut lines) = (Splitter::new(5, 5, true), Vec::new());
        for part in [&b"res"[..], b"t\nne", b"xt\n"] {
            splitter.push(part, |line| lines.push((line.offset, line.bytes.to_vec())));
        }
        assert_eq!(lines, [(10, b"next".to_vec())]);
    }

    #[test]
    fn a_line_beyond_the_cap_is_cut_and_counted_whole() {
        let long: Vec<u8> = (0..LINE_LEN_MAX_BYTES * 3 + 7).map(|at| b'a' + (at % 23) as u8).collect();
        let mut text = b"before\n".to_vec();
        text.extend_from_slice(&long);
        text.extend_from_slice(b"\nafter\n");
        for step in [4096, 100_001, text.len()] {
            let (lines, splitter) = split(&text.chunks(step).collect::<Vec<_>>());
            assert_eq!(lines.len(), 3);
            assert_eq!(lines[1].0, 7);
            assert_eq!(lines[1].1, long[..LINE_LEN_MAX_BYTES], "pushed {step} bytes at a time");
            assert_eq!(lines[1].2, Some(Cut { len_bytes: long.len() as u64, hash: hash_of(&long) }));
            assert_eq!(lines[2], (7 + long.len() as u64 + 1, b"after".to_vec(), None));
            assert_eq!(splitter.held.capacity(), 0, "the memory of the long line is given back");
        }
    }

    #[test]
    fn a_line_of_just_the_cap_is_whole() {
        let text = [vec![b'x'; LINE_LEN_MAX_BYTES], b"\n".to_vec()].concat();
        for step in [8191, text.len()] {
            let (lines, _) = split(&text.chunks(step).collect::<Vec<_>>());
            assert_eq!((lines[0].1.len(), lines[0].2), (LINE_LEN_MAX_BYTES, None));
        }
    }

    #[test]
    fn holes_counted_by_an_earlier_run_are_not_counted_again() {
        let mut splitter = Splitter::new(0, 3, false);
        splitter.push(b"\0\0\0\0\0x\n", |_| {});
        assert_eq!(splitter.take_nul_bytes(), 2);
    }
}
