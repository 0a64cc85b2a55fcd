//! Detector of new processes: whether one may have started, by the last process id that the kernel assigned,
//! at the end of `/proc/loadavg` (proc(5)).
//!
//! Shell, used because listing all processes costs more than reading this id. Rule: when in doubt, the answer
//! is "it may". The kernel reports the id in the reader's own pid namespace, so it is used only where `/proc`
//! is of that namespace too. An id is assigned a moment before its process is visible, so the check after the
//! one that saw a new id counts, too.
//! Left out: a process restored with an id of its choice (clone3(2), `set_tid`), for which no new id is
//! assigned.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// More than the length of the file: three loads, two counts, an id.
const LEN_MAX_BYTES: usize = 128;

/// The open file, and the id it last contained.
pub(super) struct Births {
    file: Option<File>,
    last: Option<u32>,
    /// Whether the id was new at the last check.
    is_fresh: bool,
}

impl Births {
    /// Creates a detector for the `/proc` at `proc`.
    pub(super) fn new(proc: &Path) -> Births {
        let own = std::fs::read_link(proc.join("self")).ok();
        let is_own = own.is_some_and(|own| own.to_str() == Some(&std::process::id().to_string()));
        let file = if is_own { File::open(proc.join("loadavg")).ok() } else { None };
        Births { file, last: None, is_fresh: false }
    }

    /// Whether there may be a process that did not exist at the previous call. True for the first two calls.
    pub(super) fn may_be(&mut self) -> bool {
        let now = self.file.as_ref().and_then(last_given);
        let is_new = now.is_none() || now != self.last;
        self.last = now;
        is_new | std::mem::replace(&mut self.is_fresh, is_new)
    }
}

fn last_given(file: &File) -> Option<u32> {
    let mut buffer = [0; LEN_MAX_BYTES];
    let len = file.read_at(&mut buffer, 0).ok()?;
    last_word(&buffer[..len])
}

fn last_word(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.split_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_given_out_last_is_the_fifth_word() {
        assert_eq!(last_word(b"0.58 0.33 0.21 2/412 90177\n"), Some(90177));
        for text in [&b""[..], b"0.58 0.33 0.21 2/412", b"0.58 0.33 0.21 2/412 x\n", b"\xff"] {
            assert_eq!(last_word(text), None);
        }
    }

    #[test]
    fn where_nothing_is_reported_one_may_start_at_any_time() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("loadavg"), "0 0 0 1/1 7\n").unwrap();
        let mut births = Births::new(folder.path());
        assert!(births.may_be() && births.may_be(), "the folder is not of this process");
        std::os::unix::fs::symlink(std::process::id().to_string(), folder.path().join("self")).unwrap();
        let mut births = Births::new(folder.path());
        let mut three = || [births.may_be(), births.may_be(), births.may_be()];
        assert_eq!(three(), [true, true, false], "of the first its process may not be seen yet");
        std::fs::write(folder.path().join("loadavg"), "0 0 0 1/1 8\n").unwrap();
        assert_eq!(three(), [true, true, false]);
    }
}
