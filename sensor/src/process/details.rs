//! Details of a process that are read only for a query: its command line and user name.
//!
//! Shell. Rule: the process id may have been reused since the sweep; what is read counts only if the process
//! still has the start time of the requested one.

use super::stat;
use compact_str::CompactString;
use nix::unistd::{Uid, User};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wire::process::ProcessKey;

/// Longest command line that is returned, in bytes; longer ones are cut.
pub const COMMAND_LEN_MAX_BYTES: usize = 4096;

/// Command line of a process, joined by spaces; `None` if it is gone, has none, or cannot be read.
#[must_use]
pub fn command(proc: &Path, key: ProcessKey) -> Option<CompactString> {
    let folder = proc.join(key.pid.to_string());
    let mut text = Vec::new();
    let file = File::open(folder.join("cmdline")).ok()?;
    file.take(COMMAND_LEN_MAX_BYTES as u64).read_to_end(&mut text).ok()?;
    let current = stat::stat(&std::fs::read(folder.join("stat")).ok()?)?;
    if current.start_ns / stat::TICK_NS != key.start_ns / stat::TICK_NS {
        return None;
    }
    stat::command(text)
}

/// User id of a user of this host, by name or in digits.
#[must_use]
pub fn uid(user: &str) -> Option<u32> {
    let by_name = || User::from_name(user).ok().flatten().map(|user| user.uid.as_raw());
    user.parse().ok().or_else(by_name)
}

/// Cache of user names, for one answer.
#[derive(Debug, Default)]
pub struct Users(BTreeMap<u32, Option<String>>);

impl Users {
    /// Name of this user id on the host, if it has one.
    pub fn name(&mut self, uid: u32) -> Option<&str> {
        let look_up = || User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
        self.0.entry(uid).or_insert_with(look_up).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{procfs::Procfs, source::Source, source::View};
    use super::*;

    #[test]
    fn a_process_is_asked_and_not_who_has_its_number() {
        let mut view = View::default();
        Procfs::new(Path::new("/proc")).sweep(1, &mut view).expect("a sweep");
        let own = view.table.get(std::process::id()).expect("this one").key;
        let text = command(Path::new("/proc"), own).expect("its arguments");
        let program = std::env::args().next().expect("a program");
        assert!(text.starts_with(&program), "{text}");
        let other = ProcessKey { start_ns: own.start_ns + stat::TICK_NS, ..own };
        assert_eq!(command(Path::new("/proc"), other), None);
    }
}
