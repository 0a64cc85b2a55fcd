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
pub struct Standings {
    known: BTreeMap<CompactString, (State, Option<Outcome>)>,
    /// Ids in the order in which they were added, the oldest first.
    order: VecDeque<CompactString>,
}

impl Standings {
    /// Whether the call changed since it was last seen; stores its current state. `before` is an id that it
    /// may have had.
    pub fn is_news(&mut self, call: &Call, before: &str) -> bool {
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
        }
    }

    #[test]
    fn a_call_is_news_when_its_state_is_another() {
        let mut standings = Standings::default();
        let mut check = |id: &str, state: State, before: &str, expected: bool| {
            assert_eq!(standings.is_news(&call(id, state), before), expected, "{id} {state:?}");
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
        let mut standings = Standings::default();
        for number in 0..=CALLS_MAX {
            let id = format!("slurm:{number}");
            assert!(standings.is_news(&call(&id, State::Running), &id));
        }
        assert_eq!(standings.known.len(), CALLS_MAX);
        assert!(!standings.is_news(&call("slurm:1", State::Running), ""));
        assert!(standings.is_news(&call("slurm:0", State::Running), ""));
    }
}
