//! Log that the sensor writes itself and follows like any other: its lines are events with an id and a place.
//!
//! Shell. Rules: lines are on disk when [`OwnLog::append`] returns. The size is bounded: a full file is kept beside the
//! new one until that is full. A line that was half written is ended before the next, and a link is not followed.
//! Not here: what the lines say (`control::trail`, `job_usage::usage_log`).

use daemon::{state_file, state_folder};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Log in a folder of its own.
#[derive(Debug)]
pub(crate) struct OwnLog {
    folder: PathBuf,
    name: &'static str,
    len_max_bytes: u64,
    open: Option<(File, u64)>,
}

impl OwnLog {
    /// Creates a log; no file is created before the first line. A file of `len_max_bytes` is followed by a new one.
    #[must_use]
    pub(crate) fn new(folder: PathBuf, name: &'static str, len_max_bytes: u64) -> OwnLog {
        OwnLog { folder, name, len_max_bytes, open: None }
    }

    /// Appends whole lines, each with its line end; they are on disk when this returns.
    ///
    /// # Errors
    /// If the disk refuses; then they are not in the log, or half of a line is.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let (mut file, len) = match self.open.take() {
            Some((file, len)) if len < self.len_max_bytes => (file, len),
            Some(_) | None => self.begin()?,
        };
        file.write_all(lines)?;
        file.sync_data()?;
        // After an error the file is opened again: a half-written line would be read as the start of the next.
        self.open = Some((file, len + lines.len() as u64));
        Ok(())
    }

    /// Opens the file to append to.
    fn begin(&self) -> io::Result<(File, u64)> {
        state_folder::prepare_below(&self.folder)?;
        let path = self.folder.join(self.name);
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let mut file = state_file::open(&path, &mut options)?;
        let mut len = file.metadata()?.len();
        if len >= self.len_max_bytes {
            fs::rename(&path, self.folder.join(format!("{}.1", self.name)))?;
            (file, len) = (state_file::open(&path, &mut options)?, 0);
        }
        if len > 0 && !ends_a_line(&path, len)? {
            file.write_all(b"\n")?;
        }
        Ok((file, len))
    }
}

fn ends_a_line(path: &Path, len: u64) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let mut last = [0];
    state_file::open_to_read(path)?.read_exact_at(&mut last, len - 1)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &Path) -> OwnLog {
        OwnLog::new(folder.join("own"), "own.log", 20)
    }

    fn text(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join("own").join(name)).unwrap_or_default()
    }

    #[test]
    fn a_full_file_is_kept_beside_the_new_one_and_half_a_line_is_ended() {
        let state = tempfile::tempdir().expect("a folder");
        fs::create_dir(state.path().join("own")).expect("made");
        fs::write(state.path().join("own/own.log"), "half a li").expect("written");
        let mut own = log(state.path());
        own.append(b"one\n").expect("written");
        assert_eq!(text(state.path(), "own.log"), "half a li\none\n", "a crash left half a line");
        own.append(b"a long line\n").expect("written");
        own.append(b"two\n").expect("written");
        own.append(b"three\n").expect("written");
        assert_eq!(text(state.path(), "own.log.1"), "half a li\none\na long line\n");
        assert_eq!(text(state.path(), "own.log"), "two\nthree\n");
    }

    #[test]
    fn a_link_in_the_place_of_the_log_or_of_its_folder_is_not_followed() {
        let (state, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let target = outside.path().join("target");
        fs::write(&target, "untouched").expect("written");
        fs::create_dir(state.path().join("own")).expect("made");
        std::os::unix::fs::symlink(&target, state.path().join("own/own.log")).expect("a link");
        let error = log(state.path()).append(b"a line\n").expect_err("a link").to_string();
        assert!(error.contains("found a symbolic link"), "{error}");
        fs::remove_dir_all(state.path().join("own")).expect("removed");
        std::os::unix::fs::symlink(outside.path(), state.path().join("own")).expect("a link");
        log(state.path()).append(b"a line\n").expect_err("a link in the place of its folder");
        assert_eq!(fs::read_to_string(&target).expect("there"), "untouched");
        assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 1);
    }
}
