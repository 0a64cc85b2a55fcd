//! Where keys and certificates are kept on a host unless told otherwise, with all else that a daemon keeps.
//!
//! Not here: what is in that folder.

use std::path::PathBuf;

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
    use std::path::Path;

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
