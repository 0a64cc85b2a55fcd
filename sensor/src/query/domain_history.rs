//! `domain.history`: values that the domain's hosts had in the past, from the copies of their minutes.
//!
//! Rule: only the representative answers. A sensor that is alone answers from its own history. Not here: the
//! values of one host in full ([`super::history`]), how minutes are copied (`representative`).

use super::domain::absent;
use super::history::{Whose, answer};
use super::past::reader;
use crate::history::copies::Copies;
use crate::history::exported::Exported;
use crate::history::handle::Handle;
use crate::history::writing::calendar;
use crate::representative::service;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use store::reader::Reader;
use wire::api::UnixTime;
use wire::api::history::{DomainHistory, DomainHistoryParams, HostBehind};
use wire::id::HostName;
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;

/// A copy that ends earlier than this before now is behind: minutes are fetched when they are over.
const BEHIND_AFTER: Duration = Duration::from_secs(180);

/// What the method reads.
#[derive(Clone)]
pub struct Past {
    /// Answers only while this sensor represents the domain.
    pub service: service::Handle,
    /// Copies of all hosts' minutes.
    pub copies: Option<Copies>,
    /// History of the host, if it is the only one of its domain.
    pub alone: Option<Handle>,
    /// Exported days of the domain.
    pub exported: Exported,
}

impl Past {
    /// Creates the method.
    #[must_use]
    pub fn method(self) -> Method {
        let pool = BlockingPool::new("reading the history", AT_ONCE_MAX);
        typed::method(move |_, params: DomainHistoryParams| {
            let (past, pool) = (self.clone(), pool.clone());
            async move {
                let history = past.handle().await?;
                pool.run(move || found(reader(&history)?, &params, &past.exported, calendar())).await
            }
        })
    }

    async fn handle(&self) -> Result<Handle, Fault> {
        self.service.ask(|_, _| ()).await.map_err(absent)?;
        let copies = self.copies.as_ref().map(|copies| copies.handle().clone());
        self.alone.clone().or(copies).ok_or_else(|| {
            Fault::unavailable(
                "the representative is configured to copy no history ([sensor.history] on, domain_budget_mib)",
            )
        })
    }
}

fn found(
    history: &Reader,
    params: &DomainHistoryParams,
    exported: &Exported,
    now: Time,
) -> Result<DomainHistory, Fault> {
    let is_wanted = |name: &HostName| params.host.as_ref().is_none_or(|host| name.is_spelled(host));
    let host = params.host.as_deref().map(HostName::try_from).transpose();
    let host = host.map_err(|error| Fault::invalid_params(format!("host: {error}")))?;
    let found = answer(history, &params.history, Whose { is_wanted: &is_wanted, host, exported }, now)?;
    let held: Vec<_> = history.held().into_iter().filter(|held| is_wanted(&held.host)).collect();
    if let Some(host) = params.host.as_ref().filter(|_| held.is_empty() && found.series.is_empty()) {
        let text = format!(
            "no minute of host {host:?} is copied; visperf hosts (domain.hosts) lists those that report"
        );
        return Err(Fault::not_found(text));
    }
    let until = params.history.until.map_or(now, |until| until.0).min(now.minus(BEHIND_AFTER));
    let behind = held.into_iter().filter(|held| held.latest < until);
    let behind = behind.map(|held| HostBehind { host: held.host.to_string(), until: UnixTime(held.latest) });
    Ok(DomainHistory { history: found, behind: behind.collect() })
}
