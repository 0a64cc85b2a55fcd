//! State folder of a daemon: created, checked at the start, and watched.
//!
//! Rules: a folder that other users can write, or that belongs to another user, is refused, because its files
//! could be replaced. The folder that an operator names may be a symbolic link, which is resolved once; a
//! folder below it may not.
//! Not here: the files in it (`state_file`), its default path.

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system returned an error.
    #[error("cannot {action} the state folder {}: {error}", path.display())]
    System {
        /// Failed operation.
        action: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// The path is not a folder.
    #[error("{}: expected a folder, found {found}; find out how it came there, and remove it", path.display())]
    Kind {
        path: PathBuf,
        /// What is at the path.
        found: &'static str,
    },
    /// The folder belongs to another user.
    #[error("the state folder {} belongs to user {found}, expected user {expected}, who runs this, or root; {}",
        path.display(), owner_hint(path, *found, *expected))]
    Owner {
        path: PathBuf,
        /// User id of the owner.
        found: u32,
        /// User id of this process.
        expected: u32,
    },
    /// Other users can write to the folder.
    #[error("the state folder {} has mode {mode:04o}, expected one that group and others cannot write: they could have \
        replaced the files in it; look at what is in it, then type `chmod go-w {}`", path.display(), path.display())]
    Mode {
        /// Path of the folder.
        path: PathBuf,
        /// Permissions of the folder.
        mode: u32,
    },
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::System { error, .. } => error.kind(),
            Error::Kind { .. } | Error::Owner { .. } | Error::Mode { .. } => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

fn owner_hint(path: &Path, found: u32, expected: u32) -> String {
    let shown = path.display();
    match expected {
        0 => format!(
            "run it as that user: setpriv --reuid {found} --clear-groups visperf ..., or as the service of that user"
        ),
        _ => format!("choose another folder with --state DIR, or have root type `chown {expected} {shown}`"),
    }
}

/// Create the state folder, accessible to its owner only, if it does not exist, and check it. Returns its
/// path without links.
///
/// # Errors
/// If it cannot be created or must not be used.
pub fn prepare(path: &Path) -> Result<PathBuf, Error> {
    make(path)?;
    check(path)
}

/// Check an existing state folder. Returns its path without links.
///
/// # Errors
/// If it must not be used.
pub fn check(path: &Path) -> Result<PathBuf, Error> {
    let resolved = path.canonicalize().map_err(system("look at", path))?;
    check_itself(&resolved)?;
    Ok(resolved)
}

