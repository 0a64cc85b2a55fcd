//! The figures of the hosts whose graphs are seen: what is known of them, and which host is asked next.
//!
//! Pure: times are given, `now` as the span since asking began. Rule: the more hosts are looked at the more seldom each is
//! asked, none while nobody looks, and of a metric that is new the past is asked for. Not here: who asks (`asking`), how
//! counters become figures (`rates`).

use super::HISTORY;
use super::asking::{Question, history};
use super::http::Error;
use super::rates::{self, Counter};
use super::turn::{Due, EVERY, Turn};
use crate::feed::{self, HostSeries};
use crate::flock::sweep::HostName;
use crate::graphs::HOSTS_MAX;
use crate::graphs::metric::{LINES_MAX, Metric};
use crate::series::Series;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Hosts that are asked each second; of more, each is asked so much more seldom.
const HOSTS_A_SECOND: u32 = 16;
/// So much before the newest figure is asked from: a rate needs the sweep before it.
const BEFORE_NEWEST: Duration = Duration::from_secs(5);

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Figures {
    metrics: Arc<[Metric]>,
    rests: bool,
    hosts: Vec<OfHost>,
    /// The one that was asked last.
    last_asked: usize,
}

#[derive(Debug)]
struct OfHost {
    host: HostName,
    series: HostSeries,
    turn: Turn,
    /// Whether a metric is wanted of which the past is not known.
    lacks_past: bool,
}

impl Figures {
    /// These are wanted from now on, and no others.
    pub(super) fn want(&mut self, wanted: feed::Figures) {
        let has_new = wanted.metrics.iter().any(|metric| !self.metrics.contains(metric));
        (self.rests, self.metrics) = (wanted.rests, wanted.metrics.into());
        self.hosts.retain(|known| wanted.hosts.contains(&known.host));
        for known in &mut self.hosts {
            known.series.retain(|line, _| self.metrics.iter().any(|metric| metric.has(line)));
            known.lacks_past |= has_new;
            if has_new {
                known.turn.hurry();
            }
        }
        for host in wanted.hosts {
            if self.hosts.len() < HOSTS_MAX && !self.hosts.iter().any(|known| known.host == host) {
                let (series, turn) = (HostSeries::new(), Turn::default());
                self.hosts.push(OfHost { host, series, turn, lacks_past: true });
            }
        }
        let count = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let every = EVERY * count.div_ceil(HOSTS_A_SECOND).max(1);
        self.hosts.iter_mut().for_each(|known| known.turn.set_every(every));
    }

    /// The next host that is to be asked now, each after all others.
    pub(super) fn question(&mut self, now: Duration, at: Time) -> Option<Question> {
        if self.rests || self.metrics.is_empty() {
            return None;
        }
        let count = self.hosts.len();
        let mut order = (1..=count).map(|step| (self.last_asked + step) % count);
        let next = order.find(|&next| self.hosts[next].turn.due(now, false).is_some())?;
        self.last_asked = next;
        let known = &mut self.hosts[next];
        known.turn.ask();
        let newest = known.series.values().filter_map(|series| series.newest()).map(|(time, _)| time).max();
        let since = match (newest, std::mem::take(&mut known.lacks_past)) {
            (Some(newest), false) => newest.minus(BEFORE_NEWEST),
            (_, true) | (None, _) => history(at),
        };
        Some(Question::Figures { host: known.host.clone(), metrics: Arc::clone(&self.metrics), since })
    }

    /// All turns.
    pub(super) fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.hosts.iter().map(|known| &known.turn)
    }

    /// When one is due, if no answer comes before.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let is_asked = !self.rests && !self.metrics.is_empty();
        self.turns().filter(|_| is_asked).filter_map(|turn| turn.next(false)).min()
    }

    /// Take an answer; the host's series, where it is still wanted.
    pub(super) fn take(
        &mut self,
        host: &HostName,
        metrics: &[Metric],
        counters: Result<Vec<Counter>, Error>,
        now: Duration,
        took: Duration,
    ) -> Option<Arc<HostSeries>> {
        let known = self.hosts.iter_mut().find(|known| known.host == *host)?;
        match counters {
            Ok(counters) => {
                known.turn.answered(Due::All, now, took);
                if known.lacks_past {
                    known.turn.hurry();
                }
                for (name, samples) in rates::points(metrics, &counters) {
                    if self.metrics.iter().any(|metric| metric.has(&name)) {
                        let series = known.series.entry(name).or_default();
                        samples.iter().for_each(|sample| series.push(sample.time, sample.value));
                    }
                }
                forget_ended(&mut known.series, &self.metrics);
            }
            // Its graphs stand still, and their age is seen.
            Err(_) => {
                known.turn.failed(now);
                known.lacks_past = true;
            }
        }
        Some(Arc::new(known.series.clone()))
    }
}

