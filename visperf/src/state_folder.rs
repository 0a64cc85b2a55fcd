//! Where daemons keep their state unless told otherwise, and the files in which a daemon tells its addresses: `listen`,
//! a line such as `127.0.0.1:7317`, and one such as `unix:/run/visperf/sensor.sock`, while it runs; `reached-at`, where other daemons dial it.
//!
//! Not here: what else is in that folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use wire::address::Address;

/// The file that holds the address of the daemon that uses the folder.
pub(crate) const LISTEN_FILE: &str = "listen";

/// What comes before the path of a local socket, where an address may be one.
pub(crate) const SOCKET_MARK: &str = "unix:";

/// The file that holds where other daemons reach the one that uses the folder, if that was configured: an address a
/// line.
pub(crate) const REACHED_FILE: &str = "reached-at";

/// The folder of daemons' state, unless another is named.
pub(crate) fn usual() -> PathBuf {
    overlay::identity::state_folder::usual()
}

/// The address that the daemon of this folder told, if the file is there.
pub(crate) fn listen_address(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(LISTEN_FILE)).ok()?;
    let is_address = |line: &&str| !line.is_empty() && !line.starts_with(SOCKET_MARK);
    text.lines().map(str::trim).find(is_address).map(str::to_owned)
}

/// The local socket that the daemon of this folder named, if the file is there.
pub(crate) fn listen_socket(folder: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(folder.join(LISTEN_FILE)).ok()?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let path = lines.find_map(|line| line.strip_prefix(SOCKET_MARK.as_bytes()))?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Where other daemons reach the one of this folder, as it told when it started last; nothing for the usual place.
pub(crate) fn reached_at(folder: &Path) -> Vec<Address> {
    let text = std::fs::read_to_string(folder.join(REACHED_FILE)).unwrap_or_default();
    text.lines().filter_map(|line| Address::try_from(line.trim()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(listen_address(folder.path()), None);
        std::fs::write(folder.path().join(LISTEN_FILE), "\n 127.0.0.1:4000 \n").unwrap();
        assert_eq!(listen_address(folder.path()).as_deref(), Some("127.0.0.1:4000"));
        assert_eq!(listen_socket(folder.path()), None);
        std::fs::write(folder.path().join(LISTEN_FILE), "127.0.0.1:4000\nunix:/s/a b.sock\n").unwrap();
        assert_eq!(listen_address(folder.path()).as_deref(), Some("127.0.0.1:4000"));
        assert_eq!(listen_socket(folder.path()).as_deref(), Some(Path::new("/s/a b.sock")));
        assert_eq!(reached_at(folder.path()), []);
        std::fs::write(folder.path().join(REACHED_FILE), "head:7501\n10.0.0.1:7501\n").unwrap();
        let told: Vec<String> = reached_at(folder.path()).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["head:7501", "10.0.0.1:7501"]);
    }
}
