//! State folder of a host's daemon: its default path, and the files in it that a client on the same host
//! reads. Also the local sockets of daemons.
//!
//! Rule: a client receives the path of a folder from the daemon that it queries, which may be any program. So
//! nothing in the folder is read through a link, and a file of another owner than the folder's is ignored.
//! Not here: the other files of that folder, which users may use a socket (`rpc`).

use daemon::state_file;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file with the address on which the daemon of this folder listens.
pub const LISTEN_FILE: &str = "listen";

/// Prefix of a local socket's path, where an address may be one.
pub const SOCKET_MARK: &str = "unix:";

/// The file with the key for module commands.
const MODULES_KEY_FILE: &str = "sensor/modules.key";

/// Length of that key, in hexadecimal digits.
const MODULES_KEY_LEN: usize = 32;

/// Longest file that is read here, in bytes: an address and the path of a socket.
const LEN_MAX_BYTES: u64 = 8192;

/// The folder with the sockets of daemons that run as system services.
pub const SOCKETS: &str = "/run/visperf";

/// The sockets by kind of daemon, in the order in which a local program tries them by default.
pub const SOCKET_NAMES: [&str; 3] = ["sensor.sock", "directory.sock", "proxy.sock"];

/// The existing sockets: first those in the user's state folder, then those of system services.
#[must_use]
pub fn usual_sockets() -> Vec<PathBuf> {
    sockets_of(&usual()).into_iter().chain(sockets_of(Path::new(SOCKETS))).collect()
}

/// The existing sockets in a folder.
#[must_use]
pub fn sockets_of(folder: &Path) -> Vec<PathBuf> {
    let all = SOCKET_NAMES.iter().map(|name| folder.join(name));
    all.filter(|path| is_socket(path)).collect()
}

/// The local socket of the daemon of this folder, wherever it is: as the daemon wrote it into [`LISTEN_FILE`]. None if it has none,
/// or the file cannot be read.
#[must_use]
pub fn listen_socket(folder: &Path) -> Option<PathBuf> {
    let bytes = state_file::read(&folder.join(LISTEN_FILE), LEN_MAX_BYTES).ok()??;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let path = lines.find_map(|line| line.strip_prefix(SOCKET_MARK.as_bytes()))?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The default state folder: `visperf` in `$XDG_STATE_HOME` if that is set; otherwise `/var/lib/visperf` for
/// root or without `$HOME`, and `~/.local/state/visperf` for other users.
#[must_use]
pub fn usual() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of(rustix::process::geteuid().is_root(), set("XDG_STATE_HOME"), set("HOME"))
}

/// Read the key for module commands in the state folder of a daemon. `is_asked` says whether an address in
/// that folder is that of the queried daemon, so that the key is sent only to the program that wrote it.
pub fn modules_key(folder: &Path, is_asked: impl FnMut(&str) -> bool) -> Option<String> {
    if !folder.is_absolute() {
        return None;
    }
    let folder = state_file::open_folder(folder).ok()?;
    let listen = owned_text(&folder, LISTEN_FILE)?;
    if !listen.lines().map(str::trim).filter(|line| !line.is_empty()).any(is_asked) {
        return None;
    }
    let text = owned_text(&folder, MODULES_KEY_FILE)?;
    let key = text.trim_end();
    let is_key = key.len() == MODULES_KEY_LEN && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key.then(|| key.to_owned())
}

/// The text of a file in an open folder, if it has the same owner as the folder.
fn owned_text(folder: &OwnedFd, name: &str) -> Option<String> {
    let owner = File::from(folder.try_clone().ok()?).metadata().ok()?.uid();
    let file = state_file::open_below(folder, Path::new(name)).ok()?;
    if file.metadata().ok()?.uid() != owner {
        return None;
    }
    let mut text = String::new();
    file.take(LEN_MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
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
    use std::fs;
    use std::os::unix::fs::symlink;

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
    fn the_key_of_another_daemon_is_not_read_through_a_link() {
        let (own, hostile) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let word = "00112233445566778899aabbccddeeff";
        fs::create_dir(own.path().join("sensor")).expect("made");
        fs::write(own.path().join("listen"), "127.0.0.1:7317\n").expect("written");
        fs::write(own.path().join(MODULES_KEY_FILE), format!("{word}\n")).expect("written");
        let key = |folder: &Path, port: u16| modules_key(folder, |at| at == format!("127.0.0.1:{port}"));
        assert_eq!(key(own.path(), 7317).as_deref(), Some(word));
        assert_eq!(key(own.path(), 7318), None, "another daemon answers there");
        fs::write(hostile.path().join("listen"), "127.0.0.1:7318\n").expect("written");
        symlink(own.path().join("sensor"), hostile.path().join("sensor")).expect("a link");
        assert_eq!(key(hostile.path(), 7318), None, "a link to its folder");
        fs::remove_file(hostile.path().join("sensor")).expect("removed");
        fs::create_dir(hostile.path().join("sensor")).expect("made");
        symlink(own.path().join(MODULES_KEY_FILE), hostile.path().join(MODULES_KEY_FILE)).expect("a link");
        assert_eq!(key(hostile.path(), 7318), None, "a link to its file");
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
