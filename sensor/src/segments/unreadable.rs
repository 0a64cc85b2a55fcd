//! Report on an unreadable log: its folder, what was expected and found, what is lost by moving it away.
//!
//! Rule: an unreadable log is never changed; the command that moves it away is printed, and an operator runs
//! it. The loss is measured from what can still be read: numbers of events from the names of segments, times
//! from the events, else from the files.
//! Not here: damage at the end of a log, which is cut off, and a damaged head, whose segment is renamed
//! (`recovery`).

use super::disk::Disk;
use super::recovery::Fold;
use super::segment::{firsts, name};
use super::window::Window;
use super::{Error, chain};
use jiff::Timestamp;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use wire::time::Time;

/// Texts about one kind of log, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Name of the log, with its article.
    pub what: &'static str,
    /// What is lost with its events, and the consequence.
    pub beside: &'static str,
}

/// What a frame says about the events before it and in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Time when its events were read or stored.
    pub written: Option<Time>,
    /// Number of the event after it.
    pub next: Option<u64>,
    /// The representative has every event before this number.
    pub received: Option<u64>,
}

/// A log that cannot be read.
#[derive(Debug)]
pub struct UnreadableLog {
    folder: PathBuf,
    content: Content,
    reason: Reason,
    loss: Loss,
}

/// Why the log cannot be read.
#[derive(Debug)]
pub enum Reason {
    /// A segment has another version.
    Version {
        /// Name of the segment.
        name: String,
        /// The part of the segment that has the version.
        of: &'static str,
        found: u16,
        /// The versions that this program reads.
        expected: String,
    },
    /// The operating system refuses a segment or, without a name, the folder.
    System {
        /// Name of the segment.
        name: Option<String>,
        source: io::Error,
    },
}

/// Loss when a log is moved away, as far as it can be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loss {
    /// Number of the oldest event.
    first: Option<u64>,
    /// Number after the newest event found; there may be more.
    next: Option<u64>,
    /// Time when the oldest event was written.
    since: Option<Time>,
    /// Time when the newest event was written.
    until: Option<Time>,
    /// The representative has every event before this number.
    received: Option<u64>,
}

impl UnreadableLog {
    /// The error for the log on `disk`, of the kind that `F` reads.
    pub(super) fn error<F: Fold<R>, R: ?Sized>(disk: &dyn Disk, reason: Reason) -> Error {
        let loss = Loss::measure::<F, R>(disk);
        Error::Unreadable(Box::new(UnreadableLog {
            folder: disk.folder().to_owned(),
            content: F::CONTENT,
            reason,
            loss,
        }))
    }

    /// The error for an I/O error on a segment of a log on `disk` or, without a name, on its folder. An error
    /// that the next start may not meet, such as too many open files, is [`Error::Disk`].
    pub(super) fn refused<F: Fold<R>, R: ?Sized>(
        disk: &dyn Disk,
        name: Option<String>,
        source: io::Error,
    ) -> Error {
        // An error without an errno value means that it is no regular file.
        if source.kind() == io::ErrorKind::PermissionDenied || source.raw_os_error().is_none() {
            return UnreadableLog::error::<F, R>(disk, Reason::System { name, source });
        }
        let what = name.map_or_else(|| "list the segments".to_owned(), |name| format!("open {name}"));
        Error::Disk { what: format!("{what} in {}", disk.folder().display()), source }
    }

    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

impl std::error::Error for UnreadableLog {}

impl fmt::Display for UnreadableLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnreadableLog { folder, content, reason, loss } = self;
        write!(f, "{} in {} cannot be read: ", content.what, folder.display())?;
        match reason {
            Reason::Version { name, of, found, expected } => write!(
                f,
                "{name} has version {found} of {of}, expected {expected}; no event in it was changed; start the version of visperf \
                 that wrote it, or "
            )?,
            Reason::System { name, source } => {
                let path = name.as_ref().map_or_else(|| folder.clone(), |name| folder.join(name));
                write!(f, "cannot open {}: {source}; no event in it was changed; ", path.display())?;
                if source.kind() == io::ErrorKind::PermissionDenied {
                    write!(f, "{}, or ", permission(&path, name.is_none()))?;
                }
            }
        }
        let (from, to) = (quoted(folder), quoted(&aside(folder)));
        write!(f, "to start without it, type `mv {from} {to}`, which loses {loss}; {}", content.beside)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.first else { return f.write_str("the events in it") };
        write!(f, "its events from number {first} on")?;
        if let Some(next) = self.next.filter(|next| *next > first) {
            write!(f, " (at least to {})", next - 1)?;
        }
        if let Some((since, until)) = self.since.zip(self.until) {
            write!(f, ", written from {} to {}", Moment(since), Moment(until))?;
        }
        match self.received {
            Some(received) if received > first => {
                write!(f, "; its representative has received those before number {received}")
            }
            _ => Ok(()),
        }
    }
}

