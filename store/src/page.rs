//! Pages of an answer: its series in the order of hosts and metrics, as many at once as fit.
//!
//! Rule: a page has series of one host, all of them if they fit. A series that is new between two pages moves no other
//! into a page or out of one. Not here: how steps are merged ([`crate::query`]).

use crate::query::{Answer, By, Point, TooLarge};
use crate::reader::{Reader, Selection};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::id::HostName;
use wire::sample::Metric;

/// Where a page begins: after this metric of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host.
    pub host: HostName,
    /// Its metric; `None` after all of them.
    pub metric: Option<Metric>,
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Series of one host; none if there are no more.
    pub answer: Answer<Point>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Place>,
}

impl Reader {
    /// Answers with the next series, as [`Reader::steps`] does; of at most `max` values.
    ///
    /// # Errors
    /// If a single series has more than `max` values, or too much would have to be read for it.
    pub fn page(
        &self,
        selection: &Selection,
        step: Duration,
        max: usize,
        after: Option<Place>,
    ) -> Result<Page, TooLarge> {
        let numbers = self.numbers(selection);
        let metrics: BTreeSet<Arc<Metric>> = numbers.metrics.into_values().collect();
        let metrics: Vec<Arc<Metric>> = metrics.into_iter().collect();
        let hosts: BTreeSet<HostName> = numbers.hosts.into_values().collect();
        let mut place = after;
        loop {
            let Some((host, from)) = following(&hosts, &metrics, place.as_ref()) else {
                let (series, parts, marks) = (Vec::new(), Vec::new(), Vec::new());
                return Ok(Page {
                    answer: Answer { series, parts, elsewhere: Vec::new(), damaged: 0, marks },
                    next: None,
                });
            };
            let (answer, to) = self.of_host(selection, step, max, host, &metrics[from..])?;
            let metric = metrics.get(from + to).and(metrics.get(from + to - 1));
            let next = Place { host: host.clone(), metric: metric.map(|metric| Metric::clone(metric)) };
            if !answer.series.is_empty() {
                let next = Some(next).filter(|next| following(&hosts, &metrics, Some(next)).is_some());
                return Ok(Page { answer, next });
            }
            place = Some(next);
        }
    }

    /// Steps of as many of these metrics of a host as fit, and of how many.
    fn of_host(
        &self,
        selection: &Selection,
        step: Duration,
        max: usize,
        host: &HostName,
        metrics: &[Arc<Metric>],
    ) -> Result<(Answer<Point>, usize), TooLarge> {
        let mut wanted = metrics;
        loop {
            let is_wanted = |metric: &Metric| wanted.binary_search_by(|one| (**one).cmp(metric)).is_ok();
            let some = Selection { host: &|name| name == host, metric: &is_wanted, ..*selection };
            match self.steps(&some, step, &By::Series, false, max) {
                Err(_) if wanted.len() > 1 => wanted = &wanted[..wanted.len() / 2],
                found => return Ok((found?, wanted.len())),
            }
        }
    }
}

/// The host that follows a place, and the first of its metrics that does.
fn following<'a>(
    hosts: &'a BTreeSet<HostName>,
    metrics: &[Arc<Metric>],
    place: Option<&Place>,
) -> Option<(&'a HostName, usize)> {
    let Some(Place { host, metric }) = place else {
        return hosts.first().filter(|_| !metrics.is_empty()).map(|host| (host, 0));
    };
    let from = metric.as_ref().map_or(metrics.len(), |last| metrics.partition_point(|one| **one <= *last));
    match hosts.get(host).filter(|_| from < metrics.len()) {
        Some(host) => Some((host, from)),
        None => hosts.iter().find(|next| *next > host).filter(|_| !metrics.is_empty()).map(|next| (next, 0)),
    }
}
