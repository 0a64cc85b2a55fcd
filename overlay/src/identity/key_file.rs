//! The file that stores a key: one line, readable only by its owner, never overwritten.
//!
//! ```text
//! visperf-key-1 | secret half, 64 hex digits | public half, in its text form
//! visperf-root-1 | both halves, as above | domain
//! ```
//!
//! Rule: the public half is checked against the secret one, so a damaged file is not a new identity.

use super::key::Key;
use super::safe_file::{self, Error};
use data_encoding::HEXLOWER;
use std::path::{Path, PathBuf};
use wire::id::DomainName;

/// Name of the file with a daemon's key in its state folder.
pub const FILE_NAME: &str = "key";

const DAEMON: &str = "visperf-key-1";
const ROOT: &str = "visperf-root-1";

/// Path of the key of the daemon with this state folder.
#[must_use]
pub fn path(state: &Path) -> PathBuf {
    state.join(FILE_NAME)
}

/// Load the daemon's key, if it has one.
///
/// # Errors
/// If the file cannot be read, belongs to another user, is open to others, or holds no valid key.
pub fn load(state: &Path) -> Result<Option<Key>, Error> {
    let path = path(state);
    Ok(read(&path, DAEMON)?.map(|(key, _)| key))
}

/// Load the daemon's key; at the first start, create it.
///
/// # Errors
/// As [`load`], or if the system provides no random bytes or refuses to create the file.
pub fn load_or_create(state: &Path) -> Result<Key, Error> {
    if let Some(key) = load(state)? {
        return Ok(key);
    }
    safe_file::make_state(state)?;
    let path = path(state);
    create(&path, DAEMON, &draw(&path)?, None)?;
    // If another process created the file at the same moment, its key is used.
    load(state)?.ok_or_else(|| gone(&path))
}

/// Load a domain's root key and the domain's name, if the file exists.
pub(super) fn load_root(path: &Path) -> Result<Option<(Key, DomainName)>, Error> {
    let Some((key, rest)) = read(path, ROOT)? else { return Ok(None) };
    let domain = DomainName::try_from(rest.as_str());
    let refuse = |error: wire::id::Error| Error::Content { path: path.to_owned(), reason: error.to_string() };
    Ok(Some((key, domain.map_err(refuse)?)))
}

/// Create a root key for `domain`, unless the file exists.
pub(super) fn create_root(path: &Path, domain: &DomainName) -> Result<(), Error> {
    create(path, ROOT, &draw(path)?, Some(domain))
}

fn create(path: &Path, kind: &str, key: &Key, domain: Option<&DomainName>) -> Result<(), Error> {
    let mut line = format!("{kind} {} {}", HEXLOWER.encode(&key.seed()), key.peer());
    if let Some(domain) = domain {
        line = format!("{line} {domain}");
    }
    let mark = random::<8>(path).map(u64::from_le_bytes)?;
    safe_file::create(path, format!("{line}\n").as_bytes(), mark).map(|_| ())
}

fn read(path: &Path, kind: &str) -> Result<Option<(Key, String)>, Error> {
    let Some(bytes) = safe_file::read(path)? else { return Ok(None) };
    let refuse = |reason: &str| Error::Content { path: path.to_owned(), reason: reason.to_owned() };
    let text = std::str::from_utf8(&bytes).map_err(|_| refuse("it is no text"))?;
    let mut words = text.split_ascii_whitespace();
    if words.next() != Some(kind) {
        return Err(refuse(&format!("it does not begin with {kind}")));
    }
    let seed = words.next().and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok());
    let seed = seed.and_then(|seed| <[u8; 32]>::try_from(seed).ok());
    let key = Key::from_seed(seed.ok_or_else(|| refuse("it holds no secret key of 64 hex digits"))?);
    if words.next() != Some(&key.peer().to_string()) {
        return Err(refuse("its secret and public halves do not belong together"));
    }
    let rest = words.next().unwrap_or_default().to_owned();
    if words.next().is_some() || (kind == DAEMON && !rest.is_empty()) {
        return Err(refuse("it holds more than a key"));
    }
    Ok(Some((key, rest)))
}

fn draw(path: &Path) -> Result<Key, Error> {
    Ok(Key::from_seed(random(path)?))
}

/// Random bytes from the system, for the file at `path`.
pub(super) fn random<const LEN: usize>(path: &Path) -> Result<[u8; LEN], Error> {
    let mut bytes = [0; LEN];
    let drawn = getrandom::fill(&mut bytes).map_err(std::io::Error::other);
    drawn.map(|()| bytes).map_err(Error::file("draw random bytes for", path))
}

fn gone(path: &Path) -> Error {
    Error::file("read", path)(std::io::Error::other("it was removed while it was being made"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_drawn_once_private_and_stays() {
        let state = tempfile::tempdir().expect("a folder");
        let inner = state.path().join("new/state");
        assert!(load(&inner).expect("readable").is_none());
        let key = load_or_create(&inner).expect("created");
        assert_eq!(load_or_create(&inner).expect("loaded").peer(), key.peer());
        let mode = std::fs::metadata(path(&inner)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&inner).expect("a folder").count(), 1, "nothing is left beside it");
        assert_ne!(load_or_create(&state.path().join("other")).expect("created").peer(), key.peer());
    }

    #[test]
    fn a_damaged_key_is_reported_and_not_replaced() {
        let state = tempfile::tempdir().expect("a folder");
        let key = load_or_create(state.path()).expect("created");
        let path = path(state.path());
        let good = std::fs::read_to_string(&path).expect("text");
        let flipped =
            good.replacen(&good[14..16], if good.starts_with("visperf-key-1 00") { "01" } else { "00" }, 1);
        for bad in
            ["", "visperf-root-1 00", "visperf-key-1", &good[..40], &flipped, &format!("{} x", good.trim())]
        {
            std::fs::write(&path, bad).expect("written");
            let said = load_or_create(state.path()).expect_err("damaged").to_string();
            assert!(said.contains("restore it from a copy"), "{bad:?}: {said}");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), bad, "not touched");
        }
        std::fs::write(&path, good).expect("written");
        assert_eq!(load_or_create(state.path()).expect("good again").peer(), key.peer());
    }
}
