//! A disk in memory that loses power: unsynced changes survive in part, in any order, torn at sectors.

#![allow(clippy::unwrap_used)]

use sensor::segments::disk::{Disk, Stored};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use wire::time::Time;

/// Bytes per sector: a disk writes whole sectors.
const SECTOR: usize = 512;

/// Seeded random number generator (xorshift): a failing seed is enough to reproduce a failure.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Default)]
struct Content {
    durable: Vec<u8>,
    now: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Default)]
struct Inner {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Every state of the names since they were last made durable.
    names_since: Vec<BTreeMap<String, usize>>,
    writes_refused: u32,
    syncs_refused: u32,
    capacity: Option<usize>,
    reads: u64,
}

/// The simulated disk; clones share the disk.
#[derive(Clone, Default)]
pub(crate) struct Simulated(Arc<Mutex<Inner>>);

impl Simulated {
    /// Simulates a power loss: each unsynced change survives or not, independently, torn at sectors. The
    /// names are as at some time since they were last made durable.
    pub(crate) fn lose_power(&self, random: &mut Random) {
        let mut inner = self.0.lock().unwrap();
        let choices = inner.names_since.len() as u64 + 1;
        let chosen = random.below(choices);
        let names = match chosen.checked_sub(1) {
            None => inner.durable_names.clone(),
            Some(at) => inner.names_since[usize::try_from(at).unwrap()].clone(),
        };
        (inner.names, inner.durable_names) = (names.clone(), names);
        inner.names_since.clear();
        for file in &mut inner.files {
            let mut content = std::mem::take(&mut file.durable);
            for change in file.unsynced.drain(..) {
                survive(&mut content, change, random);
            }
            (file.now, file.durable) = (content.clone(), content);
        }
    }

    /// Makes this many writes fail, each after half of its bytes.
    pub(crate) fn refuse_writes(&self, count: u32) {
        self.0.lock().unwrap().writes_refused = count;
    }

    /// Makes this many syncs fail, and drops the unsynced bytes, as kernels do.
    pub(crate) fn refuse_syncs(&self, count: u32) {
        self.0.lock().unwrap().syncs_refused = count;
    }

    /// Limits the bytes of all files together.
    pub(crate) fn set_capacity(&self, capacity: Option<usize>) {
        self.0.lock().unwrap().capacity = capacity;
    }

    /// Number of reads.
    pub(crate) fn reads(&self) -> u64 {
        self.0.lock().unwrap().reads
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().names.keys().cloned().collect()
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        let inner = self.0.lock().unwrap();
        inner.files[inner.names[name]].now.clone()
    }

    pub(crate) fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut inner = self.0.lock().unwrap();
        let at = inner.names[name];
        inner.files[at] = Content { durable: content.clone(), now: content, unsynced: Vec::new() };
    }
}

fn survive(content: &mut Vec<u8>, change: Change, random: &mut Random) {
    match change {
        Change::Truncate(len) => {
            if random.one_in(2) {
                content.resize(len, 0);
            }
        }
        Change::Write(at, bytes) => {
            let fate = random.below(4);
            let mut from = 0;
            while from < bytes.len() {
                let end = (((at + from) / SECTOR + 1) * SECTOR - at).min(bytes.len());
                let survives = match fate {
                    0 => false,
                    1 => true,
                    _ => random.one_in(2),
                };
                if survives {
                    let end_at = at + end;
                    if content.len() < end_at {
                        content.resize(end_at, 0);
                    }
                    content[at + from..end_at].copy_from_slice(&bytes[from..end]);
                }
                from = end;
            }
        }
    }
}

impl Disk for Simulated {
    fn folder(&self) -> &Path {
        Path::new("/simulated")
    }

    fn written(&self, _name: &str) -> Option<Time> {
        None
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Simulated::names(self))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let inner = self.0.lock().unwrap();
        let at = *inner.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(OpenFile { disk: self.clone(), at }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let mut inner = self.0.lock().unwrap();
        let at = inner.files.len();
        inner.files.push(Content::default());
        inner.names.insert(name.to_owned(), at);
        let names = inner.names.clone();
        inner.names_since.push(names);
        Ok(Arc::new(OpenFile { disk: self.clone(), at }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        let at = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inner.names.insert(to.to_owned(), at);
        let names = inner.names.clone();
        inner.names_since.push(names);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        let names = inner.names.clone();
        inner.names_since.push(names);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.durable_names = inner.names.clone();
        inner.names_since.clear();
        Ok(())
    }
}

struct OpenFile {
    disk: Simulated,
    at: usize,
}

impl OpenFile {
    fn with<T>(&self, work: impl FnOnce(&mut Content) -> T) -> T {
        work(&mut self.disk.0.lock().unwrap().files[self.at])
    }
}

fn write(file: &mut Content, bytes: &[u8], at: usize) {
    if file.now.len() < at + bytes.len() {
        file.now.resize(at + bytes.len(), 0);
    }
    file.now[at..at + bytes.len()].copy_from_slice(bytes);
    file.unsynced.push(Change::Write(at, bytes.to_vec()));
}

impl Stored for OpenFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.disk.0.lock().unwrap().reads += 1;
        self.with(|file| {
            let rest = file.now.get(usize::try_from(at).unwrap()..).unwrap_or_default();
            let len = rest.len().min(into.len());
            into[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let at = usize::try_from(at).unwrap();
        let refused = {
            let mut inner = self.disk.0.lock().unwrap();
            let used: usize = inner.names.values().map(|at| inner.files[*at].now.len()).sum();
            let full = inner.capacity.is_some_and(|capacity| used + bytes.len() > capacity);
            let refused = inner.writes_refused > 0 || full;
            inner.writes_refused = inner.writes_refused.saturating_sub(1);
            refused
        };
        if refused {
            self.with(|file| write(file, &bytes[..bytes.len() / 2], at));
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.with(|file| write(file, bytes, at));
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        self.with(|file| {
            file.now.resize(len, 0);
            file.unsynced.push(Change::Truncate(len));
        });
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.with(|file| file.now.len() as u64))
    }

    fn sync(&self) -> io::Result<()> {
        let refused = {
            let mut inner = self.disk.0.lock().unwrap();
            let refused = inner.syncs_refused > 0;
            inner.syncs_refused = inner.syncs_refused.saturating_sub(1);
            refused
        };
        self.with(|file| {
            if refused {
                file.unsynced.clear();
                return Err(io::Error::other("the disk refuses"));
            }
            file.durable = file.now.clone();
            file.unsynced.clear();
            Ok(())
        })
    }
}
