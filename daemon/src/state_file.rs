//! Files of a state folder, opened without following symbolic links.
//!
//! Rule: only a regular file is opened. A link, a pipe or a device in its place is refused, and the target of
//! a link is not touched: another user may have created it to make a daemon of root overwrite a file.
//! Not here: the folder itself (`state_folder`); files that an operator names, which may be links; the
//! content of the files.

use rustix::fs::{Mode, OFlags, openat};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Open or create a file of a state folder with `options`, to which the flags that refuse a link are added.
///
/// # Errors
/// As [`OpenOptions::open`]; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe would block the daemon; for a regular file it has no effect.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    opened.map_err(explained).and_then(regular)
}

/// Open a file of a state folder for reading.
///
/// # Errors
/// As [`open`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Read a file of a state folder, at most `len_max` bytes and one more, which shows that it is too long;
/// `None` if there is no file.
///
/// # Errors
/// As [`open`], or if it cannot be read.
pub fn read(path: &Path, len_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(len_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Open the folder `path`, so that files below it can be opened even if the path changes.
///
/// # Errors
/// If it cannot be opened or is not a folder.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Open the file `name` below an open folder for reading: no component of the name may be a link.
///
/// # Errors
/// As [`open`].
pub fn open_below(folder: &OwnedFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut at = folder.try_clone()?;
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
        let opened = openat(&at, part.as_os_str(), flags | kind, Mode::empty());
        at = opened.map_err(|error| explained(error.into()))?;
    }
    regular(File::from(at))
}

/// The kernel returns ELOOP for NOFOLLOW and a link; the text of that error speaks of many links.
fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            refused("a symbolic link, which is not followed here")
        }
        _ => error,
    }
}

fn regular(file: File) -> io::Result<File> {
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok(file),
        false if found.is_dir() => Err(refused("a folder")),
        false => Err(refused("a pipe, socket or device")),
    }
}

fn refused(found: &str) -> io::Error {
    let text = format!("expected a regular file, found {found}; find out how it came there, and remove it");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_refused_and_its_target_stays_whatever_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link, absent) =
            (folder.path().join("target"), folder.path().join("link"), folder.path().join("absent"));
        fs::write(&target, "untouched").expect("written");
        symlink(&target, &link).expect("a link");
        let options = [
            OpenOptions::new().read(true).clone(),
            OpenOptions::new().write(true).create(true).truncate(true).clone(),
            OpenOptions::new().append(true).create(true).clone(),
            OpenOptions::new().read(true).write(true).create(true).truncate(false).clone(),
        ];
        for mut options in options {
            let error = open(&link, &mut options).expect_err("a link");
            assert!(error.to_string().contains("found a symbolic link"), "{error}");
            assert_eq!(fs::read(&target).expect("there"), b"untouched", "{options:?}");
        }
        fs::remove_file(&link).expect("removed");
        symlink(&absent, &link).expect("a link");
        open(&link, OpenOptions::new().write(true).create(true).truncate(true))
            .expect_err("a link to nothing");
        assert!(!absent.exists(), "nothing is made at the end of a link");
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
        let error = open_to_read(&pipe).expect_err("a pipe").to_string();
        assert!(error.contains("found a pipe"), "{error}");
        let error = open_to_read(folder.path()).expect_err("a folder").to_string();
        assert!(error.contains("found a folder"), "{error}");
        assert_eq!(read(&folder.path().join("absent"), 1).expect("none"), None);
    }

    #[test]
    fn below_an_open_folder_no_part_of_a_name_is_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("own");
        fs::create_dir(&own).expect("made");
        fs::write(own.join("key"), "x").expect("written");
        let opened = open_folder(folder.path()).expect("a folder");
        open_below(&opened, Path::new("own/key")).expect("a file");
        symlink(&own, folder.path().join("link")).expect("a link");
        symlink(own.join("key"), folder.path().join("file")).expect("a link");
        for name in ["link/key", "file", "own", "absent/key"] {
            assert!(open_below(&opened, Path::new(name)).is_err(), "{name}");
        }
    }
}
