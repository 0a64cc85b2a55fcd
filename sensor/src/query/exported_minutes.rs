//! Minutes of exported days in answers about the past.
//!
//! Rule: which days there are is known without waiting for their place; their files are read only for times that this
//! host does not have any more, and only so many rows. Not here: which times these are (`store::plan`).

use crate::history::exported::{Exported, WantedMinutes};
use crate::sample::glob::Glob;
use rpc::fault::Fault;
use std::sync::Arc;
use store::merge::Merge;
use wire::api::UnixTime;
use wire::api::history::{HistoryParams, TierAge};
use wire::id::HostName;
use wire::time::Time;

/// Name of the exported days among the tiers.
pub(super) const NAME: &str = "exported";

/// Rows that are read for one answer, at most: some seconds of a core.
const ROWS_MAX: usize = 4_000_000;

/// Exported days that one query reads.
pub(super) struct ExportedMinutes<'a> {
    days: &'a Exported,
    /// Whose minutes; those of all hosts, if `None`.
    host: Option<HostName>,
    pub(super) spans: Vec<(Time, Time)>,
    /// Why days may be missing.
    unlisted: Option<String>,
    /// What could not be read.
    unread: Option<String>,
    rows: usize,
}

impl<'a> ExportedMinutes<'a> {
    pub(super) fn new(days: &'a Exported, host: Option<HostName>) -> ExportedMinutes<'a> {
        let (spans, unlisted) = days.days().map(|days| days.spans()).unwrap_or_default();
        ExportedMinutes { days, host, spans, unlisted, unread: None, rows: 0 }
    }

    /// Since when days are exported.
    pub(super) fn age(&self) -> Option<TierAge> {
        self.spans.first().map(|(first, _)| TierAge { tier: NAME.to_owned(), time: UnixTime(*first) })
    }

    /// Why values may be missing in an answer; `is_beyond` the past that is stored.
    pub(super) fn problem(self, is_beyond: bool) -> Option<String> {
        self.unread.or(self.unlisted.filter(|_| is_beyond))
    }

    /// Adds the minutes from the first time on, before the second.
    pub(super) fn read(&mut self, (since, until): (Time, Time), params: &HistoryParams, merge: &mut Merge) {
        let Some(days) = self.days.days() else { return };
        // It was parsed before.
        let Ok(name) = params.name.as_deref().map(Glob::new).transpose() else { return };
        let wanted = WantedMinutes {
            since,
            until,
            host: self.host.clone(),
            name_start: name.as_ref().map(|name| name.start().to_owned()).unwrap_or_default(),
            name: Arc::new(move |text| name.as_ref().is_none_or(|name| name.matches(text))),
        };
        let rows = &mut self.rows;
        let read = days.read(&wanted, &mut |host, metric, time, bucket| {
            *rows += 1;
            *rows <= ROWS_MAX && (!params.labels.fit(metric) || merge.add(host, metric, time, bucket))
        });
        if let Err(problem) = read {
            self.unread.get_or_insert(problem);
        }
    }

    /// Checks that all was read.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.rows > ROWS_MAX {
            true => Err(Fault::invalid_params(format!(
                "more than {ROWS_MAX} rows of exported days would have to be read; choose a shorter time or fewer \
                 metrics, or read them with visperf metrics --from"
            ))),
            false => Ok(()),
        }
    }
}
