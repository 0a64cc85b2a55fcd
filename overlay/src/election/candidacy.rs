//! Candidacy: since when this sensor has been looking for a new representative, and its rounds of questions.
//!
//! Pure. Invariant: a new suspicion starts with frequent questions.
//! Not here: when a sensor may stand (`succession`).

use super::Config;
use wire::time::Moment;

/// Rounds of questions after which they are sent a fifth as often.
const FREQUENT_ROUNDS: u32 = 20;

#[derive(Clone, Debug)]
pub(super) struct Candidacy {
    /// From when on waits count; may be in the future. `None` while there is no suspicion.
    since: Option<Moment>,
    asked: Option<Moment>,
    rounds: u32,
}

impl Candidacy {
    pub(super) fn new(since: Moment) -> Candidacy {
        Candidacy { since: Some(since), asked: None, rounds: 0 }
    }

    pub(super) fn since(&self) -> Option<Moment> {
        self.since
    }

    /// Start a suspicion, or start it again.
    pub(super) fn start(&mut self, since: Moment) {
        *self = Candidacy::new(since);
    }

    /// End the suspicion; returns whether there was one.
    pub(super) fn end(&mut self) -> bool {
        self.since.take().is_some()
    }

    /// Whether a round of questions is due; then it is counted.
    pub(super) fn start_round(&mut self, config: &Config, now: Moment) -> bool {
        let is_frequent = self.rounds < FREQUENT_ROUNDS;
        let interval = if is_frequent { config.question } else { config.question * 5 };
        let is_due = self.asked.is_none_or(|asked| now.since(asked) >= interval);
        if is_due {
            self.asked = Some(now);
            self.rounds += 1;
        }
        is_due
    }
}
