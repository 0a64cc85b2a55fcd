//! Text of the search field of jobs, and the search that it means: `user:ada outcome:failed ran > 1h`.
//!
//! Pure. Rule: words are joined by and; each error says what was expected and what was found. Not here: completion
//! (`completion`), the span of time, which is chosen in a menu (`model::jobs`).

use wire::api::findings::FindingKind;
use wire::api::job_amount::{Condition, JobAmount};
use wire::api::jobs::JobsSearchParams;
use wire::call::State;
use wire::event::Outcome;
use wire::near_names::suggestion;

/// Longest text that is read, in characters.
const TEXT_MAX_CHARS: usize = 2_000;
/// Most words that a condition has: `peak_memory > 2 GiB`.
const CONDITION_WORDS: usize = 5;

/// A field, and what it chooses by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    User,
    Account,
    Queue,
    Name,
    Job,
    State,
    Outcome,
    Host,
    Finding,
    Where,
}

impl Field {
    pub const ALL: [Field; 10] = [
        Field::User,
        Field::Account,
        Field::Queue,
        Field::Name,
        Field::Job,
        Field::State,
        Field::Outcome,
        Field::Host,
        Field::Finding,
        Field::Where,
    ];

    /// Its word before the colon.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Field::User => "user",
            Field::Account => "account",
            Field::Queue => "queue",
            Field::Name => "name",
            Field::Job => "job",
            Field::State => "state",
            Field::Outcome => "outcome",
            Field::Host => "host",
            Field::Finding => "finding",
            Field::Where => "where",
        }
    }

    /// What it chooses by, for the list of completions.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Field::User => "jobs of this user",
            Field::Account => "charged to this account",
            Field::Queue => "of this queue or partition",
            Field::Name => "with this name; * matches any characters",
            Field::Job => "with this number or id",
            Field::State => "waiting, running or ended",
            Field::Outcome => "ok, failed, …; several are joined by or",
            Field::Host => "that ran on this host",
            Field::Finding => "with a finding of this kind",
            Field::Where => "that meet a condition: cpu_efficiency < 20 %",
        }
    }

    /// The field of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.word() == word)
    }
}

/// Kinds of findings that a search may name: the others compare a job with others.
pub fn findings() -> impl Iterator<Item = FindingKind> {
    let compares = [FindingKind::LongWait, FindingKind::FailsAgain];
    FindingKind::ALL.iter().copied().filter(move |kind| !compares.contains(kind))
}

/// The search that a text means.
///
/// # Errors
/// What was expected, and what was found.
pub fn parse(text: &str) -> Result<JobsSearchParams, String> {
    if text.chars().count() > TEXT_MAX_CHARS {
        return Err(format!("expected at most {TEXT_MAX_CHARS} characters"));
    }
    let words = words(text)?;
    let mut params = JobsSearchParams::default();
    let mut rest = &words[..];
    while let Some(first) = rest.first() {
        let taken = match condition_at(rest)? {
            Some((condition, count)) => {
                params.conditions.push(condition);
                count
            }
            None => {
                take(&mut params, first)?;
                1
            }
        };
        rest = &rest[taken..];
    }
    Ok(params)
}

/// A word, and whether it was quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_quoted: bool,
}

