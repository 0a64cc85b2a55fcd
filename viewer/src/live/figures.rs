//! Metrics of the hosts whose graphs are shown: the cached series, and which host is asked next.
//!
//! Pure: times are given, `now` as the time since polling started. Rule: the more hosts are shown, the less
//! often each is asked, and none while the graphs are hidden; for a new metric the history is requested.
//! Samples are stored with the host's timestamps and published with the viewer's. Not here: the threads that
//! ask (`asking`), conversion of counters into rates (`rates`), clock offsets (`apart`).

use super::apart::{Clock, is_believed};
use super::asking::Question;
use super::poll_schedule::{Due, EVERY, PollSchedule};
use super::rates::{self, Counter};
use super::{HISTORY, HISTORY_LONG};
use crate::feed::{self, Update};
use crate::flock::sweep::HostName;
use crate::graphs::HOSTS_MAX;
use crate::graphs::metric::{LINES_MAX, Metric};
use crate::grid::builder::AHEAD;
use crate::series::{HostSeries, Series};
use client::Error;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Hosts that are asked per second; with more, the interval of each host grows in proportion.
const HOSTS_A_SECOND: u32 = 16;
/// A request starts this long before the newest sample: a rate needs the sweep before it.
const BEFORE_NEWEST: Duration = Duration::from_secs(5);
/// After this many answers without a sample a whole day is requested: the host's clock may be far behind, or
/// was set back.
const EMPTY_MAX: u32 = 2;

/// Cached metrics of all hosts that are shown.
#[derive(Debug, Default)]
pub(super) struct Figures {
    metrics: Arc<[Metric]>,
    is_long: bool,
    rests: bool,
    hosts: Vec<OfHost>,
    /// Index of the host that was asked last.
    last_asked: usize,
}

#[derive(Debug)]
struct OfHost {
    host: HostName,
    series: HostSeries,
    schedule: PollSchedule,
    /// Whether the history of a requested metric is still missing.
    lacks_past: bool,
    clock: Clock,
    /// Consecutive answers without a sample.
    empty: u32,
}

impl Figures {
    /// Replace the set of hosts and metrics.
    pub(super) fn set_request(&mut self, request: feed::Figures) {
        let has_new = request.metrics.iter().any(|metric| !self.metrics.contains(metric));
        let is_longer = request.is_long && !self.is_long;
        (self.rests, self.is_long, self.metrics) = (request.rests, request.is_long, request.metrics.into());
        self.hosts.retain(|known| request.hosts.contains(&known.host));
        for known in &mut self.hosts {
            known.series.retain(|line, _| self.metrics.iter().any(|metric| metric.has(line)));
            if has_new || is_longer {
                known.lacks_past = true;
                known.schedule.hurry();
            }
        }
        for host in request.hosts {
            if self.hosts.len() < HOSTS_MAX && !self.hosts.iter().any(|known| known.host == host) {
                self.hosts.push(OfHost::new(host));
            }
        }
        let count = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let every = EVERY * count.div_ceil(HOSTS_A_SECOND).max(1);
        self.hosts.iter_mut().for_each(|known| known.schedule.set_every(every));
    }

    /// The question to the next host that is due, in round-robin order; with `is_full`, hosts that failed are
    /// skipped.
    pub(super) fn question(&mut self, now: Duration, at: Time, is_full: bool) -> Option<Question> {
        if self.rests || self.metrics.is_empty() {
            return None;
        }
        let count = self.hosts.len();
        let mut order = (1..=count).map(|step| (self.last_asked + step) % count);
        let next = order.find(|&next| {
            let schedule = &self.hosts[next].schedule;
            schedule.due(now, false).is_some() && !(is_full && schedule.has_failed())
        })?;
        self.last_asked = next;
        let known = &mut self.hosts[next];
        known.schedule.ask();
        let history = if self.is_long { HISTORY_LONG } else { HISTORY };
        let since = known.since(at, history);
        Some(Question::Figures { host: known.host.clone(), metrics: Arc::clone(&self.metrics), since })
    }

    /// The poll schedules of all hosts.
    pub(super) fn schedules(&self) -> impl Iterator<Item = &PollSchedule> {
        self.hosts.iter().map(|known| &known.schedule)
    }

    /// When the next host is due, unless an answer comes earlier.
    pub(super) fn next_due(&self, is_full: bool) -> Option<Duration> {
        let is_asked = !self.rests && !self.metrics.is_empty();
        let schedules = self.schedules().filter(|schedule| is_asked && !(is_full && schedule.has_failed()));
        schedules.filter_map(|schedule| schedule.next(false)).min()
    }

