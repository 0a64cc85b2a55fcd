//! Sources of process data: their interface, and the choice of the best one that works here, with the reasons
//! why better ones do not.
//!
//! Rule: a source that does not work is never replaced silently; [`ChosenSource`] says why, in sentences.
//! Not here: the sources themselves (`procfs`, `bpf`).

use super::connector::combined::CombinedSource;
use super::connector::listener::Listener;
use super::lives::Lives;
use super::procfs::Procfs;
use super::recent::Recent;
use super::table::Table;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Kinds of sources, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Files of `/proc`, which stay open: works everywhere, and costs most.
    Procfs,
    /// A kernel program walks every task.
    BpfSweep,
    /// Kernel programs mark what runs, and report only that.
    BpfChanged,
}

impl Kind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Procfs => "procfs",
            Kind::BpfSweep => "bpf-sweep",
            Kind::BpfChanged => "bpf-changed",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why processes cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{path} cannot be listed: {error}; is proc mounted there?", path = .path.display())]
    List {
        /// Path of the folder.
        path: PathBuf,
        error: std::io::Error,
    },
    /// The kernel refuses the programs, or lacks what they need.
    #[error("{0}")]
    Bpf(String),
}

/// Data that sweeps fill.
#[derive(Debug, Default)]
pub struct View {
    /// The living processes.
    pub table: Table,
    /// The ended processes.
    pub lives: Lives,
    /// Their recent CPU usage.
    pub recent: Recent,
}

/// Source of process data.
pub trait Source: Send {
    fn kind(&self) -> Kind;

    /// Makes a sweep over all processes, the `number`-th.
    ///
    /// # Errors
    /// If the kernel cannot be read; the table then has what was read before the error.
    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error>;

    /// Reads the kernel's records since the last sweep, so that its buffer does not fill.
    fn drain(&mut self, view: &mut View);

    /// Records lost for lack of room, since the start.
    fn lost_total(&self) -> u64;
}

/// The chosen source.
pub struct ChosenSource {
    pub source: Box<dyn Source>,
    /// Why better sources do not work, each in a sentence.
    pub reasons: Vec<String>,
}

/// Chooses the best source that works here, or the requested one.
///
/// # Errors
/// If the requested source does not work. Without a request `procfs` is the last choice and is not checked.
pub fn choose(proc: &Path, wanted: Option<Kind>) -> Result<ChosenSource, Error> {
    let mut reasons = Vec::new();
    for kind in [Kind::BpfChanged, Kind::BpfSweep] {
        if wanted.is_some_and(|wanted| wanted != kind) {
            continue;
        }
        match open_bpf(kind, proc) {
            Ok(source) if kind == Kind::BpfChanged => return Ok(ChosenSource { source, reasons }),
            Ok(source) => return Ok(add_connector(source, proc, reasons)),
            Err(error) if wanted.is_some() => return Err(error),
            Err(error) => reasons.push(format!("{kind}: {error}")),
        }
    }
    Ok(add_connector(Box::new(Procfs::new(proc)), proc, reasons))
}

/// Adds the process events connector, if it works, to a source that sees only the processes that live at a
/// sweep.
fn add_connector(source: Box<dyn Source>, proc: &Path, mut reasons: Vec<String>) -> ChosenSource {
    let source = match Listener::open(proc) {
        Ok(lives) => Box::new(CombinedSource::new(source, lives)),
        Err(why) => {
            reasons.push(format!("processes that live between two sweeps are not seen: {why}"));
            source
        }
    };
    ChosenSource { source, reasons }
}

#[cfg(feature = "bpf")]
fn open_bpf(kind: Kind, proc: &Path) -> Result<Box<dyn Source>, Error> {
    match kind {
        Kind::BpfChanged => Ok(Box::new(super::bpf::changed_tasks::ChangedTasks::open(proc)?)),
        Kind::BpfSweep | Kind::Procfs => Ok(Box::new(super::bpf::all_tasks::AllTasks::open(proc)?)),
    }
}

#[cfg(not(feature = "bpf"))]
fn open_bpf(_: Kind, _: &Path) -> Result<Box<dyn Source>, Error> {
    Err(Error::Bpf("this program was built without the feature bpf".to_owned()))
}
