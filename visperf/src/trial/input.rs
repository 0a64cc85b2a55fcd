//! Reader of a log as a stream of lines with their offsets: a file or standard input.
//!
//! Lines are split as in a sensor: at LF, a CR before it dropped, NULs at the start of a line skipped, of a
//! line longer than [`LINE_LEN_MAX_BYTES`] only the beginning used. The last line needs no LF.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line that is read whole, in bytes; the sensor's limit.
pub(crate) const LINE_LEN_MAX_BYTES: usize = 1 << 20;
/// Size of the read buffer, whose first contents are used to choose a filter, in bytes.
const BUFFER_LEN_BYTES: usize = 1 << 18;

/// An open log.
pub(crate) struct Input {
    from: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    offset: u64,
    /// Number of lines longer than the limit.
    pub(crate) cut_lines: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Offset of its start, in bytes.
    pub(crate) offset: u64,
    /// The line without its end.
    pub(crate) bytes: &'a [u8],
}

impl Input {
    /// Open the log at `path`; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read, or is not a log (a folder, a compressed file); the text says what to do.
    pub(crate) fn open(path: &Path) -> Result<Input, String> {
        if path == Path::new("-") {
            return Input::new(Box::new(io::stdin())).map_err(|error| error.to_string());
        }
        let metadata = std::fs::metadata(path).map_err(|error| explain(&error))?;
        if metadata.is_dir() {
            return Err("it is a folder; name the log files in it".to_owned());
        }
        let file = File::open(path).map_err(|error| explain(&error))?;
        let input = Input::new(Box::new(file)).map_err(|error| error.to_string())?;
        match input.beginning() {
            [0x1f, 0x8b, ..] => {
                Err("it is compressed with gzip; give `-` as the file and `zcat FILE |` before the command"
                    .to_owned())
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(
                "it is compressed with zstd; give `-` as the file and `zstdcat FILE |` before the command"
                    .to_owned(),
            ),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                Err("it is compressed with xz; give `-` as the file and `xzcat FILE |` before the command"
                    .to_owned())
            }
            [b'B', b'Z', b'h', ..] => {
                Err("it is compressed with bzip2; give `-` as the file and `bzcat FILE |` before the command"
                    .to_owned())
            }
            _ => Ok(input),
        }
    }

    /// Read from the current position of `from`.
    ///
    /// # Errors
    /// If the beginning cannot be read.
    pub(crate) fn new(from: Box<dyn Read>) -> io::Result<Input> {
        let mut from = BufReader::with_capacity(BUFFER_LEN_BYTES, from);
        from.fill_buf()?;
        Ok(Input { from, line: Vec::new(), offset: 0, cut_lines: 0 })
    }

    /// Buffered bytes that were not read yet.
    pub(crate) fn beginning(&self) -> &[u8] {
        self.from.buffer()
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// If reading fails.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.skip_nuls()?;
        self.line.clear();
        let mut len: u64 = 0;
        loop {
            let buffer = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = LINE_LEN_MAX_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            len += used as u64;
            self.from.consume(used);
            if end.is_some() {
                break;
            }
        }
        if len == 0 {
            return Ok(None);
        }
        self.cut_lines += u64::from(len > LINE_LEN_MAX_BYTES as u64 + 1);
        let offset = self.offset;
        self.offset += len;
        let bytes = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line { offset, bytes }))
    }

    fn skip_nuls(&mut self) -> io::Result<()> {
        loop {
            let buffer = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let nuls = buffer.iter().take_while(|&&byte| byte == 0).count();
            if nuls == 0 {
                return Ok(());
            }
            self.from.consume(nuls);
            self.offset += nuls as u64;
        }
    }
}

fn explain(error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the system has many errors, and few need advice")]
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; run as a user who may read it, or give `-` as the file and `sudo cat FILE |` before the command"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &'static [u8]) -> Vec<(u64, Vec<u8>)> {
        // One byte per read, so that every boundary is tested.
        struct Slowly(&'static [u8]);
        impl Read for Slowly {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
                (into[0], self.0) = (*first, rest);
                Ok(1)
            }
        }
        let mut input = Input::new(Box::new(Slowly(bytes))).unwrap();
        let mut found = Vec::new();
        while let Some(line) = input.next_line().unwrap() {
            found.push((line.offset, line.bytes.to_vec()));
        }
        found
    }

    #[test]
    fn lines_have_their_offsets() {
        let check = |bytes: &'static [u8], expected: &[(u64, &[u8])]| {
            let expected: Vec<_> = expected.iter().map(|&(at, line)| (at, line.to_vec())).collect();
            assert_eq!(lines(bytes), expected);
        };
        check(b"", &[]);
        check(b"a\nbc\r\n\nd", &[(0, b"a"), (2, b"bc"), (6, b""), (7, b"d")]);
        check(b"a\n\0\0\0b\n\0", &[(0, b"a"), (5, b"b")]);
        check(b"\n", &[(0, b"")]);
    }

    #[test]
    fn of_a_line_too_long_the_beginning_is_given() {
        let mut text = vec![b'x'; LINE_LEN_MAX_BYTES + 5];
        text.extend_from_slice(b"\nnext\n");
        let mut input = Input::new(Box::new(io::Cursor::new(text))).unwrap();
        assert_eq!(input.next_line().unwrap().unwrap().bytes.len(), LINE_LEN_MAX_BYTES);
        let next = input.next_line().unwrap().unwrap();
        assert_eq!((next.offset, next.bytes), (LINE_LEN_MAX_BYTES as u64 + 6, b"next".as_slice()));
        assert_eq!(input.cut_lines, 1);
    }

    #[test]
    fn what_is_no_log_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Input::open(path).err().expect("refused");
        assert!(refused(folder.path()).contains("folder"));
        assert!(refused(&folder.path().join("none")).contains("no such file"));
        let zipped = folder.path().join("x.gz");
        std::fs::write(&zipped, [0x1f, 0x8b, 8, 0]).unwrap();
        assert!(refused(&zipped).contains("zcat"));
    }
}
