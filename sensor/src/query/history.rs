//! `sensor.history`: values that the host's metrics had in the past.
//!
//! Rule: an answer has a bounded number of values, and names what it was read from. It is computed on a pool
//! of threads of its own, as it reads the disk. Not here: the series of the answer (`history_answer`), the storage and the choice of tiers (`store`).

use super::exported_minutes::ExportedMinutes;
use super::history_answer::{ages, chosen, series_of, share, shown, summarized};
use super::history_cursor::Cursor;
use super::metrics::{POINTS_MAX, opened};
use super::past::{between, reader};
use crate::history::exported::Exported;
use crate::history::handle::Handle;
use crate::history::writing::calendar;
use crate::sample::glob::Glob;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use store::merge::{Elsewhere, Merge};
use store::page::Page;
use store::query::{Answer, By, TooLarge};
use store::reader::{Reader, Selection};
use wire::api::history::{Aggregate, GroupBy, History, HistoryParams, HistorySeries};
use wire::api::metrics::{Sample, Semantics, Value};
use wire::api::{Span, UnixTime};
use wire::id::HostName;
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;

/// Values that are read for one answer, at most: those of percentiles are all in memory.
const VALUES_READ_MAX: usize = 2_000_000;

/// How many times as many values an answer from exported days may have: it is of all hosts, for one caller.
const FILES_TIMES: usize = 10;

/// Steps on a page, at most: some megabytes of summaries.
const PAGE_POINTS_MAX: usize = 40_000;

/// Values of a series by default, at most.
const STEPS_DEFAULT: u32 = 300;

/// Span of time by default.
const SPAN_DEFAULT: Duration = Duration::from_secs(3600);

/// Longest step.
const STEP_MAX: Duration = Duration::from_secs(3650 * 86_400);

/// Steps of round lengths, in seconds, that are chosen by default.
const STEPS: [u64; 17] =
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800, 2_592_000];

/// Whose past is answered, and from what besides the store.
pub(super) struct Whose<'a> {
    /// Hosts in the store.
    pub(super) is_wanted: &'a dyn Fn(&HostName) -> bool,
    /// Host in exported days; all of them, if `None`.
    pub(super) host: Option<HostName>,
    pub(super) exported: &'a Exported,
}

/// `sensor.history` of this host; a fault if the history is off.
#[must_use]
pub fn method(history: Option<Handle>, host: HostName, exported: Exported) -> Method {
    let pool = BlockingPool::new("reading the history", AT_ONCE_MAX);
    typed::method(move |_, params: HistoryParams| {
        let (history, pool) = (history.clone(), pool.clone());
        let (host, exported) = (host.clone(), exported.clone());
        async move {
            let history = opened(history)?;
            pool.run(move || {
                let whose = Whose { is_wanted: &|_| true, host: Some(host), exported: &exported };
                answer(reader(&history)?, &params, whose, calendar())
            })
            .await
        }
    })
}

/// Answers for these hosts.
pub(super) fn answer(
    history: &Reader,
    params: &HistoryParams,
    Whose { is_wanted, host, exported }: Whose<'_>,
    now: Time,
) -> Result<History, Fault> {
    let name = params.name.as_deref().map(Glob::new).transpose();
    let name = name.map_err(|error| Fault::invalid_params(format!("name: {error}")))?;
    let (since, until) = between((params.since, params.until), SPAN_DEFAULT, now)?;
    check(params)?;
    let fits = |metric: &Metric| {
        name.as_ref().is_none_or(|name| name.matches(&metric.name)) && params.labels.fit(metric)
    };
    let selection = Selection { host: is_wanted, metric: &fits, since, until };
    let mut exported = ExportedMinutes::new(exported, host);
    let step = params.step.map_or_else(|| step_for(until.since(since)), |Span(step)| step);
    let found = match (&params.cursor, step) {
        (Some(cursor), step) => page(history, &selection, params, step, cursor)?,
        (None, Duration::ZERO) => samples(history, &selection)?,
        (None, step) => steps(history, &selection, params, step, &mut exported)?,
    };
    if params.cursor.is_none() {
        check_found(&found, params)?;
    }
    let stored = history.oldest(is_wanted);
    let oldest = exported.age().into_iter().chain(ages(stored)).collect();
    let is_beyond = stored.into_iter().flatten().min().is_none_or(|oldest| since < oldest);
    let exported_problem = exported.problem(is_beyond);
    Ok(History { oldest, step_secs: step.as_secs_f64(), exported_problem, ..chosen(found, params) })
}

