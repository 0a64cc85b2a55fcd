//! Process of a job that failed.
//!
//! ```text
//! python3/4711/4700/256/1796032743250000     in a line: name, id, that of its parent, its end, microseconds since 1970
//! ```
//! Pure. The name is that of the kernel, which every user of the host may read; arguments are not in it.
//! Not here: which of them are stated (`sensor::job_usage`), and which one ended the job (`sensor::findings`).

use crate::process;
use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most of them in a line.
pub const FAILED_MAX: usize = 8;

/// Longest name, in bytes: the kernel has 15.
const NAME_LEN_MAX_BYTES: usize = 64;

/// Process that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedProcess {
    /// Name in the kernel at its end.
    pub name: CompactString,
    /// Process id.
    pub pid: u32,
    /// Process id of its parent.
    pub parent: u32,
    /// How it ended, as wait(2) reports it.
    pub code: u32,
    /// When it ended.
    pub ended: Time,
}

impl FailedProcess {
    /// Exit status, if it ended by itself.
    #[must_use]
    pub const fn exit_status(&self) -> Option<u8> {
        process::exit_status(self.code)
    }

    /// The signal that ended it, if one did.
    #[must_use]
    pub const fn signal(&self) -> Option<u8> {
        process::signal(self.code)
    }
}

/// Whether a process that ended with `code` passes on the end of a child: with the same, or as a shell does after a
/// signal, with 128 and its number (POSIX.1-2017, Shell Command Language 2.8.2).
#[must_use]
pub const fn passes_on(code: u32, child: u32) -> bool {
    match (process::exit_status(code), process::signal(child)) {
        (Some(status), Some(signal)) => status == 128 + signal,
        // The bit between them says that a core was dumped.
        (_, _) => code & 0xff7f == child & 0xff7f,
    }
}

impl fmt::Display for FailedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedProcess { name, pid, parent, code, ended } = self;
        let is_odd = |char: char| char.is_whitespace() || char.is_control() || matches!(char, '/' | ',');
        write!(f, "{}/{pid}/{parent}/{code}/{}", name.replace(is_odd, "_"), ended.micros())
    }
}

/// Writes failed processes as in a line.
#[must_use]
pub fn text(failed: &[FailedProcess]) -> String {
    let texts: Vec<String> = failed.iter().take(FAILED_MAX).map(ToString::to_string).collect();
    texts.join(",")
}

/// Reads what [`text`] writes; what is none is left out.
#[must_use]
pub fn read(text: &str) -> Vec<FailedProcess> {
    text.split(',').take(FAILED_MAX).filter_map(one).collect()
}

fn one(text: &str) -> Option<FailedProcess> {
    let mut parts = text.splitn(5, '/');
    let name = parts.next()?;
    let mut number = || parts.next()?.parse().ok();
    let (pid, parent, code) = (number()?, number()?, number()?);
    let ended = Time::from_micros(parts.next()?.parse().ok()?);
    let is_name = name.len() <= NAME_LEN_MAX_BYTES && !name.contains(char::is_control);
    is_name.then(|| FailedProcess { name: name.into(), pid, parent, code, ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &str, code: u32) -> FailedProcess {
        let ended = Time::from_micros(1_796_032_743_250_000);
        FailedProcess { name: name.into(), pid: 4711, parent: 4700, code, ended }
    }

    #[test]
    fn a_line_has_what_its_reader_reads_whatever_the_name_is() {
        let all = [failed("python3", 256), failed("a b/c,é\n%", 9), failed("", 11)];
        let line = text(&all);
        assert!(line.starts_with("python3/4711/4700/256/1796032743250000,a_b_c_é_%/4711/4700/9/"), "{line}");
        assert_eq!(read(&line), [all[0].clone(), failed("a_b_c_é_%", 9), all[2].clone()]);
        assert_eq!((all[0].exit_status(), all[0].signal()), (Some(1), None));
        assert_eq!((all[1].exit_status(), all[1].signal()), (None, Some(9)));
        for wrong in ["", "x", "x/1/2/3", "x/1/-2/3/4", "x/1/2/3/yesterday", "\u{1b}/1/2/3/4"] {
            assert_eq!(read(wrong), [], "{wrong:?}");
        }
        assert_eq!(read(&format!("{}/1/2/3/4", "x".repeat(65))), []);
    }

    #[test]
    fn a_shell_passes_on_a_status_and_a_signal_as_a_status() {
        let status = |status: u32| status << 8;
        assert!(passes_on(status(1), status(1)) && !passes_on(status(1), status(2)));
        assert!(
            passes_on(status(139), 11) && passes_on(status(137), 9 | 0x80),
            "a core may have been dumped"
        );
        assert!(passes_on(15, 15) && !passes_on(15, 9) && !passes_on(status(1), 9));
    }
}
