//! Completion of the search field of jobs: names of fields, amounts, fixed values, and values that rows have.
//!
//! Pure. Rule: only the word before the cursor is completed; nothing is offered for what is complete.

use super::Row;
use super::search::{Field, findings};
use compact_str::CompactString;
use std::collections::BTreeSet;
use wire::api::findings::FindingKind;
use wire::api::job_amount::{Dimension, JobAmount};
use wire::call::State;
use wire::event::Outcome;

/// Most completions that are offered.
pub const OFFERED_MAX: usize = 12;
/// Different values of a field that are stored.
const VALUES_MAX: usize = 1_000;

/// The values that the rows have.
#[derive(Clone, Debug, Default)]
pub struct Values {
    users: BTreeSet<CompactString>,
    accounts: BTreeSet<CompactString>,
    queues: BTreeSet<CompactString>,
    names: BTreeSet<CompactString>,
    hosts: BTreeSet<CompactString>,
}

impl Values {
    /// Add those of a row.
    pub fn add(&mut self, row: &Row) {
        let texts = [
            (&mut self.users, &row.user),
            (&mut self.accounts, &row.account),
            (&mut self.queues, &row.queue),
            (&mut self.names, &row.name),
        ];
        for (values, text) in texts {
            add(values, text);
        }
        row.hosts.iter().for_each(|host| add(&mut self.hosts, host));
    }

    fn of(&self, field: Field) -> Vec<&str> {
        match field {
            Field::User => texts(&self.users),
            Field::Account => texts(&self.accounts),
            Field::Queue => texts(&self.queues),
            Field::Name => texts(&self.names),
            Field::Host => texts(&self.hosts),
            Field::State => State::ALL.iter().map(|state| state.as_str()).collect(),
            Field::Outcome => Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect(),
            Field::Finding => findings().map(FindingKind::as_str).collect(),
            Field::Where => JobAmount::ALL.iter().map(|amount| amount.as_str()).collect(),
            Field::Job => Vec::new(),
        }
    }
}

fn texts(values: &BTreeSet<CompactString>) -> Vec<&str> {
    values.iter().map(CompactString::as_str).collect()
}

fn add(values: &mut BTreeSet<CompactString>, text: &CompactString) {
    if !text.is_empty() && !values.contains(text) && values.len() < VALUES_MAX {
        values.insert(text.clone());
    }
}

/// A completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is offered: `user:`, `outcome:failed`.
    pub label: String,
    /// What it means; empty if the label says it.
    pub hint: &'static str,
    /// The text of the field with it, and where the cursor is then, in characters.
    pub text: String,
    pub cursor: usize,
}

/// The completions of the word before the cursor, which is after so many characters.
#[must_use]
pub fn complete(text: &str, cursor: usize, values: &Values) -> Vec<Completion> {
    let (before, after) = split(text, cursor);
    let start = word_start(before);
    let (kept, word) = before.split_at(start);
    let offer = |word: String, hint: &'static str| {
        let new = format!("{kept}{word}");
        Completion { label: word.trim_end().to_owned(), hint, cursor: new.chars().count(), text: new + after }
    };
    let offered: Vec<Completion> = match word.split_once(':') {
        Some((name, typed)) => {
            let Some(field) = Field::of_word(name) else { return Vec::new() };
            let typed = typed.trim_start_matches('"').to_lowercase();
            let fitting = fitting(values.of(field), &typed);
            fitting.map(|value| offer(of_field(field, value), hint_of(field, value))).collect()
        }
        None => {
            let typed = word.to_lowercase();
            let fields = Field::ALL.into_iter().filter(|field| field.word().starts_with(&typed));
            let fields = fields.map(|field| offer(format!("{}:", field.word()), field.hint()));
            let amounts = JobAmount::ALL
                .iter()
                .filter(|amount| !typed.is_empty() && amount.as_str().starts_with(&typed));
            fields.chain(amounts.map(|amount| offer(format!("{amount} "), example(*amount)))).collect()
        }
    };
    offered.into_iter().filter(|one| one.text != text).take(OFFERED_MAX).collect()
}

