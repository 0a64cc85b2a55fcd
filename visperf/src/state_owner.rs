//! Owner of a state folder: commands that root starts run as that user.
//!
//! The packaged daemons run as their own user. They could not read files that root creates in their folder,
//! and symbolic links there could mislead root. So a command started by root drops root's privileges and runs
//! as the owner of the folder.
//! Rule: this is permanent, applies to all threads, and happens before the first file in the folder is
//! opened.
//! Not here: permissions of the files (`overlay::identity::safe_file`).

use crate::exit::Failure;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Switch to the owner of `folder` for the rest of the process, if this is root and the folder belongs to
/// another user.
///
/// # Errors
/// If the folder's metadata cannot be read, or the system refuses the change of user.
pub(crate) fn assume(folder: &Path) -> Result<(), Failure> {
    let found = match std::fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => {
            found.map_err(|error| Failure::of(&format!("cannot look at {}", folder.display()), error))?
        }
    };
    let Some((user, group)) = other_owner(Uid::effective(), found.uid(), found.gid()) else { return Ok(()) };
    let change = setgroups(&[group])
        .and_then(|()| setresgid(group, group, group))
        .and_then(|()| setresuid(user, user, user));
    change.map_err(|error| {
        Failure::of(&format!("cannot act as user {user}, who owns {}", folder.display()), error)
    })
}

/// The user and group to switch to; `None` unless the process is root and the folder belongs to another user.
fn other_owner(own: Uid, user: u32, group: u32) -> Option<(Uid, Gid)> {
    (own.is_root() && user != 0).then(|| (Uid::from_raw(user), Gid::from_raw(group)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_acts_as_another_and_only_for_a_folder_of_another() {
        let (root, ann) = (Uid::from_raw(0), Uid::from_raw(1000));
        assert_eq!(other_owner(root, 995, 990), Some((Uid::from_raw(995), Gid::from_raw(990))));
        assert_eq!(other_owner(root, 0, 0), None);
        assert_eq!(other_owner(ann, 995, 990), None);
        assert_eq!(other_owner(ann, 1000, 1000), None);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let before = Uid::effective();
        assume(&folder.path().join("none")).unwrap();
        assert_eq!(Uid::effective(), before);
    }
}
