//! Counts of what the grid refused, by reason, for display.
//!
//! Pure. Rule: nothing is left out of the picture without being counted here.

use std::collections::BTreeMap;

/// Why something was refused or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Domains beyond the limit.
    Domains,
    /// Hosts beyond the limit.
    Hosts,
    /// Clients beyond the limit: they share one place.
    Clients,
    /// Calls beyond the limit: the oldest are left out.
    Calls,
    /// Hosts of one call beyond the limit.
    HostsOfCall,
    /// State changes of one host beyond the limit.
    Changes,
    /// A time before 1980 or too far in the future.
    Times,
    /// A value that is negative or not a finite number.
    Figures,
    /// A name that is too long or has unsafe characters: it is shown changed.
    Names,
}

impl Reason {
    /// Text to print after the count.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Reason::Domains => "domains beyond 1,000 left out",
            Reason::Hosts => "hosts beyond 20,000 left out",
            Reason::Clients => "clients beyond 2,000 drawn as one",
            Reason::Calls => "older calls beyond 50,000 left out",
            Reason::HostsOfCall => "hosts of calls beyond 256 of each left out",
            Reason::Changes => "changes of hosts' states beyond 256 of each left out",
            Reason::Times => "times before 1980 or in the future left out",
            Reason::Figures => "figures that are no numbers left out",
            Reason::Names => "names shown changed: too long, or with characters that command",
        }
    }
}

/// Counts by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused(BTreeMap<Reason, u64>);

impl Refused {
    /// Count one.
    pub fn add(&mut self, reason: Reason) {
        self.add_many(reason, 1);
    }

    /// Count several.
    pub fn add_many(&mut self, reason: Reason, count: u64) {
        if count > 0 {
            let sum = self.0.entry(reason).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The count of a reason.
    #[must_use]
    pub fn count(&self, reason: Reason) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Whether nothing was refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line of text for each reason.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(reason, count)| format!("{count} {}", reason.words())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_reported_with_its_number() {
        let mut refused = Refused::default();
        assert!(refused.is_empty());
        refused.add_many(Reason::Hosts, 0);
        assert!(refused.is_empty(), "none is nothing to report");
        refused.add(Reason::Times);
        refused.add_many(Reason::Hosts, 980_000);
        assert_eq!(refused.lines()[0], "980000 hosts beyond 20,000 left out");
        assert_eq!(refused.count(Reason::Times), 1);
    }
}
