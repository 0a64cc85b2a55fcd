//! Evaluation of a subscription to the processes of a host: makes a sample of each sweep that is due.
//!
//! Pure. Rule: a sample is of one sweep. Not here: what is remembered of each process (`memory`), what a
//! consumer of changes has (`changes`).

use super::changes::{Difference, SentState};
use super::fields::process::{ProcessView, Processes};
use super::memory::{Memory, PassedProcess};
use super::outcome::Outcome;
use super::parts::Parts;
use super::selection;
use crate::process::source::View;
use crate::process::visibility::Visibility;
use crate::serving::roster::ServingProcesses;
use compact_str::CompactString;
use std::time::Duration;
use wire::channel::ChannelRequest;
use wire::channel::stream::{Body, RECORDS_MAX, Record};

/// The compiled parts and their memory.
#[derive(Debug)]
pub struct Evaluation {
    parts: Parts<Processes>,
    /// Processes that serve the job or call of the selection.
    served: Option<ServingProcesses>,
    memory: Memory,
    sent: SentState,
}

impl Evaluation {
    #[must_use]
    pub fn new(parts: Parts<Processes>) -> Evaluation {
        Evaluation { parts, served: None, memory: Memory::default(), sent: SentState::default() }
    }

    /// Sets the processes that serve the job or call of the selection.
    pub fn set_served(&mut self, served: ServingProcesses) {
        self.served = Some(served);
    }

    /// Takes over the memory of `before`, which this evaluation replaces.
    pub fn go_on(
        &mut self,
        mut before: Evaluation,
        was: &ChannelRequest,
        is: &ChannelRequest,
        is_stopped: bool,
    ) {
        let is_same = self.parts.go_on(&mut before.parts, was, is, is_stopped);
        (self.memory, self.sent) = (before.memory, before.sent);
        if !is_same {
            self.memory.forget_values();
        }
    }

    /// Whether its condition is true; `None` without a condition.
    #[must_use]
    pub fn is_true(&self) -> Option<bool> {
        self.parts.condition.as_ref().map(super::condition::State::is_true)
    }

    /// Makes a sample of this sweep.
    pub fn sample(&mut self, outcome: &mut Outcome, view: &View, now: Duration) {
        if outcome.wanted.only_signals {
            let passed = self.choose(outcome, view, 0..view.table.rows().len());
            self.signal(outcome, &passed, view, now);
        } else if outcome.wanted.changes {
            self.sample_changes(outcome, view, now);
        } else {
            self.sample_all(outcome, view, now);
        }
    }

    fn sample_all(&mut self, outcome: &mut Outcome, view: &View, now: Duration) {
        let sweep = view.table.sweep();
        let passed = self.choose(outcome, view, 0..view.table.rows().len());
        self.signal(outcome, &passed, view, now);
        let (records, left_out) = records(view, &passed, outcome.visibility);
        match self.parts.scripted(records, sweep.begin_ns) {
            Ok((records, figures)) if records.is_empty() && figures.is_empty() => {
                outcome.empty += 1;
            }
            Ok((records, figures)) => {
                let body = Body::Sample { sweep: sweep.number, gone: None, records, left_out, figures };
                outcome.push_budgeted(sweep.begin_ns, body);
            }
            Err(error) => outcome.stop(error.to_string(), sweep.begin_ns),
        }
    }

    fn sample_changes(&mut self, outcome: &mut Outcome, view: &View, now: Duration) {
        let (table, sweep) = (&view.table, view.table.sweep());
        let (missed_total, revision) = (outcome.missed_total, outcome.revision);
        if self.sent.must_be_whole(now, missed_total, revision) {
            let passed = self.choose(outcome, view, 0..table.rows().len());
            self.signal(outcome, &passed, view, now);
            let (records, left_out) = records(view, &passed, outcome.visibility);
            self.sent.send_all(table, &passed, now, missed_total, revision);
            if left_out > 0 {
                self.sent.forget();
            }
            let body =
                Body::Sample { sweep: sweep.number, gone: None, records, left_out, figures: Vec::new() };
            outcome.push_budgeted(sweep.begin_ns, body);
            return;
        }
        // A sample without changes is sent too: without it, a consumer of changes would not know how old its
        // table is.
        let Difference { records: changed, gone } = self.difference(outcome, view, now);
        outcome.empty += u64::from(changed.is_empty() && gone.is_empty());
        let (records, left_out) = records(view, &changed, outcome.visibility);
        if left_out > 0 {
            self.sent.forget();
        }
        let body =
            Body::Sample { sweep: sweep.number, gone: Some(gone), records, left_out, figures: Vec::new() };
        outcome.push_budgeted(sweep.begin_ns, body);
    }

    fn difference(&mut self, outcome: &mut Outcome, view: &View, now: Duration) -> Difference {
        let table = &view.table;
        let selection = &outcome.wanted.selection;
        let is_selected_by_rows =
            selection.under.is_none() && selection.command.is_none() && self.served.is_none();
        let is_of_rows = is_selected_by_rows && self.parts.filter.is_of_rows();
        if is_of_rows && self.parts.condition.is_none() {
            let passed = self.choose(outcome, view, self.sent.places(table));
            return self.sent.differ_from_changed(table, &passed);
        }
        let passed = self.choose(outcome, view, 0..table.rows().len());
        self.signal(outcome, &passed, view, now);
        self.sent.differ_from_all(table, &passed)
    }

    /// The processes at these positions that are selected and pass the filter.
    fn choose(
        &mut self,
        outcome: &Outcome,
        view: &View,
        places: impl Iterator<Item = usize>,
    ) -> Vec<PassedProcess> {
        let Evaluation { parts, served, memory, .. } = self;
        let (filter, selection, visibility) = (&parts.filter, &outcome.wanted.selection, outcome.visibility);
        // Looking up a command line takes longer than most filters.
        let is_asked = selection.command.is_some() || filter.asks_command();
        let command = |key| {
            let sent = is_asked.then(|| view.lives.command(key))?;
            sent.map(CompactString::as_str)
        };
        let serving = served.as_ref().map(ServingProcesses::now);
        let of_late = |place| view.recent.share(&view.table, place);
        memory.choose(filter, (&view.table, visibility), places, command, of_late, |seen| {
            serving.as_ref().is_none_or(|serving| {
                let by = serving.get(&seen.process.key);
                by.is_some_and(|by| by.is_public() || visibility.inspects(seen.process.uid))
            }) && selection::fits(selection, seen, &view.table)
        })
    }

    fn signal(&mut self, outcome: &mut Outcome, passed: &[PassedProcess], view: &View, now: Duration) {
        let visibility = outcome.visibility;
        let seen = passed.iter().filter_map(|(place, cpu)| {
            let process = view.table.rows()[*place].as_ref()?;
            Some(ProcessView { process, cpu: *cpu, command: None, visibility })
        });
        self.parts.signal(outcome, seen, view.table.sweep().begin_ns, now);
    }
}

/// Records of the chosen processes, up to the limit of a sample, and how many are beyond it.
fn records(view: &View, passed: &[PassedProcess], visibility: Visibility) -> (Vec<Record>, u32) {
    let rows = view.table.rows();
    let record = |(place, cpu): &PassedProcess| {
        let process = visibility.redact(rows[*place].as_ref()?)?;
        Some(Record { process, cpu: *cpu })
    };
    let left_out = passed.len().saturating_sub(RECORDS_MAX);
    (
        passed.iter().take(RECORDS_MAX).filter_map(record).collect(),
        u32::try_from(left_out).unwrap_or(u32::MAX),
    )
}
