//! `domain.metrics`: metrics of all hosts, the newest or those of the last minutes, as members reported them.
//!
//! Rule: an answer has a bounded number of points, the newest. Older sweeps of a host are stored thinned out.
//! Not here: one host's own metrics in full ([`super::metrics`]).

use super::domain::absent;
use super::metrics::{MetricQuery, POINTS_MAX, with_newest};
use crate::representative::domain::{Domain, Now};
use crate::representative::service::Handle;
use crate::sample::series::Completeness;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::sync::Arc;
use wire::api::UnixTime;
use wire::api::metrics::{DomainMetrics, DomainMetricsParams, Metric};
use wire::id::HostName;

/// Creates the method.
#[must_use]
pub fn method(service: &Handle) -> Method {
    let service = service.clone();
    typed::method(move |_, params: DomainMetricsParams| {
        let service = service.clone();
        async move { answer(&service, params).await }
    })
}

async fn answer(service: &Handle, params: DomainMetricsParams) -> Result<DomainMetrics, Fault> {
    let wanted = Arc::new(MetricQuery::new(&params.metrics)?);
    let (asked, host) = (Arc::clone(&wanted), params.host.clone());
    let is_host = move |name: &HostName| host.as_ref().is_none_or(|host| name.is_spelled(host));
    let (metrics, time, complete) = if params.metrics.is_of_history() {
        let question = move |domain: &Domain, _| {
            domain.metrics(is_host, |metric| asked.fits(metric), asked.since, POINTS_MAX)
        };
        let (all, completeness) = service.ask(question).await.map_err(absent)?;
        let all = all.iter().flat_map(|host| host.series.iter().map(|series| (&host.host, series)));
        let shown =
            all.map(|(host, series)| of_host(host, wanted.with_history(&series.metric, &series.points)));
        let (shown, is_whole) = first(shown.take(wanted.limit.saturating_add(1)).collect(), wanted.limit);
        (shown, None, is_whole && completeness == Completeness::Whole)
    } else {
        let question = move |domain: &Domain, _| {
            domain.newest(is_host, |metric| asked.fits(metric), asked.limit.saturating_add(1))
        };
        let (all, is_whole) = first(service.ask(question).await.map_err(absent)?, wanted.limit);
        let shown = all.iter().map(|one| of_host(&one.host, with_newest(&one.metric, one.value, one.time)));
        (shown.collect::<Vec<_>>(), all.iter().map(|one| one.time).max(), is_whole)
    };
    if let (true, Some(host)) = (metrics.is_empty(), params.host) {
        check_host(service, &host).await?;
    }
    Ok(DomainMetrics { metrics, complete, time: time.map(UnixTime) })
}

/// The first `limit` of `found`, and whether these are all.
fn first<T>(mut found: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let is_whole = found.len() <= limit;
    found.truncate(limit);
    (found, is_whole)
}

fn of_host(host: &HostName, metric: Metric) -> Metric {
    Metric { host: Some(host.as_str().into()), ..metric }
}

/// Returns a fault if there is no such host; a host without such a metric is no error.
async fn check_host(service: &Handle, wanted: &str) -> Result<(), Fault> {
    let name = wanted.to_owned();
    let is_known = move |domain: &Domain, now: Now| {
        let mut here = domain.hosts(now.moment).into_iter().map(|row| row.host);
        here.any(|host| host.is_spelled(&name))
            || domain.unreported().iter().any(|gone| gone.host.is_spelled(&name))
    };
    if service.ask(is_known).await.map_err(absent)? {
        return Ok(());
    }
    Err(Fault::not_found(format!(
        "no host {wanted:?} reports; visperf hosts (domain.hosts) lists those that do"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_unless_something_was_left_out() {
        assert_eq!(first(vec![1], 2), (vec![1], true));
        assert_eq!(first(vec![1, 2], 2), (vec![1, 2], true), "the limit is reached, nothing is left out");
        assert_eq!(first(vec![1, 2, 3], 2), (vec![1, 2], false));
    }
}