/// The text before and after so many characters.
fn split(text: &str, chars: usize) -> (&str, &str) {
    let at = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

/// Where the last word starts, in bytes; a space within quotes is part of a word.
fn word_start(text: &str) -> usize {
    let (mut start, mut in_quotes) = (0, false);
    for (at, char) in text.char_indices() {
        match char {
            '"' => in_quotes = !in_quotes,
            char if char.is_whitespace() && !in_quotes => start = at + char.len_utf8(),
            _ => {}
        }
    }
    start
}

/// The values that start with what is typed, then those that contain it.
fn fitting<'a>(values: Vec<&'a str>, typed: &str) -> impl Iterator<Item = &'a str> {
    let (starts, others): (Vec<&str>, Vec<&str>) =
        values.into_iter().partition(|value| value.to_lowercase().starts_with(typed));
    let typed = typed.to_owned();
    starts.into_iter().chain(others.into_iter().filter(move |value| value.to_lowercase().contains(&typed)))
}

/// A field with its value, in quotes where it has spaces, and a space after what is complete.
fn of_field(field: Field, value: &str) -> String {
    match (field == Field::Where, value.contains(char::is_whitespace)) {
        (true, _) => format!("{value} "),
        (false, true) => format!("{}:\"{value}\" ", field.word()),
        (false, false) => format!("{}:{value} ", field.word()),
    }
}

fn hint_of(field: Field, value: &str) -> &'static str {
    match (field, JobAmount::from_word(value)) {
        (Field::Where, Some(amount)) => example(amount),
        _ => "",
    }
}

/// An example of a condition on an amount.
const fn example(amount: JobAmount) -> &'static str {
    match amount.dimension() {
        Dimension::Share => "< 20 %",
        Dimension::Time => "> 1h30m",
        Dimension::Bytes => "> 2 GiB",
        Dimension::Count => ">= 8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::jobs::Job;

    fn values() -> Values {
        let mut values = Values::default();
        for (user, name) in [("ada", "relax 2"), ("bob", "fit"), ("adam", "fit")] {
            let hosts = vec!["wn01".to_owned()];
            let job = Job { user: user.to_owned(), name: name.to_owned(), hosts, ..Job::default() };
            values.add(&Row::new(&"Alpha".into(), job));
        }
        values
    }

    fn labels(text: &str) -> Vec<String> {
        complete(text, text.chars().count(), &values()).into_iter().map(|one| one.label).collect()
    }

    #[test]
    fn fields_amounts_and_values_are_completed() {
        assert_eq!(labels("").len(), Field::ALL.len());
        assert_eq!(labels("us"), ["user:"]);
        assert_eq!(labels("cp"), ["cpu_time", "cpu_efficiency", "cpus"]);
        assert_eq!(labels("user:a"), ["user:ada", "user:adam"]);
        assert_eq!(labels("user:ob"), ["user:bob"], "a part of it, too");
        assert_eq!(labels("state:r"), ["state:running"], "what starts with it comes first");
        assert_eq!(labels("outcome:fa"), ["outcome:failed", "outcome:node_fail"]);
        assert_eq!(labels("where:wast"), ["wasted"]);
        assert_eq!(labels("name:\"rel"), ["name:\"relax 2\""]);
        assert!(labels("knd:x").is_empty() && labels("job:1").is_empty());
        assert!(labels("finding:").len() == OFFERED_MAX);
    }

    #[test]
    fn the_word_before_the_cursor_is_replaced_and_the_rest_stays() {
        let found = complete("queue:long user:b state:running", 17, &values());
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.text.as_str(), only.cursor), ("queue:long user:bob  state:running", 20));
        assert!(complete("é user:ad", 9, &values()).len() == 2, "characters are counted, not bytes");
        assert!(complete("user:ada ", 99, &values()).iter().all(|one| one.text.starts_with("user:ada ")));
    }
}
