//! The store's own files, written through its public writer.
//!
//! Not here: the other engines (`kv`).

use crate::recording::{Recorded, Recording};
use std::path::Path;
use std::time::Duration;
use store::reader::Selection;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::time::Time;

/// Sweeps between two flushes: ten seconds.
pub(crate) const FLUSH_EVERY: usize = 10;

pub(crate) const UNLIMITED: [Limit; 3] = limits([1 << 40; 3]);

/// Limits for which a segment of samples has 1 MiB.
pub(crate) const LIMITS: [Limit; 3] = limits([16 << 20, 16 << 20, 16 << 20]);

pub(crate) const fn limits(bytes: [u64; 3]) -> [Limit; 3] {
    const AGE: Duration = Duration::from_secs(1 << 40);
    let [raw, minute, hour] = bytes;
    [Limit { bytes: raw, age: AGE }, Limit { bytes: minute, age: AGE }, Limit { bytes: hour, age: AGE }]
}

fn host() -> HostName {
    HostName::try_from("wn01").expect("a name")
}

pub(crate) fn open(folder: &Path, limits: [Limit; 3]) -> Writer {
    Writer::open(folder, limits).expect("opened")
}

pub(crate) fn push(writer: &mut Writer, sweep: &Recorded) {
    writer.push(&host(), Sweep { time: sweep.time, metrics: &sweep.metrics, values: &sweep.values });
}

/// Deletes the oldest half of the samples: by halving the limit.
pub(crate) fn delete_half(writer: &mut Writer, next: &Recorded) {
    let used = writer.reader().state().tiers[0].used_bytes;
    writer.set_limits(limits([used / 2, 16 << 20, 16 << 20]));
    push(writer, next);
    writer.flush();
}

/// Compares all samples with the recording: those missing of the first `acknowledged` sweeps, those that differ.
pub(crate) fn check(writer: &Writer, recording: &Recording, acknowledged: usize) -> (usize, usize) {
    let (mut missing, mut different) = (0, 0);
    let first = recording.sweep(0);
    let expected: Vec<Recorded> = (0..recording.len).map(|number| recording.sweep(number)).collect();
    for (column, metric) in first.metrics.iter().enumerate() {
        let selection = Selection {
            host: &|_| true,
            metric: &|other| other == &**metric,
            since: Time::from_micros(0),
            until: Time::from_micros(i64::MAX),
        };
        let answer = writer.reader().values(&selection, usize::MAX).expect("an answer");
        different += answer.damaged as usize;
        let found = answer.series.first().map_or(&[][..], |(_, values)| values);
        missing = missing.max(acknowledged.saturating_sub(found.len()));
        for ((time, value), sweep) in found.iter().zip(&expected) {
            let is_same =
                *time == sweep.time && value.as_f64().to_bits() == sweep.values[column].as_f64().to_bits();
            different += usize::from(!is_same);
        }
    }
    let damaged: u64 = writer.reader().state().damaged_chunks;
    (missing, different + damaged as usize)
}
