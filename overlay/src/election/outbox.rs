//! Outputs that wait for the caller, and the state that was reported last.
//!
//! Pure. Invariant: a state is reported only if it differs from the last one. Bounded: the caller takes the
//! outputs after every input; if it does not, messages are dropped, as a network would drop them.

use super::{Output, State};
use crate::membership::MEMBERS_MAX;
use std::collections::VecDeque;
use wire::id::PeerKey;
use wire::membership::Message;

/// Most outputs waiting when a message is added: a heartbeat and a table for every link.
const OUTPUTS_MAX: usize = 8 * MEMBERS_MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    outputs: VecDeque<Output>,
    reported: Option<State>,
}

impl Outbox {
    /// Add a message. Returns false, and drops it, if the buffer is full.
    pub(super) fn send(&mut self, peer: PeerKey, message: Message) -> bool {
        let has_room = self.outputs.len() < OUTPUTS_MAX;
        if has_room {
            self.outputs.push_back(Output::Send(peer, message));
        }
        has_room
    }

    /// Add an output that must not be lost; they are few.
    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(super) fn reported(&self) -> Option<&State> {
        self.reported.as_ref()
    }

    /// Report `state`, if it changed.
    pub(super) fn report(&mut self, state: State) {
        if self.reported.as_ref() != Some(&state) {
            self.reported = Some(state.clone());
            self.push(Output::State(state));
        }
    }
}
