//! Search filter of calls that are drawn and listed.
//!
//! Pure. All terms must match; `user:ada`, `job:17`, `host:wn01`, `kind:parallel`, `outcome:failed`,
//! `state:running`, `product:slurm` test one field, a bare term several of them. With an unknown kind,
//! outcome or state nothing matches, and an error is shown.

use crate::grid::Grid;
use crate::grid::call::Call;
use wire::call::State;
use wire::event::Outcome;

/// Maximum number of terms; more than a user types.
const WORDS_MAX: usize = 32;

/// Names of the fields.
const FIELDS: [&str; 7] = ["user", "job", "host", "kind", "outcome", "state", "product"];

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Serial,
    Parallel,
    /// For which an agent offered servers, as NetSolve's does.
    Offered,
    /// Started more than once.
    Retried,
}

impl Kind {
    const ALL: [(&str, Kind); 4] = [
        ("serial", Kind::Serial),
        ("parallel", Kind::Parallel),
        ("offered", Kind::Offered),
        ("retried", Kind::Retried),
    ];

    fn fits(self, call: &Call) -> bool {
        match self {
            Kind::Serial => call.hosts.len() == 1,
            Kind::Parallel => call.hosts.len() > 1,
            Kind::Offered => call.offered.is_some(),
            Kind::Retried => call.tries > 1,
        }
    }
}

/// A search term.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    User(String),
    Job(String),
    Host(String),
    Kind(Kind),
    Outcome(Outcome),
    State(State),
    Product(String),
    Any(String),
}

/// The filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    words: Vec<Word>,
    /// Invalid terms, to show to the user.
    pub wrong: Vec<String>,
}

impl Filter {
    /// Parse the text of the search field.
    #[must_use]
    pub fn parse(text: &str) -> Filter {
        let mut filter = Filter::default();
        for word in text.split_whitespace().take(WORDS_MAX) {
            match Word::parse(word) {
                Some(word) => filter.words.push(word),
                None => filter.wrong.push(word.to_owned()),
            }
        }
        filter
    }

    /// What is valid after the field of the first invalid term.
    #[must_use]
    pub fn expected(&self) -> Option<String> {
        let (field, text) = self.wrong.first()?.split_once(':')?;
        if let Some(near) = near_field(field) {
            return Some(format!("did you mean {near}:{text}? Expected one of {}:", FIELDS.join(":, ")));
        }
        let words: Vec<&str> = match field {
            "kind" => Kind::ALL.map(|(name, _)| name).to_vec(),
            "state" => State::ALL.map(State::as_str).to_vec(),
            _ => Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect(),
        };
        Some(format!("expected {field}: with one of {}", words.join(", ")))
    }

    /// Whether there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.wrong.is_empty()
    }

    /// Whether a call of the grid matches.
    #[must_use]
    pub fn fits(&self, grid: &Grid, call: &Call) -> bool {
        self.wrong.is_empty() && self.words.iter().all(|word| word.fits(grid, call))
    }
}

/// Guess the field meant by an unknown one: some letters are missing, or too many.
fn near_field(field: &str) -> Option<&'static str> {
    let is_within = |one: &str, other: &str| {
        let mut letters = other.chars();
        one.chars().all(|letter| letters.any(|other| other == letter))
    };
    let is_near = |known: &str| {
        field.len() > 1
            && field.chars().next() == known.chars().next()
            && (is_within(field, known) || is_within(known, field))
    };
    if FIELDS.contains(&field) { None } else { FIELDS.into_iter().find(|known| is_near(known)) }
}

impl Word {
    fn parse(word: &str) -> Option<Word> {
        let Some((field, text)) = word.split_once(':').filter(|(_, text)| !text.is_empty()) else {
            return Some(Word::Any(word.trim_end_matches(':').to_lowercase()));
        };
        let text = text.to_lowercase();
        Some(match field {
            "user" => Word::User(text),
            "job" => Word::Job(text),
            "host" => Word::Host(text),
            "kind" => Word::Kind(Kind::ALL.into_iter().find(|(name, _)| *name == text)?.1),
            "outcome" => Word::Outcome(Outcome::from_word(&text)?),
            "state" => Word::State(State::ALL.into_iter().find(|state| state.as_str() == text)?),
            "product" => Word::Product(text),
            _ if near_field(field).is_some() => return None,
            // The id of a call contains a colon too.
            _ => Word::Any(word.to_lowercase()),
        })
    }

    fn fits(&self, grid: &Grid, call: &Call) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
        let on_host = |part: &str| call.hosts.iter().any(|&host| has(&grid.place(host).name, part));
        match self {
            Word::User(text) => has(&call.user, text),
            Word::Job(text) => call.job.to_lowercase() == *text,
            Word::Host(text) => on_host(text),
            Word::Kind(kind) => kind.fits(call),
            Word::Outcome(outcome) => call.outcome == Some(*outcome),
            Word::State(state) => call.state == *state,
            Word::Product(text) => call.id.to_lowercase().starts_with(text.as_str()),
            Word::Any(text) => {
                [&call.id, &call.name, &call.user, &call.reason].iter().any(|field| has(field, text))
                    || on_host(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn words_are_joined_by_and() {
        let grid = synthetic::one_domain(&[
            synthetic::call("slurm:1", "ada", &["wn01"]),
            synthetic::call("slurm:17", "bob", &["wn01", "wn02"]),
            synthetic::call("pbs:1", "ada", &["wn02"]),
        ]);
        let check = |text: &str, expected: &[&str]| {
            let filter = Filter::parse(text);
            let mut found: Vec<&str> = grid
                .calls
                .iter()
                .filter(|call| filter.fits(&grid, call))
                .map(|call| call.id.as_str())
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        };
        check("", &["pbs:1", "slurm:1", "slurm:17"]);
        check("user:ADA", &["pbs:1", "slurm:1"]);
        check("user:ada host:wn02", &["pbs:1"]);
        check("slurm:17", &["slurm:17"]);
        check("product:slurm wn01", &["slurm:1", "slurm:17"]);
        check("outcome:ok state:ended", &["pbs:1", "slurm:1", "slurm:17"]);
        check("kind:parallel", &["slurm:17"]);
        check("kind:serial user:ada", &["pbs:1", "slurm:1"]);
        check("kind:offered", &[]);
        check("outcome:failed", &[]);
        check("outcome:good", &[]);
        assert_eq!(Filter::parse("outcome:good user:a").wrong, ["outcome:good"]);
        let expected = |text: &str| Filter::parse(text).expected().unwrap_or_default();
        assert!(expected("kind:x").contains("serial, parallel, offered, retried"));
        assert!(expected("state:x").contains("running") && expected("outcome:x").contains("failed"));
        assert_eq!(expected("user:x"), "");
        assert!(expected("knd:serial").contains("did you mean kind:serial?"));
        assert!(expected("users:ada").contains("did you mean user:ada?"));
        assert_eq!(
            (expected("slurm:17"), expected("pid:4711"), expected("program:burn")),
            Default::default()
        );
        assert!(Filter::parse("  ").is_empty());
    }
}
