//! Where exports are stored: a folder, or a bucket of an object store that speaks S3.
//!
//! Shell. Rule: a file is there whole or not at all. Credentials are read from the environment alone, and are in no
//! message. Not here: what is stored ([`crate::day`], [`crate::table`]).

use crate::day::{self, Day, DayFile};
use crate::error::Error;
use crate::table::Finished;
use data_encoding::HEXLOWER;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::civil::Date;
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Start of the name of a place in an object store.
const S3: &str = "s3://";

/// Permission of all users to write.
const OTHERS_WRITE: u32 = 0o002;

/// How long a request to an object store is repeated.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Where exports are stored.
#[derive(Debug)]
pub struct Destination {
    store: Arc<dyn ObjectStore>,
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
        let store = match name.strip_prefix(S3) {
            Some(rest) => bucket(name, rest)?,
            None if name.is_empty() || name.contains("://") => {
                return Err(Error::Place { found: name.to_owned() });
            }
            None => folder(name, create)?,
        };
        Ok(Destination { store, runtime, name: name.to_owned() })
    }

    /// Stores a file, reads it back and compares.
    ///
    /// # Errors
    /// If it cannot be written or read, or if something else is read.
    pub fn put(&self, mut finished: Finished) -> Result<DayFile, Error> {
        let entry = DayFile::of(&finished);
        let path = Path::from(entry.path.as_str());
        finished.file.seek(SeekFrom::Start(0)).map_err(Error::io("a temporary file"))?;
        self.runtime.block_on(async {
            let mut file = tokio::fs::File::from_std(finished.file);
            let mut writer = BufWriter::new(Arc::clone(&self.store), path.clone());
            let copied = tokio::io::copy(&mut file, &mut writer).await;
            let copied = match copied {
                Ok(_) => tokio::io::AsyncWriteExt::shutdown(&mut writer).await,
                Err(error) => {
                    let _ = writer.abort().await;
                    Err(error)
                }
            };
            copied.map_err(Error::io(self.path(&entry.path)))
        })?;
        self.verify(&entry)?;
        Ok(entry)
    }

    /// Reads a file and compares its length and checksum.
    ///
    /// # Errors
    /// If it cannot be read, or if something else is read.
    pub fn verify(&self, entry: &DayFile) -> Result<(), Error> {
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
        match self.runtime.block_on(self.read(&Path::from(path.as_str()))) {
            Ok(bytes) => self.parse(&path, &bytes).map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&path)(error)),
        }
    }

    /// Deletes the record of a day, so that the day is not there until it is exported again.
    ///
    /// # Errors
    /// If it is there and cannot be deleted.
    pub fn forget(&self, domain: &str, date: Date) -> Result<(), Error> {
        let path = Day::path(domain, date);
        match self.runtime.block_on(self.store.delete(&Path::from(path.as_str()))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&path)(error)),
        }
    }

    /// Stores the record of a day.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&self, day: &Day) -> Result<(), Error> {
        let path = Day::path(&day.domain, day.date);
        let bytes = serde_json::to_vec_pretty(day).expect("a record is written as JSON");
        let location = Path::from(path.as_str());
        self.runtime.block_on(self.store.put(&location, bytes.into())).map(|_| ()).map_err(self.failed(&path))
    }

    /// The records of all days, by domain and day; and those that cannot be read.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub fn days(&self) -> Result<(Vec<Day>, Vec<Error>), Error> {
        let folder = Path::from(day::FOLDER);
        let listed = self.runtime.block_on(self.store.list(Some(&folder)).try_collect::<Vec<_>>());
        let (mut days, mut problems) = (Vec::new(), Vec::new());
        for found in listed.map_err(self.failed(day::FOLDER))? {
            let path = found.location.to_string();
            let read = self.runtime.block_on(self.read(&found.location)).map_err(self.failed(&path));
            match read.and_then(|bytes| self.parse(&path, &bytes)) {
                Ok(day) => days.push(day),
                Err(error) => problems.push(error),
            }
        }
        days.sort_by(|a, b| (&a.domain, a.date).cmp(&(&b.domain, b.date)));
        Ok((days, problems))
    }

    async fn read(&self, path: &Path) -> object_store::Result<bytes::Bytes> {
        self.store.get(path).await?.bytes().await
    }

    fn parse(&self, path: &str, bytes: &[u8]) -> Result<Day, Error> {
        Day::parse(bytes).map_err(|problem| Error::Record { path: self.path(path), problem })
    }

    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.name.trim_end_matches('/'))
    }

    fn failed(&self, path: &str) -> impl FnOnce(object_store::Error) -> Error {
        let place = self.path(path);
        |source| Error::Store { place, source }
    }
}

/// A folder of this machine.
fn folder(name: &str, create: bool) -> Result<Arc<dyn ObjectStore>, Error> {
    if create {
        std::fs::create_dir_all(name).map_err(Error::io(format!("folder {name}")))?;
    }
    // An error of the system says more than "unable to canonicalize".
    std::fs::read_dir(name).map_err(Error::io(format!("folder {name}")))?;
    if create {
        check_owner(name)?;
    }
    let store = LocalFileSystem::new_with_prefix(name)
        .map_err(|source| Error::Store { place: name.to_owned(), source })?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// Refuses to write where another user could have placed links that lead elsewhere.
fn check_owner(name: &str) -> Result<(), Error> {
    let metadata = std::fs::metadata(name).map_err(Error::io(format!("folder {name}")))?;
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let reason = match metadata.mode() & OTHERS_WRITE {
        0 if owner == user || owner == 0 => return Ok(()),
        0 => format!("it belongs to uid {owner}"),
        _ => "every user may write to it".to_owned(),
    };
    Err(Error::Shared { place: name.to_owned(), reason })
}

/// A bucket, by the usual variables of the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
/// `AWS_ENDPOINT_URL` …
fn bucket(name: &str, rest: &str) -> Result<Arc<dyn ObjectStore>, Error> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(Error::Place { found: name.to_owned() });
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let endpoint = variable("AWS_ENDPOINT_URL");
    // Without keys a host of the cloud itself is asked for them, which there is none of at an endpoint of one's own.
    let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    if let Some(missing) = keys.iter().find(|name| !endpoint.is_empty() && variable(name).is_empty()) {
        return Err(Error::Keys { endpoint, missing });
    }
    // Another part of the program may have chosen the same one before.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        // Only where the user's own endpoint has no TLS.
        .with_allow_http(endpoint.starts_with("http://"))
        .with_retry(RetryConfig { max_retries: 5, retry_timeout: GIVE_UP_AFTER, ..RetryConfig::default() })
        .build()
        .map_err(|source| Error::Store { place: name.to_owned(), source })?;
    Ok(Arc::new(PrefixStore::new(store, Path::from(prefix))))
}
