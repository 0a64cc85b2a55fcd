//! Metrics of exported days: of a file only the groups and pages that can have what is wanted.
//!
//! Rule: rows are passed on as buckets of their minute or hour, so an answer is merged as from a store. Not here: the
//! merging (`store::merge`), how a file is read ([`super`]).

use super::columns::{Maps, text_of};
use super::{Opened, skip};
use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, RowFilter};
use parquet::schema::types::SchemaDescriptor;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::bucket::Bucket;
use store::exact::Exact;
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// The columns that are read.
const COLUMNS: [&str; 13] = [
    "time",
    "host",
    "name",
    "labels",
    "unit",
    "type",
    "count",
    "min",
    "max",
    "sum",
    "last",
    "increase",
    "increase_seconds",
];

/// What is wanted.
#[derive(Clone)]
pub struct Wanted {
    /// From this time on.
    pub since: Time,
    /// Before this time.
    pub until: Time,
    /// Of this host; of all, if `None`.
    pub host: Option<HostName>,
    /// How the names of the metrics start.
    pub name_start: String,
    /// Metrics of these names.
    pub name: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// A row of the table `metrics`.
pub struct MetricRow<'a> {
    /// The host.
    pub host: &'a HostName,
    /// The metric.
    pub metric: &'a Arc<Metric>,
    /// Start of the minute or hour.
    pub time: Time,
    /// Its values.
    pub bucket: Bucket,
}

impl Destination {
    /// Passes the rows of a file of the table `metrics` to `each`, until it returns `false`; returns how many groups of
    /// rows were read, and how many there are.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub fn metrics(
        &self,
        file: &DayFile,
        wanted: &Wanted,
        each: &mut dyn FnMut(&MetricRow) -> bool,
    ) -> Result<(usize, usize), Error> {
        let mut counts = (0, 0);
        let mut names = Names::default();
        let choose = |opened: Opened| {
            let groups = skip::groups(opened.metadata(), wanted);
            counts = (groups.len(), opened.metadata().num_row_groups());
            let rows = skip::rows(opened.metadata(), &groups, wanted);
            let filter = filter(opened.parquet_schema(), wanted);
            let opened = opened.with_row_groups(groups).with_row_filter(filter);
            match rows {
                Some(rows) => opened.with_row_selection(rows),
                None => opened,
            }
        };
        self.rows(file, &COLUMNS, choose, |batch| {
            Columns::of(batch).map(|rows| rows.each(&mut names, wanted, each))
        })?;
        Ok(counts)
    }
}

/// A filter of rows by host and name, before the other columns are read.
fn filter(schema: &SchemaDescriptor, wanted: &Wanted) -> RowFilter {
    let by = |column: &'static str, fits: Arc<dyn Fn(&str) -> bool + Send + Sync>| {
        let mask = ProjectionMask::columns(schema, [column]);
        let predicate = move |batch: RecordBatch| {
            let texts = batch.columns().first().and_then(|texts| texts.as_string_opt::<i32>());
            let texts = texts.ok_or_else(|| ArrowError::SchemaError(format!("{column} has no texts")))?;
            // Rows that follow each other mostly have the same text.
            let mut latest = ("", fits(""));
            let fits = texts.iter().map(|text| {
                let text = text.unwrap_or_default();
                if text != latest.0 {
                    latest = (text, fits(text));
                }
                Some(latest.1)
            });
            Ok(fits.collect::<BooleanArray>())
        };
        Box::new(ArrowPredicateFn::new(mask, predicate)) as Box<_>
    };
    let host = wanted.host.clone().map(|host| {
        by(
            "host",
            Arc::new(move |text: &str| host.is_spelled(text)) as Arc<dyn Fn(&str) -> bool + Send + Sync>,
        )
    });
    RowFilter::new(host.into_iter().chain([by("name", Arc::clone(&wanted.name))]).collect())
}

/// Hosts and metrics that were read.
#[derive(Default)]
struct Names {
    hosts: HashMap<String, HostName>,
    metrics: HashMap<Key, Arc<Metric>>,
}

/// Name, labels, unit and type, as they are written.
type Key = (String, Vec<(String, String)>, String, String);

