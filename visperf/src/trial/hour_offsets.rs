//! Time zone check between logs: if one log's times of shared jobs differ from another's by whole hours, it
//! has another zone.
//!
//! Pure. With correct zones the events of a job in one log lie within the time span that the other, which
//! covers the job for longer, has of it. Rule: a hint needs several shared jobs; nearly none of them agrees now,
//! and nearly all agree at exactly one offset of whole hours.

use compact_str::CompactString;
use std::collections::BTreeMap;
use wire::event::Content;
use wire::shown::count;
use wire::time::Time;

/// Limits on jobs (the first are used) and on pairs of logs, so that memory is bounded for long logs.
const JOBS_MAX: usize = 20_000;
const PAIRS_MAX: usize = 10_000;
/// Logs considered per job.
const LOGS_OF_A_JOB_MAX: usize = 8;
/// Minimum number of shared jobs for a hint.
const SHARED_MIN: u32 = 3;
/// Largest difference between two zones, in hours.
const HOURS_MAX: i64 = 26;
/// Number of offsets from `-HOURS_MAX` to `HOURS_MAX`.
const HOURS_ALL: usize = 2 * HOURS_MAX.unsigned_abs() as usize + 1;
/// Tolerance for clock differences of hosts and delays of daemons.
const SLACK_MICROS: i64 = 60_000_000;
const HOUR_MICROS: i64 = 3_600_000_000;

/// First and last time of a job in a log, in microseconds since 1970.
type Span = (i64, i64);

/// Time spans of jobs in logs.
#[derive(Debug, Default)]
pub(crate) struct HourOffsets {
    /// By scope and name of the job: the logs, by index, with their spans.
    jobs: BTreeMap<(CompactString, CompactString), Vec<(usize, Span)>>,
}

/// Comparison of two logs.
struct Pair {
    /// Number of shared jobs.
    shared: u32,
    /// Number of shared jobs for which the first log has the longer span.
    first_is_longer: u32,
    /// Number of jobs that agree if the second log is shifted by so many hours, from `-HOURS_MAX` on.
    agree: [u32; HOURS_ALL],
}

impl HourOffsets {
    /// Add an event of a log; one without its own timestamp has the time of reading, `seen`, and is ignored.
    pub(crate) fn event(&mut self, log: usize, scope: &str, content: &Content, seen: Time) {
        if content.job.is_empty() || content.time == seen {
            return;
        }
        let key = (CompactString::from(scope), content.job.clone());
        if self.jobs.len() >= JOBS_MAX && !self.jobs.contains_key(&key) {
            return;
        }
        let time = content.time.micros();
        let logs = self.jobs.entry(key).or_default();
        if let Some((_, span)) = logs.iter_mut().find(|(known, _)| *known == log) {
            *span = (span.0.min(time), span.1.max(time));
        } else if logs.len() < LOGS_OF_A_JOB_MAX {
            logs.push((log, (time, time)));
        }
    }

    /// A hint for each log that is off by whole hours; `name` returns a log's name by its index.
    pub(crate) fn hints(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        // By the log they are compared with, and by the offset.
        let mut apart: BTreeMap<(usize, i64), Vec<usize>> = BTreeMap::new();
        for ((first, second), pair) in self.pairs() {
            let Some(hours) = pair.hours() else { continue };
            let (with, hours, log) = match pair.first_is_longer * 2 >= pair.shared {
                true => (first, hours, second),
                false => (second, -hours, first),
            };
            apart.entry((with, hours)).or_default().push(log);
        }
        let hint = |((with, hours), logs): ((usize, i64), Vec<usize>)| {
            let more = match logs.len() {
                1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            let verb = if logs.len() == 1 { "is" } else { "are" };
            let side = if hours > 0 { "earlier" } else { "later" };
            let (first, hours) = (name(logs[0]), count(hours.unsigned_abs(), "hour"));
            format!(
                "{first}{more} {verb} {hours} {side} than {} for the jobs of both: if its stamps print no zone and are in \
                 another zone, name it with --zone {first}=ZONE",
                name(with)
            )
        };
        apart.into_iter().map(hint).collect()
    }

    /// Pairs of logs that share jobs, the lower index first.
    fn pairs(&self) -> BTreeMap<(usize, usize), Pair> {
        let mut pairs: BTreeMap<(usize, usize), Pair> = BTreeMap::new();
        for logs in self.jobs.values() {
            for (number, one) in logs.iter().enumerate() {
                for other in &logs[number + 1..] {
                    let ((first, span), (second, other_span)) =
                        if one.0 < other.0 { (*one, *other) } else { (*other, *one) };
                    let key = (first, second);
                    if pairs.len() < PAIRS_MAX || pairs.contains_key(&key) {
                        pairs.entry(key).or_default().job(span, other_span);
                    }
                }
            }
        }
        pairs
    }
}

impl Default for Pair {
    fn default() -> Pair {
        Pair { shared: 0, first_is_longer: 0, agree: [0; HOURS_ALL] }
    }
}

impl Pair {
    fn job(&mut self, first: Span, second: Span) {
        let first_is_longer = length(first) >= length(second);
        self.shared += 1;
        self.first_is_longer += u32::from(first_is_longer);
        for (hours, agree) in (-HOURS_MAX..=HOURS_MAX).zip(&mut self.agree) {
            let agrees = match first_is_longer {
                true => lies_within(second, hours, first),
                false => lies_within(first, -hours, second),
            };
            *agree += u32::from(agrees);
        }
    }

