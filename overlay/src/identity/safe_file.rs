//! Private files, readable only by their owner and replaced as a whole: keys, the issuer's store, revocation
//! lists.
//!
//! Rules: a file that others own or may read or write is refused with a message that says what to type; so is
//! a folder that others may write. Symbolic links are followed only for a file that an operator names.
//! Not here: the contents (`key_file`, `domain_files`, `member_files`; the accounts of a proxy).

use crate::whole_file;
use daemon::{state_file, state_folder};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wire::codec;
use wire::version::Format;

/// Longest file: a full issuer's store in one frame.
const LEN_MAX_BYTES: u64 = (codec::BODY_LEN_MAX_BYTES + codec::HEADER_LEN_BYTES) as u64;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {action} {}: {error}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another user owns the file.
    #[error("{} belongs to user {found}, expected user {expected}, who runs this; {}", path.display(), owner_hint(path, *found, *expected))]
    Owner {
        path: PathBuf,
        found: u32,
        /// The user that runs this program.
        expected: u32,
    },
    /// The permissions let other users access the file.
    #[error(
        "{} has mode {found:04o}, expected 0600: others may have read it; type `chmod 600 {}`, and if others use \
         this host, replace what is in it", path.display(), path.display()
    )]
    Mode {
        path: PathBuf,
        /// Its permission bits.
        found: u32,
    },
    /// The folder that contains it cannot be used.
    #[error(transparent)]
    Folder(#[from] state_folder::Error),
    /// The content is not what this program wrote.
    #[error("{} cannot be used: {reason}; it is not overwritten: restore it from a copy, or move it away", path.display())]
    Content {
        path: PathBuf,
        /// What is wrong with the content.
        reason: String,
    },
}

impl Error {
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |error| Error::File { action, path, error }
    }
}

/// What to do about a file of another owner. A daemon started by root must not take a service's files from
/// their user: the service would not start again.
fn owner_hint(path: &Path, found: u32, expected: u32) -> String {
    match expected {
        0 => format!(
            "run it as their owner: setpriv --reuid {found} --clear-groups visperf ..., or as the service that owns them"
        ),
        _ => format!("run visperf as user {found}, or have root type `chown {expected} {}`", path.display()),
    }
}

/// Header of a framed file: the purpose prevents that one file is read as another.
#[derive(Serialize, Deserialize)]
struct Framed<T> {
    purpose: String,
    content: T,
}

/// Read a private file of the state folder; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read, is a link, is too long, belongs to another user, or others may read or write it.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_opened(path, state_file::open_to_read(path))
}

/// As [`read`], for a file that an operator names, such as one with a secret: it may be a link.
///
/// # Errors
/// As [`read`].
pub fn read_named(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_opened(path, File::open(path))
}

fn read_opened(path: &Path, opened: io::Result<File>) -> Result<Option<Vec<u8>>, Error> {
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Error::file("open", path))?,
    };
    // Of the open file, not of the name, which may change in between.
    let found = file.metadata().map_err(Error::file("look at", path))?;
    if !found.is_file() {
        let reason = "it is no regular file".to_owned();
        return Err(Error::Content { path: path.to_owned(), reason });
    }
    check_owner(path, found.uid(), rustix::process::geteuid().as_raw(), found.mode())?;
    let mut bytes = Vec::new();
    file.take(LEN_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Error::file("read", path))?;
    if bytes.len() as u64 > LEN_MAX_BYTES {
        let reason = format!("it is longer than {LEN_MAX_BYTES} bytes");
        return Err(Error::Content { path: path.to_owned(), reason });
    }
    Ok(Some(bytes))
}

fn check_owner(path: &Path, found: u32, expected: u32, mode: u32) -> Result<(), Error> {
    if found != expected {
        return Err(Error::Owner { path: path.to_owned(), found, expected });
    }
    if mode & 0o077 != 0 {
        return Err(Error::Mode { path: path.to_owned(), found: mode & 0o7777 });
    }
    Ok(())
}

/// Read a framed file of this format; `None` if it does not exist.
pub(super) fn read_framed<T: DeserializeOwned>(path: &Path, format: Format) -> Result<Option<T>, Error> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let refuse = |reason: String| Error::Content { path: path.to_owned(), reason };
    // The purpose first: the content of another version may not be readable at all.
    let purpose = match codec::decode::<Framed<()>>(&bytes) {
        Ok(Some((framed, len))) if len == bytes.len() => framed.purpose,
        Ok(Some(_)) => return Err(refuse("it is longer than what was written".to_owned())),
        Ok(None) => return Err(refuse("it is cut".to_owned())),
        Err(error) => return Err(refuse(error.to_string())),
    };
    match format.version_of(&purpose) {
        Some(version) if format.reads(version) => {}
        Some(version) => {
            let (name, expected) = (format.name, format.expected());
            return Err(refuse(format!(
                "it holds version {version} of {name:?}, this program reads {expected}: start the version of visperf \
                 that wrote it"
            )));
        }
        None => return Err(refuse(format!("it holds {purpose:?}, expected {:?}", format.purpose()))),
    }
    let framed = codec::decode::<Framed<T>>(&bytes).map_err(|error| refuse(error.to_string()))?;
    Ok(framed.map(|(framed, _)| framed.content))
}

