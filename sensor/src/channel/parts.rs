//! Compiled parts of a subscription, the same for every kind: a filter, a condition and a script.
//!
//! Pure. Rule: a part that is altered to the same text keeps its memory. Not here: which records they are
//! applied to, and when (`process_evaluation`, `host_evaluation`, `event_evaluation`).

use super::condition::{State, Tally};
use super::fields::Subject;
use super::outcome::Outcome;
use super::predicate::CompiledFilter;
use super::script::{self, Script};
use super::subscription::Error;
use compact_str::CompactString;
use std::time::Duration;
use wire::channel::ChannelRequest;
use wire::channel::stream::{Body, RECORDS_MAX};

/// Filter, condition and script over one kind of record.
#[derive(Debug)]
pub struct Parts<S: Subject> {
    pub filter: CompiledFilter<S>,
    pub condition: Option<State<S>>,
    pub script: Option<Script<S>>,
}

/// Records and figures that a script returned.
pub type Scripted<S> = (Vec<<S as Subject>::Record>, Vec<(CompactString, f64)>);

impl<S: Subject> Parts<S> {
    /// Compiles the request; `thread_time` returns the CPU time of the calling thread.
    ///
    /// # Errors
    /// If a part is invalid.
    pub fn new(wanted: &ChannelRequest, thread_time: fn() -> Duration) -> Result<Parts<S>, Error> {
        let filter = CompiledFilter::new(&wanted.filter)?;
        let condition = wanted.condition.clone().map(State::new).transpose()?;
        let script = wanted.script.as_ref().map(|text| Script::new(text, thread_time)).transpose()?;
        Ok(Parts { filter, condition, script })
    }

    /// Takes over from `before` the parts that are the same, except the script of a subscription that was
    /// stopped. Returns whether the filter is the same.
    pub fn go_on(
        &mut self,
        before: &mut Parts<S>,
        was: &ChannelRequest,
        is: &ChannelRequest,
        is_stopped: bool,
    ) -> bool {
        let is_same = was.filter == is.filter;
        if is_same {
            std::mem::swap(&mut self.filter, &mut before.filter);
        }
        if was.condition == is.condition {
            self.condition = before.condition.take();
        }
        if was.script == is.script && !is_stopped {
            self.script = before.script.take();
        }
        is_same
    }

    /// Updates the condition with these records, and adds a signal if it changed.
    pub fn signal<'a>(
        &mut self,
        outcome: &mut Outcome,
        view: impl Iterator<Item = S::View<'a>>,
        at_ns: u64,
        now: Duration,
    ) {
        let Some(condition) = &self.condition else { return };
        let mut tally = Tally::default();
        view.for_each(|view| condition.add(&mut tally, &view));
        self.signal_of(outcome, &tally, at_ns, now);
    }

    /// Updates the condition with this tally, and adds a signal if it changed.
    pub fn signal_of(&mut self, outcome: &mut Outcome, tally: &Tally, at_ns: u64, now: Duration) {
        let Some(condition) = &mut self.condition else { return };
        let value = condition.measure(tally);
        if let Some(is_true) = condition.update(value, now) {
            outcome.push(at_ns, Body::Signal { is_true, value: value.unwrap_or(f64::NAN) });
        }
    }

    /// Runs the script over these records; without a script, returns them as they are.
    ///
    /// # Errors
    /// If the script fails: it must not be run again.
    pub fn scripted(&mut self, records: Vec<S::Record>, at_ns: u64) -> Result<Scripted<S>, script::Error> {
        let Some(script) = &mut self.script else { return Ok((records, Vec::new())) };
        #[allow(clippy::cast_precision_loss)] // Seconds since boot.
        let (outcome, records) = script.run(records, at_ns as f64 / 1e9)?;
        Ok(match outcome {
            script::Outcome::Pass => (records, Vec::new()),
            script::Outcome::Hold => (Vec::new(), Vec::new()),
            script::Outcome::Only(places) => {
                let only = places.into_iter().take(RECORDS_MAX);
                (only.filter_map(|place| records.get(place).cloned()).collect(), Vec::new())
            }
            script::Outcome::Figures(figures) => (Vec::new(), figures),
        })
    }
}
