//! Recordings as files of the user: read, written, and told in a line.
//!
//! Rule: a file that is damaged is read as far as it can be, and that is told; a file that is there is replaced only by a
//! whole one.

use crate::exit::Failure;
use crate::output::note;
use std::io::Write;
use std::path::Path;
use wire::recording::{LEN_MAX_BYTES, Recording};

/// The recording in a file.
///
/// # Errors
/// If it cannot be read, or is none.
pub(super) fn read(path: &Path) -> Result<Recording, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > LEN_MAX_BYTES {
        let message = format!("{}: {len} bytes; a recording has at most {LEN_MAX_BYTES}", path.display());
        return Err(Failure::Refused(message));
    }
    parse(path, &std::fs::read(path).map_err(failed)?)
}

/// The recording in these bytes, which stand or will stand in that file.
///
/// # Errors
/// If they are none.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Recording, Failure> {
    let read = Recording::read(bytes);
    let recording = read.map_err(|error| Failure::Refused(format!("{}: {error}", path.display())))?;
    let damage = recording.damage;
    if damage.blocks > 0 || damage.torn_bytes > 0 {
        note(&format!(
            "{}: {} damaged blocks were left out, and {} bytes at the end",
            path.display(),
            damage.blocks,
            damage.torn_bytes
        ));
    }
    Ok(recording)
}

/// Write a recording.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, recording: &Recording) -> Result<(), Failure> {
    let bytes = recording.write();
    write_bytes(path, &bytes.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?)
}

/// Write a file, whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    });
    written.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

/// What is in it, in a line.
pub(super) fn told(recording: &Recording) -> String {
    let sweeps: u64 = recording.segments.iter().map(|segment| u64::from(segment.sweeps)).sum();
    let samples: u64 = recording.segments.iter().map(|segment| segment.samples).sum();
    let span_ns = recording.span_ns().map_or(0, |(from_ns, to_ns)| to_ns - from_ns);
    let secs = std::time::Duration::from_nanos(span_ns).as_secs_f64();
    format!(
        "{samples} samples in {sweeps} sweeps of {secs:.1} s on {}, {} events",
        recording.header.host,
        recording.events.len()
    )
}
