//! Trust in files: a module file or executable is used only if no user except root and the sensor's own can
//! have written it.
//!
//! Shell: it reads metadata. Rules: the file, and every folder on the path to it, must belong to root or to
//! the sensor's user and be writable by its owner alone; a folder with the sticky bit (`/tmp`), where users
//! can remove only their own files, may be on the path. Symbolic links are followed one by one: the owner of
//! each link, and every folder on each path, is checked. What is then opened or run is the path without
//! links, where no other user can put another file.
//! Not here: the content of the file (`spec`).

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Why a file is not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be examined.
    #[error("cannot look at {}: {error}", path.display())]
    Look {
        /// The path.
        path: PathBuf,
        error: io::Error,
    },
    /// It is not a regular file.
    #[error("expected a file, found something else at {}", .0.display())]
    NoFile(PathBuf),
    /// It is not executable.
    #[error("expected an executable file; chmod +x {}", .0.display())]
    NotExecutable(PathBuf),
    /// It belongs to another user.
    #[error(
        "expected root or the sensor's own user (uid {own}) to own it, found uid {found}, who could run anything by it; chown it: {}",
        path.display()
    )]
    Owner {
        path: PathBuf,
        /// User id of the owner.
        found: u32,
        /// User id of the sensor.
        own: u32,
    },
    /// Other users may write it.
    #[error(
        "expected it to be writable by its owner alone, found mode {mode:03o}, so that others could run anything by it; \
         chmod go-w {}",
        path.display()
    )]
    Writable {
        path: PathBuf,
        /// Permission bits.
        mode: u32,
    },
}

/// Most symbolic links on a path: as many as the kernel follows.
const LINKS_MAX: u32 = 40;

/// Identity of a file's content, to detect that the file was changed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(found: &Metadata) -> Identity {
        // The time of the last status change, which no user can set back.
        Identity {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// A trusted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// Path without symbolic links: no other user can put another file there.
    pub path: PathBuf,
    /// To detect a change.
    pub identity: Identity,
}

/// Checks the file at this path.
///
/// # Errors
/// If it is not trusted; says why.
pub fn file(path: &Path) -> Result<Trusted, Error> {
    let (real, found) = trusted(path)?;
    if !found.is_file() {
        return Err(Error::NoFile(path.to_owned()));
    }
    Ok(Trusted { path: real, identity: Identity::of(&found) })
}

/// Checks the file at this path, which must be executable too.
///
/// # Errors
/// If it is not trusted or not executable; says why.
pub fn executable(path: &Path) -> Result<Trusted, Error> {
    let (real, found) = trusted(path)?;
    if !found.is_file() {
        return Err(Error::NoFile(path.to_owned()));
    }
    if found.mode() & 0o111 == 0 {
        return Err(Error::NotExecutable(path.to_owned()));
    }
    Ok(Trusted { path: real, identity: Identity::of(&found) })
}

/// Checks the folder at this path; returns its path without symbolic links.
///
/// # Errors
/// If it is not trusted; says why.
pub fn folder(path: &Path) -> Result<PathBuf, Error> {
    trusted(path).map(|(real, _)| real)
}

/// Follows the path step by step, as the kernel does (path_resolution(7)), and checks each step.
fn trusted(path: &Path) -> Result<(PathBuf, Metadata), Error> {
    let own = rustix::process::geteuid().as_raw();
    let look = |error| Error::Look { path: path.to_owned(), error };
    let mut left = steps(&std::path::absolute(path).map_err(look)?);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut found = fs::metadata(&at).map_err(look)?;
    while let Some(name) = left.pop() {
        judge(&at, &found, own, Step::OnTheWay)?;
        match name.as_os_str().as_bytes() {
            b"/" => at = PathBuf::from("/"),
            b".." => {
                at.pop();
            }
            _ => {
                let next = at.join(&name);
                let step = fs::symlink_metadata(&next).map_err(look)?;
                if step.is_symlink() {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(look(io::Error::from(rustix::io::Errno::LOOP)));
                    }
                    // The mode of a link means nothing, but its owner matters: in a folder with the sticky
                    // bit the owner may replace it.
                    judge(&next, &step, own, Step::Link)?;
                    left.extend(steps(&fs::read_link(&next).map_err(look)?));
                    continue;
                }
                at = next;
            }
        }
        found = fs::metadata(&at).map_err(look)?;
    }
    judge(&at, &found, own, Step::Itself)?;
    Ok((at, found))
}

/// Components of a path, the last one first; for an absolute path the list ends with `/`.
fn steps(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().into())
        .collect()
}

/// Part of a path that is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    OnTheWay,
    Link,
    Itself,
}

fn judge(path: &Path, found: &Metadata, own: u32, step: Step) -> Result<(), Error> {
    verdict(found.uid(), found.mode(), own, step).map_err(|wrong| match wrong {
        Violation::Owner => Error::Owner { path: path.to_owned(), found: found.uid(), own },
        Violation::Writable => Error::Writable { path: path.to_owned(), mode: found.mode() & 0o777 },
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Violation {
    Owner,
    Writable,
}

fn verdict(owner: u32, mode: u32, own: u32, step: Step) -> Result<(), Violation> {
    const STICKY: u32 = 0o1000;
    if owner != 0 && owner != own {
        return Err(Violation::Owner);
    }
    let is_sticky_way = step == Step::OnTheWay && mode & STICKY != 0;
    if mode & 0o022 != 0 && !is_sticky_way && step != Step::Link { Err(Violation::Writable) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_root_and_the_sensors_user_are_believed() {
        let check = |owner, mode, step, expected: Result<(), Violation>| {
            assert_eq!(verdict(owner, mode, 1000, step), expected, "{owner} {mode:o}");
        };
        check(0, 0o100_755, Step::Itself, Ok(()));
        check(1000, 0o100_700, Step::Itself, Ok(()));
        check(1001, 0o100_755, Step::Itself, Err(Violation::Owner));
        check(1000, 0o100_775, Step::Itself, Err(Violation::Writable));
        check(1000, 0o100_757, Step::Itself, Err(Violation::Writable));
        check(0, 0o041_777, Step::OnTheWay, Ok(()));
        check(0, 0o041_777, Step::Itself, Err(Violation::Writable));
        check(0, 0o040_777, Step::OnTheWay, Err(Violation::Writable));
        check(0, 0o120_777, Step::Link, Ok(()));
        check(1001, 0o120_777, Step::Link, Err(Violation::Owner));
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
        let text = file(&path).expect_err("others may write it").to_string();
        assert!(
            text.contains("found mode 666") && text.ends_with(&format!("chmod go-w {}", path.display())),
            "{text}"
        );
        mode(&path, 0o644);
        assert!(file(&path).is_ok());
        assert!(executable(&path).expect_err("not executable").to_string().contains("chmod +x"));
        mode(&path, 0o755);
        let first = executable(&path).expect("good");
        mode(folder.path(), 0o770);
        assert!(executable(&path).is_err(), "a user who may write the folder may replace the file");
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
        symlink("../m", open.join("between")).expect("made");
        fs::remove_file(&link).expect("it is ours");
        symlink("open/between", &link).expect("made");
        let text = executable(&link).expect_err("a link between").to_string();
        assert!(text.ends_with(&format!("chmod go-w {}", open.display())), "{text}");
        mode(&open, 0o755);
        assert_eq!(executable(&link).expect("good").path, fs::canonicalize(&path).expect("it is there"));
        symlink("loop", folder.path().join("loop")).expect("made");
        assert!(file(&folder.path().join("loop")).is_err(), "a link to itself");
        assert!(file(folder.path()).is_err(), "a folder is no file");
    }
}
