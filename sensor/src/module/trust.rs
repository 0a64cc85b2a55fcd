//! Which files may say what runs, and may run: those that nobody but root and the sensor's own user can have written.
//!
//! Shell: it looks at files. Rules: the file, and every folder on the way to it, belong to root or to the sensor's user and are
//! written by their owner alone; a folder in which everybody may make files but only remove their own (`/tmp`) may be on the way.
//! Of a symbolic link both the link's way and that of what it leads to are looked at.
//! Not here: what is in the file (`spec`).

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a file is not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be looked at.
    #[error("cannot look at {}: {error}", path.display())]
    Look {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is no file.
    #[error("expected a file, found something else at {}", .0.display())]
    NoFile(PathBuf),
    /// It cannot be run.
    #[error("expected an executable file; chmod +x {}", .0.display())]
    NotExecutable(PathBuf),
    /// It is somebody else's.
    #[error(
        "expected root or the sensor's own user (uid {own}) to own it, found uid {found}, who could run anything by it; chown it: {}",
        path.display()
    )]
    Owner {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// The sensor's.
        own: u32,
    },
    /// Others may write it.
    #[error(
        "expected it to be writable by its owner alone, found mode {mode:03o}, so that others could run anything by it; \
         chmod go-w {}",
        path.display()
    )]
    Writable {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// What tells a file from a later one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(found: &Metadata) -> Identity {
        // The time of change, which nobody can set back.
        Identity {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// A file that is trusted.
///
/// # Errors
/// If it is not, and why.
pub fn file(path: &Path) -> Result<Identity, Error> {
    let found = trusted(path)?;
    if found.is_file() { Ok(Identity::of(&found)) } else { Err(Error::NoFile(path.to_owned())) }
}

/// Likewise one that is to be run.
///
/// # Errors
/// Likewise.
pub fn executable(path: &Path) -> Result<Identity, Error> {
    let found = trusted(path)?;
    if !found.is_file() {
        return Err(Error::NoFile(path.to_owned()));
    }
    if found.mode() & 0o111 == 0 {
        return Err(Error::NotExecutable(path.to_owned()));
    }
    Ok(Identity::of(&found))
}

/// A folder that is trusted.
///
/// # Errors
/// If it is not, and why.
pub fn folder(path: &Path) -> Result<(), Error> {
    trusted(path).map(drop)
}

fn trusted(path: &Path) -> Result<Metadata, Error> {
    let own = rustix::process::geteuid().as_raw();
    let look = |error| Error::Look { path: path.to_owned(), error };
    let real = fs::canonicalize(path).map_err(look)?;
    for way in [path, real.as_path()] {
        for step in way.ancestors().skip(1).filter(|step| !step.as_os_str().is_empty()) {
            let found = fs::metadata(step).map_err(look)?;
            judge(step, &found, own, Step::OnTheWay)?;
        }
    }
    let found = fs::metadata(&real).map_err(look)?;
    judge(&real, &found, own, Step::Itself)?;
    Ok(found)
}

/// What of a path is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    OnTheWay,
    Itself,
}

fn judge(path: &Path, found: &Metadata, own: u32, step: Step) -> Result<(), Error> {
    verdict(found.uid(), found.mode(), own, step).map_err(|wrong| match wrong {
        Wrong::Owner => Error::Owner { path: path.to_owned(), found: found.uid(), own },
        Wrong::Writable => Error::Writable { path: path.to_owned(), mode: found.mode() & 0o777 },
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Owner,
    Writable,
}

fn verdict(owner: u32, mode: u32, own: u32, step: Step) -> Result<(), Wrong> {
    const STICKY: u32 = 0o1000;
    if owner != 0 && owner != own {
        return Err(Wrong::Owner);
    }
    let is_sticky_way = step == Step::OnTheWay && mode & STICKY != 0;
    if mode & 0o022 != 0 && !is_sticky_way { Err(Wrong::Writable) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_root_and_the_sensors_user_are_believed() {
        let check = |owner, mode, step, expected: Result<(), Wrong>| {
            assert_eq!(verdict(owner, mode, 1000, step), expected, "{owner} {mode:o}");
        };
        check(0, 0o100_755, Step::Itself, Ok(()));
        check(1000, 0o100_700, Step::Itself, Ok(()));
        check(1001, 0o100_755, Step::Itself, Err(Wrong::Owner));
        check(1000, 0o100_775, Step::Itself, Err(Wrong::Writable));
        check(1000, 0o100_757, Step::Itself, Err(Wrong::Writable));
        check(0, 0o041_777, Step::OnTheWay, Ok(()));
        check(0, 0o041_777, Step::Itself, Err(Wrong::Writable));
        check(0, 0o040_777, Step::OnTheWay, Err(Wrong::Writable));
    }

    #[test]
    fn a_file_that_others_may_write_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m");
        std::fs::write(&path, "").expect("written");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        mode(&path, 0o666);
        let told = file(&path).expect_err("others may write it").to_string();
        assert!(
            told.contains("found mode 666") && told.ends_with(&format!("chmod go-w {}", path.display())),
            "{told}"
        );
        mode(&path, 0o644);
        assert!(file(&path).is_ok());
        assert!(executable(&path).expect_err("not executable").to_string().contains("chmod +x"));
        mode(&path, 0o755);
        let first = executable(&path).expect("good");
        mode(folder.path(), 0o770);
        assert!(executable(&path).is_err(), "whoever may write the folder may replace the file");
        mode(folder.path(), 0o700);
        std::fs::write(&path, "longer").expect("written");
        assert_ne!(executable(&path).expect("good"), first);
        let (open, link) = (folder.path().join("open"), folder.path().join("link"));
        std::fs::create_dir(&open).expect("made");
        std::fs::write(open.join("m"), "").expect("written");
        mode(&open.join("m"), 0o755);
        mode(&open, 0o777);
        symlink(open.join("m"), &link).expect("made");
        assert!(executable(&link).is_err(), "what a link leads to is looked at too");
        assert!(file(folder.path()).is_err(), "a folder is no file");
    }
}
