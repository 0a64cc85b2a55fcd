//! State directory of a daemon: creates it, and writes the addresses of the daemon for other programs.
//!
//! Not here: its default path, and reading the address (`state_folder`).

use super::late_files::LateFiles;
use crate::state_folder::{LISTEN_FILE, REACHED_FILE, SOCKET_MARK};
use anyhow::{Context as _, anyhow};
use daemon::state_folder;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use wire::address::Address;

/// Create the directory, for its owner only, if it does not exist, and refuse one that others can write;
/// returns its path without symbolic links.
pub(crate) fn prepare(path: &Path) -> anyhow::Result<PathBuf> {
    state_folder::prepare(path).map_err(|error| {
        let has_no_hint = matches!(error, state_folder::Error::System { .. });
        if has_no_hint { anyhow!("{error}; give another folder with --state DIR") } else { error.into() }
    })
}

/// Write the query address, for other programs of this user.
pub(crate) fn write_listen(state: &Path, address: &str, socket: Option<&Path>, files: &LateFiles) {
    let mut text = format!("{address}\n").into_bytes();
    if let Some(socket) = socket {
        text.extend([SOCKET_MARK.as_bytes(), socket.as_os_str().as_bytes(), b"\n"].concat());
    }
    files.write(&state.join(LISTEN_FILE), text);
}

/// Write the addresses for other daemons; for the default address the file is removed instead.
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

/// Remove the query address. The folder's lock is still held, so a daemon that starts next has not written
/// its own yet.
pub(crate) fn remove_listen(state: &Path, files: &LateFiles) {
    files.forget(&state.join(LISTEN_FILE));
    // The file is only a hint: if it stays, clients report that no daemon answers.
    let _ = std::fs::remove_file(state.join(LISTEN_FILE));
}
