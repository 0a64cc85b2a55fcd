//! The state directory of a daemon: making it, and telling others where its daemon listens.
//!
//! Not here: where it is by default, and reading the address (`state_folder`).

use super::late_files::LateFiles;
use crate::state_folder::{LISTEN_FILE, REACHED_FILE, SOCKET_MARK};
use anyhow::{Context as _, anyhow};
use daemon::state_folder;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use wire::address::Address;

/// Make the directory, for its owner only, if it is not there, and refuse one that others can write; its path without links.
pub(crate) fn prepare(path: &Path) -> anyhow::Result<PathBuf> {
    state_folder::prepare(path).map_err(|error| {
        let has_no_hint = matches!(error, state_folder::Error::System { .. });
        if has_no_hint { anyhow!("{error}; give another folder with --state DIR") } else { error.into() }
    })
}

/// Write the query address for other programs of this user.
pub(crate) fn write_listen(state: &Path, address: &str, socket: Option<&Path>, files: &LateFiles) {
    let mut text = format!("{address}\n").into_bytes();
    if let Some(socket) = socket {
        text.extend([SOCKET_MARK.as_bytes(), socket.as_os_str().as_bytes(), b"\n"].concat());
    }
    files.write(&state.join(LISTEN_FILE), text);
}

/// Write where other daemons reach this one; nothing is written for the default address.
pub(crate) fn write_reached(state: &Path, addresses: &[Address], files: &LateFiles) -> anyhow::Result<()> {
    let path = state.join(REACHED_FILE);
    if addresses.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        };
    }
    let text: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    files.write(&path, text.into_bytes());
    Ok(())
}

/// Take it back, while the folder's lock is held: a daemon that comes next has not written its own yet.
pub(crate) fn remove_listen(state: &Path, files: &LateFiles) {
    files.forget(&state.join(LISTEN_FILE));
    // Only a hint for clients: that it stays behind does no harm, they say that no one answers.
    let _ = std::fs::remove_file(state.join(LISTEN_FILE));
}
