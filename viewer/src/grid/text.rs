//! Sanitizer of names and texts from logs and daemons: untrusted text cannot break a line, change the writing
//! direction or fill the memory.
//!
//! Pure. Not here: shortening to the available space (`app::elided`), which needs the width of letters.

use wire::harmless::is_harmless;

/// Longest name or text that is stored, in characters; the longest that a Slurm job or a DNS name has is 255.
pub const NAME_LEN_MAX_CHARS: usize = 256;

/// A text that is safe to display, and whether it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// Whether something was replaced or cut off.
    pub changed: bool,
}

/// `text` with characters that print nothing or control the terminal or the writing direction replaced by
/// U+FFFD, at most [`NAME_LEN_MAX_CHARS`] long; a cut is marked by `…`.
#[must_use]
pub fn shown(text: &str) -> Shown {
    let mut out = String::with_capacity(text.len().min(4 * NAME_LEN_MAX_CHARS));
    let mut changed = false;
    for (at, char) in text.chars().enumerate() {
        if at + 1 == NAME_LEN_MAX_CHARS && text.chars().nth(NAME_LEN_MAX_CHARS).is_some() {
            out.push('…');
            return Shown { text: out, changed: true };
        }
        let fits = !commands(char);
        changed |= !fits;
        out.push(if fits { char } else { char::REPLACEMENT_CHARACTER });
    }
    Shown { text: out, changed }
}

/// Whether a character must be replaced: control characters, characters that turn or join their neighbours,
/// and noncharacters.
fn commands(char: char) -> bool {
    !is_harmless(char)
        || matches!(char,
            '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff0}'..='\u{fff8}')
        || is_no_character(char)
}

/// Whether a code point is a noncharacter (Unicode 16, section 23.7): XML forbids some of them.
fn is_no_character(char: char) -> bool {
    matches!(char, '\u{fdd0}'..='\u{fdef}') || u32::from(char) & 0xfffe == 0xfffe
}

/// Key of a host: its name without the domain and in lower case; an IP address stays whole.
#[must_use]
pub fn host_key(name: &str) -> String {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let short = if is_address { name } else { name.split('.').next().unwrap_or(name) };
    if short.is_empty() { name.to_lowercase() } else { short.to_lowercase() }
}

/// Sort key for the natural order of names: `wn9` before `wn10`.
#[must_use]
pub fn natural_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len() + 8);
    let mut digits = String::new();
    for char in name.chars().chain(std::iter::once('\0')) {
        if char.is_ascii_digit() {
            digits.push(char);
            continue;
        }
        if !digits.is_empty() {
            let significant = digits.trim_start_matches('0');
            // A longer number is larger, so its length precedes it.
            key.push(char::from(b'0'));
            key.push(
                char::from_u32(0x100 + u32::try_from(significant.len()).unwrap_or(0xff)).unwrap_or('\u{1ff}'),
            );
            key.push_str(significant);
            digits.clear();
        }
        key.extend(char.to_lowercase());
    }
    key.push_str(name);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_replaced_and_long_names_cut() {
        let check = |text: &str, expected: &str, changed: bool| {
            assert_eq!(shown(text), Shown { text: expected.to_owned(), changed }, "{text:?}");
        };
        check("wn01", "wn01", false);
        check("מחשב", "מחשב", false);
        check("a\u{202e}b\nc\u{1b}[2J", "a\u{fffd}b\u{fffd}c\u{fffd}[2J", true);
        check("a\u{fffe}b\u{ffff}c\u{fdd0}\u{1ffff}", "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}", true);
        check("", "", false);
        let long = "x".repeat(NAME_LEN_MAX_CHARS);
        check(&long, &long, false);
        let cut = shown(&format!("{long}y"));
        assert!(cut.changed && cut.text.ends_with('…'));
        assert_eq!(cut.text.chars().count(), NAME_LEN_MAX_CHARS);
    }

    #[test]
    fn a_host_is_known_without_its_domain() {
        assert_eq!(host_key("NEO15.sinrg.cs.utk.edu"), "neo15");
        assert_eq!(host_key("10.0.0.7"), "10.0.0.7");
        assert_eq!(host_key(".x"), ".x");
    }

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["wn10", "wn9", "wn2-b10", "wn2-b9", "wn002", "WN1", "a"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["a", "WN1", "wn002", "wn2-b9", "wn2-b10", "wn9", "wn10"]);
    }
}
