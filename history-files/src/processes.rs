//! Table `processes`: a row is what a process used in an hour, in the minutes in which it was among those that used most.
//!
//! Pure. Not here: which processes these are (`sensor.process_history`).

use crate::column::{
    batch, counts, known_counts, known_small, known_texts, known_times, numbers, small, texts, times,
};
use arrow_array::RecordBatch;
use wire::api::UnixTime;
use wire::api::process_history::TopProcess;
use wire::time::Time;

/// Length of the time that a row is about, in seconds.
pub const STEP_SECS: u32 = 3600;

/// The rows of the processes of a host in the hour that starts at this time, in their order.
#[must_use]
pub fn rows(host: &str, hour: Time, processes: &[TopProcess]) -> RecordBatch {
    let all = || processes.iter();
    let minutes = |process: &TopProcess| u32::try_from(process.minutes).unwrap_or(u32::MAX);
    batch(vec![
        times("time", all().map(|_| hour)),
        small("step_seconds", all().map(|_| STEP_SECS)),
        texts("host", all().map(|_| host)),
        small("pid", all().map(|process| process.pid)),
        small("parent", all().map(|process| process.parent)),
        times("start", all().map(|process| process.start.0)),
        counts("start_ns", all().map(|process| process.start_ns)),
        counts("uid", all().map(|process| process.uid.into())),
        known_texts("user", all().map(|process| process.user.as_deref().unwrap_or_default())),
        texts("name", all().map(|process| process.name.as_str())),
        known_texts("command", all().map(|process| process.command.as_deref().unwrap_or_default())),
        known_texts("job", all().map(|process| process.job.as_deref().unwrap_or_default())),
        small("minutes", all().map(minutes)),
        times("first", all().map(|process| process.first.0)),
        times("last", all().map(|process| process.last.0)),
        numbers("cpu_seconds", all().map(|process| process.cpu_seconds)),
        numbers("cpu", all().map(|process| process.cpu)),
        known_counts(
            "rss_max_bytes",
            all().map(|process| Some(process.rss_max_bytes).filter(|bytes| *bytes > 0)),
        ),
        known_counts("read_bytes", all().map(|process| process.read_bytes)),
        known_counts("written_bytes", all().map(|process| process.written_bytes)),
        known_times("end", all().map(|process| process.end.map(|UnixTime(time)| time))),
        known_small("exit_status", all().map(|process| process.exit_status.map(u32::from))),
        known_small("signal", all().map(|process| process.signal.map(u32::from))),
    ])
}
