//! Counters of a proxy: logins and calls at its listener, and visitors over the overlay.
//!
//! Rule: counters only grow, and have the names that `daemon.info` reports.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Increment the counter.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters of a proxy.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests that were authenticated.
    pub admitted_total: Count,
    /// Requests authenticated by MD5.
    pub admitted_md5_total: Count,
    /// Requests authenticated by a member's pass.
    pub admitted_by_pass_total: Count,
    /// Visitors admitted over the overlay.
    pub entered_total: Count,
    /// Visitors rejected: a wrong secret, or too many of one account.
    pub entered_refused_total: Count,
    /// Visitors disconnected because their account was changed or removed.
    pub put_out_total: Count,
    /// Requests answered with a challenge, including the first request of each client.
    pub challenged_total: Count,
    /// Requests delayed after too many failures.
    pub held_up_total: Count,
    /// Requests with malformed or ambiguous credentials.
    pub unreadable_total: Count,
    /// Calls that the account may not make.
    pub forbidden_total: Count,
    /// Requests refused because their account reached its limit of concurrent requests.
    pub busy_total: Count,
    /// Reloads of accounts or certificate while the proxy ran.
    pub reread_total: Count,
}

impl Figures {
    /// The counters by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("admitted_total", self.admitted_total.get()),
            ("admitted_md5_total", self.admitted_md5_total.get()),
            ("admitted_by_pass_total", self.admitted_by_pass_total.get()),
            ("entered_total", self.entered_total.get()),
            ("entered_refused_total", self.entered_refused_total.get()),
            ("put_out_total", self.put_out_total.get()),
            ("challenged_total", self.challenged_total.get()),
            ("held_up_total", self.held_up_total.get()),
            ("unreadable_total", self.unreadable_total.get()),
            ("forbidden_total", self.forbidden_total.get()),
            ("busy_total", self.busy_total.get()),
            ("reread_total", self.reread_total.get()),
        ]
    }
}
