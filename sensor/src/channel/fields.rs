//! Fields that filters, conditions and scripts can name: the numbers and texts of each kind of channel.
//!
//! Pure. Rule: names and units are those of the methods that report the same. Not here: what uses them
//! (`predicate`, `condition`, `script`).

pub mod call;
pub mod event;
pub mod metric;
pub mod process;

use std::borrow::Cow;
use std::fmt;
use wire::near_names;

/// Kind of record in a channel: processes, metrics, events or calls.
pub trait Subject: fmt::Debug + Sized + 'static {
    /// Name of one record in error messages.
    const ONE: &'static str;
    /// Whether the same record is seen again and again, so that it can be compared with its earlier values.
    const HAS_PAST: bool;
    /// Whether records have parents and children.
    const HAS_FAMILY: bool;
    /// A record as it is sent.
    type Record: Clone + Send + Sync + 'static;
    /// A record as a filter sees it.
    type View<'a>: Copy;
    /// Context that `is_parent_of` needs besides the record.
    type Context;

    fn numbers() -> &'static [Number<Self>];
    fn texts() -> &'static [Text<Self>];
    /// A record that is sent, as a filter sees it.
    fn view(record: &Self::Record) -> Self::View<'_>;
    /// Whether the record is the parent of the process with this id.
    fn is_parent_of(_: &Self::View<'_>, _pid: u32, _: &Self::Context) -> bool {
        false
    }
    /// Whether the process with this id is the parent of the record.
    fn is_child_of(_: &Self::View<'_>, _pid: u32) -> bool {
        false
    }
}

/// A numeric field.
pub struct Number<S: Subject> {
    pub name: &'static str,
    /// Unit; empty for a plain count.
    pub unit: &'static str,
    pub help: &'static str,
    /// Reads the number; `None` if it is unknown.
    pub get: for<'a> fn(&S::View<'a>) -> Option<f64>,
}

/// A text field.
pub struct Text<S: Subject> {
    pub name: &'static str,
    pub help: &'static str,
    /// All values it can have; empty if it can be any text.
    pub words: &'static [&'static str],
    /// Reads the text; `None` if it is unknown.
    pub get: for<'a, 'b> fn(&'b S::View<'a>) -> Option<Cow<'b, str>>,
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

/// Unknown field name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}{near}; known are {known}")]
pub struct Unknown {
    /// What was expected, such as a number of a process.
    pub expected: String,
    pub found: String,
    /// All names, separated by commas.
    pub known: String,
    /// Which name may have been meant: `; did you mean cpu?`, or nothing.
    pub near: String,
}

/// Finds the number with this name.
///
/// # Errors
/// If there is none; the error lists all names.
pub fn number_named<S: Subject>(name: &str) -> Result<&'static Number<S>, Unknown> {
    let found = S::numbers().iter().find(|number| number.name == name);
    found.ok_or_else(|| unknown::<S>("a number", name, S::numbers().iter().map(|number| number.name)))
}

/// Finds the text with this name.
///
/// # Errors
/// If there is none; the error lists all names.
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

/// A time in seconds since 1970.
#[allow(clippy::unnecessary_wraps)] // The type of a getter, which may return `None`.
fn secs(time: wire::time::Time) -> Option<f64> {
    Some(time.secs_f64())
}
