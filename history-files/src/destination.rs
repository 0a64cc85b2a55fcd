//! Where exports are stored: a folder, or a bucket of an object store that speaks S3.
//!
//! Shell. Rule: a file is there whole or not at all. Credentials are read from the environment alone, and are in no
//! message. Not here: what is stored ([`crate::day`], [`crate::table`]).

use crate::day::{self, Day, DayFile};
use crate::error::Error;
use crate::table::Finished;
use crate::{bucket, folder};
use data_encoding::HEXLOWER;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::civil::Date;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Start of the name of a place in an object store.
const S3: &str = "s3://";

/// Where exports are stored.
#[derive(Debug)]
pub struct Destination {
    store: Arc<dyn ObjectStore>,
    /// Its path, if it is a folder.
    folder: Option<PathBuf>,
    runtime: Runtime,
    name: String,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Destination {
    /// Opens a folder, or `s3://BUCKET/PREFIX`. With `create` a folder that does not exist is created, for its owner
    /// alone.
    ///
    /// # Errors
    /// If there is no such place, or it cannot be used.
    pub fn open(name: &str, create: bool) -> Result<Destination, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::io("a runtime"))?;
        let (store, folder) = match name.strip_prefix(S3) {
            Some(rest) => (bucket::open(name, rest)?, None),
            None if name.is_empty() || is_url(name) => return Err(Error::Place { found: name.to_owned() }),
            None => {
                let (store, root) = folder::open(name, create)?;
                (store, Some(root))
            }
        };
        Ok(Destination { store, folder, runtime, name: name.to_owned() })
    }

    /// Stores a file, reads it back and compares.
    ///
    /// # Errors
    /// If it cannot be written or read, or if something else is read.
    pub fn put(&self, mut finished: Finished) -> Result<DayFile, Error> {
        let entry = DayFile::of(&finished);
        let path = Path::from(entry.path.as_str());
        self.check(&entry.path)?;
        let new = self.new_place()?;
        finished.file.seek(SeekFrom::Start(0)).map_err(Error::io("a temporary file"))?;
        self.runtime.block_on(async {
            let mut file = tokio::fs::File::from_std(finished.file);
            let to = new.clone().unwrap_or_else(|| path.clone());
            let mut writer = BufWriter::new(Arc::clone(&self.store), to);
            let copied = tokio::io::copy(&mut file, &mut writer).await;
            let copied = match copied {
                Ok(_) => tokio::io::AsyncWriteExt::shutdown(&mut writer).await,
                Err(error) => {
                    let _ = writer.abort().await;
                    Err(error)
                }
            };
            copied.map_err(Error::io(self.path(&entry.path)))?;
            match &new {
                Some(new) => self.store.rename(new, &path).await.map_err(self.failed(&entry.path)),
                None => Ok(()),
            }
        })?;
        self.verify(&entry)?;
        Ok(entry)
    }

    /// Reads a file and compares its length and checksum.
    ///
    /// # Errors
    /// If it cannot be read, or if something else is read.
    pub fn verify(&self, entry: &DayFile) -> Result<(), Error> {
        self.check_file(&entry.path)?;
        let path = Path::from(entry.path.as_str());
        let (hash, len_bytes) = self.runtime.block_on(async {
            let mut stream = self.store.get(&path).await.map_err(self.failed(&entry.path))?.into_stream();
            let (mut hash, mut len_bytes) = (Sha256::new(), 0);
            while let Some(bytes) = stream.next().await {
                let bytes = bytes.map_err(self.failed(&entry.path))?;
                hash.update(&bytes);
                len_bytes += bytes.len() as u64;
            }
            Ok::<_, Error>((hash, len_bytes))
        })?;
        let found = HEXLOWER.encode(&hash.finalize());
        if found == entry.sha256 && len_bytes == entry.len_bytes {
            return Ok(());
        }
        Err(Error::Different {
            path: self.path(&entry.path),
            len_bytes,
            found,
            expected: entry.sha256.clone(),
        })
    }

    /// The record of a day; `None` if the day is not there.
    ///
    /// # Errors
    /// If the place cannot be read, or the record is no record.
    pub fn day(&self, domain: &str, date: Date) -> Result<Option<Day>, Error> {
        let path = Day::path(domain, date);
        self.check_file(&path)?;
        match self.runtime.block_on(self.read(&Path::from(path.as_str()))) {
            Ok(bytes) => self.parse(&path, &bytes).and_then(|day| self.of_its_day(day, &path)).map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&path)(error)),
        }
    }

    /// Stores the record of a day.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&self, day: &Day) -> Result<(), Error> {
        let path = Day::path(&day.domain, day.date);
        self.check(&path)?;
        let bytes = serde_json::to_vec_pretty(day).expect("a record is written as JSON");
        let location = Path::from(path.as_str());
        self.runtime.block_on(self.store.put(&location, bytes.into())).map(|_| ()).map_err(self.failed(&path))
    }

    /// Waits until no other export writes to the place, and keeps others from it until the file is closed; `waits` is
    /// called if there is one. `None` for a bucket, which has no locks.
    ///
    /// # Errors
    /// If the place cannot be written.
    pub fn lock(&self, waits: impl FnOnce()) -> Result<Option<File>, Error> {
        self.folder.as_ref().map(|root| folder::lock(root, waits)).transpose()
    }

    /// Domains and days that have a record, in this order.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub fn dates(&self) -> Result<Vec<(String, Date)>, Error> {
        let folder = Path::from(day::FOLDER);
        let listed = self.runtime.block_on(self.store.list(Some(&folder)).try_collect::<Vec<_>>());
        let listed = listed.map_err(self.failed(day::FOLDER))?;
        let mut dates: Vec<(String, Date)> =
            listed.iter().filter_map(|found| Day::of_path(found.location.as_ref())).collect();
        dates.sort();
        Ok(dates)
    }

    /// The records of days; and those that cannot be read.
    #[must_use]
    pub fn days(&self, dates: &[(String, Date)]) -> (Vec<Day>, Vec<Error>) {
        let (mut days, mut problems) = (Vec::new(), Vec::new());
        for (domain, date) in dates {
            match self.day(domain, *date) {
                Ok(day) => days.extend(day),
                Err(error) => problems.push(error),
            }
        }
        (days, problems)
    }

    /// Where a file is written before it is renamed to its place; `None` in a bucket, where it is there once it is
    /// whole. What an interrupted export left there is removed.
    fn new_place(&self) -> Result<Option<Path>, Error> {
        let Some(root) = &self.folder else { return Ok(None) };
        let path = format!("{}/{}{:016x}", folder::NEW, folder::NEW_NAME, fastrand::u64(..));
        self.check(&path)?;
        folder::remove_left(&root.join(folder::NEW));
        Ok(Some(Path::from(path)))
    }

    /// Refuses what is there and no file, as it may never be read to its end.
    pub(crate) fn check_file(&self, path: &str) -> Result<(), Error> {
        let there = self.folder.as_ref().and_then(|root| std::fs::metadata(root.join(path)).ok());
        match there.is_some_and(|there| !there.is_file()) {
            true => Err(Error::Table { path: self.path(path), problem: "expected a file".to_owned() }),
            false => Ok(()),
        }
    }

    /// Refuses the record of another day.
    fn of_its_day(&self, day: Day, path: &str) -> Result<Day, Error> {
        if Day::path(&day.domain, day.date) == path {
            return Ok(day);
        }
        let problem = format!("the record of another day, {} of {}", day.date, day.domain);
        Err(Error::Record { path: self.path(path), problem })
    }

    /// Runs a future of this place.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Checks that a file can be written safely.
    fn check(&self, path: &str) -> Result<(), Error> {
        self.folder.as_ref().map_or(Ok(()), |root| folder::check(root, path))
    }

    async fn read(&self, path: &Path) -> object_store::Result<bytes::Bytes> {
        self.store.get(path).await?.bytes().await
    }

    fn parse(&self, path: &str, bytes: &[u8]) -> Result<Day, Error> {
        Day::parse(bytes).map_err(|problem| Error::Record { path: self.path(path), problem })
    }

    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.name.trim_end_matches('/'))
    }

    fn failed(&self, path: &str) -> impl FnOnce(object_store::Error) -> Error {
        let place = self.path(path);
        |source| Error::Store { place, source }
    }
}

/// Whether a name is one of other places: `gs://bucket`, `s3:/bucket`.
fn is_url(name: &str) -> bool {
    name.split_once(":/").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}