/// Create a folder below the state folder, accessible to its owner only, if it does not exist, and check it:
/// it may not be a link. The folder around it is not created: a state folder that was removed while its daemon runs could
/// not be put back then.
///
/// # Errors
/// If it cannot be created or must not be used.
pub fn prepare_below(path: &Path) -> Result<(), Error> {
    match check_itself(path) {
        Err(Error::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
        checked => return checked,
    }
    DirBuilder::new().mode(0o700).create(path).map_err(system("make", path))?;
    check_itself(path)
}

fn make(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(system("make", path))
}

fn check_itself(path: &Path) -> Result<(), Error> {
    let found = path.symlink_metadata().map_err(system("look at", path))?;
    let kind = match found.is_dir() {
        true => None,
        false if found.is_symlink() => Some("a symbolic link, which is not followed here"),
        false => Some("a file"),
    };
    if let Some(found) = kind {
        return Err(Error::Kind { path: path.to_owned(), found });
    }
    check_rights(path, found.uid(), rustix::process::geteuid().as_raw(), found.mode())
}

fn check_rights(path: &Path, found: u32, expected: u32, mode: u32) -> Result<(), Error> {
    if found != expected && found != 0 {
        return Err(Error::Owner { path: path.to_owned(), found, expected });
    }
    // A sticky folder is refused, too: other users cannot replace files in it, but can create new ones.
    if mode & 0o022 != 0 {
        return Err(Error::Mode { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

fn system(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |error| Error::System { action, path, error }
}

/// Paths that must not change: a running daemon detects by them that its state folder was removed or
/// replaced.
#[derive(Debug)]
pub struct Landmarks(Vec<Landmark>);

#[derive(Debug)]
struct Landmark {
    path: PathBuf,
    /// Held open, so that the file system does not reuse its inode meanwhile.
    opened: OwnedFd,
}

/// Device and inode.
type Identity = (u64, u64);

impl Landmarks {
    /// Record the existing paths among these: folders, and files that are never replaced.
    #[must_use]
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Landmarks {
        let found = |path: PathBuf| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
            Some(Landmark { path, opened })
        };
        Landmarks(paths.into_iter().filter_map(found).collect())
    }

    /// The first path that has changed, and the reason as short text.
    #[must_use]
    pub fn missing(&self) -> Option<(&Path, String)> {
        self.0.iter().find_map(|landmark| {
            let own = rustix::fs::fstat(&landmark.opened).map(|found| identity(&found));
            let there = rustix::fs::lstat(&landmark.path).map(|found| identity(&found));
            let why = match (own, there) {
                (Ok(own), Ok(there)) if own == there => return None,
                (Ok(_), Ok(_)) => "was replaced by another".to_owned(),
                (_, Err(Errno::NOENT)) => "was removed".to_owned(),
                (_, Err(error)) | (Err(error), _) => format!("cannot be looked at: {error}"),
            };
            Some((landmark.path.as_path(), why))
        })
    }
}

fn identity(found: &Stat) -> Identity {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_folder_that_others_can_write_or_own_is_refused_with_what_to_type() {
        let path = Path::new("/state");
        for mode in [0o700, 0o750, 0o755, 0o500, 0o2755] {
            check_rights(path, 1000, 1000, 0o040_000 | mode).expect("its own");
            check_rights(path, 0, 1000, 0o040_000 | mode).expect("root's");
        }
        for mode in [0o770, 0o775, 0o702, 0o777, 0o1777] {
            let error = check_rights(path, 1000, 1000, 0o040_000 | mode).expect_err("open").to_string();
            assert!(error.contains("`chmod go-w /state`"), "{error}");
            assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
        }
        let error = check_rights(path, 1000, 0, 0o040_700).expect_err("another's").to_string();
        assert!(error.contains("setpriv --reuid 1000"), "{error}");
        let error = check_rights(path, 1001, 1000, 0o040_700).expect_err("another's").to_string();
        assert!(error.contains("`chown 1000 /state`"), "{error}");
    }

    #[test]
    fn a_named_folder_may_be_a_link_and_one_below_it_may_not() {
        let outside = tempfile::tempdir().expect("a folder");
        let (real, link) = (outside.path().join("real"), outside.path().join("link"));
        assert_eq!(prepare(&real).expect("made"), real.canonicalize().expect("there"));
        assert_eq!(fs::metadata(&real).expect("there").mode() & 0o777, 0o700);
        symlink(&real, &link).expect("a link");
        assert_eq!(prepare(&link).expect("resolved"), real.canonicalize().expect("there"));
        fs::set_permissions(&real, Permissions::from_mode(0o720)).expect("changed");
        assert!(
            matches!(prepare(&link), Err(Error::Mode { mode: 0o720, .. })),
            "what it leads to is checked"
        );
        assert!(matches!(prepare_below(&link), Err(Error::Kind { .. })));
        let below = outside.path().join("a/b");
        assert!(
            matches!(prepare_below(&below), Err(Error::System { .. })),
            "the folder around it was removed"
        );
        fs::create_dir(outside.path().join("a")).expect("made");
        prepare_below(&below).expect("made");
        prepare_below(&below).expect("there");
        fs::set_permissions(&below, Permissions::from_mode(0o707)).expect("changed");
        assert!(matches!(prepare_below(&below), Err(Error::Mode { .. })));
        fs::write(outside.path().join("file"), "").expect("written");
        assert!(matches!(
            prepare_below(&outside.path().join("file")),
            Err(Error::Kind { found: "a file", .. })
        ));
    }

    #[test]
    fn what_is_removed_or_replaced_is_noticed_and_what_comes_back_too() {
        let outside = tempfile::tempdir().expect("a folder");
        let (state, aside) = (outside.path().join("state"), outside.path().join("aside"));
        fs::create_dir(&state).expect("made");
        fs::write(state.join("lock"), "").expect("written");
        let marks = Landmarks::of([state.join("lock"), state.join("absent")]);
        assert_eq!(marks.missing(), None);
        fs::write(state.join("lock"), "more").expect("written");
        assert_eq!(marks.missing(), None, "its content may change");
        fs::rename(&state, &aside).expect("moved");
        let lock = state.join("lock");
        assert_eq!(marks.missing(), Some((lock.as_path(), "was removed".to_owned())));
        fs::create_dir(&state).expect("made");
        fs::write(&lock, "").expect("written");
        assert_eq!(marks.missing(), Some((lock.as_path(), "was replaced by another".to_owned())));
        fs::remove_dir_all(&state).expect("removed");
        fs::rename(&aside, &state).expect("moved back");
        assert_eq!(marks.missing(), None);
    }
}
