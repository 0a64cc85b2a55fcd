//! Reader of a kernel file: stays open and reads again from the start at every sweep.
//!
//! Shell. Positioned reads into one buffer: no open, no allocation, two system calls per sweep for a short
//! file.

use super::fields::Malformed;
use crate::sample::collector::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Limit on the text, in bytes: `/proc/stat` of the largest hosts is shorter than 1 MiB.
const LEN_MAX_BYTES: usize = 8 << 20;

/// Initial size of the buffer, in bytes: most of these files are shorter, and the kernel fills one page at a
/// time.
const LEN_FIRST_BYTES: usize = 4096;

/// A kernel file. Opened at the first read, and reopened after a failed read.
#[derive(Debug)]
pub struct ProcFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Creates the reader of the file `name` below `proc`; does not open it yet.
    #[must_use]
    pub fn new(proc: &Path, name: &str) -> ProcFile {
        ProcFile { path: proc.join(name), file: None, buffer: Vec::new() }
    }

    /// Reads the whole current text.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if this kernel does not have the file, else [`Error::Read`].
    pub fn read(&mut self) -> Result<&[u8], Error> {
        match self.fill() {
            Ok(len) => Ok(&self.buffer[..len]),
            Err(error) => {
                self.file = None;
                Err(self.refuse(error))
            }
        }
    }

    /// The error for a malformed text of this file.
    #[must_use]
    pub fn malformed(&self, malformed: Malformed) -> Error {
        Error::Malformed { path: self.path.clone(), malformed }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let mut len = 0;
        loop {
            if len == self.buffer.len() {
                if len >= LEN_MAX_BYTES {
                    return Err(io::Error::other(format!("longer than {LEN_MAX_BYTES} bytes")));
                }
                self.buffer.resize((2 * len).max(LEN_FIRST_BYTES), 0);
            }
            match file.read_at(&mut self.buffer[len..], len as u64) {
                Ok(0) => return Ok(len),
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn refuse(&self, error: io::Error) -> Error {
        // A kernel without the feature has no such file; one with the feature disabled reports "not
        // supported".
        if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported) {
            Error::Unavailable(format!("{}: {error}", self.path.display()))
        } else {
            Error::Read { path: self.path.clone(), error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_read_whole_and_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(dir.path().join("long"), &text).expect("written");
        let mut file = ProcFile::new(dir.path(), "long");
        for _ in 0..2 {
            assert_eq!(file.read().expect("readable"), text);
        }
    }

    #[test]
    fn what_is_missing_is_unavailable_and_what_is_refused_is_not() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let error = ProcFile::new(dir.path(), "none").read().map(<[u8]>::len).expect_err("missing");
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        std::fs::create_dir(dir.path().join("folder")).expect("created");
        let error = ProcFile::new(dir.path(), "folder").read().map(<[u8]>::len).expect_err("a folder");
        assert!(matches!(error, Error::Read { .. }), "{error}");
    }
}