/// Checks what the types of the parameters allow and makes no sense.
fn check(params: &HistoryParams) -> Result<(), Fault> {
    let refused = |text: &'static str| Err(Fault::invalid_params(text));
    match params.step {
        Some(Span(step)) if step > STEP_MAX => return refused("step: expected at most 3650 days"),
        Some(Span(Duration::ZERO)) if params.aggregate != Aggregate::Auto || params.by != GroupBy::Series => {
            return refused(
                "step: 0 answers samples as they were stored; expected a step to summarize them by",
            );
        }
        _ => {}
    }
    if params.by != GroupBy::Series && params.aggregate == Aggregate::Last {
        return refused(
            "merged series have no last value; expected the aggregate avg, min, max, sum, count, rate …",
        );
    }
    Ok(())
}

/// Names a label or an aggregate that no series of the answer has.
fn check_found(found: &History, params: &HistoryParams) -> Result<(), Fault> {
    if found.series.is_empty() {
        return Ok(());
    }
    if let Some(label) =
        params.label.as_ref().filter(|_| found.series.iter().all(|one| one.labels.0.is_empty()))
    {
        return Err(Fault::invalid_params(format!("label: no metric of the answer has a label {label:?}")));
    }
    let is_of_counters = matches!(params.aggregate, Aggregate::Rate | Aggregate::Increase);
    let is_counter = |one: &HistorySeries| one.semantics == Semantics::Counter;
    if is_of_counters && !found.series.iter().any(is_counter) {
        let name = &found.series[0].name;
        return Err(Fault::invalid_params(format!(
            "only counters have a rate and an increase, and {name} is none; expected the aggregate avg, min, max …"
        )));
    }
    Ok(())
}

/// The shortest round step that yields at most [`STEPS_DEFAULT`] values.
pub(super) fn step_for(span: Duration) -> Duration {
    let secs = STEPS.into_iter().find(|secs| Duration::from_secs(*secs) * STEPS_DEFAULT >= span);
    Duration::from_secs(secs.unwrap_or(STEPS[STEPS.len() - 1]))
}

fn too_large(error: TooLarge) -> Fault {
    Fault::invalid_params(error.to_string())
}

fn samples(history: &Reader, selection: &Selection) -> Result<History, Fault> {
    let found = history.values(selection, POINTS_MAX).map_err(too_large)?;
    Ok(shown(found, |subject, points| {
        let sample = |(time, value): &(Time, Number)| Sample { time: UnixTime(*time), value: Value(*value) };
        series_of(subject, None, points.iter().map(sample).collect())
    }))
}

fn steps(
    history: &Reader,
    selection: &Selection,
    params: &HistoryParams,
    step: Duration,
    exported: &mut ExportedMinutes<'_>,
) -> Result<History, Fault> {
    let spans = exported.spans.clone();
    let mut read = |times: (Time, Time), merge: &mut Merge| exported.read(times, params, merge);
    let elsewhere = Elsewhere { spans: &spans, read: &mut read };
    let found = history.steps_with(selection, step, &by(params)?, values_of(params), elsewhere);
    exported.check()?;
    Ok(summarized(found.map_err(too_large)?, params.aggregate))
}

/// Whether the values of steps are needed, and how many are read at most.
fn values_of(params: &HistoryParams) -> (bool, usize) {
    match share(params.aggregate) {
        Some(_) => (true, VALUES_READ_MAX),
        None => (false, POINTS_MAX),
    }
}

/// Which series are merged.
fn by(params: &HistoryParams) -> Result<By, Fault> {
    match (params.by, &params.label) {
        (GroupBy::Series, None) => Ok(By::Series),
        (GroupBy::Host, None) => Ok(By::Host),
        (GroupBy::Label, Some(label)) => Ok(By::Label(label.clone())),
        (GroupBy::Label, None) => {
            Err(Fault::invalid_params("label: expected the label by which series are merged, found none"))
        }
        (GroupBy::Domain, None) => Ok(By::Name),
        (GroupBy::Series | GroupBy::Host | GroupBy::Domain, Some(_)) => {
            Err(Fault::invalid_params("label: expected only if `by` is `label`"))
        }
    }
}

