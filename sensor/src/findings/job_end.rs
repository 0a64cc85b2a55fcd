//! How a job ended, as a number: exit status and signal in what the middleware prints.
//!
//! Pure. Forms: `1:0` (Slurm: status, signal), `1` (most), 256 and the signal (Torque/PBS), `-11` (a signal), and the
//! signal beside it.
//! Not here: which process it was (`cause`).

use wire::api::jobs::Job;
use wire::call::failed_process::passes_on;

/// Slurm ends a job that used up its memory with this in the place of a signal.
const SLURM_OUT_OF_MEMORY: u8 = 125;

/// Names of signals, with their numbers on Linux (signal(7)).
const SIGNALS: [(&str, u8); 20] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("SYS", 31),
];

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JobEnd {
    /// Exit status; `None` if it is unknown or none.
    pub(super) status: Option<u8>,
    /// Signal that killed it; `None` if none did, as far as is known.
    pub(super) signal: Option<u8>,
}

impl JobEnd {
    pub(super) fn of(job: &Job) -> JobEnd {
        let (code, beside) = job.code.split_once(':').unwrap_or((&job.code, &job.signal));
        let code = code.trim().parse::<i64>().ok();
        let from_code = code.and_then(|code| match code {
            257..=320 => u8::try_from(code - 256).ok(),
            -64..=-1 => u8::try_from(-code).ok(),
            _ => None,
        });
        let signal = signal(beside).or_else(|| signal(&job.signal)).or(from_code);
        let status = code.and_then(|code| u8::try_from(code).ok()).filter(|status| *status != 0);
        JobEnd { status, signal: signal.filter(|signal| *signal != SLURM_OUT_OF_MEMORY) }
    }

    /// Whether a process that ended with this, as wait(2) reports it, ended the job so.
    pub(super) fn is_of(self, code: u32) -> bool {
        let of_status = |status: u8| passes_on(u32::from(status) << 8, code);
        let of_signal = |signal: u8| {
            passes_on(u32::from(signal), code)
                || signal.checked_add(128).is_some_and(|status| code == u32::from(status) << 8)
        };
        self.signal.is_some_and(of_signal) || self.status.is_some_and(of_status)
    }

    /// Whether it is not known at all.
    pub(super) fn is_unknown(self) -> bool {
        self == JobEnd::default()
    }
}

/// Number of a signal that is printed as a number or a name.
fn signal(text: &str) -> Option<u8> {
    let text = text.trim();
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let by_name = || SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    text.parse().ok().filter(|number| *number > 0).or_else(by_name)
}

/// A signal as text: `signal 11 (SIGSEGV)`.
pub(super) fn signal_text(number: u8) -> String {
    let name = SIGNALS.iter().find(|(_, known)| *known == number);
    name.map_or_else(|| format!("signal {number}"), |(name, _)| format!("signal {number} (SIG{name})"))
}

/// What an exit status says besides, by convention of shells (POSIX.1-2017, Shell Command Language 2.8.2); empty if nothing.
pub(super) fn status_text(status: u8) -> &'static str {
    match status {
        126 => ": a command could not be executed",
        127 => ": a command was not found",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: &str, signal: &str) -> (Option<u8>, Option<u8>) {
        let job = Job { code: code.to_owned(), signal: signal.to_owned(), ..Job::default() };
        let JobEnd { status, signal } = JobEnd::of(&job);
        (status, signal)
    }

    #[test]
    fn status_and_signal_are_read_in_all_forms() {
        assert_eq!(end("1:0", ""), (Some(1), None));
        assert_eq!(end("0:9", ""), (None, Some(9)));
        assert_eq!(end("0:125", ""), (None, None), "it is no signal");
        assert_eq!(end("3", ""), (Some(3), None));
        assert_eq!(end("139", "11"), (Some(139), Some(11)));
        assert_eq!(end("271", ""), (None, Some(15)));
        assert_eq!(end("-11", ""), (None, Some(11)));
        assert_eq!(end("", "SIGXCPU"), (None, Some(24)));
        assert_eq!(end("", "KILL"), (None, Some(9)));
        assert_eq!(end("0", ""), (None, None));
        assert_eq!(end("many", "?"), (None, None));
        assert!(JobEnd::default().is_unknown());
    }

    #[test]
    fn a_process_ends_a_job_by_its_status_or_its_signal() {
        let failed = JobEnd { status: Some(1), signal: None };
        assert!(failed.is_of(1 << 8) && !failed.is_of(2 << 8) && !failed.is_of(9));
        let by_shell = JobEnd { status: Some(139), signal: None };
        assert!(by_shell.is_of(139 << 8) && by_shell.is_of(11));
        let killed = JobEnd { status: None, signal: Some(9) };
        assert!(killed.is_of(9) && killed.is_of(137 << 8) && !killed.is_of(15));
        assert!(!JobEnd::default().is_of(0));
    }
}
