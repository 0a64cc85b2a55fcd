//! Quoting of texts that a person may paste into a shell.
//!
//! Pure. Not here: characters that mislead a reader ([`crate::harmless`]).

/// Format a text as one word of a POSIX shell: unchanged, or in single quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_it_as_one_word() {
        for (text, expected) in [
            ("/var/lib/visperf", "/var/lib/visperf"),
            ("my state", "'my state'"),
            ("it's", r"'it'\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("~root", "'~root'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
