//! Answers of all hosts for a question about the past, and the notes on them.
//!
//! Not here: which hosts are asked (`history`), how values are printed (`rows`, `plot`).

use super::overall::Overall;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::note;
use crate::output::times::shown as shown_time;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use wire::api::UnixTime;
use wire::api::history::{Aggregate, DomainHistory, History, HistoryMark, HistorySeries, MarkKind, TierAge};

/// Name of the tier of samples.
const TIER_RAW: &str = "raw";

/// Marks that are noted, the newest.
const MARKS_SHOWN: usize = 8;

/// A series and its host.
pub(super) struct OfHost {
    pub(super) host: String,
    pub(super) series: HistorySeries,
    /// Figures of the samples, where their summaries were requested.
    pub(super) overall: Option<Overall>,
}

/// Answers of all hosts.
#[derive(Default)]
pub(super) struct Found {
    pub(super) series: Vec<OfHost>,
    tiers: Vec<String>,
    /// Why values of exported days are missing.
    problems: BTreeSet<String>,
    oldest: Vec<TierAge>,
    pub(super) total: u64,
    damaged: u64,
    /// Hosts that did not answer, and why.
    pub(super) missing: Vec<String>,
    /// Why the first of them did not.
    pub(super) failure: Option<Failure>,
    /// Hosts that did not answer and whose copies are shown, and why.
    pub(super) copied: Vec<String>,
    /// The exported days that were read instead.
    #[cfg(feature = "export")]
    pub(super) exported: Option<crate::command::history::exported::Exported>,
    pub(super) answered: usize,
    /// Time, host and text of what happened meanwhile.
    marks: Vec<(UnixTime, String, &'static str)>,
}

impl Found {
    /// Adds copies that the representative has.
    pub(super) fn add_copies(&mut self, copies: DomainHistory) {
        let mut answer = copies.history;
        let series = std::mem::take(&mut answer.series);
        self.add(String::new(), answer);
        self.series.extend(series.into_iter().map(|series| {
            let host = series.host.as_deref().unwrap_or_default().to_owned();
            OfHost { host, series, overall: None }
        }));
    }

    pub(super) fn add(&mut self, host: String, answer: History) {
        self.answered += 1;
        self.total += answer.total;
        for HistoryMark { time, kind, host: of_host, .. } in answer.marks {
            let text = match kind {
                MarkKind::Started => "the sensor was started",
                MarkKind::ClockSetBack => "the clock was set back",
                MarkKind::Unknown => continue,
            };
            self.marks.push((time, of_host.unwrap_or_else(|| host.clone()), text));
        }
        self.damaged += answer.damaged;
        self.problems.extend(answer.exported_problem);
        for part in answer.tiers {
            if !self.tiers.contains(&part.tier) {
                self.tiers.push(part.tier);
            }
        }
        for age in answer.oldest {
            match self.oldest.iter_mut().find(|known| known.tier == age.tier) {
                Some(known) => known.time = known.time.min(age.time),
                None => self.oldest.push(age),
            }
        }
        self.series.extend(answer.series.into_iter().map(|series| OfHost {
            host: host.clone(),
            series,
            overall: None,
        }));
    }

    /// Prints what was read, how far back it reaches, and what is missing.
    pub(super) fn print_notes(&self, aggregate: Aggregate) {
        let zone = TimeZone::system();
        let is_percentile = matches!(aggregate, Aggregate::P50 | Aggregate::P95 | Aggregate::P99);
        if is_percentile && self.tiers.iter().any(|tier| tier != TIER_RAW) {
            note(
                "percentiles are those of the means of minutes or hours; a step below a minute, as --step 30s, gives those of \
                 the samples, as far back as these are stored",
            );
        }
        let reach = |age: &TierAge| format!("{} since {}", age.tier, shown_time(age.time.0, &zone));
        let reach: Vec<String> = self.oldest.iter().map(reach).collect();
        if !self.tiers.is_empty() && !reach.is_empty() {
            note(&format!("read from {}; stored: {}", self.tiers.join(" and "), reach.join(", ")));
        }
        let shown = self.series.len() as u64;
        if self.total > shown {
            note(&format!("{shown} of {} series", self.total));
        }
        self.note_marks(&zone);
        for problem in &self.problems {
            note(&format!("values of exported days are missing: {}", clean(problem)));
        }
        if self.damaged > 0 {
            note(&format!("{} damaged pieces of the history are left out", self.damaged));
        }
    }

    /// Notes the newest marks, and how many others there are.
    fn note_marks(&self, zone: &TimeZone) {
        let mut marks: Vec<&(UnixTime, String, &str)> = self.marks.iter().collect();
        marks.sort_unstable();
        let earlier = marks.len().saturating_sub(MARKS_SHOWN);
        for (time, host, text) in &marks[earlier..] {
            let time = shown_time(time.0, zone);
            let host = if host.is_empty() { String::new() } else { format!("{}: ", clean(host)) };
            note(&format!("{time} {host}{text}"));
        }
        if earlier > 0 {
            note(&format!(
                "{earlier} earlier starts of sensors and changes of clocks; --json of the method lists all"
            ));
        }
    }
}