    /// Process an answer that came `at`; returns the update to publish, if the host is still shown.
    pub(super) fn take(
        &mut self,
        host: &HostName,
        metrics: &[Metric],
        counters: Result<Vec<Counter>, Error>,
        (now, at): (Duration, Time),
        took: Duration,
    ) -> Option<Update> {
        let known = self.hosts.iter_mut().find(|known| known.host == *host)?;
        let trouble = match counters {
            Ok(counters) => {
                known.schedule.answered(Due::All, now, took);
                if known.lacks_past {
                    known.schedule.hurry();
                }
                known.take(metrics, &self.metrics, counters, at, took);
                if known.is_empty() {
                    known.schedule.failed(now);
                }
                known.trouble()
            }
            // Its graphs stop, and their age becomes visible.
            Err(error) => {
                known.schedule.failed(now);
                known.lacks_past = true;
                Some(match error {
                    Error::Fault { message, .. } => message,
                    Error::Unreachable(_)
                    | Error::Mistake(_)
                    | Error::Lost { .. }
                    | Error::Late { .. }
                    | Error::Answer { .. } => error.to_string(),
                })
            }
        };
        Some(Update::Series { host: host.clone(), series: Arc::new(known.to_series()), trouble })
    }
}

impl OfHost {
    fn new(host: HostName) -> OfHost {
        let (series, schedule) = (HostSeries::new(), PollSchedule::default());
        OfHost { host, series, schedule, lacks_past: true, clock: Clock::default(), empty: 0 }
    }

    /// Start time of the next request, by the host's clock.
    fn since(&mut self, at: Time, history: Duration) -> Time {
        let newest = self.series.values().filter_map(|series| series.newest()).map(|(time, _)| time).max();
        let lacks_past = std::mem::take(&mut self.lacks_past);
        match newest {
            _ if self.empty >= EMPTY_MAX => at.minus(AHEAD),
            Some(newest) if !lacks_past => newest.minus(BEFORE_NEWEST),
            Some(_) | None => {
                Time::from_micros(at.micros().saturating_sub(self.clock.moved())).minus(history)
            }
        }
    }

    /// Whether even the request for a whole day returned no sample.
    fn is_empty(&self) -> bool {
        self.empty > EMPTY_MAX
    }

    fn trouble(&self) -> Option<String> {
        let empty = "no figure of the last day came: there is none of these, or its clock is wrong by more than a day";
        if self.is_empty() { Some(empty.to_owned()) } else { self.clock.trouble() }
    }

    fn take(
        &mut self,
        asked: &[Metric],
        wanted: &[Metric],
        mut counters: Vec<Counter>,
        at: Time,
        took: Duration,
    ) {
        for counter in &mut counters {
            let samples = &mut counter.samples;
            samples.retain(|sample| is_believed(sample.time, at));
            // Samples before a clock was set back have no reliable time.
            let set_back = samples.windows(2).rposition(|pair| pair[1].time < pair[0].time);
            samples.drain(..set_back.map_or(0, |before| before + 1));
        }
        let newest = counters.iter().filter_map(|counter| counter.samples.last()).map(|last| last.time).max();
        let Some(newest) = newest else {
            self.empty = self.empty.saturating_add(1);
            return;
        };
        self.empty = 0;
        // The sample may have been in transit for as long as the answer took.
        if self.clock.observe(newest, newest.clamp(at.minus(took), at)) {
            self.series.clear();
        }
        for (name, samples) in rates::points(asked, &counters) {
            if wanted.iter().any(|metric| metric.has(&name)) {
                let samples = samples.iter().map(|sample| (sample.time, sample.value));
                self.series.entry(name).or_default().take(samples);
            }
        }
        forget_ended(&mut self.series, wanted);
    }

    /// The series with the viewer's timestamps.
    fn to_series(&self) -> HostSeries {
        match self.clock.moved() {
            0 => self.series.clone(),
            moved => self.series.iter().map(|(name, series)| (name.clone(), series.moved(moved))).collect(),
        }
    }
}

