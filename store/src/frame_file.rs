//! Files of frames: the frame at a place, and the next whole one after damage.
//!
//! Not here: what the frames of a file mean (`segment`, `daily`).

use crate::bytes::Damaged;
use crate::frame::{self, Kind, PREFIX_LEN, Prefix};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use wire::version::Format;

/// Bytes searched at a time for the next frame after damage.
const SEARCH_LEN: usize = 1 << 20;

/// Checks that the file starts with the name of this format, in a version that is read.
///
/// # Errors
/// If it is of another format or version.
pub(crate) fn check_purpose(file: &File, path: &Path, format: Format) -> io::Result<u16> {
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let found = read_head(file, 0, u64::MAX).ok().filter(|(prefix, _)| prefix.kind == Kind::Purpose);
    let purpose = found.and_then(|(_, head)| postcard::from_bytes::<String>(&head).ok()).unwrap_or_default();
    let (path, name) = (path.display(), format.name);
    match format.version_of(&purpose) {
        Some(found) if format.reads(found) => Ok(found),
        Some(found) => Err(invalid(format!(
            "{path} has version {found} of the {name}; this program reads {}",
            format.expected()
        ))),
        None => Err(invalid(format!("{path} is not a file of the {name}"))),
    }
}

/// Reads prefix and head of the frame at `at`; the frame must end at `end` at the latest.
pub(crate) fn read_head(file: &File, at: u64, end: u64) -> Result<(Prefix, Vec<u8>), Damaged> {
    let cut = |_| Damaged("a frame that is cut off");
    let mut prefix = [0; PREFIX_LEN];
    file.read_exact_at(&mut prefix, at).map_err(cut)?;
    let prefix = Prefix::parse(&prefix)?;
    if at.saturating_add(prefix.len()) > end {
        return Err(Damaged("a frame that is cut off"));
    }
    let mut head = vec![0; prefix.head_len as usize];
    file.read_exact_at(&mut head, at + PREFIX_LEN as u64).map_err(cut)?;
    prefix.check(&head)?;
    Ok((prefix, head))
}

/// Reads the body of the frame at `at`.
pub(crate) fn read_body(file: &File, at: u64, prefix: &Prefix) -> io::Result<Vec<u8>> {
    let mut body = vec![0; prefix.body_len as usize];
    file.read_exact_at(&mut body, at + PREFIX_LEN as u64 + u64::from(prefix.head_len))?;
    Ok(body)
}

/// Finds the first whole frame from `from` on, in the first `len` bytes of the file.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn next_frame(file: &File, from: u64, len: u64) -> io::Result<Option<u64>> {
    let mut at = from;
    let mut bytes = vec![0; SEARCH_LEN];
    while at < len {
        let part = usize::try_from(len - at).unwrap_or(SEARCH_LEN).min(SEARCH_LEN);
        file.read_exact_at(&mut bytes[..part], at)?;
        let mut from = 0;
        while let Some(found) = frame::next_magic(&bytes[..part], from) {
            if read_head(file, at + found as u64, len).is_ok() {
                return Ok(Some(at + found as u64));
            }
            from = found + 1;
        }
        // A magic may lie across the boundary.
        at += (part as u64).saturating_sub(3).max(1);
        if part < SEARCH_LEN {
            return Ok(None);
        }
    }
    Ok(None)
}