/// Labels come and go, and with them the lines of a metric that is named: those that ended long before the newest are
/// forgotten, and of more than may be drawn those that ended first.
fn forget_ended(series: &mut HostSeries, metrics: &[Metric]) {
    let ends = |line: &Series| line.newest().map(|(time, _)| time);
    let Some(newest) = series.values().filter_map(ends).max() else { return };
    series.retain(|_, line| ends(line).is_some_and(|end| newest.since(end) <= HISTORY));
    for metric in metrics.iter().filter(|metric| matches!(metric, Metric::Named(_))) {
        let own = series.iter().filter(|(name, _)| metric.has(name));
        let mut own: Vec<_> = own.map(|(name, line)| (ends(line), name.clone())).collect();
        // The sort is stable: of those that ended together the first by name stay.
        own.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
        let is_usual = |name: &str| Metric::USUAL.iter().any(|usual| usual.has(name));
        for (_, name) in own.into_iter().filter(|(_, name)| !is_usual(name)).skip(LINES_MAX) {
            series.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invented;

    const SEC: Duration = Duration::from_secs(1);

    fn want(figures: &mut Figures, hosts: u32, metrics: &[Metric], rests: bool) {
        let hosts = (0..hosts).map(|number| HostName::new("demo", &format!("wn{number:02}"))).collect();
        figures.want(feed::Figures { hosts, metrics: metrics.to_vec(), rests });
    }

    /// Who is asked at a time, and how many seconds of the past.
    fn asked(figures: &mut Figures, now: Duration) -> Vec<(HostName, f64)> {
        let at = invented::time_f(1_000.0 + now.as_secs_f64());
        let question = std::iter::from_fn(|| figures.question(now, at));
        let asked = question.map(|question| match question {
            Question::Figures { host, since, .. } => (host, at.since(since).as_secs_f64()),
            Question::Domain { .. } | Question::Domains | Question::Sensor(_) | Question::Term(_) => {
                panic!("no figures are asked for: {question:?}")
            }
        });
        asked.collect()
    }

    fn answer(figures: &mut Figures, host: &HostName, name: &str, now: Duration) -> Option<Arc<HostSeries>> {
        let time = invented::time_f(1_000.0 + now.as_secs_f64());
        let samples = vec![rates::Sample { time, value: 0.5 }];
        let counter = Counter { name: name.into(), labels: Vec::new(), grows: false, samples };
        let metrics = figures.metrics.clone();
        figures.take(host, &metrics, Ok(vec![counter]), now, Duration::ZERO)
    }

    #[test]
    fn each_host_is_asked_and_the_more_there_are_the_more_seldom() {
        for (hosts, every) in [(1, 1), (16, 1), (17, 2), (64, 4)] {
            let mut figures = Figures::default();
            want(&mut figures, hosts, &[Metric::Load], false);
            let first = asked(&mut figures, SEC);
            assert_eq!(first.len(), hosts as usize);
            assert!(asked(&mut figures, 9 * SEC).is_empty(), "nobody is asked twice at a time");
            for (host, past) in first {
                assert!(past > 800.0, "at first for the past: {past}");
                let series = answer(&mut figures, &host, "node_load1", SEC).unwrap();
                assert_eq!(series["load of 1 minute"].newest().map(|(_, load)| load), Some(0.5));
            }
            assert_eq!(figures.next_due(), Some(SEC + every * SEC));
            let again = asked(&mut figures, SEC + every * SEC);
            assert_eq!(again.len(), hosts as usize);
            assert!(again.iter().all(|(_, past)| *past < 12.0), "then for what is new");
        }
    }

    #[test]
    fn of_a_new_metric_the_past_is_asked_for_and_what_nobody_wants_is_forgotten() {
        let mut figures = Figures::default();
        want(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        answer(&mut figures, &host, "node_load1", SEC);
        let both = [Metric::Load, Metric::Named("node_load5".into())];
        want(&mut figures, 1, &both, false);
        assert!(asked(&mut figures, SEC)[0].1 > 800.0);
        assert_eq!(answer(&mut figures, &host, "node_load5", SEC).unwrap().len(), 2);
        want(&mut figures, 1, &both[1..], false);
        asked(&mut figures, 3 * SEC);
        assert_eq!(answer(&mut figures, &host, "node_load5", 3 * SEC).unwrap().len(), 1);
        want(&mut figures, 0, &both, false);
        assert!(answer(&mut figures, &host, "node_load5", 3 * SEC).is_none());
    }

    #[test]
    fn of_lines_that_come_and_go_those_that_live_are_kept() {
        let mut figures = Figures::default();
        want(&mut figures, 1, &[Metric::Named("job_cpu".into())], false);
        let host = HostName::new("demo", "wn00");
        let mut known = Arc::default();
        for job in 0..40_u64 {
            let now = u32::try_from(job).unwrap() * 60 * SEC;
            asked(&mut figures, now);
            let time = invented::time_f(1_000.0 + now.as_secs_f64());
            let counters = (0..3).map(|part| Counter {
                name: "job_cpu".into(),
                labels: vec![("job".to_owned(), format!("{job}.{part}"))],
                grows: false,
                samples: vec![rates::Sample { time, value: 0.5 }],
            });
            let metrics = figures.metrics.clone();
            known = figures.take(&host, &metrics, Ok(counters.collect()), now, Duration::ZERO).unwrap();
        }
        assert_eq!(known.len(), LINES_MAX);
        assert!(
            known.keys().all(|line| ["36.", "37.", "38.", "39."].iter().any(|job| line.contains(job))),
            "{known:?}"
        );
    }

    #[test]
    fn while_nobody_looks_nothing_is_asked_and_what_is_known_stays() {
        let mut figures = Figures::default();
        want(&mut figures, 1, &[Metric::Load], false);
        let host = asked(&mut figures, SEC).remove(0).0;
        answer(&mut figures, &host, "node_load1", SEC);
        want(&mut figures, 1, &[Metric::Load], true);
        assert!(asked(&mut figures, 60 * SEC).is_empty() && figures.next_due().is_none());
        want(&mut figures, 1, &[Metric::Load], false);
        let past = asked(&mut figures, 60 * SEC)[0].1;
        assert!((60.0..80.0).contains(&past), "from where it stopped: {past}");
        let failed =
            Err(Error::Silent { address: std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into(), secs: 1 });
        assert!(figures.take(&host, &[], failed, 61 * SEC, SEC).is_some());
        assert!(asked(&mut figures, 62 * SEC).is_empty(), "later each time");
    }
}
