//! Paths between hosts: which are cut, what they lose and how long they take.
//!
//! Pure. Paths are one-way; hosts are numbered. Not here: connections (`connections`).

use crate::dice::Dice;
use std::collections::BTreeSet;
use std::time::Duration;

/// The paths between all hosts.
#[derive(Clone, Debug)]
pub struct Network {
    /// Minimum and maximum delay of a message.
    pub delay: (Duration, Duration),
    /// Share of messages that are lost, in thousandths.
    pub loss_permille: u32,
    /// Share of messages that are duplicated.
    pub duplicate_permille: u32,
    /// Share of messages that may overtake others.
    pub reorder_permille: u32,
    /// Whether the names of seeds resolve.
    pub names_resolve: bool,
    /// Whether a message on a path that is cut waits, and arrives when the path is open again, as with TCP;
    /// otherwise it is lost.
    pub holds: bool,
    cut: BTreeSet<(usize, usize)>,
}

impl Default for Network {
    /// One site: 0.2 to 1 ms, nothing lost.
    fn default() -> Network {
        Network {
            delay: (Duration::from_micros(200), Duration::from_millis(1)),
            loss_permille: 0,
            duplicate_permille: 0,
            reorder_permille: 0,
            names_resolve: true,
            holds: false,
            cut: BTreeSet::new(),
        }
    }
}

impl Network {
    /// Whether messages pass from one host to the other.
    #[must_use]
    pub fn is_open(&self, from: usize, to: usize) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// Whether messages pass in both directions.
    #[must_use]
    pub fn is_open_both(&self, one: usize, other: usize) -> bool {
        self.is_open(one, other) && self.is_open(other, one)
    }

    /// Cut one direction.
    pub fn cut_one_way(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Cut both directions.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.cut.insert((one, other));
        self.cut.insert((other, one));
    }

    /// Open both directions.
    pub fn mend(&mut self, one: usize, other: usize) {
        self.cut.remove(&(one, other));
        self.cut.remove(&(other, one));
    }

    /// Cut every path between two groups; a host in none of them is cut from all.
    pub fn partition(&mut self, hosts: usize, groups: &[Vec<usize>]) {
        let group = |host: usize| groups.iter().position(|group| group.contains(&host));
        for one in 0..hosts {
            for other in 0..one {
                if group(one).is_none() || group(one) != group(other) {
                    self.cut(one, other);
                }
            }
        }
    }

    /// Open every path; delay and loss are those of one site again.
    pub fn heal(&mut self) {
        *self = Network::default();
    }

    /// Open every path.
    pub fn mend_all(&mut self) {
        self.cut.clear();
    }

    /// The delay of a message.
    pub fn takes(&self, dice: &mut Dice) -> Duration {
        dice.span(self.delay.0, self.delay.1)
    }
}
