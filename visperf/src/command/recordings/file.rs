//! Recording files of the user: reading, writing, and a summary in one line.
//!
//! Rule: a damaged file is read as far as possible, and the damage is reported; an existing file is replaced
//! only with `--force`, and only by a complete one.

use crate::exit::Failure;
use crate::output::{note, times};
use jiff::tz::TimeZone;
use std::io::Write;
use std::path::Path;
use wire::recording::{LEN_MAX_BYTES, Recording};
use wire::shown::count;

/// A gap is longer than this number of periods and than this time: single sweeps may be late.
const GAP_PERIODS: u64 = 2;
const GAP_LEAST_NS: u64 = 500_000_000;

/// Read a recording from a file.
///
/// # Errors
/// If the file cannot be read, or is not a recording.
pub(super) fn read(path: &Path) -> Result<Recording, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > LEN_MAX_BYTES {
        let message = format!("{}: {len} bytes; a recording has at most {LEN_MAX_BYTES}", path.display());
        return Err(Failure::Refused(message));
    }
    parse(path, &std::fs::read(path).map_err(failed)?)
}

/// Parse a recording; `path` names the file in messages.
///
/// # Errors
/// If the bytes are not a recording.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Recording, Failure> {
    let read = Recording::read(bytes);
    let recording = read.map_err(|error| Failure::Refused(format!("{}: {error}", path.display())))?;
    if let Some(damage) = damage(&recording, &TimeZone::system()) {
        note(&format!("{}: {damage}", path.display()));
    }
    Ok(recording)
}

/// Description of the damage, and of the times without samples; `None` for an intact file.
fn damage(recording: &Recording, zone: &TimeZone) -> Option<String> {
    let damage = recording.damage;
    let blocks = match damage.blocks {
        0 => None,
        1 => Some("1 damaged block was left out".to_owned()),
        many => Some(format!("{many} damaged blocks were left out")),
    };
    let torn = (damage.torn_bytes > 0)
        .then(|| format!("the last {} are no whole block", count(damage.torn_bytes, "byte")));
    let parts: Vec<String> = blocks.into_iter().chain(torn).collect();
    if parts.is_empty() {
        return None;
    }
    let shown = |moment_ns| times::shown(recording.header.time(moment_ns), zone);
    let missing = gaps_ns(recording)
        .into_iter()
        .map(|(from_ns, to_ns)| format!("from {} to {}", shown(from_ns), shown(to_ns)))
        .collect::<Vec<_>>();
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!("; there are no samples {}", missing.join(", ")),
    };
    Some(format!("{}{missing}", parts.join("; ")))
}

/// Gaps between the sweeps of the recording's window, in nanoseconds since boot.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A period within bounds.
fn gaps_ns(recording: &Recording) -> Vec<(u64, u64)> {
    let header = &recording.header;
    let period_ns = (1e9 / header.hz).clamp(1e6, 60e9) as u64;
    let least_ns = period_ns.saturating_mul(GAP_PERIODS).max(GAP_LEAST_NS);
    let begins = recording.segments.iter().map(|segment| segment.first_ns).chain([header.to_ns]);
    let mut ended_ns = header.from_ns;
    let mut gaps = Vec::new();
    for (at, begin_ns) in begins.enumerate() {
        if begin_ns.saturating_sub(ended_ns) > least_ns {
            gaps.push((ended_ns, begin_ns));
        }
        ended_ns = recording.segments.get(at).map_or(ended_ns, |segment| segment.last_ns.max(ended_ns));
    }
    gaps
}

/// Refuse an existing file without `--force`.
///
/// # Errors
/// If the file exists.
pub(super) fn refuse_existing(path: &Path, is_forced: bool) -> Result<(), Failure> {
    match !is_forced && path.symlink_metadata().is_ok() {
        true => Err(exists(path)),
        false => Ok(()),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::Failed(format!(
        "{} exists already; name another file, or replace it with --force",
        path.display()
    ))
}

///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, recording: &Recording, is_forced: bool) -> Result<(), Failure> {
    let bytes = recording.write();
    let bytes = bytes.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    write_bytes(path, &bytes, is_forced)
}

/// Write a file atomically.
///
/// # Errors
/// If it cannot be written, or exists and may not be replaced.
pub(super) fn write_bytes(path: &Path, bytes: &[u8], is_forced: bool) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        let kept = if is_forced { file.persist(path) } else { file.persist_noclobber(path) };
        kept.map(drop).map_err(|error| error.error)
    });
    written.map_err(|error| match error.kind() == std::io::ErrorKind::AlreadyExists {
        true => exists(path),
        false => Failure::Failed(format!("{}: {error}", path.display())),
    })
}

/// Summary of a recording, as one line.
pub(super) fn describe(recording: &Recording) -> String {
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

#[cfg(test)]
mod tests;
