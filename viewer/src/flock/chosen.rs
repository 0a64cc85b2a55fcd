//! Which marks are drawn: the measures that are on, and the processes that fit the words of the search field.
//!
//! Pure. Words are joined by and: a bare word is part of the program's name, its number or its host's name; `host:wn01`
//! is of the host alone, `program:bash` and `pid:4711` of these. Words that only calls have (`job:`, `outcome:` …) say
//! nothing of processes and hide none.

use super::Flock;
use super::measure::Measure;
use super::names::NameId;
use super::sweep::HostName;

/// Most words; more than a person types.
const WORDS_MAX: usize = 32;

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Host(String),
    Program(String),
    Pid(String),
    Any(String),
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which measures, in the order of [`Measure::ALL`].
    pub measures: [bool; 4],
    /// Whether marks of those that use nothing are left out.
    pub hides_idle: bool,
    words: Vec<Word>,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen { measures: [true; 4], hides_idle: false, words: Vec::new() }
    }
}

impl Chosen {
    /// Look for these words.
    pub fn search(&mut self, text: &str) {
        self.words = text.split_whitespace().take(WORDS_MAX).filter_map(Word::parse).collect();
    }

    /// Whether this measure is drawn.
    #[must_use]
    pub fn has(&self, measure: Measure) -> bool {
        self.measures[measure.at()]
    }

    /// Whether every process fits.
    #[must_use]
    pub fn fits_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a process of this name, number and host fits.
    #[must_use]
    pub fn fits(&self, flock: &Flock, name: NameId, pid: u32, host: Option<&HostName>) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
        let host = host.map_or("", |host| &*host.host);
        self.words.iter().all(|word| match word {
            Word::Host(part) => has(host, part),
            Word::Program(part) => has(flock.name(name), part),
            Word::Pid(number) => pid.to_string() == *number,
            Word::Any(part) => has(flock.name(name), part) || has(host, part) || pid.to_string() == *part,
        })
    }
}

impl Word {
    fn parse(word: &str) -> Option<Word> {
        let word = word.to_lowercase();
        match word.split_once(':') {
            None => Some(Word::Any(word)),
            Some((_, "")) => None,
            Some(("host", text)) => Some(Word::Host(text.to_owned())),
            Some(("program", text)) => Some(Word::Program(text.to_owned())),
            Some(("pid", text)) => Some(Word::Pid(text.to_owned())),
            Some(("user" | "job" | "outcome" | "state" | "product", _)) => None,
            // Names of threads of the kernel have colons.
            Some(_) => Some(Word::Any(word)),
        }
    }
}
