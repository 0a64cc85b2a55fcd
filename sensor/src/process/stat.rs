//! Parser of files in `/proc/PID`: `stat`, `io`, `cmdline` and the needed lines of `status`.
//!
//! Pure: bytes in, values out. Formats: the kernel's fs/proc/array.c and proc(5). A name may contain spaces,
//! parentheses and line feeds, so the fields of `stat` are counted from the last closing parenthesis.
//! Not here: opening and reading.

use compact_str::CompactString;
use wire::process::{Io, State};

/// A tick in nanoseconds: a hundredth of a second, the unit of times in `/proc`, on every architecture that
/// Linux still supports.
pub const TICK_NS: u64 = 10_000_000;

/// Needed fields of `/proc/PID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub name: CompactString,
    pub state: State,
    /// Process id of the parent.
    pub parent: u32,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// In nanoseconds, by ticks.
    pub user_ns: u64,
    /// In nanoseconds, by ticks.
    pub system_ns: u64,
    pub threads: u32,
    /// In nanoseconds since boot, to a hundredth of a second.
    pub start_ns: u64,
    /// Resident pages.
    pub rss_pages: u64,
}

/// Parses `stat`; `None` if it is invalid.
#[must_use]
pub fn stat(text: &[u8]) -> Option<Stat> {
    let open = memchr::memchr(b'(', text)?;
    let close = memchr::memrchr(b')', text)?;
    let name = CompactString::from_utf8_lossy(text.get(open + 1..close)?);
    let mut fields = Fields(text.get(close + 1..)?);
    let state = State::from_letter(*fields.word()?.first()?)?;
    let parent = u32::try_from(fields.number()?).ok()?;
    fields.skip(5)?;
    let minor_faults = fields.number()?;
    fields.skip(1)?;
    let major_faults = fields.number()?;
    fields.skip(1)?;
    let (user, system) = (fields.number()?, fields.number()?);
    fields.skip(4)?;
    let threads = u32::try_from(fields.number()?).ok()?;
    fields.skip(1)?;
    let start = fields.number()?;
    fields.skip(1)?;
    let rss_pages = fields.number()?;
    Some(Stat {
        name,
        state,
        parent,
        minor_faults,
        major_faults,
        user_ns: user.saturating_mul(TICK_NS),
        system_ns: system.saturating_mul(TICK_NS),
        threads,
        start_ns: start.saturating_mul(TICK_NS),
        rss_pages,
    })
}

/// Parses `io`; `None` if it is invalid.
#[must_use]
pub fn io(text: &[u8]) -> Option<Io> {
    Some(Io {
        read_chars: named(text, b"rchar:")?,
        written_chars: named(text, b"wchar:")?,
        read_bytes: named(text, b"read_bytes:")?,
        written_bytes: named(text, b"write_bytes:")?,
    })
}

/// Parses `cmdline`: the arguments joined by spaces; `None` if there are none.
#[must_use]
pub fn command(mut text: Vec<u8>) -> Option<CompactString> {
    let end = text.iter().rposition(|byte| *byte != 0)? + 1;
    text.truncate(end);
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    Some(CompactString::from_utf8_lossy(&text))
}

/// Parses the real user id of `status`.
#[must_use]
pub fn uid(text: &[u8]) -> Option<u32> {
    u32::try_from(named(text, b"Uid:")?).ok()
}

/// Parses the user ids of `status`: real, effective, saved, and for files; `None` if there are not four.
#[must_use]
pub fn uids(text: &[u8]) -> Option<[u32; 4]> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    let mut fields = Fields(line);
    let mut uids = [0; 4];
    for uid in &mut uids {
        *uid = u32::try_from(fields.number()?).ok()?;
    }
    Some(uids)
}

/// Whether `stat` is that of a kernel thread, by its flags (PF_KTHREAD in include/linux/sched.h).
#[must_use]
pub fn is_of_kernel(text: &[u8]) -> Option<bool> {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let close = memchr::memrchr(b')', text)?;
    let mut fields = Fields(text.get(close + 1..)?);
    fields.skip(6)?;
    Some(fields.number()? & PF_KTHREAD != 0)
}

/// First number in the line that starts with `name`.
fn named(text: &[u8], name: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find(|line| line.starts_with(name))?;
    Fields(&line[name.len()..]).number()
}

/// Iterator over words that are separated by spaces, tabs or line feeds.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn word(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n'))?;
        let rest = &self.0[begin..];
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n')).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        (0..words).try_for_each(|_| self.word().map(|_| ()))
    }

    /// Parses an integer; a negative one counts as zero.
    fn number(&mut self) -> Option<u64> {
        let word = self.word()?;
        if let Some(b'-') = word.first() {
            return Some(0);
        }
        word.iter().try_fold(0_u64, |number, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            number.checked_mul(10)?.checked_add(digit.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str =
        " S 1 42 42 0 -1 4194304 6201 99 12 3 77 33 5 6 20 0 4 0 913 123456789 2048 18446744073709551615";

    #[test]
    fn names_of_any_kind_are_read() {
        for name in
            ["sh", "", "a b", "tmux: server", "x) S 9 (y", ")", "((", "line\nend", "kworker/u8:1-events"]
        {
            let stat = stat(format!("42 ({name}){REST}\n").as_bytes()).expect("a stat");
            assert_eq!(stat.name, name);
            assert_eq!((stat.state, stat.parent, stat.threads), (State::Sleeping, 1, 4));
            assert_eq!((stat.minor_faults, stat.major_faults), (6201, 12));
            assert_eq!((stat.user_ns, stat.system_ns), (770_000_000, 330_000_000));
            assert_eq!((stat.start_ns, stat.rss_pages), (9_130_000_000, 2048));
        }
        assert_eq!(stat(b"42 (\xff\xfe) Z 0").map(|stat| stat.name), None, "cut short");
    }

    #[test]
    fn a_thread_of_the_kernel_says_so() {
        assert_eq!(is_of_kernel(format!("42 (a) b){REST}").as_bytes()), Some(false));
        let kernel = REST.replace("4194304", "2129984");
        assert_eq!(is_of_kernel(format!("42 (kworker/0:1){kernel}").as_bytes()), Some(true));
        assert_eq!(is_of_kernel(b"42 (a) S 1"), None);
    }

    #[test]
    fn what_is_no_stat_is_refused() {
        for text in ["", "42", "42 (a", "42 (a) ?", "42 (a) S x", &format!("42 (a){}", &REST[..40])] {
            assert_eq!(stat(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn counts_are_found_by_their_names() {
        let text = b"rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 2\nread_bytes: 30\nwrite_bytes: 40\n";
        let expected = Io { read_bytes: 30, written_bytes: 40, read_chars: 10, written_chars: 20 };
        assert_eq!(io(text), Some(expected));
        assert_eq!(io(b"rchar: 10\n"), None);
        assert_eq!(uids(b"Uid:\t1\t2\t3\t4294967295\n"), Some([1, 2, 3, u32::MAX]));
        assert_eq!(uids(b"Uid:\t1\t2\t3\nGid:\t4\n"), None);
        assert_eq!(uid(b"Name:\tx\nUid:\t1000\t1001\t0\t0\nGid:\t5\t5\t5\t5\n"), Some(1000));
    }
}
