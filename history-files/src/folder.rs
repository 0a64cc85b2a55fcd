//! A folder of this machine, and who else could change what is in it.
//!
//! Rule: nothing is written where another user could have placed a link that leads elsewhere. Root trusts folders of
//! root alone; other users trust those that not everybody may write to. Not here: what is stored there.

use crate::error::Error;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use rustix::fs::{Mode, OFlags};
use std::fs::{DirEntry, File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where files are written until they are whole: other programs skip what begins with an underscore.
pub(crate) const NEW: &str = "_visperf/new";

/// How their names start.
pub(crate) const NEW_NAME: &str = "visperf-export-";

/// The file that an export locks.
const LOCK: &str = "_visperf/lock";

/// What an interrupted export left is removed after this time; another one may still write.
const LEFT_AFTER: Duration = Duration::from_secs(86_400);

const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Opens a folder; with `create` it is created if it does not exist. Returns its real path too.
pub(crate) fn open(name: &str, create: bool) -> Result<(Arc<dyn ObjectStore>, PathBuf), Error> {
    let failed = || Error::io(format!("folder {name}"));
    if std::fs::metadata(name).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(Error::Place { found: format!("a file, {name}") });
    }
    if create {
        std::fs::create_dir_all(name).map_err(failed())?;
    }
    let root = std::fs::canonicalize(name).map_err(failed())?;
    std::fs::read_dir(&root).map_err(failed())?;
    let store = LocalFileSystem::new_with_prefix(&root);
    let store = store.map_err(|source| Error::Store { place: name.to_owned(), source })?;
    Ok((Arc::new(store.with_fsync(true)), root))
}

/// Waits until no other export writes to this folder; `waits` is called if there is one. The lock is held until the file
/// is closed.
pub(crate) fn lock(root: &Path, waits: impl FnOnce()) -> Result<File, Error> {
    check(root, LOCK)?;
    let path = root.join(LOCK);
    let failed = || Error::io(path.display().to_string());
    std::fs::create_dir_all(root.join(crate::day::FOLDER)).map_err(failed())?;
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o640));
    let file = File::from(file.map_err(|error| failed()(error.into()))?);
    if file.try_lock().is_err() {
        waits();
        file.lock().map_err(failed())?;
    }
    Ok(file)
}

/// Removes what interrupted exports left: files of their names alone, whatever the folder is.
pub(crate) fn remove_left(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |file: &DirEntry| {
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file());
        let written = metadata.and_then(|metadata| metadata.modified().ok());
        let age = written.and_then(|written| written.elapsed().ok());
        file.file_name().as_encoded_bytes().starts_with(NEW_NAME.as_bytes())
            && age.is_some_and(|age| age > LEFT_AFTER)
    };
    for file in files.filter(is_left) {
        // It is removed the next time, if not now.
        let _ = std::fs::remove_file(file.path());
    }
}

/// Checks the folders above a file in `root`, those that exist.
pub(crate) fn check(root: &Path, file: &str) -> Result<(), Error> {
    for above in root.ancestors().skip(1) {
        check_one(above, true)?;
    }
    let mut folder = root.to_owned();
    check_one(&folder, false)?;
    let parts = Path::new(file).parent().into_iter().flat_map(Path::iter);
    for part in parts {
        folder.push(part);
        if std::fs::symlink_metadata(&folder).is_err() {
            break;
        }
        check_one(&folder, false)?;
    }
    // The file itself is replaced, not followed: it is renamed to its place.
    Ok(())
}

/// `is_above`: names in it are those of others too, so it is enough that they cannot rename ours.
fn check_one(folder: &Path, is_above: bool) -> Result<(), Error> {
    let place = folder.display().to_string();
    let metadata = std::fs::symlink_metadata(folder).map_err(Error::io(format!("folder {place}")))?;
    match reason(&metadata, rustix::process::geteuid().as_raw(), is_above) {
        Some(reason) => Err(Error::Shared { place, reason }),
        None => Ok(()),
    }
}

/// Why this user cannot trust a folder.
fn reason(metadata: &Metadata, user: u32, is_above: bool) -> Option<String> {
    let is_sticky = is_above && metadata.mode() & STICKY != 0;
    let may_write = |who: u32| metadata.mode() & who != 0 && !is_sticky;
    if !metadata.is_dir() {
        Some("it is no folder, but a link or a file".to_owned())
    } else if may_write(OTHERS_WRITE) {
        Some("every user may write to it".to_owned())
    } else if user == 0 && metadata.uid() != 0 {
        Some(format!("it belongs to uid {}", metadata.uid()))
    } else if user == 0 && may_write(GROUP_WRITES) && metadata.gid() != 0 {
        Some(format!("group {} may write to it", metadata.gid()))
    } else {
        None
    }
}
