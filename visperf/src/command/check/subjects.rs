//! Evaluation of a daemon's answers: hosts, sensors, the domain, one metric.
//!
//! Pure. Rule: a host or value that is missing or out of date is never OK. Not here: the query (`super`), the
//! line (`report`).

use super::range::Range;
use super::report::{Figure, Report, level_of, listed};
use crate::exit::Level;
use crate::output::figures::metric_value;
use wire::api::domain::{Host, HostState, Summary};
use wire::api::metrics::{Metric, Semantics, Value};

/// Ranges outside which an alert is raised.
#[derive(Debug, Default)]
pub(super) struct Thresholds<'a> {
    pub(super) warning: Option<&'a Range>,
    pub(super) critical: Option<&'a Range>,
}

/// Check that hosts report: all hosts of the domain that should, or the named ones.
pub(super) fn hosts(all: &[Host], named: &[String], thresholds: &Thresholds<'_>) -> Report {
    let chosen: Vec<&Host> = all.iter().filter(|host| is_named(host, named)).collect();
    let unknown = named.iter().filter(|name| !chosen.iter().any(|host| host.host == **name));
    // A host that left the domain did so deliberately; a named host is expected to be live.
    let is_away = |host: &&&Host| match host.state {
        HostState::Live => false,
        HostState::Left => !named.is_empty(),
        HostState::LastSeen | HostState::Unknown => true,
    };
    let mut away: Vec<String> = chosen
        .iter()
        .filter(is_away)
        .map(|host| format!("{} ({} ago)", host.host, wire::shown::age(host.age_secs)))
        .collect();
    away.extend(unknown.map(|name| format!("{name} (unknown to the domain)")));
    let live = chosen.iter().filter(|host| host.state == HostState::Live).count();
    let total = live + away.len();
    let default = Range::at_most(0);
    let critical = thresholds.critical.or(Some(&default));
    let level = level_of(count(away.len()), thresholds.warning, critical);
    let text = match away.as_slice() {
        [] if total == 0 => "the domain has no host yet".to_owned(),
        [] => format!("{live} of {total} hosts live"),
        away => format!("{} of {total} hosts not live: {}", away.len(), listed(away)),
    };
    let level = if total == 0 { Level::Unknown } else { level };
    Report::new("HOSTS", level, text)
        .figure(&Figure {
            label: "live",
            value: count(live),
            min: Some(0.0),
            max: Some(count(total)),
            ..Figure::default()
        })
        .figure(&Figure {
            label: "not_live",
            value: count(away.len()),
            warning: thresholds.warning,
            critical,
            min: Some(0.0),
            max: Some(count(total)),
            ..Figure::default()
        })
}

/// Check for sensors that report a problem.
pub(super) fn sensors(all: &[Host], named: &[String], thresholds: &Thresholds<'_>) -> Report {
    // The health of a host that has not reported yet is unknown.
    let is_known = |host: &&Host| host.state == HostState::Live && host.health.is_some();
    let live: Vec<&Host> = all.iter().filter(|host| is_named(host, named)).filter(is_known).collect();
    let first_problem = |host: &&Host| Some(format!("{}: {}", host.host, host.health.as_ref()?.first()?));
    let sick: Vec<String> = live.iter().filter_map(first_problem).collect();
    let default = Range::at_most(0);
    let warning = thresholds.warning.or(Some(&default));
    let level = match live.len() {
        0 => Level::Unknown,
        _ => level_of(count(sick.len()), warning, thresholds.critical),
    };
    let text = match sick.as_slice() {
        [] if live.is_empty() => "no sensor is live".to_owned(),
        [] => format!("{} of {} sensors healthy", live.len(), live.len()),
        sick => format!("{} of {} sensors report a problem: {}", sick.len(), live.len(), listed(sick)),
    };
    let sum = |of: fn(&Host) -> Option<u64>| {
        live.iter().filter_map(|host| of(host)).map(|one| one as f64).sum::<f64>()
    };
    Report::new("SENSORS", level, text)
        .figure(&Figure {
            label: "unhealthy",
            value: count(sick.len()),
            warning,
            critical: thresholds.critical,
            min: Some(0.0),
            max: Some(count(live.len())),
            ..Figure::default()
        })
        .figure(&Figure {
            label: "events_behind",
            value: sum(|host| host.events_behind),
            min: Some(0.0),
            ..Figure::default()
        })
        .figure(&Figure {
            label: "events_lost",
            value: sum(|host| host.events_lost),
            unit: "c",
            ..Figure::default()
        })
}

