//! Message counters: messages and bytes, counted as they are framed for a stream of the overlay.
//!
//! Not here: the layers below a stream (its opening, Yamux, Noise, TCP), which `docs/scale.md` accounts for.

use overlay::net::handle;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::codec;
use wire::replication::{Answer, Question, ReplicaQuestion};

/// Messages of one kind in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// The longest of them, in bytes.
    pub(crate) longest: u64,
}

impl Count {
    pub(crate) fn add(&mut self, len_bytes: u64) {
        self.messages += 1;
        self.bytes += len_bytes;
        self.longest = self.longest.max(len_bytes);
    }

    fn plus(self, other: Count) -> Count {
        Count {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            longest: self.longest.max(other.longest),
        }
    }
}

/// Messages that a simulated daemon sends and receives, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) got: BTreeMap<&'static str, Count>,
    pub(crate) sent: BTreeMap<&'static str, Count>,
    /// Messages and bytes of both directions in each second of virtual time.
    pub(crate) seconds: BTreeMap<u64, (u64, u64)>,
}

impl Flow {
    pub(crate) fn get(&mut self, kind: &'static str, len_bytes: u64, now: Duration) {
        self.got.entry(kind).or_default().add(len_bytes);
        self.note(len_bytes, now);
    }

    pub(crate) fn send(&mut self, kind: &'static str, len_bytes: u64, now: Duration) {
        self.sent.entry(kind).or_default().add(len_bytes);
        self.note(len_bytes, now);
    }

    fn note(&mut self, len_bytes: u64, now: Duration) {
        let second = self.seconds.entry(now.as_secs()).or_default();
        second.0 += 1;
        second.1 += len_bytes;
    }

    /// Totals of what was received, and of what was sent.
    pub(crate) fn totals(&self) -> (Count, Count) {
        let sum = |all: &BTreeMap<_, Count>| all.values().fold(Count::default(), |sum, one| sum.plus(*one));
        (sum(&self.got), sum(&self.sent))
    }
}

fn frame<T: Serialize + ?Sized>(value: &T) -> u64 {
    let mut bytes = Vec::new();
    codec::encode(&value, &mut bytes).expect("within the bounds of the protocol");
    bytes.len() as u64
}

/// Length in bytes of a question to a directory, as framed on its stream.
pub(crate) fn question_len(question: &Question) -> u64 {
    frame(&postcard::to_stdvec(question).expect("a question is written"))
}

/// Length in bytes of a directory's answer, as framed on its stream.
pub(crate) fn answer_len(answer: &Answer) -> u64 {
    frame(&handle::Answer::Done(postcard::to_stdvec(answer).expect("an answer is written")))
}

/// Kind of a question; its answer is counted under the same name.
pub(crate) fn kind(question: &Question) -> &'static str {
    match question {
        Question::State(_) => "state a record",
        Question::Leave(_) => "leave",
        Question::Deny(_) => "push a list of denied",
        Question::Resolve(_) => "look a domain up",
        Question::Admitted { .. } => "who is admitted",
        Question::DenyLists(_) => "who is denied",
        Question::Replica(ReplicaQuestion::Hints(_)) => "hints",
        Question::Replica(ReplicaQuestion::Digest { .. }) => "digest",
        Question::Replica(ReplicaQuestion::Fetch(_)) => "fetch",
    }
}
