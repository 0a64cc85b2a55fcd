//! `domain.metrics`: the figures of all hosts, the newest or the last minutes, as their members reported them.
//!
//! Rule: an answer holds a bounded number of points, the newest. Older sweeps of a host are kept thinned.
//! Not here: one host's own figures in full ([`super::metrics`]).

use super::declared;
use super::domain::absent;
use super::metrics::{POINTS_MAX, Wanted, is_of_history};
use super::shape;
use crate::representative::domain::{Domain, Now};
use crate::representative::office::Handle;
use crate::representative::view::{HostSeries, Newest};
use crate::sample::history::Completeness;
use rpc::fault::Fault;
use rpc::method::Method;
use rpc::params::Params;
use rpc::value::{Name, Value};
use wire::id::HostName;
use wire::sample::Metric;
use wire::time::Time;

/// The method.
#[must_use]
pub fn method(office: &Handle) -> Method {
    let office = office.clone();
    declared::domain_metrics().handler(move |params| {
        let office = office.clone();
        async move { answer(&office, params).await }
    })
}

async fn answer(office: &Handle, params: Params) -> Result<Value, Fault> {
    let wanted = Wanted::new(&params)?;
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let named = params.text("host")?.map(ToOwned::to_owned);
    let host = named.clone();
    let is_host = move |name: &HostName| host.as_ref().is_none_or(|host| name.is_spelled(host));
    let since = params.time("since")?.unwrap_or(Time::from_micros(i64::MIN));
    let until = params.time("until")?.unwrap_or(Time::from_micros(i64::MAX));
    let (metrics, time, complete) = if is_of_history(&params)? {
        let question = move |domain: &Domain, _| {
            domain.metrics(is_host, |metric| wanted.fits(metric), since, POINTS_MAX)
        };
        let (all, completeness) = office.ask(question).await.map_err(absent)?;
        let shown: Vec<Value> = all.iter().flat_map(|host| shown_series(host, until)).take(limit).collect();
        (shown, None, completeness == Completeness::Whole)
    } else {
        let question = move |domain: &Domain, _| domain.newest(is_host, |metric| wanted.fits(metric), limit);
        let all = office.ask(question).await.map_err(absent)?;
        let complete = all.len() < limit;
        (all.iter().map(shown_newest).collect(), all.iter().map(|one| one.time).max(), complete)
    };
    if let (true, Some(host)) = (metrics.is_empty(), named) {
        check_host(office, &host).await?;
    }
    let mut members = vec![("metrics", Value::Array(metrics)), ("complete", Value::Bool(complete))];
    members.extend(time.map(|time| ("time", shape::time(time))));
    Ok(Value::object(members))
}

/// Whether there is such a host, which may have no such metric.
async fn check_host(office: &Handle, wanted: &str) -> Result<(), Fault> {
    let name = wanted.to_owned();
    let is_known = move |domain: &Domain, now: Now| {
        let mut here = domain.hosts(now.moment).into_iter().map(|row| row.host);
        here.any(|host| host.is_spelled(&name))
            || domain.unreported().iter().any(|gone| gone.host.is_spelled(&name))
    };
    if office.ask(is_known).await.map_err(absent)? {
        return Ok(());
    }
    Err(Fault::not_found(format!("no host {wanted:?} reports; ask domain.hosts for those that do")))
}

fn with_host(host: &HostName, metric: &Metric) -> Vec<(Name, Value)> {
    let mut members = shape::metric(metric);
    members.push(("host".into(), Value::Text(host.to_string())));
    members
}

fn shown_newest(newest: &Newest) -> Value {
    let mut members = with_host(&newest.host, &newest.metric);
    members.push(("value".into(), shape::number(newest.value)));
    members.push(("time".into(), shape::time(newest.time)));
    Value::Struct(members)
}

fn shown_series(host: &HostSeries, until: Time) -> Vec<Value> {
    let shown = host.series.iter().map(|series| {
        let mut members = with_host(&host.host, &series.metric);
        let samples = series.points.iter().filter(|(time, _)| *time <= until).map(|(time, value)| {
            Value::object([("time", shape::time(*time)), ("value", shape::number(*value))])
        });
        members.push(("samples".into(), Value::Array(samples.collect())));
        Value::Struct(members)
    });
    shown.collect()
}
