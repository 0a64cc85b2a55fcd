//! Directory of segments, behind a trait with the few operations that a log needs.
//!
//! Tests implement the trait with a disk that loses what was not synced. [`Directory`] is the real one: it
//! creates the directory with mode 0700 and files with mode 0600, and follows no symbolic link.
//! Not here: the content of the files.

use super::packed::file::PackedFile;
use daemon::{state_file, state_folder};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use wire::time::Time;

/// Operations of a directory of segments.
pub trait Disk: Send + Sync {
    /// Path of the directory, for messages.
    fn folder(&self) -> &Path;
    /// Modification time of a file; `None` where it is not known.
    fn written(&self, name: &str) -> Option<Time>;
    /// Returns the names of all files.
    ///
    /// # Errors
    /// Any I/O error.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens an existing file.
    ///
    /// # Errors
    /// Any I/O error.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Stored>>;
    /// Creates an empty file; replaces an existing one of that name.
    ///
    /// # Errors
    /// Any I/O error.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Stored>>;
    /// Renames a file; replaces an existing one of the new name.
    ///
    /// # Errors
    /// Any I/O error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes a file.
    ///
    /// # Errors
    /// Any I/O error.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all changes of names durable before it returns.
    ///
    /// # Errors
    /// Any I/O error.
    fn sync_names(&self) -> io::Result<()>;
}

/// Operations of an open file.
pub trait Stored: Send + Sync {
    /// Reads at an offset; returns fewer bytes than requested only at the end of the file.
    ///
    /// # Errors
    /// Any I/O error.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at an offset. On an error a part of them may have been written.
    ///
    /// # Errors
    /// Any I/O error.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Truncates the file to a length.
    ///
    /// # Errors
    /// Any I/O error.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Returns the length of the file, in bytes.
    ///
    /// # Errors
    /// Any I/O error.
    fn size(&self) -> io::Result<u64>;
    /// Makes everything written durable before it returns.
    ///
    /// # Errors
    /// Any I/O error; what was written since the last successful sync may then be lost.
    fn sync(&self) -> io::Result<()>;
    /// The compressed segment that this file is, if it is one.
    fn packed(&self) -> Option<&PackedFile> {
        None
    }
}

/// The real directory.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Uses this directory, and creates it if it is missing.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn new(path: PathBuf) -> io::Result<Directory> {
        state_folder::prepare_below(&path)?;
        Ok(Directory { path })
    }
}

impl Disk for Directory {
    fn folder(&self) -> &Path {
        &self.path
    }

    fn written(&self, name: &str) -> Option<Time> {
        let found = std::fs::symlink_metadata(self.path.join(name)).ok()?;
        let since = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok().map(Time::from_micros)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        std::fs::read_dir(&self.path)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let path = self.path.join(name);
        Ok(Arc::new(OnDisk(state_file::open(&path, OpenOptions::new().read(true).write(true))?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(OnDisk(state_file::open(&self.path.join(name), &mut options)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

struct OnDisk(File);

impl Stored for OnDisk {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], at + done as u64) {
                Ok(0) => break,
                Ok(some) => done += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_the_place_of_a_segment_is_not_followed() {
        let outside = tempfile::tempdir().expect("a folder");
        let target = outside.path().join("target");
        std::fs::write(&target, "untouched").expect("written");
        let folder = outside.path().join("journal");
        let disk = Directory::new(folder.clone()).expect("made");
        symlink(&target, folder.join("segment")).expect("a link");
        assert!(disk.open("segment").is_err() && disk.create("segment").is_err());
        assert_eq!(std::fs::read(&target).expect("there"), b"untouched");
        symlink(&folder, outside.path().join("link")).expect("a link");
        Directory::new(outside.path().join("link")).expect_err("a link in the place of the folder");
    }
}
