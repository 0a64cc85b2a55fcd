//! Safe opening of a file that a process's environment names: the process's user gains nothing by the name
//! and cannot block the sensor.
//!
//! Shell. The path is the user's choice, and this program may be root. Rules: each part of the path is opened
//! relative to the folder before it (`O_PATH`, which starts no device and waits for no writer), and none on a
//! file system that may not answer. The type of the file system is looked up in the table of mounts before
//! the part is opened and, by the number of the mount, after it, since another one may have been mounted
//! meanwhile. The file must be a regular file of the process's own user. Symbolic links are followed only in
//! folders, and only those that root owns. The length that is read is limited.
//! Sources: open(2), openat(2), proc_pid_fdinfo(5), proc_pid_mountinfo(5).
//! Not here: the content of the file (`job_names`).

use crate::sample::host::mounts;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Most of a job's file that is read, in bytes.
const LEN_MAX_BYTES: u64 = 128 << 10;
/// Most symbolic links that are followed in one path.
const LINKS_MAX: usize = 8;
/// Most of the table of mounts that is read, in bytes: some 100,000 mounts.
const TABLE_LEN_MAX_BYTES: u64 = 16 << 20;
/// A file system type beside the local ones: only root mounts it where this program looks, and it answers as
/// fast as its layers do.
const OVERLAY: &[u8] = b"overlay";

/// Reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The path is not absolute, or has `..`.
    #[error("expected an absolute path without ..")]
    Path,
    /// A part is on a file system that may not answer, or on one of the kernel's.
    #[error("it is on a file system of type {0}, where no job's file is read")]
    FileSystem(String),
    /// It leads through a symbolic link that is not followed.
    #[error("it leads through a symbolic link that is not root's")]
    Link,
    /// It is not a regular file.
    #[error("it is not a plain file")]
    Kind,
    /// It belongs to another user.
    #[error("it belongs to user {found}, and the process to user {expected}")]
    Owner {
        /// User of the process.
        expected: u32,
        /// Owner of the file.
        found: u32,
    },
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Refusal {
    /// Returns whether the file is merely absent or out of reach, as a file in a container's own root is;
    /// that is no failure.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Refusal::System(_))
    }
}

/// Table of mounts at one moment.
struct Mounts {
    text: Vec<u8>,
    root: u64,
}

/// Reads a file that a process of user `owner` names; `allowed` are types of file systems that the
/// configuration adds.
///
/// # Errors
/// If the file is not read.
pub fn read(path: &Path, owner: u32, allowed: &[String]) -> Result<Vec<u8>, Refusal> {
    let file = open(path, owner, allowed)?;
    let mut text = Vec::new();
    file.take(LEN_MAX_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

fn open(path: &Path, owner: u32, allowed: &[String]) -> Result<File, Refusal> {
    let mut left = parts(path)?;
    let mut folder = open_part(None, OsStr::new("/"))?;
    let mounts = Mounts::read(&folder)?;
    let mut place = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        let next_place = place.join(&part);
        mounts.check_place(&next_place, allowed)?;
        let next = open_part(Some(&folder), &part)?;
        mounts.check_opened(&next, allowed)?;
        let (kind, uid) = kind_and_owner(&next)?;
        match kind {
            FileType::Directory if !left.is_empty() => (folder, place) = (next, next_place),
            FileType::Symlink if !left.is_empty() && uid == 0 && links < LINKS_MAX => {
                links += 1;
                let target = rustix::fs::readlinkat(&next, c"", Vec::new()).map_err(io::Error::from)?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    (folder, place) = (open_part(None, OsStr::new("/"))?, PathBuf::from("/"));
                }
                for part in parts(&Path::new("/").join(target))?.into_iter().rev() {
                    left.push_front(part);
                }
            }
            FileType::Symlink => return Err(Refusal::Link),
            FileType::RegularFile if left.is_empty() && uid == owner => return reopen(&next),
            FileType::RegularFile if left.is_empty() => {
                return Err(Refusal::Owner { expected: owner, found: uid });
            }
            FileType::RegularFile
            | FileType::Directory
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => return Err(Refusal::Kind),
        }
    }
    Err(Refusal::Kind)
}

/// Splits an absolute path into its parts.
fn parts(path: &Path) -> Result<VecDeque<OsString>, Refusal> {
    let mut all = path.components();
    if all.next() != Some(Component::RootDir) {
        return Err(Refusal::Path);
    }
    all.map(|part| match part {
        Component::Normal(part) => Ok(part.to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            Err(Refusal::Path)
        }
    })
    .collect()
}

fn open_part(folder: Option<&OwnedFd>, part: &OsStr) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match folder {
        Some(folder) => rustix::fs::openat(folder, part, flags, Mode::empty()),
        None => rustix::fs::open(part, flags, Mode::empty()),
    };
    Ok(opened.map_err(io::Error::from)?)
}

/// Returns the kind and owner of what was opened, as far as they are known without a request to a file system
/// that may not answer.
fn kind_and_owner(opened: &OwnedFd) -> Result<(FileType, u32), Refusal> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(opened, c"", flags, StatxFlags::TYPE | StatxFlags::UID);
    let found = found.map_err(io::Error::from)?;
    Ok((FileType::from_raw_mode(found.stx_mode.into()), found.stx_uid))
}