/// Answers as `sensor.history` of each host does, from buckets that are stored elsewhere: `read` gets the start and end of
/// the steps that are needed, and adds their buckets.
///
/// # Errors
/// As `sensor.history`, and if the step is not of whole minutes.
pub fn of_buckets(
    params: &HistoryParams,
    (since, until): (Time, Time),
    read: impl FnOnce((Time, Time), &mut Merge),
) -> Result<History, Fault> {
    let minute = Duration::from_secs(60);
    let step = params.step.map_or_else(|| step_for(until.since(since)).max(minute), |Span(step)| step);
    check(params)?;
    let mut by = by(params)?;
    if let By::Label(label) = by {
        // A host answers for itself.
        by = By::HostLabel(label);
    }
    if step.is_zero() || !step.as_micros().is_multiple_of(minute.as_micros()) {
        return Err(Fault::invalid_params(
            "step: only minutes and hours are exported; expected whole minutes, such as 1m or 1h",
        ));
    }
    let (with_values, max) = values_of(params);
    let mut merge = Merge::new(step, with_values, max * FILES_TIMES);
    read(merge.span(since, until), &mut merge);
    let series = merge.finish(&by).map_err(too_large)?;
    let (parts, elsewhere, marks) = (Vec::new(), Vec::new(), Vec::new());
    let answer = Answer { series, parts, elsewhere, damaged: 0, marks };
    let found = summarized(answer, params.aggregate);
    check_found(&found, params)?;
    Ok(History { step_secs: step.as_secs_f64(), ..chosen(found, params) })
}

/// A page of the series of [`steps`], after those of the cursor.
fn page(
    history: &Reader,
    selection: &Selection,
    params: &HistoryParams,
    step: Duration,
    cursor: &str,
) -> Result<History, Fault> {
    if step.is_zero()
        || params.by != GroupBy::Series
        || params.top.is_some()
        || share(params.aggregate).is_some()
    {
        return Err(Fault::invalid_params(
            "cursor: pages are of series as they are, in steps; expected no `by`, no `top`, no percentile and a \
             step above 0",
        ));
    }
    let after = match cursor {
        "" => None,
        cursor => {
            let cursor: Cursor =
                cursor.parse().map_err(|error| Fault::invalid_params(format!("cursor: {error}")))?;
            Some(cursor.0)
        }
    };
    let Page { answer, next } = history.page(selection, step, PAGE_POINTS_MAX, after).map_err(too_large)?;
    let next = next.map(|next| Cursor(next).to_string());
    Ok(History { next, ..summarized(answer, params.aggregate) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::bucket::Bucket;
    use store::exact::Exact;
    use wire::sample::Semantics;

    #[test]
    fn the_default_step_yields_a_few_hundred_values() {
        let check = |span: u64, step: u64| {
            assert_eq!(step_for(Duration::from_secs(span)), Duration::from_secs(step), "{span}");
        };
        check(60, 1);
        check(3600, 30);
        check(86_400, 300);
        check(7 * 86_400, 3600);
        check(5 * 365 * 86_400, 604_800);
        check(u64::from(u32::MAX), 2_592_000);
    }

    /// One step of a counter of this name, with this value and increase.
    fn add(merge: &mut Merge, name: &str, value: u64, increase: u64) {
        let host = HostName::try_from("wn01").expect("a name");
        let (unit, labels, semantics) = ("seconds".into(), Vec::new(), Semantics::Counter);
        let metric = Arc::new(Metric { name: name.into(), labels, unit, semantics });
        let exact = |value| Exact::from(Number::Whole(value));
        let (increase, increase_millis) = (Some(exact(increase)), 60_000);
        let bucket = Bucket { increase, increase_millis, ..Bucket::of(exact(value)) };
        merge.add(&host, &metric, Time::default(), &bucket);
    }

    #[test]
    fn percentiles_of_a_counter_are_those_of_its_rates() {
        let step = Some(Span(Duration::from_secs(600)));
        let params = HistoryParams { aggregate: Aggregate::P50, step, ..HistoryParams::default() };
        let between = (Time::default(), Time::from_micros(600_000_000));
        let found = of_buckets(&params, between, |_, merge| {
            for increase in [60, 600, 120] {
                add(merge, "busy", 1_000_000, increase);
            }
        });
        let series = found.expect("it is small").series.remove(0);
        assert_eq!((series.samples[0].value.as_f64(), series.unit.as_str()), (2.0, "seconds/s"));
    }

    #[test]
    fn the_top_counters_are_those_of_the_highest_rates_in_summaries_too() {
        for aggregate in [Aggregate::Auto, Aggregate::Summary] {
            let step = Some(Span(Duration::from_secs(60)));
            let params = HistoryParams { aggregate, step, top: Some(1), ..HistoryParams::default() };
            let between = (Time::default(), Time::from_micros(60_000_000));
            let found = of_buckets(&params, between, |_, merge| {
                add(merge, "old_and_idle", 1_000_000, 6);
                add(merge, "new_and_busy", 600, 600);
            });
            let series = found.expect("it is small").series;
            assert_eq!((series.len(), series[0].name.as_str()), (1, "new_and_busy"), "{aggregate:?}");
            let rate = series[0].summaries.first().and_then(|step| step.rate);
            assert_eq!(rate, (aggregate == Aggregate::Summary).then_some(10.0));
        }
    }
}
