//! Detection of compressed files by their first bytes, whatever their names.
//!
//! Pure. Rule: a filter never gets a compressed file as lines; the status of the file says what was found and
//! what to do about it.
//! Not here: unpacking. A log is followed before it is compressed; the user unpacks an old one.

/// A format: its name, the bytes that a file starts with, the program that unpacks it.
struct Format {
    name: &'static str,
    magic: &'static [u8],
    program: &'static str,
}

const FORMATS: [Format; 6] = [
    Format { name: "gzip", magic: b"\x1f\x8b", program: "zcat" },
    Format { name: "xz", magic: b"\xfd7zXZ\0", program: "xzcat" },
    Format { name: "zstd", magic: b"\x28\xb5\x2f\xfd", program: "zstdcat" },
    Format { name: "bzip2", magic: b"BZh", program: "bzcat" },
    Format { name: "lz4", magic: b"\x04\x22\x4d\x18", program: "lz4cat" },
    Format { name: "compress", magic: b"\x1f\x9d", program: "zcat" },
];

/// Why a file with these first bytes is not read, if it is compressed.
#[must_use]
pub fn refusal(first: &[u8]) -> Option<String> {
    let format = FORMATS.iter().find(|format| first.starts_with(format.magic) && is_block(format, first))?;
    let Format { name, program, .. } = format;
    Some(format!(
        "expected a log of text, found a file compressed with {name}; it is not read; to have its lines, unpack it \
         ({program} FILE > FILE.log) and follow the unpacked file"
    ))
}

/// A line of text could start with `BZh`, but not with that, a size from 1 to 9, and the mark of a block or
/// of the end.
fn is_block(format: &Format, first: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"];
    format.name != "bzip2"
        || (matches!(first.get(3), Some(b'1'..=b'9'))
            && marks.iter().any(|mark| first[4..].starts_with(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_known_by_their_first_bytes() {
        let check = |first: &[u8], name: &str| {
            let refused = refusal(first).unwrap_or_default();
            assert!(refused.contains(name) && refused.is_empty() == name.is_empty(), "{first:?}: {refused}");
        };
        check(b"\x1f\x8b\x08\0", "gzip");
        check(b"\xfd7zXZ\0\0", "xz");
        check(b"\x28\xb5\x2f\xfd\x24", "zstd");
        check(b"BZh91AY&SY", "bzip2");
        check(b"BZh9\x17\x72\x45\x38\x50\x90", "bzip2");
        check(b"\x04\x22\x4d\x18", "lz4");
        check(b"BZh9 is how this line of text begins", "");
        check(b"BZh", "");
        check(b"2026-11-20 a line", "");
        check(b"", "");
    }
}
