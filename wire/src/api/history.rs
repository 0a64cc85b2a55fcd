//! Method about the past of metrics: `sensor.history`.
//!
//! Pure. Not here: the newest values ([`super::metrics`]), how values are stored (`store`).

use super::metrics::{Labels, Sample, Semantics, Value};
use super::{Effect, Request, Span, Subject, UnixTime};
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Series of an answer by default.
const LIMIT_DEFAULT: u64 = 1000;

/// List values that this sensor's host had in the past, as far as they are stored.
///
/// Every sample is stored for some days, the summary of each minute for some months, of each hour for some
/// years. The sensor reads the coarsest of these whose buckets fit into `step`, so that the answer is exact;
/// where that is not stored any more, it reads a coarser one. `tiers` names what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoryParams {
    /// Only metrics of this name, or that match this glob (`node_cpu_*`).
    pub name: Option<String>,
    /// Only metrics with all of these labels.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
    /// From this time on [default: an hour before `until`].
    pub since: Option<UnixTime>,
    /// Until this time [default: now].
    pub until: Option<UnixTime>,
    /// Time between two values; 0 for every stored sample. [default: a round time that yields at most 300
    /// values]
    pub step: Option<Span>,
    /// How the values of a step are summarized.
    pub aggregate: Aggregate,
    /// Which series are merged to one: their rates, increases, sums and counts add up, mean, extremes and
    /// percentiles are those of all their values.
    pub by: GroupBy,
    /// The label by which series are merged, if `by` is `label`.
    pub label: Option<String>,
    /// Only so many series: those with the largest mean value.
    #[schemars(range(min = 1, max = 100_000))]
    pub top: Option<u64>,
    /// Maximum number of series.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: Limit,
    /// Cursor of the page, from `next` of an earlier answer; empty for the first page. Absent for a single answer,
    /// which is refused if it is too large. The other parameters must be those of the first page; `limit` does not count.
    /// Not for merged series, percentiles, `top` and a step of 0.
    pub cursor: Option<String>,
}

/// Maximum number of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Limit(pub u64);

impl Default for Limit {
    fn default() -> Limit {
        Limit(LIMIT_DEFAULT)
    }
}

impl Request for HistoryParams {
    const METHOD: &'static str = "sensor.history";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = History;
}

/// List values that the domain's hosts had in the past, those of hosts that are down included.
///
/// The representative copies the minutes of all hosts, some times a minute, and once a minute the samples of the last
/// hours; further back it answers with minutes and hours whatever the step, while a host itself has its samples for days
/// (`sensor.history`). `behind` names hosts whose copies end before the requested time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainHistoryParams {
    /// Metrics, time, and how values are summarized.
    #[serde(flatten)]
    pub history: HistoryParams,
    /// Only metrics of this host.
    pub host: Option<String>,
}

impl Request for DomainHistoryParams {
    const METHOD: &'static str = "domain.history";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = DomainHistory;
}

/// Values that metrics of a domain's hosts had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainHistory {
    /// The values.
    #[serde(flatten)]
    pub history: History,
    /// Hosts whose copies end before the requested time: those that are down, and those that are being copied.
    pub behind: Vec<HostBehind>,
}

/// How far the copy of a host's minutes reaches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostBehind {
    /// Name of the host.
    pub host: String,
    /// Start of the last minute that is copied.
    pub until: UnixTime,
}

/// How the values of a step are summarized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// By the type of the metric: the rate of a counter, the mean of a gauge, the last value of a state.
    #[default]
    Auto,
    /// Mean.
    Avg,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Sum of all values.
    Sum,
    /// Number of values.
    Count,
    /// Last value.
    Last,
    /// Increase of a counter per second, corrected for resets: divided by the time between the sample before
    /// the step and the last one in it. Absent where only one sample is known.
    Rate,
    /// Increase of a counter, corrected for resets.
    Increase,
    /// Median. Like the other percentiles of the samples, or of the means of minutes or hours if these are read; of a
    /// counter those of its rates, from sample to sample or of minutes or hours.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Number, minimum, maximum, sum and last value, of a counter also the increase: in `summaries` instead of
    /// `samples`.
    Summary,
}

