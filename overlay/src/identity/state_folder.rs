//! Where a daemon stores keys, certificates and everything else on a host unless configured otherwise, and where the local sockets of
//! daemons are.
//!
//! Not here: what else is in that folder, who may use a socket (`rpc`).

use std::path::{Path, PathBuf};

/// The folder with the sockets of daemons that run as services of the system.
pub const SOCKETS: &str = "/run/visperf";

/// The sockets by kind of daemon, in the order in which a local program that names none tries them.
pub const SOCKET_NAMES: [&str; 3] = ["sensor.sock", "directory.sock", "proxy.sock"];

/// The sockets that are there, of the daemon of the usual folder first, then of the services of the system.
#[must_use]
pub fn usual_sockets() -> Vec<PathBuf> {
    sockets_of(&usual()).into_iter().chain(sockets_of(Path::new(SOCKETS))).collect()
}

/// The sockets in a folder.
#[must_use]
pub fn sockets_of(folder: &Path) -> Vec<PathBuf> {
    let all = SOCKET_NAMES.iter().map(|name| folder.join(name));
    all.filter(|path| is_socket(path)).collect()
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The folder of daemons' state: `/var/lib/visperf` for root, else `visperf` in the user's state folder.
#[must_use]
pub fn usual() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of(rustix::process::geteuid().is_root(), set("XDG_STATE_HOME"), set("HOME"))
}

fn of(root: bool, state_home: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    match (state_home, home) {
        (Some(state), _) => state.join("visperf"),
        (None, _) if root => PathBuf::from("/var/lib/visperf"),
        (None, Some(home)) => home.join(".local/state/visperf"),
        (None, None) => PathBuf::from("/var/lib/visperf"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_alone_are_found_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("directory.sock"), "no socket").unwrap();
        let _listeners = ["proxy.sock", "sensor.sock", "other.sock"]
            .map(|name| std::os::unix::net::UnixListener::bind(path(name)).unwrap());
        assert_eq!(sockets_of(folder.path()), [path("sensor.sock"), path("proxy.sock")]);
        assert!(sockets_of(&path("none")).is_empty());
    }

    #[test]
    fn the_usual_folder_follows_who_asks() {
        let check = |root, state: Option<&str>, home: Option<&str>, expected: &str| {
            assert_eq!(of(root, state.map(PathBuf::from), home.map(PathBuf::from)), Path::new(expected));
        };
        check(false, Some("/s"), Some("/h"), "/s/visperf");
        check(false, None, Some("/h"), "/h/.local/state/visperf");
        check(true, None, Some("/root"), "/var/lib/visperf");
        check(true, Some("/s"), None, "/s/visperf");
        check(false, None, None, "/var/lib/visperf");
    }
}
