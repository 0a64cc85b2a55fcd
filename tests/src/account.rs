//! Events of a domain as its representative returns them, compared with the lines that were written on its
//! hosts.
//!
//! Rule: each line is a submission numbered by its job ([`crate::logs`]); any other event is unexpected.
//! Not here: the account of one host ([`crate::ledger`]).

use crate::lab::Daemon;
use crate::ledger::{Ledger, Verdict};
use crate::query::Answer;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most events in one answer.
const PAGE: usize = 10_000;

/// Events that were received, by the host of their log.
#[derive(Debug, Default)]
pub struct Account {
    cursor: String,
    /// Received lines of each host.
    pub hosts: BTreeMap<String, Ledger>,
    ids: BTreeSet<String>,
    /// Events that a continued reading received a second time.
    pub again: usize,
    /// Events that were deleted before they could be read.
    pub missed: u64,
}

impl Account {
    /// Read one page; returns its number of events, or `None` if no daemon answers for the domain now. An
    /// event id that was already received is skipped if `allowed`, as when reading continues from one
    /// representative to the next.
    ///
    /// # Errors
    /// If the answer is malformed.
    pub fn read(&mut self, daemon: &Daemon, allowed: bool) -> Result<Option<usize>> {
        self.read_by(|params| daemon.ask("domain.events", params), allowed)
    }

    /// As [`Account::read`]; `ask` calls `domain.events` with these parameters.
    ///
    /// # Errors
    /// If the answer is malformed.
    pub fn read_by(
        &mut self,
        ask: impl FnOnce(&Value) -> Result<Answer>,
        allowed: bool,
    ) -> Result<Option<usize>> {
        let page = match ask(&json!({ "cursor": self.cursor, "limit": PAGE })) {
            Ok(Answer::Result(page)) => page,
            Ok(Answer::Fault { .. }) | Err(_) => return Ok(None),
        };
        self.cursor = page["cursor"].as_str().context("a cursor is a text")?.to_owned();
        self.missed += page["missed"].as_u64().context("missed is a count")?;
        let events = page["events"].as_array().context("events are an array")?;
        for event in events {
            self.enter(event, allowed);
        }
        Ok(Some(events.len()))
    }

    fn enter(&mut self, event: &Value, allowed: bool) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, host) = (text(&event["id"]), text(&event["source"]["host"]));
        if !self.ids.insert(id.clone()) && allowed {
            self.again += 1;
            return;
        }
        // Anything but a submission was not written, and is recorded as unexpected.
        let number = if event["kind"] == "job_submit" { text(&event["job"]) } else { event.to_string() };
        self.hosts.entry(host).or_default().enter(&id, &number);
    }

    /// Number of different lines received.
    #[must_use]
    pub fn count(&self) -> usize {
        self.hosts.values().map(Ledger::count).sum()
    }

    /// Verdict for each host, given the number of lines written there.
    #[must_use]
    pub fn verdicts(&self, written: &BTreeMap<String, usize>) -> BTreeMap<String, Verdict> {
        let of = |(host, lines): (&String, &usize)| {
            (host.clone(), self.hosts.get(host).map_or_else(Ledger::default, Clone::clone).verdict(*lines))
        };
        written.iter().map(of).collect()
    }

    /// The events stored by the representative that `daemon` queries, read from the start.
    ///
    /// # Errors
    /// If no daemon answers for the domain.
    pub fn stored(daemon: &Daemon) -> Result<Account> {
        let mut account = Account::default();
        while account.read(daemon, false)?.context("the domain has a representative")? > 0 {}
        Ok(account)
    }
}
