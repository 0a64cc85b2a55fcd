//! A disk whose process is killed: from some change on, nothing that is written reaches it.
//!
//! Reads go on, as nothing looks at what a dead process reads.

use crate::simulated::Simulated;
use sensor::segments::disk::{Disk, Stored};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use wire::time::Time;

#[derive(Clone)]
pub struct Dying {
    disk: Simulated,
    /// Changes that are still possible.
    left: Arc<AtomicI64>,
}

struct File {
    file: Arc<dyn Stored>,
    left: Arc<AtomicI64>,
}

fn change(left: &AtomicI64) -> io::Result<()> {
    if left.fetch_sub(1, Ordering::Relaxed) > 0 { Ok(()) } else { Err(io::Error::other("killed")) }
}

impl Dying {
    pub fn new(disk: Simulated) -> Dying {
        Dying { disk, left: Arc::new(AtomicI64::new(i64::MAX)) }
    }

    pub fn die_after(&self, changes: u64) {
        self.left.store(i64::try_from(changes).unwrap(), Ordering::Relaxed);
    }

    pub fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    fn wrap(&self, file: Arc<dyn Stored>) -> Arc<dyn Stored> {
        Arc::new(File { file, left: Arc::clone(&self.left) })
    }
}

impl Disk for Dying {
    fn folder(&self) -> &Path {
        self.disk.folder()
    }

    fn written(&self, name: &str) -> Option<Time> {
        self.disk.written(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Disk::names(&self.disk)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        self.disk.open(name).map(|file| self.wrap(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        change(&self.left)?;
        self.disk.create(name).map(|file| self.wrap(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        change(&self.left)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        change(&self.left)?;
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        change(&self.left)?;
        self.disk.sync_names()
    }
}

impl Stored for File {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        change(&self.left)?;
        self.file.write_at(bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        change(&self.left)?;
        self.file.truncate(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sync(&self) -> io::Result<()> {
        change(&self.left)?;
        self.file.sync()
    }
}
