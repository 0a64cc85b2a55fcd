//! Logs opened from files, with no grid at all, and followed while they grow.
//!
//! A thread of its own reads; what it has comes as [`crate::feed::Update`]s through a bounded channel. Rule: a file
//! that shrinks is read anew from its beginning, and told. Not here: what lines mean (`log`).

pub mod log;

use crate::feed::{Feed, Rested, Status, Update};
use jiff::tz::TimeZone;
use log::Logs;
use log_filters::engine::Source;
use log_filters::filter::{FILE_LEN_MAX_BYTES, Filter};
use log_filters::registry::Registry;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Read at a time, in bytes.
const PIECE_LEN_BYTES: usize = 1 << 18;
/// Looked at to choose a filter, in bytes; as `visperf filter try` does.
const BEGINNING_LEN_BYTES: u64 = 1 << 18;
/// How often a log is looked at for more.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Logs opened together; a system has some ten.
const LOGS_MAX: usize = 64;

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of a log or a filter cannot be read.
    #[error("cannot read {what}: {error}: {path}")]
    Read {
        /// The log, or the filter.
        what: &'static str,
        /// Where it is.
        path: String,
        /// What is wrong.
        error: String,
    },
    /// There is no such filter, or none reads the log.
    #[error("{0}")]
    Filter(String),
    /// Too many logs.
    #[error("expected at most {LOGS_MAX} logs, found {0}")]
    TooMany(usize),
}

/// What to replay.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The logs.
    pub logs: Vec<PathBuf>,
    /// The filter's name or file; chosen by the log's name and first lines where none is named.
    pub filter: Option<String>,
    /// Zone of stamps that print none.
    pub zone: TimeZone,
}

/// Logs that are open.
pub struct Reader {
    files: Vec<(PathBuf, File, u64)>,
    logs: Logs,
    plan: Plan,
}

impl Reader {
    /// Open the logs of a plan, at `now`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(plan: &Plan, now: Time) -> Result<Reader, Error> {
        if plan.logs.len() > LOGS_MAX {
            return Err(Error::TooMany(plan.logs.len()));
        }
        let registry = Registry::shipped();
        let named = plan.filter.as_deref().map(|name| filter(&registry, name)).transpose()?;
        let mut reader = Reader { files: Vec::new(), logs: Logs::new(now), plan: plan.clone() };
        for path in &plan.logs {
            let mut file = open(path)?;
            let file_name =
                path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
            let filter = match &named {
                Some(filter) => Arc::clone(filter),
                None => chosen(&registry, path, &file_name, &mut file)?,
            };
            let source = Source {
                file_name,
                host: "localhost".to_owned(),
                cluster: String::new(),
                zone: plan.zone.clone(),
            };
            reader.logs.add(filter, &source);
            reader.files.push((path.clone(), file, 0));
        }
        Ok(reader)
    }

    /// Read what there is more; how many bytes that was.
    ///
    /// # Errors
    /// If a log cannot be read any more.
    pub fn read(&mut self, whole: bool, now: Time) -> Result<u64, Error> {
        let mut sum = 0;
        let mut piece = vec![0; PIECE_LEN_BYTES];
        for (at, (path, file, offset)) in self.files.iter_mut().enumerate() {
            let before = *offset;
            loop {
                let read = file.read(&mut piece).map_err(|error| unreadable("the log", path, &error))?;
                if read == 0 {
                    break;
                }
                self.logs.bytes(at, &piece[..read], now);
                *offset += read as u64;
            }
            if *offset > before || whole {
                self.logs.pause(at, whole, now);
            }
            sum += *offset - before;
        }
        Ok(sum)
    }

    /// The logs as a grid.
    #[must_use]
    pub fn grid(&self) -> crate::grid::Grid {
        self.logs.grid()
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.logs.lines()
    }

    /// The first log that is shorter than what was read of it.
    fn shrunk(&self) -> Option<&Path> {
        let is_short = |path: &Path, offset: u64| path.metadata().is_ok_and(|about| about.len() < offset);
        self.files.iter().find(|(path, _, offset)| is_short(path, *offset)).map(|(path, ..)| path.as_path())
    }
}

/// Read the logs, and follow them until nobody listens.
///
/// # Errors
/// If the thread cannot be begun.
pub fn follow(mut reader: Reader, feed: Feed) -> std::io::Result<()> {
    let read = move || {
        let mut told = None;
        loop {
            let status = match reader.read(false, crate::clock::now()) {
                Ok(0) if told.is_some() => None,
                Ok(_) => Some(Status::Reading { lines: reader.lines() }),
                Err(error) => Some(Status::Lost { what: error.to_string() }),
            };
            if let Some(path) = reader.shrunk().map(|path| path.display().to_string()) {
                match Reader::open(&reader.plan, crate::clock::now()) {
                    Ok(anew) => reader = anew,
                    Err(error) => {
                        feed.tell(Update::Status(Status::Lost { what: format!("{error} (it was {path})") }))
                    }
                }
                told = None;
            } else if let Some(status) = status {
                if told != Some(reader.lines()) {
                    feed.tell(Update::grid(reader.grid()));
                    told = Some(reader.lines());
                }
                feed.tell(Update::Status(status));
            }
            if feed.rest(LOOK_EVERY) == Rested::Alone {
                return;
            }
        }
    };
    // It ends when the window does: `rest` says so.
    std::thread::Builder::new().name("viewer-replay".into()).spawn(read).map(drop)
}

fn open(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|error| unreadable("the log", path, &error))?;
    match file.metadata() {
        Ok(about) if about.is_dir() => {
            Err(unreadable("the log", path, &"expected a file, found a folder; name the log files in it"))
        }
        _ => Ok(file),
    }
}

fn chosen(registry: &Registry, path: &Path, file_name: &str, file: &mut File) -> Result<Arc<Filter>, Error> {
    let mut beginning = Vec::new();
    let looked = file.by_ref().take(BEGINNING_LEN_BYTES).read_to_end(&mut beginning);
    looked
        .and_then(|_| file.seek(SeekFrom::Start(0)))
        .map_err(|error| unreadable("the log", path, &error))?;
    match registry.choice(file_name, &beginning) {
        Ok(choice) => Ok(Arc::clone(choice.filter)),
        Err(_) => Err(Error::Filter(format!(
            "no filter knows the name or the first lines of {}; name one with --filter (`visperf filter list`)",
            path.display()
        ))),
    }
}

fn filter(registry: &Registry, name: &str) -> Result<Arc<Filter>, Error> {
    if let Some(filter) = registry.get(name) {
        return Ok(Arc::clone(filter));
    }
    let path = Path::new(name);
    if !path.is_file() {
        return Err(Error::Filter(format!(
            "expected --filter with a name of `visperf filter list` or a file, found {name:?}"
        )));
    }
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(FILE_LEN_MAX_BYTES as u64).read_to_string(&mut text));
    read.map_err(|error| unreadable("the filter", path, &error))?;
    Filter::parse(name, &text).map(Arc::new).map_err(|error| unreadable("the filter", path, &error))
}

fn unreadable(what: &'static str, path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Read { what, path: path.display().to_string(), error: error.to_string() }
}
