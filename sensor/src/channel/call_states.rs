//! State of each call when a subscription last saw it, to detect changes.
//!
//! Pure. Rules: an unknown call counts as changed; the number of remembered calls is bounded, and the call
//! that was added first is forgotten first.
//! Not here: the calls (`log_filters::join`).

use compact_str::CompactString;
use std::collections::{BTreeMap, VecDeque};
use wire::call::{Call, State};
use wire::event::Outcome;

/// Most calls remembered: some hours of a busy cluster, in about half a MiB.
const CALLS_MAX: usize = 4096;

/// State and outcome of each call, by id.
#[derive(Debug, Default)]
pub struct CallStates {
    known: BTreeMap<CompactString, (State, Option<Outcome>)>,
    /// Ids in the order in which they were added, the oldest first.
    order: VecDeque<CompactString>,
}

impl CallStates {
    /// Whether the call changed since it was last seen; stores its current state. `before` is an id that it
    /// may have had.
    pub fn has_changed(&mut self, call: &Call, before: &str) -> bool {
        let stands = (call.state, call.outcome);
        let known = self.known.get(&call.id).or_else(|| self.known.get(before));
        if known == Some(&stands) {
            return false;
        }
        if self.known.insert(call.id.clone(), stands).is_none() {
            self.order.push_back(call.id.clone());
        }
        if self.order.len() > CALLS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, state: State) -> Call {
        Call {
            id: id.into(),
            job: CompactString::default(),
            name: CompactString::default(),
            user: CompactString::default(),
            from: CompactString::default(),
            state,
            submitted: None,
            offered: None,
            selected: None,
            started: None,
            ended: None,
            offers: Vec::new(),
            hosts: Vec::new(),
            outcome: None,
            code: CompactString::default(),
            signal: CompactString::default(),
            reason: CompactString::default(),
            tries: 0,
            events: 0,
            details: None,
        }
    }

    #[test]
    fn a_call_is_news_when_its_state_is_another() {
        let mut states = CallStates::default();
        let mut check = |id: &str, state: State, before: &str, expected: bool| {
            assert_eq!(states.has_changed(&call(id, state), before), expected, "{id} {state:?}");
        };
        check("slurm:1", State::Waiting, "slurm:1", true);
        check("slurm:1", State::Waiting, "slurm:1", false);
        check("slurm:1", State::Running, "slurm:1", true);
        check("slurm:2", State::Running, "slurm:2", true);
        // It has a better id now.
        check("slurm:9_1", State::Running, "slurm:1", false);
        check("slurm:9_1", State::Ended, "slurm:1", true);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut states = CallStates::default();
        for number in 0..=CALLS_MAX {
            let id = format!("slurm:{number}");
            assert!(states.has_changed(&call(&id, State::Running), &id));
        }
        assert_eq!(states.known.len(), CALLS_MAX);
        assert!(!states.has_changed(&call("slurm:1", State::Running), ""));
        assert!(states.has_changed(&call("slurm:0", State::Running), ""));
    }
}
