//! Choice of the filter for a log, with the reason; without a match, the nearest filters.
//!
//! Pure.

use crate::trial::log::{LineResult, Log};
use log_filters::engine::Source;
use log_filters::filter::Filter;
use log_filters::registry::{By, Registry};
use std::fmt::Write as _;
use std::sync::Arc;
use wire::shown::count;
use wire::time::Time;

/// Lines of the beginning that are used to find the nearest filters.
const NEAREST_LINES: usize = 256;
/// Share of non-text bytes from which on a file is no log; stray bytes in names stay below.
const ODD_SHARE_PERCENT: usize = 5;
/// Number of nearest filters shown.
const NEAREST_SHOWN: usize = 3;

/// The filter for a log whose name and beginning are known, and the reason as text.
///
/// # Errors
/// If no filter matches: why, which are nearest, and how to write one.
pub(crate) fn choose(
    registry: &Registry,
    shown_name: &str,
    file_name: &str,
    beginning: &[u8],
) -> Result<(Arc<Filter>, &'static str), String> {
    match registry.choice(file_name, beginning) {
        Ok(choice) => {
            let reason = match choice.by {
                By::Name => "by its name",
                By::NameAndLines => "by its name and first lines",
                By::Lines => "by its first lines",
            };
            Ok((Arc::clone(choice.filter), reason))
        }
        Err(_) if beginning.is_empty() => Err(format!(
            "no filter reads {shown_name}: it is empty, and none claims its name\nname one with `--filter NAME` (`visperf \
             filter list`)"
        )),
        Err(unchosen) => {
            let lines = count(unchosen.lines as u64, "line");
            let why = match unchosen.refused.as_slice() {
                [] => format!("none claims its name, and none knows enough of its first {lines}"),
                [filter, ..] => format!(
                    "it has a name of {}, but its first {lines} are none that {} reads",
                    filter.product(),
                    filter.name()
                ),
            };
            let near = nearest(registry, file_name, beginning);
            Err(format!("no filter reads {shown_name}: {why}{near}"))
        }
    }
}

/// Advice where no filter matches: the nearest filters, and how to write one.
fn nearest(registry: &Registry, file_name: &str, beginning: &[u8]) -> String {
    // The part after the last newline is no line.
    let whole = beginning.strip_suffix(b"\n").unwrap_or(beginning);
    let lines: Vec<&[u8]> = whole.split(|&byte| byte == b'\n').take(NEAREST_LINES).collect();
    let mut near: Vec<(usize, &Arc<Filter>)> = registry
        .iter()
        .map(|filter| (events(filter, file_name, &lines), filter))
        .filter(|(events, _)| *events > 0)
        .collect();
    near.sort_by_key(|(events, filter)| (std::cmp::Reverse(*events), filter.name().to_owned()));
    let mut text = String::new();
    if let Some(odd) = no_text(beginning) {
        let _ = write!(text, "\n  {odd}");
    }
    if near.is_empty() {
        text.push_str("\n  no filter finds an event in its beginning");
    }
    for (events, filter) in near.iter().take(NEAREST_SHOWN) {
        let count_text = count(*events as u64, "event");
        let (name, product, of) = (filter.name(), filter.product(), lines.len());
        let _ = write!(text, "\n  {name} ({product}) finds {count_text} in its first {of} lines");
    }
    text.push_str(
        "\nname one with `--filter NAME` (`visperf filter list`), or begin your own: \
         `visperf filter new NAME LOGFILE > NAME.toml`, then `visperf filter try --filter NAME.toml LOGFILE`",
    );
    text
}

/// The message for a beginning that is no text.
pub(crate) fn no_text(beginning: &[u8]) -> Option<String> {
    let odd =
        |byte: u8| byte == 0 || (byte.is_ascii_control() && !byte.is_ascii_whitespace() && byte != 0x1b);
    let broken = beginning.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let count = beginning.iter().filter(|&&byte| odd(byte)).count() + broken;
    let share = count * 100 / beginning.len().max(1);
    (share >= ODD_SHARE_PERCENT)
        .then(|| format!("it does not look like text: {share} % of its beginning are no characters of a log"))
}