impl Loss {
    fn measure<F: Fold<R>, R: ?Sized>(disk: &dyn Disk) -> Loss {
        // A folder that cannot be listed cannot be measured either; the reason reports it.
        let firsts = firsts(&disk.names().unwrap_or_default());
        let (Some(oldest), Some(newest)) = (firsts.first(), firsts.last()) else { return Loss::default() };
        let mut loss = Loss {
            first: Some(*oldest),
            next: Some(*newest),
            since: disk.written(&name(*oldest)),
            until: disk.written(&name(*newest)),
            received: None,
        };
        marks::<F, R>(disk, *oldest, |mark| {
            loss.since = mark.written.or(loss.since);
            mark.written.is_none()
        });
        // Of the segments that can be read, the newest knows most.
        for first in firsts.iter().rev() {
            let mut is_readable = false;
            marks::<F, R>(disk, *first, |mark| {
                is_readable = true;
                loss.received = mark.received.max(loss.received);
                loss.next = mark.next.max(loss.next);
                true
            });
            if is_readable {
                break;
            }
        }
        loss
    }
}

/// Passes the marks of a segment to `take`, until it returns `false` or a frame cannot be read.
fn marks<F: Fold<R>, R: ?Sized>(disk: &dyn Disk, first: u64, mut take: impl FnMut(Mark) -> bool) {
    let Ok(file) = disk.open(&name(first)) else { return };
    let Ok(size) = file.size() else { return };
    let mut window = Window::new(file, 0, size);
    while let Ok(Some((_, frame))) = window.frame() {
        let Some(body) = chain::body::<F::Body>(frame) else { return };
        if !take(F::mark(&body)) {
            return;
        }
    }
}

/// Advice for a path that this user may not open.
fn permission(path: &Path, is_folder: bool) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    let (mode, kind) = if is_folder { ("700", "a folder") } else { ("600", "a file") };
    let shown = quoted(path);
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.uid() == user => {
            let bits = found.mode() & 0o7777;
            format!("expected {kind} of mode 0{mode}, found mode {bits:04o}: type `chmod {mode} {shown}`")
        }
        Ok(found) => {
            let owner = found.uid();
            format!(
                "expected {kind} of user {user}, found user {owner}: have root type `chown {user} {shown}`"
            )
        }
        Err(_) => format!("expected {kind} that user {user} can reach"),
    }
}

/// Finds an unused name to move a folder to: an existing folder would absorb it, an existing file would block
/// it.
fn aside(folder: &Path) -> PathBuf {
    let named = |ending: &str| PathBuf::from([folder.as_os_str(), ending.as_ref()].join(OsStr::new("")));
    let numbered = (2..).map(|number| named(&format!(".unreadable.{number}")));
    let mut names = std::iter::once(named(".unreadable")).chain(numbered);
    names.find(|path| std::fs::symlink_metadata(path).is_err()).expect("numbers do not end")
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    wire::shell::quoted(&path.to_string_lossy())
}

/// Displays a time in UTC, to the second.
pub(super) struct Moment(pub(super) Time);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Timestamp::from_microsecond(self.0.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
        write!(f, "{at:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_moved_to_a_name_that_is_free() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("journal");
        for expected in ["journal.unreadable", "journal.unreadable.2", "journal.unreadable.3"] {
            let found = aside(&folder);
            assert_eq!(found, dir.path().join(expected));
            std::fs::create_dir(found).expect("made");
        }
    }

    #[test]
    fn a_loss_says_what_is_known() {
        let at = |secs: i64| Some(Time::from_micros(secs * 1_000_000));
        let known = Loss { first: Some(5), next: Some(9), since: at(0), until: at(60), received: Some(7) };
        assert_eq!(
            known.to_string(),
            "its events from number 5 on (at least to 8), written from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z; its \
             representative has received those before number 7"
        );
        let nothing = Loss { since: None, next: Some(5), received: Some(5), ..known };
        assert_eq!(nothing.to_string(), "its events from number 5 on");
        assert_eq!(Loss::default().to_string(), "the events in it");
    }
}
