//! Names of metrics in answers to fetches: each is sent once on a connection.
//!
//! Pure. Rule: what refers to a number is sent after its name, or with it.

use crate::block::SeriesNo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::report::minutes::NewNames;
use wire::report::{METRICS_LEN_MAX_BYTES, METRICS_MAX, metric_len_bytes};
use wire::sample::Metric;

/// Numbers of metrics whose names were sent on a connection.
#[derive(Debug, Default)]
pub struct Sent {
    numbers: BTreeSet<SeriesNo>,
    len_bytes: usize,
    /// The receiver is to forget earlier names.
    is_fresh: bool,
}

/// Room for names and what they are of in an answer.
pub(crate) struct Room<'a> {
    names: BTreeMap<SeriesNo, Arc<Metric>>,
    /// No name was sent before this answer.
    is_first: bool,
    sent: &'a mut Sent,
    /// Bytes.
    left: usize,
}

impl Room<'_> {
    pub(crate) fn new(names: BTreeMap<SeriesNo, Arc<Metric>>, sent: &mut Sent, len_bytes: u32) -> Room<'_> {
        Room { names, is_first: sent.numbers.is_empty(), sent, left: len_bytes as usize }
    }

    /// Adds the names that were not sent before; returns false if there is no room for all of them, and for what refers
    /// to them.
    pub(crate) fn name(&mut self, numbers: impl Iterator<Item = SeriesNo>, new: &mut NewNames) -> bool {
        for number in numbers {
            let Some(metric) = self.names.get(&number).filter(|_| !self.sent.numbers.contains(&number))
            else {
                continue;
            };
            let len = metric_len_bytes(metric) + 8;
            if self.sent.numbers.len() >= METRICS_MAX || self.sent.len_bytes + len > METRICS_LEN_MAX_BYTES {
                if self.is_first {
                    // More metrics than a connection may have: the others are copied.
                    continue;
                }
                *self.sent = Sent { is_fresh: true, ..Sent::default() };
                return false;
            }
            if self.left == 0 {
                return false;
            }
            self.left = self.left.saturating_sub(len);
            self.sent.numbers.insert(number);
            self.sent.len_bytes += len;
            new.metrics.push((number, Metric::clone(metric)));
        }
        self.left > 0
    }

    /// Uses room for what refers to the names.
    pub(crate) fn take(&mut self, len: usize) {
        self.left = self.left.saturating_sub(len);
    }

    /// Whether the receiver is to forget earlier names before those of the next host.
    pub(crate) fn take_fresh(&mut self) -> bool {
        self.is_first && std::mem::take(&mut self.sent.is_fresh)
    }
}
