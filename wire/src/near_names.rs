//! Suggestions of similar names for a name that does not exist.
//!
//! Pure. Not here: filters (`log_filters::registry`), keys of configuration files (`daemon`), words of the
//! command line (`visperf`).

/// Most names that are suggested.
const SUGGESTED_MAX: usize = 3;
/// Longest name that is compared, in bytes: clients supply it, and the time grows with its length.
const GIVEN_LEN_MAX_BYTES: usize = 128;

/// `; did you mean a, b or c?`, with at most three of the names; empty if none is similar.
#[must_use]
pub fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if given.len() > GIVEN_LEN_MAX_BYTES {
        return String::new();
    }
    let mut near: Vec<(usize, &str)> =
        known.into_iter().filter_map(|name| Some((distance(given, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    let near: Vec<&str> = near.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect();
    match near.split_last() {
        None => String::new(),
        Some((last, [])) => format!("; did you mean {last}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// Distance of two names; `None` if it is too large. A name that contains the other one is similar.
fn distance(given: &str, name: &str) -> Option<usize> {
    let (given, name) = (given.to_lowercase(), name.to_lowercase());
    let edits = edits(&given, &name);
    let is_part = given.len() >= 3 && (name.contains(&given) || given.contains(&name));
    (is_part || edits <= (given.len() / 4).max(2).min(given.len() / 2)).then_some(edits)
}

/// Edit distance: characters to insert, remove or replace.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, char) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, expected) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(char != *expected);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_the_nearest_first() {
        let known =
            ["sensor.events", "domain.events", "domain.hosts", "node_load1", "node_load15", "daemon.info"];
        let check = |given: &str, expected: &str| assert_eq!(suggestion(given, known), expected, "{given}");
        check("sensor.event", "; did you mean sensor.events?");
        check("events", "; did you mean domain.events or sensor.events?");
        check("node_load", "; did you mean node_load1 or node_load15?");
        check("Domain.Host", "; did you mean domain.hosts?");
        check("deamon.info", "; did you mean daemon.info?");
        check("x", "");
        check("", "");
        check("something.else", "");
        check(&format!("sensor.events{}", "x".repeat(GIVEN_LEN_MAX_BYTES)), "");
        assert_eq!((edits("", "abc"), edits("abc", "abc"), edits("kitten", "sitting")), (3, 0, 3));
    }
}