/// Number of events that a filter finds. Lines that it only recognizes say little: some filters recognize any
/// line.
fn events(filter: &Arc<Filter>, file_name: &str, lines: &[&[u8]]) -> usize {
    let source = Source {
        file_name: file_name.to_owned(),
        host: String::new(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    let mut log = Log::new(Arc::clone(filter), &source);
    let (mut offset, mut events) = (0, 0);
    let mut take = |met: LineResult<'_>| {
        events += usize::from(matches!(met, LineResult::Event(..)));
        Ok::<(), std::convert::Infallible>(())
    };
    for line in lines {
        let Ok(()) = log.line(line, offset, Time::default(), &mut take);
        offset += line.len() as u64 + 1;
    }
    let Ok(()) = log.end(Time::default(), &mut take);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Registry {
        let mut registry = Registry::default();
        for (name, names, first) in [("one", "one.log", "^one "), ("two", "*.log", "^two ")] {
            let text = format!(
                "[filter]\nname = \"{name}\"\nproduct = \"P\"\n[files]\nnames = [\"{names}\"]\n\
                 first_lines = ['{first}']\n[[rule]]\nmatch = '^{name}'\nevent = \"message\"\n"
            );
            registry.add(name, &text).unwrap();
        }
        registry
    }

    #[test]
    fn the_reason_is_reported() {
        let registry = registry();
        let check = |name: &str, beginning: &str, expected: Option<(&str, &str)>| {
            let found = choose(&registry, name, name, beginning.as_bytes()).ok();
            let found = found.as_ref().map(|(filter, reason)| (filter.name(), *reason));
            assert_eq!(found, expected, "{name}");
        };
        check("x.log", "", Some(("two", "by its name")));
        check("one.log", "one \none \n", Some(("one", "by its name and first lines")));
        check("one.log", "two \ntwo \n", Some(("two", "by its name and first lines")));
        check("messages", "two \n", Some(("two", "by its first lines")));
        check("messages", "three\n", None);
    }

    #[test]
    fn the_nearest_filters_are_named() {
        let refused = |name: &str, beginning: &[u8]| {
            choose(&registry(), &format!("dir/{name}"), name, beginning)
                .map(|(_, reason)| reason)
                .unwrap_err()
        };
        // Eight of a hundred are required, so that one line of each is too few.
        let text = refused("x", &[b"three\none\nonly\ntwo\none\n".to_vec(), b"?\n".repeat(95)].concat());
        let (one, two) =
            (text.find("one (P) finds 2 events").unwrap(), text.find("two (P) finds 1 event").unwrap());
        assert!(one < two && text.contains("no filter reads dir/x: none claims its name"), "{text}");
        assert!(text.contains("first 64 lines") && text.contains("in its first 100 lines"), "{text}");
        let text = refused("x", b"three\nfour\n");
        assert!(text.contains("no filter finds an event") && text.contains("first 2 lines"), "{text}");
        let text = refused("x", b"");
        assert!(text.contains("dir/x: it is empty"), "{text}");
        let text = refused("one.log", &[&[0; 100][..], b"\n"].concat());
        assert!(text.contains("it has a name of P") && text.contains("not look like text"), "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_are_reported() {
        let noise: Vec<u8> = (0..2_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert!(no_text(&noise).is_some_and(|text| text.contains("not look like text")));
        assert_eq!(no_text("[2026-11-20] user müller\x1b[0m\n".repeat(9).as_bytes()), None);
        assert_eq!(no_text("name \u{e9}".repeat(20).as_bytes()), None);
        assert_eq!(no_text(b"Nov 20 user m\xfcller logged in from host wn01\n"), None);
        assert_eq!(no_text(b""), None);
    }
}
