//! The state directory: where it is by default, and making it.

use anyhow::Context as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The file in it that names the address queries go to.
pub(crate) const LISTEN_FILE: &str = "listen";

/// Where daemons keep their state unless told otherwise: `/var/lib/visperf` for root, else
/// `$XDG_STATE_HOME/visperf` or `~/.local/state/visperf`.
pub(crate) fn default_path() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/visperf");
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .unwrap_or_else(|| PathBuf::from("/var/tmp"))
        .join("visperf")
}

/// Make the directory, for its owner only, if it is not there.
pub(crate) fn prepare(path: &Path) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the state directory {}; give another with --state DIR", path.display()))
}

/// Tell other programs of this user where queries go.
pub(crate) fn write_listen(state: &Path, address: &str) -> anyhow::Result<()> {
    let path = state.join(LISTEN_FILE);
    let fresh = state.join(".listen.new");
    std::fs::write(&fresh, format!("{address}\n"))
        .and_then(|()| std::fs::rename(&fresh, &path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Take it back.
pub(crate) fn remove_listen(state: &Path) {
    // Only a hint for clients: that it stays behind does no harm, they say that nobody answers.
    let _ = std::fs::remove_file(state.join(LISTEN_FILE));
}
