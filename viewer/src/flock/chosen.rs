//! Filter of the drawn marks: the enabled measures, and the processes that match the search terms.
//!
//! Pure. All terms must match. A bare term matches part of the program's name or the host's name, or the
//! whole PID; `host:wn01` matches hosts only, `program:bash` and `pid:4711` likewise. Terms that only calls
//! have (`job:`, `outcome:` …) are ignored.

use super::Flock;
use super::measure::Measure;
use super::names::NameId;
use super::sweep::HostName;

/// Maximum number of terms; more than a user types.
const WORDS_MAX: usize = 32;

/// A search term.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Host(String),
    Program(String),
    Pid(String),
    Any(String),
}

/// The filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which measures are drawn, in the order of [`Measure::ALL`].
    pub measures: [bool; 4],
    /// Whether marks of idle processes are hidden.
    pub hides_idle: bool,
    words: Vec<Word>,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen { measures: [true; 4], hides_idle: false, words: Vec::new() }
    }
}

impl Chosen {
    /// Replace the search terms.
    pub fn search(&mut self, text: &str) {
        self.words = text.split_whitespace().take(WORDS_MAX).filter_map(Word::parse).collect();
    }

    /// Whether this measure is drawn.
    #[must_use]
    pub fn has(&self, measure: Measure) -> bool {
        self.measures[measure.at()]
    }

    /// Whether every process matches.
    #[must_use]
    pub fn fits_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a process of this name, PID and host matches.
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
            // Names of kernel threads contain colons.
            Some(_) => Some(Word::Any(word)),
        }
    }
}
