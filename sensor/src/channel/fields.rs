//! The numbers and texts of which filters, conditions and scripts can speak, by name, for each kind of channel.
//!
//! Pure. Rule: names and units are those of the methods that tell of the same. Not here: what is made of them (`predicate`,
//! `condition`, `script`).

pub mod call;
pub mod event;
pub mod metric;
pub mod process;

use std::borrow::Cow;
use std::fmt;
use wire::near_names;

/// What a channel is of: processes, metrics, events or calls.
pub trait Subject: fmt::Debug + Sized + 'static {
    /// One of them, as mistakes call it.
    const ONE: &'static str;
    /// Whether one is seen again and again, and can be compared with how it was.
    const HAS_PAST: bool;
    /// Whether one can be the parent of another.
    const HAS_FAMILY: bool;
    /// One as it is told.
    type Record: Clone + Send + Sync + 'static;
    /// One as a filter looks at it.
    type Seen<'a>: Copy;
    /// What is looked at beside it.
    type Around;

    /// All numbers.
    fn numbers() -> &'static [Number<Self>];
    /// All texts.
    fn texts() -> &'static [Text<Self>];
    /// One that is told, as a filter looks at it.
    fn seen(record: &Self::Record) -> Self::Seen<'_>;
    /// Whether it is the parent of the process of this number.
    fn is_parent_of(_: &Self::Seen<'_>, _pid: u32, _: &Self::Around) -> bool {
        false
    }
    /// Whether the process of this number is its parent.
    fn is_child_of(_: &Self::Seen<'_>, _pid: u32) -> bool {
        false
    }
}

/// A number of a subject.
pub struct Number<S: Subject> {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a plain count.
    pub unit: &'static str,
    /// What it is.
    pub help: &'static str,
    /// It; `None` where it is not known.
    pub get: for<'a> fn(&S::Seen<'a>) -> Option<f64>,
}

/// A text of a subject.
pub struct Text<S: Subject> {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// All words that it can be; none where it can be any text.
    pub words: &'static [&'static str],
    /// It; `None` where it is not known.
    pub get: for<'a, 'b> fn(&'b S::Seen<'a>) -> Option<Cow<'b, str>>,
}

impl<S: Subject> fmt::Debug for Number<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<S: Subject> fmt::Debug for Text<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}{near}; known are {known}")]
pub struct Unknown {
    /// What was looked for.
    pub expected: String,
    /// What was given.
    pub found: String,
    /// All names there are.
    pub known: String,
    /// Which of them may have been meant: `; did you mean cpu?`, or nothing.
    pub near: String,
}

/// The number of this name.
///
/// # Errors
/// If there is none; tells all.
pub fn number_named<S: Subject>(name: &str) -> Result<&'static Number<S>, Unknown> {
    let found = S::numbers().iter().find(|number| number.name == name);
    found.ok_or_else(|| unknown::<S>("a number", name, S::numbers().iter().map(|number| number.name)))
}

/// The text of this name.
///
/// # Errors
/// If there is none; tells all.
pub fn text_named<S: Subject>(name: &str) -> Result<&'static Text<S>, Unknown> {
    let found = S::texts().iter().find(|text| text.name == name);
    found.ok_or_else(|| unknown::<S>("a text", name, S::texts().iter().map(|text| text.name)))
}

fn unknown<S: Subject>(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Unknown {
    let known: Vec<&str> = known.collect();
    Unknown {
        expected: format!("{what} of {}", S::ONE),
        found: name.to_owned(),
        near: near_names::suggestion(name, known.iter().copied()),
        known: known.join(", "),
    }
}

/// A moment, in seconds since 1970.
#[allow(clippy::unnecessary_wraps)] // Beside figures that may be unknown.
fn secs(time: wire::time::Time) -> Option<f64> {
    Some(time.secs_f64())
}