/// Replace the content of a framed file. The caller makes sure that no other process does so at the same
/// time.
pub(super) fn replace_framed<T: Serialize>(path: &Path, format: Format, content: &T) -> Result<(), Error> {
    let mut bytes = Vec::new();
    codec::encode(&Framed { purpose: format.purpose(), content }, &mut bytes)
        .map_err(|error| Error::Content { path: path.to_owned(), reason: error.to_string() })?;
    replace(path, &bytes)
}

/// Replace the content of a private file.
///
/// # Errors
/// If the system refuses; the file is unchanged then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    whole_file::replace(path, bytes).map_err(Error::file("replace", path))
}

/// Create a private file with this content. Returns `false` if it exists already; its content is unchanged
/// then.
pub(super) fn create(path: &Path, bytes: &[u8], mark: u64) -> Result<bool, Error> {
    whole_file::create(path, bytes, mark).map_err(Error::file("create", path))
}

/// Create the state folder, accessible only to its owner, if it does not exist, and check that others cannot
/// change its content.
///
/// # Errors
/// If the system refuses, or the folder is not safe to use.
pub fn make_state(state: &Path) -> Result<(), Error> {
    let resolved = state_folder::prepare(state)?;
    whole_file::sync_folder(&resolved).map_err(Error::file("sync the folder of", state))
}

/// As [`make_state`], with a folder inside it; returns the path of that folder.
///
/// # Errors
/// As [`make_state`].
pub fn make_folder(state: &Path, name: &str) -> Result<PathBuf, Error> {
    make_state(state)?;
    let path = state.join(name);
    state_folder::prepare_below(&path)?;
    whole_file::sync_folder(&path).map_err(Error::file("sync the folder of", &path))?;
    Ok(path)
}

/// Take an exclusive lock, and wait for it; the system releases it when the file is closed, however the
/// process ends.
///
/// # Errors
/// If the system refuses.
pub fn lock(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = state_file::open(path, &mut options).map_err(Error::file("open", path))?;
    file.lock().map_err(Error::file("lock", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_of_another_user_or_open_to_others_is_refused_with_what_to_type() {
        let path = Path::new("/state/key");
        assert!(check_owner(path, 1000, 1000, 0o100_600).is_ok());
        assert!(check_owner(path, 1000, 1000, 0o100_400).is_ok());
        let said = check_owner(path, 0, 1000, 0o100_600).expect_err("another's").to_string();
        assert!(
            said.contains("user 0, expected user 1000") && said.contains("`chown 1000 /state/key`"),
            "{said}"
        );
        let said = check_owner(path, 995, 0, 0o100_600).expect_err("another's").to_string();
        assert!(said.contains("--reuid 995") && !said.contains("chown"), "{said}");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let said = check_owner(path, 1000, 1000, 0o100_000 | mode).expect_err("open").to_string();
            assert!(
                said.contains("`chmod 600 /state/key`") && said.contains(&format!("mode {mode:04o}")),
                "{said}"
            );
        }
    }

    #[test]
    fn a_file_is_private_whole_and_created_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        assert_eq!(read(&path).expect("readable"), None);
        assert!(create(&path, b"first", 1).expect("created"));
        assert!(!create(&path, b"second", 2).expect("not created"));
        assert_eq!(read(&path).expect("readable"), Some(b"first".to_vec()));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        fs::write(folder.path().join(".a.new"), b"left by a crash").expect("written");
        replace(&path, b"third").expect("replaced");
        assert_eq!(read(&path).expect("readable"), Some(b"third".to_vec()));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left beside it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(read(&path), Err(Error::Mode { found: 0o644, .. })));
    }

    #[test]
    fn a_framed_file_of_another_purpose_or_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let numbers = Format { name: "numbers", first: 1, written: 1, newest: 1 };
        replace_framed(&path, numbers, &vec![1_u32, 2]).expect("written");
        assert_eq!(read_framed::<Vec<u32>>(&path, numbers).expect("readable"), Some(vec![1, 2]));
        let letters = Format { name: "letters", ..numbers };
        assert!(matches!(read_framed::<Vec<u32>>(&path, letters), Err(Error::Content { .. })));
        let whole = fs::read(&path).expect("there");
        for cut in 0..whole.len() {
            replace(&path, &whole[..cut]).expect("written");
            assert!(read_framed::<Vec<u32>>(&path, numbers).is_err(), "{cut}");
        }
        replace(&path, &[&whole[..], &[0]].concat()).expect("written");
        assert!(read_framed::<Vec<u32>>(&path, numbers).is_err());
    }

    #[test]
    fn a_framed_file_of_the_previous_version_is_read_and_of_another_is_refused_with_both() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let version = |written| Format { name: "numbers", first: 1, written, newest: written };
        replace_framed(&path, version(2), &7_u32).expect("written");
        assert_eq!(read_framed::<u32>(&path, version(2)).expect("its own"), Some(7));
        assert_eq!(read_framed::<u32>(&path, version(3)).expect("the previous one"), Some(7));
        // For another version, only the purpose is read.
        for reader in [version(1), version(4)] {
            let said = read_framed::<String>(&path, reader).expect_err("another version").to_string();
            let expected = format!("version 2 of \"numbers\", this program reads {}", reader.expected());
            assert!(
                said.contains(&expected) && said.contains("start the version of visperf that wrote it"),
                "{said}"
            );
        }
    }
}
