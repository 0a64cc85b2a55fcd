//! What reads the processes of the kernel, and which of the ways is taken: the best that works here, and the reasons why
//! better ones do not.
//!
//! Rule: a way that does not work is never silently replaced; [`Chosen::reasons`] tells why, in sentences.
//! Not here: the ways themselves (`procfs`, `bpf`).

use super::connector::heard::Heard;
use super::connector::listener::Listener;
use super::lives::Lives;
use super::procfs::Procfs;
use super::recent::Recent;
use super::table::Table;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The ways, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Files of `/proc`, kept open: everywhere, and the dearest.
    Procfs,
    /// A program in the kernel walks every task.
    BpfSweep,
    /// Programs in the kernel note what runs, and only that is told.
    BpfChanged,
}

impl Kind {
    /// The word for it.
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
    /// `/proc` cannot be listed.
    #[error("{path} cannot be listed: {error}; is proc mounted there?", path = .path.display())]
    List {
        /// Which folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The kernel refuses the programs, or does not have what they need.
    #[error("{0}")]
    Bpf(String),
}

/// What sweeps fill.
#[derive(Debug, Default)]
pub struct View {
    /// The processes there are.
    pub table: Table,
    /// Those that ended.
    pub lives: Lives,
    /// What they used of late.
    pub recent: Recent,
}

/// A way to read the processes.
pub trait Source: Send {
    /// Which.
    fn kind(&self) -> Kind;

    /// One pass over all processes: the `number`-th.
    ///
    /// # Errors
    /// If the kernel cannot be read; the table is as far as it came.
    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error>;

    /// Take up what the kernel told since the last pass, so that it need not be kept there.
    fn drain(&mut self, view: &mut View);

    /// What there was no room to tell, since the start.
    fn lost_total(&self) -> u64;
}

/// A way that works here.
pub struct Chosen {
    /// It.
    pub source: Box<dyn Source>,
    /// Why better ones do not work, each in a sentence.
    pub reasons: Vec<String>,
}

/// The best way that works here, or the one that is wanted if it does.
///
/// # Errors
/// If the wanted one does not work; without a wish, `procfs` is taken whatever it gives.
pub fn choose(proc: &Path, wanted: Option<Kind>) -> Result<Chosen, Error> {
    let mut reasons = Vec::new();
    for kind in [Kind::BpfChanged, Kind::BpfSweep] {
        if wanted.is_some_and(|wanted| wanted != kind) {
            continue;
        }
        match open_bpf(kind, proc) {
            Ok(source) if kind == Kind::BpfChanged => return Ok(Chosen { source, reasons }),
            Ok(source) => return Ok(heard(source, proc, reasons)),
            Err(error) if wanted.is_some() => return Err(error),
            Err(error) => reasons.push(format!("{kind}: {error}")),
        }
    }
    Ok(heard(Box::new(Procfs::new(proc)), proc, reasons))
}

/// A way that sees only what lives at a sweep, with what is heard of the other lives if that can be.
fn heard(source: Box<dyn Source>, proc: &Path, mut reasons: Vec<String>) -> Chosen {
    let source = match Listener::open(proc) {
        Ok(lives) => Box::new(Heard::new(source, lives)),
        Err(why) => {
            reasons.push(format!("processes that live between two sweeps are not told: {why}"));
            source
        }
    };
    Chosen { source, reasons }
}

#[cfg(feature = "bpf")]
fn open_bpf(kind: Kind, proc: &Path) -> Result<Box<dyn Source>, Error> {
    match kind {
        Kind::BpfChanged => Ok(Box::new(super::bpf::changed::Changed::open(proc)?)),
        Kind::BpfSweep | Kind::Procfs => Ok(Box::new(super::bpf::all_tasks::AllTasks::open(proc)?)),
    }
}

#[cfg(not(feature = "bpf"))]
fn open_bpf(_: Kind, _: &Path) -> Result<Box<dyn Source>, Error> {
    Err(Error::Bpf("this program was built without the feature bpf".to_owned()))
}
