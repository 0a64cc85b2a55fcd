//! First segment of a log while the disk is full: its head waits in memory until there is space.
//!
//! Shell. Rule: a write after the head reaches the disk or fails, as with any other file; so no event is
//! accepted that could be lost. Not here: the content of the head (`journal::writer`).

use super::Error;
use super::disk::{Disk, Stored};
use super::segment;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// File of a segment whose start had to be postponed.
pub struct DeferredFile {
    disk: Arc<dyn Disk>,
    first: u64,
    head: Mutex<Vec<u8>>,
    /// Set when the head is complete.
    is_whole: OnceLock<()>,
    file: OnceLock<Arc<dyn Stored>>,
}

/// Whether this error is temporary: the segment can be started later.
#[must_use]
pub fn is_for_now(error: &Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::ReadOnlyFilesystem];
    matches!(error, Error::Disk { source, .. } if kinds.contains(&source.kind()))
}

impl DeferredFile {
    /// Creates the segment of this first event; what is written until [`DeferredFile::end_head`] is its head.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, first: u64) -> DeferredFile {
        let (head, is_whole, file) = Default::default();
        DeferredFile { disk, first, head, is_whole, file }
    }

    /// Marks the head as complete.
    pub fn end_head(&self) {
        self.is_whole.get_or_init(|| ());
    }

    /// Returns the file on the disk, and creates it first if it is missing. Only the writer thread calls it.
    fn file(&self) -> io::Result<&Arc<dyn Stored>> {
        if self.file.get().is_none() {
            let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
            let write = |file: &dyn Stored| {
                file.write_at(&head, 0).map_err(Error::disk("write the head of a segment"))
            };
            let created = segment::create(&*self.disk, self.first, write).map_err(|error| match error {
                Error::Disk { source, .. } => source,
                Error::Frame(_) | Error::Unreadable(_) => io::Error::other(error),
            })?;
            self.file.get_or_init(|| created);
            head.clear();
        }
        Ok(self.file.get().expect("made above"))
    }
}

impl Stored for DeferredFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = self.file.get() {
            return file.read_at(into, at);
        }
        let rest = usize::try_from(at).ok().and_then(|at| head.get(at..)).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if self.is_whole.get().is_some() {
            return self.file()?.write_at(bytes, at);
        }
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(head.len() as u64, at, "a head is written from its start to its end");
        head.extend_from_slice(bytes);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        // Without a file there is nothing after the head.
        self.file.get().map_or(Ok(()), |file| file.truncate(len))
    }

    fn size(&self) -> io::Result<u64> {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.get().map_or(Ok(head.len() as u64), |file| file.size())
    }

    fn sync(&self) -> io::Result<()> {
        self.file()?.sync()
    }
}
