//! Location of the state folder, and the files with a daemon's addresses: `listen`, which exists while the
//! daemon runs (a line such as `127.0.0.1:7317`, and one such as `unix:/run/visperf/sensor.sock`), and
//! `reached-at`, where other daemons dial it.
//!
//! Not here: the other files of that folder.

use daemon::state_file;
use overlay::identity::state_folder;
use rpc::http::config::PORT_DEFAULT;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use wire::address::Address;

/// File with the address of the daemon that uses the folder.
pub(crate) const LISTEN_FILE: &str = state_folder::LISTEN_FILE;

/// Longest of these files, in bytes: addresses, one a line.
const LEN_MAX_BYTES: u64 = 4096;

/// Prefix of a local socket's path, where an address may be one.
pub(crate) const SOCKET_MARK: &str = state_folder::SOCKET_MARK;

/// File with the addresses at which other daemons reach the daemon of the folder, if they were configured;
/// one a line.
pub(crate) const REACHED_FILE: &str = "reached-at";

/// Default address for queries.
pub(crate) const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT_DEFAULT);

/// The default state folder.
pub(crate) fn usual() -> PathBuf {
    state_folder::usual()
}

/// Local socket of the daemon of this folder, if it has one and its file can be read.
pub(crate) fn listen_socket(folder: &Path) -> Option<PathBuf> {
    state_folder::listen_socket(folder)
}

/// Address at which the daemon of this folder answers, if the file exists.
///
/// # Errors
/// If the file cannot be read: the reason, and what to do.
pub(crate) fn listen_address(folder: &Path) -> Result<Option<String>, String> {
    let path = folder.join(LISTEN_FILE);
    let text = state_file::read(&path, LEN_MAX_BYTES).map_err(|error| {
        let hint = match error.kind() == ErrorKind::PermissionDenied {
            true => format!(
                "only {} may read it: run the command as one of them, or name a socket for other users with --connect unix:PATH \
                 (a service has /run/visperf/sensor.sock; --socket PATH of a daemon makes one)",
                owner(folder)
            ),
            false => "name the daemon with --connect HOST:PORT".to_owned(),
        };
        format!("cannot read {}: {error}; {hint}", path.display())
    })?;
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let is_address = |line: &&str| !line.is_empty() && !line.starts_with(SOCKET_MARK);
    Ok(text.lines().map(str::trim).find(is_address).map(str::to_owned))
}

/// Users that may read the folder.
fn owner(folder: &Path) -> String {
    match folder.metadata() {
        Ok(found) if found.uid() != 0 => format!("user {} and root", found.uid()),
        _ => "its owner and root".to_owned(),
    }
}

/// Addresses at which other daemons reach the daemon of this folder, as it wrote them at its last start;
/// empty for the default address.
pub(crate) fn reached_at(folder: &Path) -> Vec<Address> {
    let text = state_file::read(&folder.join(REACHED_FILE), LEN_MAX_BYTES).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(|line| Address::try_from(line.trim()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(listen_address(folder.path()), Ok(None));
        std::fs::write(folder.path().join(LISTEN_FILE), "\n 127.0.0.1:4000 \n").unwrap();
        assert_eq!(listen_address(folder.path()), Ok(Some("127.0.0.1:4000".to_owned())));
        assert_eq!(listen_socket(folder.path()), None);
        std::fs::write(folder.path().join(LISTEN_FILE), "127.0.0.1:4000\nunix:/s/a b.sock\n").unwrap();
        assert_eq!(listen_address(folder.path()), Ok(Some("127.0.0.1:4000".to_owned())));
        assert_eq!(listen_socket(folder.path()).as_deref(), Some(Path::new("/s/a b.sock")));
        assert_eq!(reached_at(folder.path()), []);
        std::fs::write(folder.path().join(REACHED_FILE), "head:7501\n10.0.0.1:7501\n").unwrap();
        let addresses: Vec<String> = reached_at(folder.path()).iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["head:7501", "10.0.0.1:7501"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join(LISTEN_FILE)).unwrap();
        let error = listen_address(folder.path()).unwrap_err();
        assert!(error.contains("found a symbolic link") && error.contains("--connect HOST:PORT"), "{error}");
    }
}
