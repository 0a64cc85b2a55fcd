//! Harmless characters: those that a terminal, a log or a window displays in their place and that do not
//! mislead a reader.
//!
//! Pure. Rule: this is the only list; every text from outside that is printed, logged or forwarded is checked
//! by [`is_harmless`]. Not here: the display of harmful characters (the output of each program).

/// Whether `c` is displayed as a character in its place: not a control character of C0, DEL or C1, and none
/// that changes the direction of text, separates lines, or is invisible by definition (tags, interlinear
/// annotations).
#[must_use]
pub fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Replace each harmful character of `text` by `with`.
#[must_use]
pub fn replaced(text: &str, with: char) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { with }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_misleads_is_harmful_and_writing_is_not() {
        let ranges = [(0, 0x1f), (0x7f, 0x9f), (0x202a, 0x202e), (0x2066, 0x2069), (0xe0000, 0xe007f)];
        let single = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029];
        let harmful = ranges.into_iter().flat_map(|(from, to)| from..=to).chain(single);
        for c in harmful.filter_map(char::from_u32) {
            assert!(!is_harmless(c), "{c:?}");
            assert_eq!(replaced(&format!("a{c}b"), '?'), "a?b");
        }
        let writing = "plain ü 日本 עברית 👩\u{200d}💻";
        assert_eq!(replaced(writing, '?'), writing);
    }
}
