//! Description of a process at this moment, from its files in `/proc`.
//!
//! Shell. Rule: a process whose files cannot be read or parsed is no target: a command is executed only on a
//! process that is known.
//! Not here: what follows from it (`decision`).

use super::decision::{OwnProcess, Target};
use crate::process::stat;
use std::io;
use std::path::Path;
use wire::process::ProcessKey;

/// Most ancestors that are followed: chains of parents are short; a longer one is treated as endless.
const DEPTH_MAX: usize = 256;

/// Reads the process with this pid; `None` if there is none.
///
/// # Errors
/// If it exists and cannot be read.
pub fn read(proc: &Path, pid: u32) -> io::Result<Option<Target>> {
    let Some(text) = file(proc, pid, "stat")? else { return Ok(None) };
    let Some(status) = file(proc, pid, "status")? else { return Ok(None) };
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "its files in /proc are not as expected");
    let stat = stat::stat(&text).ok_or_else(unknown)?;
    let uids = stat::uids(&status).ok_or_else(unknown)?;
    let is_of_kernel = stat::is_of_kernel(&text).ok_or_else(unknown)?;
    Ok(Some(Target {
        key: ProcessKey { pid, start_ns: stat.start_ns },
        name: stat.name.to_string(),
        state: stat.state,
        uids,
        is_of_kernel,
        ancestors: ancestors(proc, stat.parent)?,
    }))
}

/// Reads the ancestors of this program's own process.
///
/// # Errors
/// If they cannot be read.
pub fn own(proc: &Path) -> io::Result<OwnProcess> {
    let pid = std::process::id();
    let parent = file(proc, pid, "stat")?.and_then(|text| stat::stat(&text)).map(|stat| stat.parent);
    let parent = parent.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(OwnProcess { pid, ancestors: ancestors(proc, parent)? })
}

/// Returns `parent` and its ancestors. A process that ended meanwhile ends the walk: its children have
/// another parent now.
fn ancestors(proc: &Path, parent: u32) -> io::Result<Vec<u32>> {
    let (mut found, mut next) = (Vec::new(), parent);
    while next != 0 {
        if found.len() == DEPTH_MAX || found.contains(&next) {
            return Err(io::Error::other("its parents are a chain without end"));
        }
        found.push(next);
        let above = file(proc, next, "stat")?.and_then(|text| stat::stat(&text)).map(|stat| stat.parent);
        next = above.unwrap_or(0);
    }
    Ok(found)
}

/// Reads a file of a process; `None` if the process has ended.
fn file(proc: &Path, pid: u32, name: &str) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(proc.join(pid.to_string()).join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // The error for a process that is just being removed.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROC: &str = "/proc";

    #[test]
    fn a_process_is_read_with_those_above_it() {
        let own = own(Path::new(PROC)).expect("this process");
        let read = read(Path::new(PROC), own.pid).expect("readable").expect("there");
        assert_eq!(read.ancestors, own.ancestors);
        assert_eq!(read.ancestors.first(), Some(&std::os::unix::process::parent_id()));
        assert!(!read.is_of_kernel && read.key.start_ns > 0);
        assert_eq!(read.uids[0], rustix::process::getuid().as_raw());
    }

    #[test]
    fn what_is_not_there_or_not_understood_is_no_target() {
        assert_eq!(read(Path::new(PROC), 1 << 30).expect("no error"), None);
        let folder = tempfile::tempdir().expect("a folder");
        let process = folder.path().join("7");
        std::fs::create_dir(&process).expect("made");
        let write = |name: &str, text: &str| std::fs::write(process.join(name), text).expect("written");
        write("stat", "7 (a) S 7 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0");
        assert_eq!(read(folder.path(), 7).expect("no error"), None, "half of it is gone");
        write("status", "Name:\ta\nUid:\t1\t2\t3\n");
        assert!(read(folder.path(), 7).is_err(), "three users");
        write("status", "Name:\ta\nUid:\t1\t2\t3\t4\n");
        assert!(read(folder.path(), 7).is_err(), "its own parent");
    }
}