/// The columns of a batch.
struct Columns<'a> {
    times: &'a [i64],
    counts: &'a [i64],
    hosts: &'a StringArray,
    names: &'a StringArray,
    units: &'a StringArray,
    types: &'a StringArray,
    labels: Maps<'a>,
    /// Minimum, maximum, sum, last value, increase and its seconds.
    values: [&'a Float64Array; 6],
}

impl<'a> Columns<'a> {
    /// The columns; `None` if the batch lacks one.
    fn of(batch: &'a RecordBatch) -> Option<Columns<'a>> {
        let texts = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let numbers = |name| batch.column_by_name(name)?.as_primitive_opt::<Float64Type>();
        Some(Columns {
            labels: Maps::of(batch, "labels")?,
            times: batch.column_by_name("time")?.as_primitive_opt::<TimestampMicrosecondType>()?.values(),
            counts: batch.column_by_name("count")?.as_primitive_opt::<Int64Type>()?.values(),
            hosts: texts("host")?,
            names: texts("name")?,
            units: texts("unit")?,
            types: texts("type")?,
            values: [
                numbers("min")?,
                numbers("max")?,
                numbers("sum")?,
                numbers("last")?,
                numbers("increase")?,
                numbers("increase_seconds")?,
            ],
        })
    }

    /// Passes the rows of the wanted time on; whether more are wanted.
    fn each(&self, names: &mut Names, wanted: &Wanted, each: &mut dyn FnMut(&MetricRow) -> bool) -> bool {
        // A row whose host and metric are known: rows that follow each other are mostly of one series.
        let mut latest: Option<(usize, HostName, Arc<Metric>)> = None;
        for row in 0..self.times.len() {
            let time = Time::from_micros(self.times[row]);
            if time < wanted.since || time >= wanted.until {
                continue;
            }
            let known = latest.take().filter(|(before, _, _)| self.is_one_series(*before, row));
            let known = known.or_else(|| {
                let host = names.host(self.hosts.value(row))?;
                Some((row, host, names.metric(self.key(row))))
            });
            let Some((of, host, metric)) = known else { continue };
            if !each(&MetricRow { host: &host, metric: &metric, time, bucket: self.bucket(row) }) {
                return false;
            }
            latest = Some((of, host, metric));
        }
        true
    }

    /// Whether two rows are of one series.
    fn is_one_series(&self, one: usize, other: usize) -> bool {
        let is_same = |texts: &StringArray| texts.value(one) == texts.value(other);
        [self.names, self.hosts, self.units, self.types].into_iter().all(is_same)
            && self.labels.row(one).eq(self.labels.row(other))
    }

    fn key(&self, row: usize) -> Key {
        let labels = self.labels.row(row).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let unit = text_of(self.units, row).to_owned();
        (self.names.value(row).to_owned(), labels, unit, self.types.value(row).to_owned())
    }

    fn bucket(&self, row: usize) -> Bucket {
        let number = |place: usize| -> Exact { Number::Real(self.values[place].value(row)).into() };
        let known = |place: usize| !self.values[place].is_null(row);
        let seconds = if known(5) { self.values[5].value(row) } else { 0.0 };
        Bucket {
            count: u64::try_from(self.counts[row]).unwrap_or_default(),
            min: number(0),
            max: number(1),
            sum: number(2),
            last: number(3),
            increase: known(4).then(|| number(4)),
            increase_millis: Duration::try_from_secs_f64(seconds)
                .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0)),
        }
    }
}

impl Names {
    /// The host of this name; `None` if it is no name.
    fn host(&mut self, name: &str) -> Option<HostName> {
        if let Some(host) = self.hosts.get(name) {
            return Some(host.clone());
        }
        let host = HostName::try_from(name).ok()?;
        self.hosts.insert(name.to_owned(), host.clone());
        Some(host)
    }

    fn metric(&mut self, key: Key) -> Arc<Metric> {
        let made = |(name, labels, unit, kind): &Key| Metric {
            name: name.into(),
            labels: labels.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            unit: unit.into(),
            semantics: match kind.as_str() {
                "counter" => Semantics::Counter,
                "state" => Semantics::State,
                _ => Semantics::Gauge,
            },
        };
        if let Some(metric) = self.metrics.get(&key) {
            return Arc::clone(metric);
        }
        let metric = Arc::new(made(&key));
        self.metrics.insert(key, Arc::clone(&metric));
        metric
    }
}
