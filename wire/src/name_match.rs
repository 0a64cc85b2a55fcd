//! Match of names by pattern: `*`, and the `…` with which tables shorten text, match any characters.
//!
//! Pure. Not here: what is named (the callers).

/// Returns whether `pattern` matches `text`.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split(is_wildcard);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Returns whether a pattern has a wildcard.
#[must_use]
pub fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(is_wildcard)
}

/// Returns whether this character of a pattern is a wildcard.
#[must_use]
pub fn is_wildcard(char: char) -> bool {
    matches!(char, '*' | '…')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stand_for_any_characters_and_nothing_else_does() {
        let id = "gridftp:se01//srv/gridftp/se01/data@3-29857";
        for pattern in [id, "gridftp:se01/…data@3-29857", "*", "*29857", "gridftp:*", "g*se01*se01*7", "…"]
        {
            assert!(matches(pattern, id), "{pattern}");
        }
        for pattern in ["", "gridftp:se01", "gridftp:se02*", "*2985", "g*se01*se01*se01*7", "gridftp.se01*"] {
            assert!(!matches(pattern, id), "{pattern}");
        }
        assert!(!matches("ab*ba", "aba"), "a character counts once");
    }
}
