//! The state directory of a daemon: making it, and telling others where its daemon listens.
//!
//! Not here: where it is by default, and reading the address (`state_folder`).

use crate::state_folder::{LISTEN_FILE, REACHED_FILE};
use anyhow::Context as _;
use overlay::whole_file::{self, Readers};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use wire::address::Address;

/// Make the directory, for its owner only, if it is not there.
pub(crate) fn prepare(path: &Path) -> anyhow::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| {
        format!("cannot make the state directory {}; give another with --state DIR", path.display())
    })
}

/// The address that other programs of this user read.
#[derive(Debug)]
pub(crate) struct ToldAddress {
    path: PathBuf,
    /// Which file it is: device and inode.
    file: Option<(u64, u64)>,
}

impl ToldAddress {
    /// Tell other programs of this user where queries go.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn tell(state: &Path, address: &str) -> anyhow::Result<ToldAddress> {
        let path = state.join(LISTEN_FILE);
        whole_file::replace(&path, Readers::AsMasked, format!("{address}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(ToldAddress { file: identity(&path), path })
    }

    /// Take it back, unless a daemon that was started meanwhile has told its own.
    pub(crate) fn take_back(self) {
        if self.file.is_some() && identity(&self.path) == self.file {
            // Only a hint for clients: that it stays behind does no harm, they say that nobody answers.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Tell commands where other daemons reach this one; nothing is told for the usual place.
pub(crate) fn write_reached(state: &Path, addresses: &[Address]) -> anyhow::Result<()> {
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
    whole_file::replace(&path, Readers::AsMasked, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_takes_back_its_own_address_and_no_other() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join(LISTEN_FILE);
        let ending = ToldAddress::tell(state.path(), "127.0.0.1:7317").unwrap();
        // The same address: it was free again.
        let next = ToldAddress::tell(state.path(), "127.0.0.1:7317").unwrap();
        ending.take_back();
        assert!(path.exists(), "that of the next one");
        next.take_back();
        assert!(!path.exists());
    }
}
