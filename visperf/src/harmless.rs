//! Escapes for characters that control a terminal or mislead a reader.
//!
//! Pure. Rule: [`is_harmless`] defines them; tables, notes, errors and JSON all escape by it, and [`guarded`]
//! is applied to each line before it is written, so that a text that no caller cleaned is harmless too.

use std::borrow::Cow;
use std::fmt::Write as _;
use wire::harmless::is_harmless;

/// `text` with such characters escaped, so that a log cannot control the terminal on which it is shown.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_harmless(c) {
            true => cleaned.push(c),
            false => cleaned.extend(c.escape_default()),
        }
    }
    Cow::Owned(cleaned)
}

/// `text` cleaned, except for newlines.
pub(crate) fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// A JSON text, in which such characters occur in strings only, with their JSON escapes. Whitespace between
/// values stays.
pub(crate) fn clean_json(json: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_harmless(c) || matches!(c, '\n' | '\t' | '\r');
    if json.chars().all(is_shown) {
        return Cow::Borrowed(json);
    }
    let mut cleaned = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if is_shown(c) {
            cleaned.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(cleaned, "\\u{unit:04x}");
        }
    }
    Cow::Owned(cleaned)
}

/// A line, or several, before it is written: newlines, tabs and, where colours are shown, the program's own
/// colours pass.
pub(crate) fn guarded(text: &str, has_colors: bool) -> Cow<'_, str> {
    let passes = |c: char| is_harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(passes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let color = if has_colors { color_len(rest) } else { 0 };
        let len = if color > 0 { color } else { c.len_utf8() };
        match color > 0 || passes(c) {
            true => out.push_str(&rest[..len]),
            false => out.extend(c.escape_default()),
        }
        rest = &rest[len..];
    }
    Cow::Owned(out)
}

/// The length of the sequence for a colour at the start of `text`, in bytes: `ESC [ digits and ; m`.
fn color_len(text: &str) -> usize {
    let Some(code) = text.strip_prefix("\x1b[") else { return 0 };
    let len = code.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if code[len..].starts_with('m') { len + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All characters that must be escaped.
    fn harmful() -> impl Iterator<Item = char> {
        let ranges = [(0, 0x1f), (0x7f, 0x9f), (0x202a, 0x202e), (0x2066, 0x2069)];
        let single = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029];
        ranges.into_iter().flat_map(|(from, to)| from..=to).chain(single).filter_map(char::from_u32)
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(clean("plain ü"), "plain ü");
        assert_eq!(clean("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(clean_lines("a\x1b]0;x\x07\n\u{202e}b\n"), "a\\u{1b}]0;x\\u{7}\n\\u{202e}b\n");
        for c in harmful() {
            let cleaned = clean(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(cleaned.is_ascii() && cleaned.starts_with('\\'), "{cleaned:?}");
        }
        assert_eq!(clean("日本 עברית 👩‍💻"), "日本 עברית 👩‍💻", "writing is shown as it is");
    }

    #[test]
    fn json_escapes_them_and_says_the_same() {
        let text: String = harmful().chain(['ü', '\u{e0041}', '"', '\\']).collect();
        let value = serde_json::json!({ &text: [&text], "b": 1 });
        for json in [value.to_string(), format!("{value:#}")] {
            let cleaned = clean_json(&json);
            assert!(cleaned.chars().all(|c| is_harmless(c) || c == '\n'), "{cleaned:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(), value);
        }
    }

    #[test]
    fn a_line_keeps_its_own_colours_and_nothing_else_that_steers() {
        let line = "\x1b[31mbad\x1b[0m\ta\u{2028}b\x1b[2J\u{9b}31m\n";
        assert_eq!(guarded(line, true), "\x1b[31mbad\x1b[0m\ta\\u{2028}b\\u{1b}[2J\\u{9b}31m\n");
        assert_eq!(guarded("\x1b[1mx", false), "\\u{1b}[1mx");
        assert_eq!(guarded("\x1b[\x1b[3", true), "\\u{1b}[\\u{1b}[3");
    }
}