/// Check the domain as a whole: represented, complete, and the time to the answer.
#[allow(clippy::cast_precision_loss)] // figures of plugins are doubles
pub(super) fn domain(summary: &Summary, took_secs: f64, thresholds: &Thresholds<'_>) -> Report {
    let Summary { domain, representative, hosts, hosts_live, unheard: missing, .. } = summary;
    let slow = level_of(took_secs, thresholds.warning, thresholds.critical);
    // Hosts that are known not to be live are covered by `check hosts`.
    let is_partial = summary.partial && hosts_live >= hosts;
    let level = slow.max(if missing.is_empty() && !is_partial { Level::Ok } else { Level::Warning });
    let mut text = format!(
        "{domain} represented by {representative}, {hosts_live} of {hosts} hosts live, answered in {took_secs:.3} s"
    );
    if !missing.is_empty() {
        text = format!("{text}; events and calls may be missing of {}", listed(missing));
    } else if is_partial {
        text = format!(
            "{text}; hosts may be missing that have not been heard yet or that another one speaks for"
        );
    }
    let whole = |value: u64| value as f64;
    let gauge = |label, value| Figure { label, value, min: Some(0.0), ..Figure::default() };
    Report::new("DOMAIN", level, text)
        .figure(&Figure {
            unit: "s",
            warning: thresholds.warning,
            critical: thresholds.critical,
            ..gauge("time", (took_secs * 1e3).round() / 1e3)
        })
        .figure(&gauge("hosts", whole(*hosts)))
        .figure(&gauge("hosts_live", whole(*hosts_live)))
        .figure(&gauge("calls_waiting", whole(summary.calls.waiting)))
        .figure(&gauge("calls_running", whole(summary.calls.running)))
}

/// Report on a metric that no host has; `near` suggests similar names.
pub(super) fn unknown_metric(name: &str, near: &str) -> Report {
    Report::new("METRIC", Level::Unknown, format!("no metric {name} is known{near}"))
}

/// Check one metric, for each host and label set that has it, at least one. `now` and `age_max_secs` define
/// which values are out of date.
pub(super) fn metric(
    all: &[Metric],
    name: &str,
    thresholds: &Thresholds<'_>,
    (now, age_max_secs): (f64, f64),
) -> Report {
    let (mut level, mut alerts, mut old) = (Level::Ok, Vec::new(), Vec::new());
    for one in all {
        let value = value(one);
        let of_this = level_of(value, thresholds.warning, thresholds.critical);
        if one.time.is_some_and(|time| now - time.0.secs_f64() > age_max_secs) {
            old.push(label(one, name));
        } else if of_this != Level::Ok {
            level = level.max(of_this);
            alerts.push((of_this, format!("{} is {value}", label(one, name))));
        }
    }
    alerts.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    let alerts: Vec<String> = alerts.into_iter().map(|(_, text)| text).collect();
    let text = match (alerts.as_slice(), old.as_slice()) {
        ([], []) => format!("{name} within limits: {}", values(all, name)),
        ([], old) => format!("{name} is older than {age_max_secs} s: {}", listed(old)),
        (alerts, []) => format!("{name}: {}", listed(alerts)),
        (alerts, old) => {
            format!("{name}: {}; older than {age_max_secs} s: {}", listed(alerts), listed(old))
        }
    };
    // The state of an outdated value is unknown; a known problem comes first.
    let level = if level == Level::Ok && !old.is_empty() { Level::Unknown } else { level };
    all.iter().fold(Report::new("METRIC", level, text), |report, one| {
        report.figure(&Figure {
            label: &label(one, name),
            value: value(one),
            unit: unit(one),
            warning: thresholds.warning,
            critical: thresholds.critical,
            ..Figure::default()
        })
    })
}

fn value(metric: &Metric) -> f64 {
    metric.value.map_or(f64::NAN, Value::as_f64)
}

fn values(all: &[Metric], name: &str) -> String {
    let shown = |one: &Metric| one.value.map(metric_value).unwrap_or_default();
    let all: Vec<String> = all.iter().map(|one| format!("{} is {}", label(one, name), shown(one))).collect();
    listed(&all)
}

/// Label of the performance data: `wn01`, the metric's name if a glob was given, and the labels.
fn label(metric: &Metric, name: &str) -> String {
    let mut parts: Vec<String> = metric.host.iter().map(ToString::to_string).collect();
    if metric.name != name || parts.is_empty() {
        parts.push(metric.name.to_string());
    }
    parts.extend(metric.labels.0.iter().map(|(name, value)| format!("{name}:{value}")));
    parts.join(" ")
}

/// Unit of the performance data: seconds, bytes, a counter, or none.
fn unit(metric: &Metric) -> &'static str {
    match (metric.semantics, metric.unit.as_str()) {
        (Semantics::Counter, _) => "c",
        (_, "seconds") => "s",
        (_, "bytes") => "B",
        _ => "",
    }
}

fn is_named(host: &Host, named: &[String]) -> bool {
    named.is_empty() || named.contains(&host.host)
}

#[allow(clippy::cast_precision_loss)] // hosts are few
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
