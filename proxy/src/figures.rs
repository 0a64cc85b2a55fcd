//! What a proxy counts of those who come to its door.
//!
//! Rule: counters only grow, and have the name under which `daemon.info` has them.

use std::sync::atomic::{AtomicU64, Ordering};

/// One of them.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests let in.
    pub admitted_total: Count,
    /// Of these, by MD5.
    pub admitted_md5_total: Count,
    /// Of these, by a member's pass.
    pub admitted_by_pass_total: Count,
    /// Visitors let in over the overlay.
    pub entered_total: Count,
    /// Visitors that were not: a wrong secret, too many of one account.
    pub entered_refused_total: Count,
    /// Visitors put out since their account was changed or removed.
    pub put_out_total: Count,
    /// Requests that were asked to prove themselves, each first one among them.
    pub challenged_total: Count,
    /// Requests held up after too many failures.
    pub held_up_total: Count,
    /// Requests whose credentials could not be read in one way only.
    pub unreadable_total: Count,
    /// Calls that the account may not make.
    pub forbidden_total: Count,
    /// Requests of accounts that had as many in work as they may.
    pub busy_total: Count,
    /// Times that accounts or certificate were read again while it ran.
    pub reread_total: Count,
}

impl Figures {
    /// Each by its name.
    #[must_use]
    pub fn told(&self) -> Vec<(&'static str, u64)> {
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
