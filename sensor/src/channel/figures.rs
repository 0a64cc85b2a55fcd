//! Status and counters of all subscriptions: the standing of each, what was throttled, and totals.
//!
//! Shell: the clock. Not here: the subscriptions (`hub`), the shared budget (`budget`).

use super::hub::Hub;
use super::refusal::Id;
use super::subscription::Status;
use crate::sample::ticker::{locked, running};

impl Hub {
    /// Standing of every subscription.
    #[must_use]
    pub fn statuses(&self) -> Vec<(Id, Status)> {
        self.all().into_iter().map(|(id, slot)| (id, slot.subscription.status())).collect()
    }

    /// Health messages about subscriptions that were throttled lately.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let shares = locked(&self.0.shares);
        let throttled = shares.throttled(running()).map(|(owner, count)| {
            format!(
                "subscriptions of {owner} use more CPU time than their share: {count} samples were left out lately; let them choose \
                 fewer records, lower their rates, or end some (sensor.subscriptions)"
            )
        });
        throttled.collect()
    }

    /// Counters over all subscriptions.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        let all = self.all();
        let shares = locked(&self.0.shares);
        let (used, throttled) = (shares.used(), shares.throttled_total());
        drop(shares);
        let waiting = all.iter().map(|(_, slot)| slot.subscription.status().waiting.1 as u64).sum();
        vec![
            ("subscriptions", all.len() as u64),
            ("queued_bytes", waiting),
            ("cpu_ms_total", u64::try_from(used.as_millis()).unwrap_or(u64::MAX)),
            ("throttled_total", throttled),
        ]
    }
}