/// Opens the checked file for reading. It does not wait for a lease of the file's owner (fcntl(2),
/// `EWOULDBLOCK`).
fn reopen(found: &OwnedFd) -> Result<File, Refusal> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(File::from(rustix::fs::open(name, flags, Mode::empty()).map_err(io::Error::from)?))
}

impl Mounts {
    fn read(root: &OwnedFd) -> Result<Mounts, Refusal> {
        let mut text = Vec::new();
        File::open("/proc/self/mountinfo")?.take(TABLE_LEN_MAX_BYTES).read_to_end(&mut text)?;
        Ok(Mounts { text, root: mount_of(root)? })
    }

    /// Checks the file system mounted at a path; of several at one path, the last hides the others.
    fn check_place(&self, place: &Path, allowed: &[String]) -> Result<(), Refusal> {
        let mut here = mounts::table(&self.text);
        let mut last = None;
        while let Some(line) = here.find(|line| *line.mountpoint == *place.as_os_str().as_bytes()) {
            last = Some(line.fstype);
        }
        last.map_or(Ok(()), |fstype| check_type(fstype, allowed))
    }

    /// Checks the file system of an opened part. The mount of this program's own root may have any type:
    /// nothing works without it.
    fn check_opened(&self, opened: &OwnedFd, allowed: &[String]) -> Result<(), Refusal> {
        let id = mount_of(opened)?;
        if id == self.root {
            return Ok(());
        }
        match mounts::table(&self.text).find(|line| line.id == id) {
            Some(line) => check_type(line.fstype, allowed),
            None => Err(Refusal::FileSystem("unknown".to_owned())),
        }
    }
}

fn check_type(fstype: &[u8], allowed: &[String]) -> Result<(), Refusal> {
    let is_allowed = allowed.iter().any(|one| one.as_bytes() == fstype);
    match mounts::is_local(fstype) || fstype == OVERLAY || is_allowed {
        true => Ok(()),
        false => Err(Refusal::FileSystem(String::from_utf8_lossy(fstype).into_owned())),
    }
}

/// Returns the number of the mount that a descriptor is on; the kernel knows it without a request to the file
/// system.
fn mount_of(opened: &OwnedFd) -> Result<u64, Refusal> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()))?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    Ok(id.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn refused(path: &Path) -> String {
        read(path, own(), &[]).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_plain_file_of_the_process_s_user_is_read_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ad");
        let file = File::create(&path).unwrap();
        file.set_len(100 << 30).unwrap();
        assert_eq!(read(&path, own(), &[]).unwrap().len() as u64, LEN_MAX_BYTES);
    }

    #[test]
    fn what_is_no_plain_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(refused(&pipe), "it is not a plain file");
        assert_eq!(refused(folder.path()), "it is not a plain file");
        let device = refused(Path::new("/dev/zero"));
        assert!(device.contains("not a plain file") || device.contains("type devtmpfs"), "{device}");
    }

    #[test]
    fn the_kernel_s_own_files_are_refused() {
        assert_eq!(
            refused(Path::new("/proc/kmsg")),
            "it is on a file system of type proc, where no job's file is read"
        );
        assert!(refused(Path::new("/proc/self/environ")).contains("type proc"));
        assert!(refused(Path::new("/proc/self/root/etc/passwd")).contains("type proc"));
        assert!(refused(Path::new("/sys/kernel/uevent_seqnum")).contains("type sysfs"));
    }

    #[test]
    fn files_of_other_users_are_refused() {
        let passwd = Path::new("/etc/passwd");
        let theirs = std::fs::metadata(passwd).unwrap().uid();
        let error = read(passwd, theirs + 1, &[]).expect_err("it is refused").to_string();
        assert_eq!(error, format!("it belongs to user {theirs}, and the process to user {}", theirs + 1));
    }

    #[test]
    fn links_are_followed_only_in_folders_and_only_root_s() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::fs::write(real.join("ad"), "ClusterId = 1\n").unwrap();
        symlink(&real, folder.path().join("linked")).unwrap();
        symlink(real.join("ad"), folder.path().join("ad")).unwrap();
        assert!(refused(&folder.path().join("ad")).contains("symbolic link"));
        let through = read(&folder.path().join("linked/ad"), own(), &[]);
        assert_eq!(through.is_ok(), own() == 0, "{through:?}");
        symlink(folder.path().join("loop"), folder.path().join("loop")).unwrap();
        assert!(refused(&folder.path().join("loop/ad")).contains("symbolic link"));
    }

    #[test]
    fn what_is_absent_is_no_offence() {
        let absent = read(Path::new("/nowhere/ad"), own(), &[]).expect_err("it is not there");
        assert!(absent.is_absence(), "{absent}");
        assert_eq!(refused(Path::new("ad")), "expected an absolute path without ..");
        assert_eq!(refused(Path::new("/tmp/../etc/passwd")), "expected an absolute path without ..");
    }
}
