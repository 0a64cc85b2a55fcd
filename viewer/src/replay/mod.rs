//! Replay of log files without a grid; the files are followed while they grow.
//!
//! A separate thread reads the files and sends [`crate::feed::Update`]s through a bounded channel. Rule: a
//! file that shrank or was replaced (rotated) is read from the start, after the rest of the previous one, and
//! the user is notified; earlier data stays. Not here: parsing of lines (`log`).

mod call_events;
pub mod log;

use crate::feed::{Feed, Request, Status, Update, WakeReason};
use jiff::tz::TimeZone;
use log::Logs;
use log_filters::engine::Source;
use log_filters::filter::{FILE_LEN_MAX_BYTES, Filter};
use log_filters::registry::Registry;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Size of the read buffer, in bytes.
const PIECE_LEN_BYTES: usize = 1 << 18;
/// Bytes inspected to choose a filter; as `visperf filter try` does.
const BEGINNING_LEN_BYTES: u64 = 1 << 18;
/// How often a log is checked for more.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of logs; a system has some ten.
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
        path: String,
        error: String,
    },
    /// No filter matches the log.
    #[error("{0}")]
    Filter(String),
    /// There is no filter of this name.
    #[error("{0}")]
    NoFilter(String),
    #[error("expected at most {LOGS_MAX} logs, found {0}")]
    TooMany(usize),
}

/// What to replay.
#[derive(Clone, Debug)]
pub struct Plan {
    pub logs: Vec<PathBuf>,
    /// The filter's name or file; chosen by the log's name and first lines where none is named.
    pub filter: Option<String>,
    /// Time zone of timestamps without one.
    pub zone: TimeZone,
}

/// Open logs.
pub struct Reader {
    files: Vec<Opened>,
    logs: Logs,
    /// Whether a last line without a newline was processed.
    is_whole: bool,
}

/// An open log.
struct Opened {
    path: PathBuf,
    file: File,
    /// Bytes read so far.
    offset: u64,
    filter: Arc<Filter>,
    source: Source,
}

impl Opened {
    /// Read what was added to the log with this index. Returns the number of bytes.
    fn read(&mut self, number: usize, logs: &mut Logs, now: Time) -> Result<u64, Error> {
        let before = self.offset;
        let mut piece = vec![0; PIECE_LEN_BYTES];
        loop {
            let read = self.file.read(&mut piece);
            let read = read.map_err(|error| unreadable("the log", &self.path, &error))?;
            if read == 0 {
                return Ok(self.offset - before);
            }
            logs.bytes(number, &piece[..read], now);
            self.offset += read as u64;
        }
    }

    /// Whether its path now leads to another file, or the file is shorter than what was read. A missing file
    /// is waited for.
    fn is_another(&self) -> bool {
        let (Ok(there), Ok(own)) = (self.path.metadata(), self.file.metadata()) else { return false };
        there.len() < self.offset || (there.dev(), there.ino()) != (own.dev(), own.ino())
    }
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
        let mut reader = Reader { files: Vec::new(), logs: Logs::new(now), is_whole: false };
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
            reader.logs.add(Arc::clone(&filter), &source);
            reader.files.push(Opened { path: path.clone(), file, offset: 0, filter, source });
        }
        Ok(reader)
    }

    /// Read what was added to all logs. Returns the number of bytes.
    ///
    /// # Errors
    /// If a log can no longer be read.
    pub fn read(&mut self, whole: bool, now: Time) -> Result<u64, Error> {
        self.is_whole = whole;
        let mut sum = 0;
        for (at, opened) in self.files.iter_mut().enumerate() {
            let read = opened.read(at, &mut self.logs, now)?;
            if read > 0 || whole {
                self.logs.pause(at, whole, now);
            }
            sum += read;
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

    /// Switch to files that replaced those being read, from their start, after reading the rest of the
    /// previous ones. Returns their paths.
    ///
    /// # Errors
    /// If one cannot be read; the next call tries again.
    pub fn renew(&mut self, now: Time) -> Result<Vec<PathBuf>, Error> {
        let mut renewed = Vec::new();
        for (at, opened) in self.files.iter_mut().enumerate().filter(|(_, opened)| opened.is_another()) {
            let file = open(&opened.path)?;
            opened.read(at, &mut self.logs, now)?;
            (opened.file, opened.offset) = (file, 0);
            self.logs.renew(at, Arc::clone(&opened.filter), &opened.source, now);
            renewed.push(opened.path.clone());
        }
        Ok(renewed)
    }
}

/// Start a thread that reads and follows the logs until the window is closed.
///
/// # Errors
/// If the thread cannot be started.
pub fn follow(mut reader: Reader, feed: Feed) -> std::io::Result<()> {
    let read = move || {
        let mut reported = None;
        loop {
            let now = crate::clock::now();
            let read = reader.read(false, now);
            // New files at the same paths are read in the next pass.
            match read.and_then(|read| Ok((read, reader.renew(now)?))) {
                Ok((read, renewed)) => {
                    let has_news = read > 0 || reported.is_none() || !renewed.is_empty();
                    for path in renewed {
                        let words = "is another file now: read from its beginning, after what was shown";
                        feed.send(Update::Notice(format!("{} {words}", path.display())));
                    }
                    if has_news {
                        if reported != Some(reader.lines()) {
                            feed.send(Update::grid(reader.grid()));
                            reported = Some(reader.lines());
                        }
                        feed.send(Update::Status(Status::Reading { lines: reader.lines() }));
                    }
                }
                Err(error) => {
                    feed.send(Update::Status(Status::Lost { what: error.to_string() }));
                    reported = None;
                }
            }
            match feed.rest(LOOK_EVERY) {
                WakeReason::Closed => return,
                WakeReason::Requested(Request::Served(mut wanted)) => {
                    // Only the latest of several queued requests is answered.
                    while let WakeReason::Requested(Request::Served(newer)) = feed.rest(Duration::ZERO) {
                        wanted = newer;
                    }
                    let by = Arc::new(reader.answer(&wanted.call, now));
                    feed.send(Update::Served { call: wanted.call, by });
                }
                WakeReason::Timeout | WakeReason::Requested(_) => {}
            }
        }
    };
    // The thread ends with the window: `rest` then returns `WakeReason::Closed`.
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
        return Err(Error::NoFilter(format!(
            "expected --filter with the name of a filter or a file: {}",
            registry.no_filter(name)
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