    /// The offset of the second log in hours: the only one at which four of five jobs agree, while at most
    /// one of five agrees now.
    fn hours(&self) -> Option<i64> {
        let by_hours = || (-HOURS_MAX..=HOURS_MAX).zip(self.agree);
        let now = by_hours().find(|(hours, _)| *hours == 0).map_or(0, |(_, agree)| agree);
        let mut fitting = by_hours().filter(|(_, agree)| agree * 5 >= self.shared * 4);
        let (hours, _) = fitting.next().filter(|_| self.shared >= SHARED_MIN && now * 5 <= self.shared)?;
        fitting.next().is_none().then_some(hours)
    }
}

fn length(span: Span) -> i64 {
    span.1 - span.0
}

fn lies_within(inner: Span, hours: i64, outer: Span) -> bool {
    let by = hours * HOUR_MICROS;
    inner.0 + by >= outer.0 - SLACK_MICROS && inner.1 + by <= outer.1 + SLACK_MICROS
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::Kind;

    /// Events of each log: job and time in seconds.
    fn hints(logs: &[&[(&str, f64)]]) -> Vec<String> {
        let mut offsets = HourOffsets::default();
        for (number, events) in logs.iter().enumerate() {
            for (job, secs) in *events {
                let mut content = Content::new(Kind::JobStart, Time::from_secs_f64(*secs));
                content.job = (*job).into();
                offsets.event(number, "slurm", &content, Time::from_secs_f64(9e9));
            }
        }
        offsets.hints(|number| format!("{number}.log"))
    }

    const SERVER: &[(&str, f64)] = &[
        ("1", 50_000.0),
        ("1", 50_010.0),
        ("2", 50_000.0),
        ("2", 50_300.0),
        ("3", 50_020.0),
        ("3", 50_030.0),
    ];

    #[test]
    fn a_log_in_another_zone_is_named_with_its_hours() {
        let host = [("1", 42_801.0), ("1", 42_809.0), ("2", 42_820.0), ("3", 42_825.0)];
        let found = hints(&[SERVER, &host]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("1.log is 2 hours earlier than 0.log"), "{found:?}");
        let later: Vec<_> = host.iter().map(|(job, secs)| (*job, secs + 3.0 * 3600.0)).collect();
        assert!(hints(&[&later, SERVER])[0].starts_with("0.log is 1 hour later than 1.log"));
        let two = hints(&[SERVER, &host, &host]);
        assert!(two[0].starts_with("1.log and 1 more are 2 hours earlier"), "{two:?}");
    }

    #[test]
    fn logs_of_one_zone_say_nothing() {
        let near = [("1", 50_002.0), ("1", 50_009.0), ("2", 50_290.0), ("3", 50_025.0)];
        assert!(hints(&[SERVER, &near]).is_empty());
        let moved = |secs: f64| near.map(|(job, at)| (job, at + secs));
        assert!(hints(&[SERVER, &moved(55.0)]).is_empty(), "a minute late");
        assert!(hints(&[SERVER, &moved(5_000.0)]).is_empty(), "no whole hour");
        assert_eq!(hints(&[SERVER, &moved(7_200.0)]).len(), 1);
        assert!(hints(&[SERVER, &moved(7_200.0)[..3]]).is_empty(), "too few jobs");
        assert!(hints(&[SERVER, &[("7", 42_801.0)]]).is_empty(), "no job of both");
        assert!(hints(&[SERVER, &near.map(|(job, _)| (job, 9e9))]).is_empty(), "no stamps");
    }

    #[test]
    fn long_jobs_that_agree_at_many_hours_say_nothing() {
        // One log has the start and the end, the other a submission some hours before.
        let days = ["1", "2", "3", "4"].map(|job| [(job, 18_000.0), (job, 54_000.0)]).concat();
        let submitted = [("1", 3_600.0), ("2", 7_200.0), ("3", 10_800.0), ("4", 14_400.0)];
        assert!(hints(&[&days, &submitted]).is_empty());
    }
}
