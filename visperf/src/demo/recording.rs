//! Schedule of a replay: when each line of the recorded logs is due.
//!
//! Pure. The clusters were recorded at different times; here all start together. A line is due at its latest
//! stamp, but never after the line that follows it in its file; a line without a stamp is due with the one
//! before it.

use super::Log;
use super::stamps::Stamps;
use std::time::Duration;

/// The day on which everything was recorded, with an hour before and after, in microseconds since 1970.
const RECORDED: std::ops::RangeInclusive<i64> = 1_795_129_200_000_000..=1_795_222_800_000_000;

/// A line to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Time after the start of the recording.
    pub(crate) due: Duration,
    /// The log, by its index in the list.
    pub(crate) log: usize,
    /// The text, without the line ending.
    pub(crate) text: &'static [u8],
}

/// All lines of a list of logs, sorted by when they are due.
pub(crate) struct Recording {
    pub(crate) lines: Vec<Line>,
    /// Start of the recording of each log's cluster, in microseconds since 1970.
    begins: Vec<i64>,
    stamps: Stamps,
}

impl Recording {
    pub(crate) fn new(logs: &[Log]) -> Recording {
        let stamps = Stamps::new(RECORDED);
        let timed: Vec<Vec<(i64, &'static [u8])>> =
            logs.iter().map(|log| times(&stamps, log.bytes)).collect();
        let begin = |cluster: &str| {
            let logs_of = logs.iter().zip(&timed).filter(|(log, _)| log.cluster == cluster);
            logs_of
                .filter_map(|(_, lines)| lines.first().map(|(time, _)| *time))
                .min()
                .unwrap_or(*RECORDED.start())
        };
        let begins: Vec<i64> = logs.iter().map(|log| begin(log.cluster)).collect();
        let mut lines = Vec::new();
        for (log, timed) in timed.iter().enumerate() {
            for &(time, text) in timed {
                let after = u64::try_from(time - begins[log]).unwrap_or(0);
                lines.push(Line { due: Duration::from_micros(after), log, text });
            }
        }
        lines.sort_by_key(|line| line.due);
        Recording { lines, begins, stamps }
    }

    /// The line's text with its stamps moved to a replay that starts at `start` (microseconds since 1970) and
    /// runs `speed` times as fast.
    pub(crate) fn text(&self, line: &Line, start: i64, speed: f64) -> Vec<u8> {
        let begin = self.begins[line.log];
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // spans of minutes
        let to = |micros: i64| start + ((micros - begin) as f64 / speed) as i64;
        self.stamps.moved(line.text, to)
    }

    /// Duration at the original speed.
    pub(crate) fn length(&self) -> Duration {
        self.lines.last().map_or(Duration::ZERO, |line| line.due)
    }
}

fn times(stamps: &Stamps, bytes: &'static [u8]) -> Vec<(i64, &'static [u8])> {
    let lines = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let mut timed: Vec<(Option<i64>, &'static [u8])> =
        lines.map(|line| (stamps.latest(line), line)).collect();
    let first = timed.iter().find_map(|(time, _)| *time);
    let mut last = first;
    for (time, _) in &mut timed {
        *time = time.or(last);
        last = *time;
    }
    let mut next = i64::MAX;
    let backwards = timed.iter().rev().filter_map(|&(time, line)| {
        next = next.min(time?);
        Some((next, line))
    });
    let mut timed: Vec<_> = backwards.collect();
    timed.reverse();
    timed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_the_order_of_their_file_and_clusters_begin_together() {
        let log = |cluster, bytes: &'static [u8]| Log { cluster, host: "h", name: "x", bytes };
        let recording = Recording::new(&[
            log(
                "a",
                b"[2026-11-20T12:00:10] one until 2026-11-20T13:00:00\n[2026-11-20T12:00:12] two\nthree\n",
            ),
            log("b", b"[2026-11-20T15:00:01] four\n"),
        ]);
        let shown: Vec<_> = recording.lines.iter().map(|line| (line.due.as_secs(), line.log)).collect();
        assert_eq!(shown, [(0, 0), (0, 0), (0, 0), (0, 1)]);
        assert!(recording.lines[0].text.starts_with(b"[2026-11-20T12:00:10]"));
    }

    #[test]
    fn every_bundled_log_has_a_host_that_a_sensor_takes() {
        for log in super::super::LOGS {
            assert!(wire::id::HostName::try_from(log.host).is_ok(), "{}", log.name);
        }
    }

    #[test]
    fn the_bundled_logs_are_all_timed() {
        let recording = Recording::new(super::super::LOGS);
        let lines: usize = super::super::LOGS
            .iter()
            .map(|log| log.bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()).count())
            .sum();
        assert_eq!(recording.lines.len(), lines);
        let length = recording.length();
        assert!(length > Duration::from_secs(120) && length < Duration::from_secs(3600), "{length:?}");
    }
}