/// Which series are merged to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// None.
    #[default]
    Series,
    /// All of a host of the same name.
    Host,
    /// Those of the same name with the same value of `label`.
    Label,
    /// All of the same name, of all hosts.
    Domain,
}

/// Values that metrics of a host had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct History {
    /// Matching series.
    pub series: Vec<HistorySeries>,
    /// Number of matching series, those beyond `limit` and `top` included.
    pub total: u64,
    /// Time between two values, in seconds; 0 for samples as they were stored.
    pub step_secs: f64,
    /// What was read, oldest first: tiers, and exported days (`exported`).
    pub tiers: Vec<TierPart>,
    /// The oldest value of each tier, and of exported days (`exported`).
    pub oldest: Vec<TierAge>,
    /// Stored pieces that are damaged, so that values are missing.
    pub damaged: u64,
    /// What happened to the host meanwhile; known only where samples were read (`raw`).
    pub marks: Vec<HistoryMark>,
    /// Why values of exported days may be missing. Absent if all that was needed was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported_problem: Option<String>,
    /// Cursor of the next page. Absent on the last page, and where no page was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Something that happened to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryMark {
    /// When.
    pub time: UnixTime,
    /// What.
    pub kind: MarkKind,
    /// Time that the clock had before it was set back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UnixTime>,
    /// Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What happened to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// The sensor was started; before it nothing was sampled for a while.
    Started,
    /// The calendar clock was set back.
    ClockSetBack,
    /// A kind that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Values of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistorySeries {
    /// Name as in node_exporter.
    #[schemars(with = "String")]
    pub name: CompactString,
    /// Labels; without those by which series were merged.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
    /// Unit of the values: of a rate, and of percentiles of a counter, that of the metric with `/s`, of a count none.
    #[schemars(with = "String")]
    pub unit: CompactString,
    /// Type of the metric.
    pub semantics: Semantics,
    /// Host of the series; absent where series of several are merged.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<CompactString>,
    /// How the values of a step were summarized; absent for samples as they were stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// Start of each step and its value, oldest first. A step without a sample is missing.
    pub samples: Vec<Sample>,
    /// Instead of `samples`, if summaries were requested. Absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<StepSummary>,
}

/// Unit of the rate of a counter of this unit.
#[must_use]
pub fn unit_of_rate(unit: &str) -> CompactString {
    if unit.is_empty() { "1/s".into() } else { compact_str::format_compact!("{unit}/s") }
}

/// Values of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummary {
    /// Start of the step.
    pub time: UnixTime,
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: Value,
    /// Largest value.
    pub max: Value,
    /// Sum of all values.
    pub sum: Value,
    /// Last value.
    pub last: Value,
    /// Increase of a counter, corrected for resets. Absent for other metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increase: Option<Value>,
    /// Time in which it increased so much, in seconds: from the sample before the step to the last one in it. Absent for other
    /// metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increase_secs: Option<f64>,
    /// Increase of a counter per second, as with the aggregate `rate`. Absent for other metrics, and where only one sample is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// Part of an answer, and what it was read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TierPart {
    /// `raw` for samples, `1m` for the summaries of minutes, `1h` of hours.
    pub tier: String,
    /// From this time on.
    pub since: UnixTime,
    /// Before this time.
    pub until: UnixTime,
}

/// How far back a tier reaches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TierAge {
    /// `raw`, `1m` or `1h`.
    pub tier: String,
    /// Time of the oldest value.
    pub time: UnixTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_defaults() {
        let params: HistoryParams =
            serde_json::from_str(r#"{"name": "node_load1", "step": 60}"#).expect("they fit");
        assert_eq!((params.limit.0, params.aggregate, params.by), (1000, Aggregate::Auto, GroupBy::Series));
        assert_eq!(params.step, Some(Span(std::time::Duration::from_secs(60))));
    }
}