/// Drop lines of named metrics whose labels disappeared: those that ended more than [`HISTORY_LONG`] before
/// the newest, and beyond the limit of lines those that ended first.
fn forget_ended(series: &mut HostSeries, metrics: &[Metric]) {
    let ends = |line: &Series| line.newest().map(|(time, _)| time);
    let Some(newest) = series.values().filter_map(ends).max() else { return };
    series.retain(|_, line| ends(line).is_some_and(|end| newest.since(end) <= HISTORY_LONG));
    for metric in metrics.iter().filter(|metric| matches!(metric, Metric::Named(_))) {
        let own = series.iter().filter(|(name, _)| metric.has(name));
        let mut own: Vec<_> = own.map(|(name, line)| (ends(line), name.clone())).collect();
        // The sort is stable: of lines that ended together, the first by name stay.
        own.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
        for (_, name) in own.into_iter().skip(LINES_MAX) {
            series.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    const SEC: Duration = Duration::from_secs(1);

    fn request(figures: &mut Figures, hosts: u32, metrics: &[Metric], rests: bool) {
        let hosts = (0..hosts).map(|number| HostName::new("demo", &format!("wn{number:02}"))).collect();
        figures.set_request(feed::Figures { hosts, metrics: metrics.to_vec(), is_long: false, rests });
    }

    /// The hosts asked at this time, and how many seconds of history are requested of each.
    fn asked(figures: &mut Figures, now: Duration) -> Vec<(HostName, f64)> {
        let at = synthetic::time_f(1_000.0 + now.as_secs_f64());
        let question = std::iter::from_fn(|| figures.question(now, at, false));
        let asked = question.map(|question| match question {
            Question::Figures { host, since, .. } => (host, at.since(since).as_secs_f64()),
            Question::Domain { .. }
            | Question::Domains
            | Question::Tile(_)
            | Question::Oldest(_)
            | Question::PastCalls { .. }
            | Question::Sensor(_)
            | Question::Term(_) => {
                panic!("no figures are asked for: {question:?}")
            }
        });
        asked.collect()
    }

    fn answer(figures: &mut Figures, host: &HostName, name: &str, now: Duration) -> Option<Arc<HostSeries>> {
        answer_of(figures, host, name, now, &[now.as_secs_f64()]).map(|(series, _)| series)
    }

    /// Process an answer with samples at these seconds of the host's clock; returns the published series and
    /// trouble.
    fn answer_of(
        figures: &mut Figures,
        host: &HostName,
        name: &str,
        now: Duration,
        times: &[f64],
    ) -> Option<(Arc<HostSeries>, Option<String>)> {
        let sample = |secs: &f64| rates::Sample { time: synthetic::time_f(1_000.0 + secs), value: 0.5 };
        let samples = times.iter().map(sample).collect();
        let counter = Counter { name: name.into(), labels: Vec::new(), grows: false, samples };
        take(figures, host, Ok(vec![counter]), now)
    }

    fn take(
        figures: &mut Figures,
        host: &HostName,
        counters: Result<Vec<Counter>, Error>,
        now: Duration,
    ) -> Option<(Arc<HostSeries>, Option<String>)> {
        let (metrics, at) = (figures.metrics.clone(), synthetic::time_f(1_000.0 + now.as_secs_f64()));
        let update = figures.take(host, &metrics, counters, (now, at), Duration::ZERO)?;
        let Update::Series { series, trouble, .. } = update else {
            panic!("expected figures, found {update:?}")
        };
        Some((series, trouble))
    }

    #[test]
    fn each_host_is_asked_and_the_more_there_are_the_more_seldom() {
        for (hosts, every) in [(1, 1), (16, 1), (17, 2), (64, 4)] {
            let mut figures = Figures::default();
            request(&mut figures, hosts, &[Metric::Load], false);
            let first = asked(&mut figures, SEC);
            assert_eq!(first.len(), hosts as usize);
            assert!(asked(&mut figures, 9 * SEC).is_empty(), "no host is asked twice at a time");
            for (host, past) in first {
                assert!(past > 800.0, "at first for the past: {past}");
                let series = answer(&mut figures, &host, "node_load1", SEC).unwrap();
                assert_eq!(series["load of 1 minute"].newest().map(|(_, load)| load), Some(0.5));
            }
            assert_eq!(figures.next_due(false), Some(SEC + every * SEC));
            let again = asked(&mut figures, SEC + every * SEC);
            assert_eq!(again.len(), hosts as usize);
            assert!(again.iter().all(|(_, past)| *past < 12.0), "then for what is new");
        }
    }

    #[test]
    fn of_a_new_metric_the_past_is_requested_and_an_unused_one_is_forgotten() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        answer(&mut figures, &host, "node_load1", SEC);
        let both = [Metric::Load, Metric::Named("node_load5".into())];
        request(&mut figures, 1, &both, false);
        assert!(asked(&mut figures, SEC)[0].1 > 800.0);
        assert_eq!(answer(&mut figures, &host, "node_load5", SEC).unwrap().len(), 2);
        request(&mut figures, 1, &both[1..], false);
        asked(&mut figures, 3 * SEC);
        assert_eq!(answer(&mut figures, &host, "node_load5", 3 * SEC).unwrap().len(), 1);
        request(&mut figures, 0, &both, false);
        assert!(answer(&mut figures, &host, "node_load5", 3 * SEC).is_none());
    }

    #[test]
    fn who_looks_at_an_hour_is_given_one() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        answer(&mut figures, &host, "node_load1", SEC);
        let hosts = vec![host.clone()];
        let metrics = vec![Metric::Load];
        figures.set_request(feed::Figures { hosts, metrics, is_long: true, rests: false });
        assert!(asked(&mut figures, SEC)[0].1 > 3_500.0);
        let counted = |figures: &mut Figures, now: Duration, times: &[f64]| {
            let (series, _) = answer_of(figures, &host, "node_load1", now, times).unwrap();
            series["load of 1 minute"].samples().count()
        };
        assert_eq!(counted(&mut figures, SEC, &[-3_000.0, -2_000.0, 0.0, 1.0]), 4, "before what was there");
        assert!(asked(&mut figures, 2 * SEC)[0].1 < 12.0, "once");
    }

    #[test]
    fn of_lines_that_come_and_go_those_that_live_are_kept() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Named("job_cpu".into())], false);
        let host = HostName::new("demo", "wn00");
        let mut known = Arc::default();
        for job in 0..40_u64 {
            let now = u32::try_from(job).unwrap() * 60 * SEC;
            asked(&mut figures, now);
            let time = synthetic::time_f(1_000.0 + now.as_secs_f64());
            let counters = (0..3).map(|part| Counter {
                name: "job_cpu".into(),
                labels: vec![("job".to_owned(), format!("{job}.{part}"))],
                grows: false,
                samples: vec![rates::Sample { time, value: 0.5 }],
            });
            known = take(&mut figures, &host, Ok(counters.collect()), now).unwrap().0;
        }
        assert_eq!(known.len(), LINES_MAX);
        assert!(
            known.keys().all(|line| ["36.", "37.", "38.", "39."].iter().any(|job| line.contains(job))),
            "{known:?}"
        );
    }

    #[test]
    fn while_no_graph_is_shown_nothing_is_asked_and_what_is_known_stays() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        answer(&mut figures, &host, "node_load1", SEC);
        request(&mut figures, 1, &[Metric::Load], true);
        assert!(asked(&mut figures, 60 * SEC).is_empty() && figures.next_due(false).is_none());
        request(&mut figures, 1, &[Metric::Load], false);
        let past = asked(&mut figures, 60 * SEC)[0].1;
        assert!((60.0..80.0).contains(&past), "from where it stopped: {past}");
        let failed = Err(Error::Late { address: "127.0.0.1:1".to_owned(), after: Duration::from_secs(1) });
        let (_, trouble) = take(&mut figures, &host, failed, 61 * SEC).unwrap();
        assert!(trouble.is_some_and(|trouble| trouble.contains("127.0.0.1:1")));
        assert!(asked(&mut figures, 62 * SEC).is_empty(), "later each time");
    }

    /// The last second with a sample.
    fn last((series, _): &(Arc<HostSeries>, Option<String>)) -> f64 {
        let newest = series["load of 1 minute"].newest().unwrap().0;
        newest.since(synthetic::time_f(1_000.0)).as_secs_f64()
    }

    #[test]
    fn what_a_wrong_clock_says_is_drawn_at_the_right_time() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, 600 * SEC).remove(0).0;
        let mut answer = None;
        // The host's clock is ten minutes behind: the last minutes contain no sample until a whole day is
        // requested.
        for secs in 600_u32..606 {
            let now = secs * SEC;
            let behind = f64::from(secs) - 595.0;
            let past = if secs == 600 { 0.0 } else { asked(&mut figures, now)[0].1 };
            let samples = [behind - 1.0, behind];
            let has_some = past > 80_000.0 || secs > 602;
            let shown = if has_some { &samples[..] } else { &[] };
            answer = answer_of(&mut figures, &host, "node_load1", now, shown);
        }
        let answer = answer.unwrap();
        assert!((last(&answer) - 605.0).abs() < 0.1, "{}", last(&answer));
        assert!(answer.1.is_some_and(|answer| answer.contains("595 s behind")));
    }

    #[test]
    fn a_clock_that_was_set_back_and_times_that_are_absurd_stop_no_graph() {
        let mut figures = Figures::default();
        request(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        let answer = answer_of(&mut figures, &host, "node_load1", SEC, &[0.0, 1.0, 1e10]).unwrap();
        assert!((last(&answer) - 1.0).abs() < 0.1, "the year 2300 is not believed: {}", last(&answer));
        asked(&mut figures, 2 * SEC);
        answer_of(&mut figures, &host, "node_load1", 2 * SEC, &[3_602.0]).unwrap();
        for secs in 3_u32..6 {
            let past = asked(&mut figures, secs * SEC)[0].1;
            let samples: &[f64] = if past > 80_000.0 { &[0.0, 1.0, 3_602.0, 4.0, 5.0] } else { &[] };
            let answer = answer_of(&mut figures, &host, "node_load1", secs * SEC, samples).unwrap();
            let expected = if secs < 5 { 3_602.0 } else { 5.0 };
            assert!((last(&answer) - expected).abs() < 0.1, "after {secs} s: {}", last(&answer));
        }
    }
}
