//! File system access: what is at a path, opening it safely, and reading and comparing its content.
//!
//! Rule: only plain files are ever opened, and only below the allowed roots, even if links are replaced
//! meanwhile: the path is resolved and checked, and then the kernel opens it beneath the root without
//! following links.
//! Not here: what follows from it ([`super::follow`]).

use super::follow::{AtPath, Fingerprint};
use crate::journal::frame::{Identity, Print};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub identity: Identity,
    /// Its length, in bytes.
    pub size: u64,
    pub kind: FileType,
    /// Names it has; 0 if it was deleted.
    pub links: u32,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i128,
}

impl From<&Statx> for Stat {
    fn from(stat: &Statx) -> Stat {
        let nanos = |secs: i64, nanos: u32| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        let born = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        let identity = Identity {
            device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            born: born.then(|| nanos(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
        };
        Stat {
            identity,
            size: stat.stx_size,
            kind: FileType::from_raw_mode(stat.stx_mode.into()),
            links: stat.stx_nlink,
            modified: nanos(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        }
    }
}

/// Look at a path, following links.
///
/// # Errors
/// What the system says.
pub fn stat(path: &Path) -> io::Result<Stat> {
    let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(Stat::from(&rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, flags)?))
}

/// Look at an open file.
///
/// # Errors
/// What the system says.
pub fn stat_open(file: &File) -> io::Result<Stat> {
    let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(Stat::from(&rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, flags)?))
}

/// What is at a path. `directory` is the device of its directory when the file was last seen there.
#[must_use]
pub fn at_path(path: &Path, directory: Option<u64>) -> AtPath {
    match stat(path) {
        Ok(stat) => plain(&stat)
            .map_or_else(AtPath::Refused, |()| AtPath::File { identity: stat.identity, size: stat.size }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => absent(path, directory),
        Err(error) => AtPath::Unknown(format!("cannot look at it: {error}")),
    }
}

fn absent(path: &Path, directory: Option<u64>) -> AtPath {
    let parent = path.parent().unwrap_or(Path::new("/"));
    match stat(parent) {
        Ok(stat) if directory.is_some_and(|known| known != stat.identity.device) => AtPath::Unknown(
            "its directory is on another file system than before (is one not mounted?)".into(),
        ),
        Ok(_) => AtPath::Nothing,
        // If the file was never seen, its directory may be created with it.
        Err(error) if directory.is_none() && error.kind() == io::ErrorKind::NotFound => AtPath::Nothing,
        Err(error) => AtPath::Unknown(format!("cannot look at its directory: {error}")),
    }
}

fn plain(stat: &Stat) -> Result<(), String> {
    let what = match stat.kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink | FileType::Unknown => "not a plain file",
    };
    Err(format!("expected a plain file, found {what}; it is not read"))
}

/// Open a plain file beneath one of the roots for reading.
///
/// # Errors
/// What is there instead, or why that is not known.
pub fn open(path: &Path, roots: &[PathBuf]) -> Result<(File, Stat), AtPath> {
    let unknown = |what: &str, error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            AtPath::Nothing
        } else {
            AtPath::Unknown(format!("cannot {what}: {error}"))
        }
    };
    let real = path.canonicalize().map_err(|error| unknown("resolve it", error))?;
    let roots = roots.iter().filter_map(|root| root.canonicalize().ok());
    let Some((root, inside)) = roots
        .filter_map(|root| real.strip_prefix(&root).ok().map(|inside| (root.clone(), inside.to_owned())))
        .next()
    else {
        let to = real.display();
        return Err(AtPath::Refused(format!(
            "it leads to {to}, outside the allowed roots; it is not read; follow {to} itself, or allow its folder (`roots` of the log in a configuration file)"
        )));
    };
    // Checked before it is opened: opening a FIFO or a device can block or have effects.
    let before = stat(&real).map_err(|error| unknown("look at it", error))?;
    plain(&before).map_err(AtPath::Refused)?;
    let file = open_beneath(&root, &inside).map_err(|error| unknown("open it", error))?;
    let stat = stat_open(&file).map_err(|error| unknown("look at it", error))?;
    plain(&stat).map_err(AtPath::Refused)?;
    Ok((file, stat))
}

fn open_beneath(root: &Path, inside: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root_fd = rustix::fs::open(root, directory, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&root_fd, inside, flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(fd.into()),
        // Old kernels and strict sandboxes have no openat2: at least the last component is not followed.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            Ok(rustix::fs::openat(&root_fd, inside, flags, Mode::empty())?.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Up to `len` bytes of a file from `offset` on; fewer at its end.
///
/// # Errors
/// What the system says.
pub fn read(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let done = read_into(file, &mut bytes, offset)?;
    bytes.truncate(done);
    Ok(bytes)
}

/// Fill the buffer from `offset` on, as far as the file goes; how many bytes it got.
pub(super) fn read_into(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The bytes of a file before `offset`, at most `len`.
///
/// # Errors
/// What the system says.
pub fn read_before(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let len = usize::try_from(offset).unwrap_or(usize::MAX).min(len);
    read(file, offset - len as u64, len)
}

/// Whether a file has the content of a fingerprint.
///
/// # Errors
/// What the system says.
pub fn content_fits(file: &File, known: &Fingerprint) -> io::Result<bool> {
    let fits = |print: &Print, offset: u64| -> io::Result<bool> {
        Ok(print.fits(&read(file, offset, usize::from(print.len))?))
    };
    let before = known.offset.saturating_sub(u64::from(known.before.len));
    Ok(fits(&known.before, before)? && fits(&known.prefix, 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_may_not_lead_outside_the_roots() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("secret"), "x").unwrap();
        std::fs::write(inside.join("log"), "y").unwrap();
        symlink(outside.join("secret"), inside.join("bad")).unwrap();
        symlink("log", inside.join("good")).unwrap();
        assert!(matches!(open(&inside.join("bad"), std::slice::from_ref(&inside)), Err(AtPath::Refused(_))));
        assert!(open(&inside.join("bad"), &[inside.clone(), outside]).is_ok());
        assert!(open(&inside.join("good"), std::slice::from_ref(&inside)).is_ok());
        // The kernel itself refuses a link that appears after the path was resolved.
        assert!(open_beneath(&inside, Path::new("bad")).is_err());
        assert!(open_beneath(&inside, Path::new("../out/secret")).is_err());
    }

    #[test]
    fn what_is_not_a_plain_file_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        for (path, word) in
            [(fifo, "FIFO"), (directory.path().join("socket"), "socket"), ("/dev/null".into(), "device")]
        {
            let roots = [directory.path().to_owned(), "/dev".into()];
            let refused = open(&path, &roots).unwrap_err();
            assert!(matches!(&refused, AtPath::Refused(why) if why.contains(word)), "{refused:?}");
            assert!(matches!(at_path(&path, None), AtPath::Refused(_)));
        }
    }

    #[test]
    fn an_absent_file_is_distinguished_from_an_absent_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let device = stat(directory.path()).unwrap().identity.device;
        assert_eq!(at_path(&path, Some(device)), AtPath::Nothing);
        assert!(matches!(at_path(&path, Some(device + 1)), AtPath::Unknown(_)));
        assert_eq!(at_path(&path.join("x"), None), AtPath::Nothing, "its folder may come with it");
        assert!(matches!(at_path(&path.join("x"), Some(device)), AtPath::Unknown(_)));
    }
}