/// Words between spaces; quotes join what has spaces: `name:"my job"`.
fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words: Vec<Word> = Vec::new();
    let (mut word, mut in_quotes) = (None::<Word>, false);
    for char in text.chars() {
        match char {
            '"' => {
                in_quotes = !in_quotes;
                word.get_or_insert(Word { text: String::new(), is_quoted: true }).is_quoted = true;
            }
            char if char.is_whitespace() && !in_quotes => words.extend(word.take()),
            char => word.get_or_insert(Word { text: String::new(), is_quoted: false }).text.push(char),
        }
    }
    if in_quotes {
        return Err("expected a closing quote".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// The condition that starts with the first word, and how many words it has; the longest text that is one.
fn condition_at(words: &[Word]) -> Result<Option<(Condition, usize)>, String> {
    let is_sign = |text: &str| text.starts_with(['<', '>', '=']);
    let starts = match words {
        [first, ..] if first.is_quoted || first.text.contains(':') => false,
        [first, ..] if first.text.contains(['<', '>', '=']) => true,
        [_, second, ..] => is_sign(&second.text),
        [..] => false,
    };
    if !starts {
        return Ok(None);
    }
    let joined =
        |count: usize| words[..count].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let counts = (1..=words.len().min(CONDITION_WORDS)).rev();
    let longest = counts.clone().find_map(|count| Some((joined(count).parse::<Condition>().ok()?, count)));
    match longest {
        Some(found) => Ok(Some(found)),
        None => {
            let is_end = |word: &Word| word.text.contains(':') || word.text.eq_ignore_ascii_case("and");
            let count = words.iter().position(is_end).unwrap_or(words.len()).clamp(1, CONDITION_WORDS);
            joined(count).parse::<Condition>().map(|_| None).map_err(|error| error.to_string())
        }
    }
}

/// Add a word that is no condition.
fn take(params: &mut JobsSearchParams, word: &Word) -> Result<(), String> {
    if !word.is_quoted && word.text.eq_ignore_ascii_case("and") {
        return Ok(());
    }
    let Some((name, value)) = word.text.split_once(':') else { return bare(params, &word.text) };
    match Field::of_word(name) {
        Some(_) if value.trim().is_empty() => Err(format!("expected a value after {name}:")),
        Some(field) => take_field(params, field, value.trim()),
        // `slurm:17` is the id of a job; a name of a field that is misspelt is not.
        None if value.starts_with(|char: char| char.is_ascii_digit()) => {
            once(&mut params.id, Field::Job, &word.text)
        }
        None => {
            let near = suggestion(name, Field::ALL.map(Field::word));
            Err(format!(
                "expected a field, one of {}; found {name}:{near}",
                names(Field::ALL.map(Field::word))
            ))
        }
    }
}

fn take_field(params: &mut JobsSearchParams, field: Field, value: &str) -> Result<(), String> {
    match field {
        Field::User => once(&mut params.user, field, value),
        Field::Account => once(&mut params.account, field, value),
        Field::Queue => once(&mut params.queue, field, value),
        Field::Name => once(&mut params.name, field, value),
        Field::Host => once(&mut params.on_host, field, value),
        Field::Job if value.contains(':') => once(&mut params.id, field, value),
        Field::Job => once(&mut params.job, field, value),
        Field::State => {
            let state = word_of(field, value, State::ALL.iter().map(|state| state.as_str()), |word| {
                State::ALL.iter().copied().find(|state| state.as_str() == word)
            })?;
            once(&mut params.state, field, state)
        }
        Field::Outcome => {
            let known = Outcome::ALL.iter().map(|outcome| outcome.as_str());
            for value in value.split(',') {
                params.outcome.push(word_of(field, value.trim(), known.clone(), Outcome::from_word)?);
            }
            Ok(())
        }
        Field::Finding => {
            let known = findings().map(FindingKind::as_str);
            let kind = word_of(field, value, known, |word| findings().find(|kind| kind.as_str() == word))?;
            once(&mut params.finding, field, kind)
        }
        Field::Where => {
            let found = wire::api::job_amount::conditions(value).map_err(|error| error.to_string())?;
            params.conditions.extend(found);
            Ok(())
        }
    }
}

/// A word without a field: the number of a job, or a part of its name.
fn bare(params: &mut JobsSearchParams, text: &str) -> Result<(), String> {
    if JobAmount::from_word(text).is_some() {
        return Err(format!("expected one of < <= > >= = and a value after {text}"));
    }
    if text.starts_with(|char: char| char.is_ascii_digit()) {
        return once(&mut params.job, Field::Job, text);
    }
    once(&mut params.name, Field::Name, format!("*{}*", text.trim_matches('*')))
}

fn once<T>(at: &mut Option<T>, field: Field, value: impl Into<T>) -> Result<(), String> {
    match at.replace(value.into()) {
        Some(_) => Err(format!("{}: is given twice; expected it once", field.word())),
        None => Ok(()),
    }
}

fn word_of<T>(
    field: Field,
    value: &str,
    known: impl Iterator<Item = &'static str>,
    of_word: impl Fn(&str) -> Option<T>,
) -> Result<T, String> {
    let word = value.to_lowercase();
    of_word(&word).ok_or_else(|| format!("{}: expected one of {}; found {value}", field.word(), names(known)))
}

fn names(names: impl IntoIterator<Item = &'static str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_and() {
        let check = |text: &str, expected: JobsSearchParams| assert_eq!(parse(text), Ok(expected), "{text}");
        let none = JobsSearchParams::default;
        let some = |text: &str| Some(text.to_owned());
        let condition = |text: &str| text.parse::<Condition>().expect("a condition");
        check("", none());
        check(
            "  user:ada account:physics",
            JobsSearchParams { user: some("ada"), account: some("physics"), ..none() },
        );
        check(
            "queue:long host:wn01",
            JobsSearchParams { queue: some("long"), on_host: some("wn01"), ..none() },
        );
        check("17", JobsSearchParams { job: some("17"), ..none() });
        check("9_7", JobsSearchParams { job: some("9_7"), ..none() });
        check("slurm:17", JobsSearchParams { id: some("slurm:17"), ..none() });
        check("job:slurm:17", JobsSearchParams { id: some("slurm:17"), ..none() });
        check("relax", JobsSearchParams { name: some("*relax*"), ..none() });
        check("name:\"my job\"", JobsSearchParams { name: some("my job"), ..none() });
        check("state:Running", JobsSearchParams { state: Some(State::Running), ..none() });
        let outcome = vec![Outcome::Failed, Outcome::Timeout];
        check("outcome:failed outcome:timeout", JobsSearchParams { outcome: outcome.clone(), ..none() });
        check("outcome:failed,timeout", JobsSearchParams { outcome, ..none() });
        check("finding:idle", JobsSearchParams { finding: Some(FindingKind::Idle), ..none() });
        let conditions = vec![condition("cpu_efficiency < 20%"), condition("ran > 1h")];
        for text in [
            "cpu_efficiency < 20 % ran > 1h",
            "cpu_efficiency<20% and ran>1h",
            "where:\"cpu_efficiency < 20 % and ran > 1h\"",
            "where:cpu_efficiency<20% ran > 1h",
        ] {
            check(text, JobsSearchParams { conditions: conditions.clone(), ..none() });
        }
        let conditions = vec![condition("peak_memory > 2 GiB")];
        check("peak_memory > 2 GiB user:ada", JobsSearchParams { conditions, user: some("ada"), ..none() });
    }

    #[test]
    fn errors_say_what_was_expected() {
        let check = |text: &str, expected: &str| {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("usr:ada", "did you mean user");
        check("user:", "expected a value after user:");
        check("user:ada user:bob", "user: is given twice");
        check("state:done", "expected one of waiting, running, ended");
        check("outcome:bad", "expected one of ok");
        check("finding:long_wait", "expected one of out_of_memory");
        check("ran > soon user:ada", "ran: expected a time such as");
        check("ran", "expected one of < <=");
        check("size > 3", "there is no amount");
        check("where:nonsense", "expected an amount");
        check("name:\"open", "closing quote");
        check(&"x".repeat(3_000), "at most");
    }
}
