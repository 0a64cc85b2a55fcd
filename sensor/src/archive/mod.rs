//! Archive of the series of jobs: copies of what the sensors of other hosts stored, for as long as its space lasts.
//!
//! Each host's series are at several archives of the domain ([`owners`]); each archive fetches what it is to have (`rounds`),
//! from the host or from another archive, and shows what it has ([`Archive`]). Nothing runs in a job or waits for an archive: a
//! sensor stores its series whether there is one or not. Not here: the answers to queries (`query`).

pub mod config;
pub mod copies;
mod copying;
pub mod owners;
mod rounds;

use crate::history::writing::calendar;
use crate::sample::ticker::locked;
use config::Config;
use copies::{Copies, Extent};
use rpc::codec::value::{Name, Value};
use rpc::dispatch::method::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::daily::DailyReader;
use store::daily_copy::DayLen;
use wire::api::UnixTime;
use wire::api::archive::{Archive as State, ArchivedHost};
use wire::id::HostName;
use wire::time::Time;

/// Folder in the state folder.
const FOLDER: &str = "archive";

/// Calls methods of other daemons of the domain, with the rights of the sensor itself.
pub trait Peers: Send + Sync {
    /// Calls a method of this host, or of the representative if none is named, with a timeout.
    fn call(
        &self,
        host: Option<&HostName>,
        method: &'static str,
        params: Vec<(Name, Value)>,
        time: Duration,
    ) -> Answer;
}

/// An archive; cheap to clone.
#[derive(Clone)]
pub struct Archive(Arc<Shared>);

struct Shared {
    host: HostName,
    config: Config,
    copies: Copies,
    state: Mutex<Shown>,
}

/// What the last round found.
#[derive(Default)]
struct Shown {
    /// Archives that share the hosts.
    archives: BTreeSet<HostName>,
    hosts: BTreeMap<HostName, Progress>,
    problem: Option<String>,
}

/// How copying a host goes.
#[derive(Clone, Debug, Default)]
struct Progress {
    is_own: bool,
    complete: Option<Time>,
    problem: Option<String>,
}

impl Archive {
    /// Opens the archive of a host in its state folder.
    ///
    /// # Errors
    /// If its folder cannot be created or read.
    pub fn open(config: Config, state: &Path, host: HostName) -> io::Result<Archive> {
        let copies = Copies::open(&state.join(FOLDER), config.limit)?;
        Ok(Archive(Arc::new(Shared { host, config, copies, state: Mutex::default() })))
    }

    /// Returns readers of the series that a host measured; none if there is nothing of it.
    #[must_use]
    pub fn readers(&self, host: &HostName) -> Vec<DailyReader> {
        self.0.copies.readers(host)
    }

    /// Returns its state; of one host alone if it is named, with its days.
    #[must_use]
    pub fn state(&self, host: Option<&HostName>) -> State {
        let mut extents = self.0.copies.hosts();
        let shown = locked(&self.0.state);
        for name in shown.hosts.keys() {
            extents.entry(name.clone()).or_default();
        }
        let is_wanted = |name: &HostName| host.is_none_or(|host| host == name);
        let hosts = extents.into_iter().filter(|(name, _)| is_wanted(name)).map(|(name, extent)| {
            let progress = shown.hosts.get(&name).cloned().unwrap_or_default();
            let days = host.and_then(|_| self.0.copies.days(&name)).unwrap_or_default();
            archived(&name, extent, progress, &days)
        });
        State {
            host: self.0.host.to_string(),
            copies: self.0.config.copies as u64,
            archives: shown.archives.iter().map(ToString::to_string).collect(),
            used_bytes: self.0.copies.used_bytes(),
            budget_bytes: self.0.config.limit.bytes,
            days_deleted: self.0.copies.deleted(),
            hosts: hosts.collect(),
            problem: shown.problem.clone(),
        }
    }

    /// What does not work at the moment, as a sentence.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let problem = locked(&self.0.state).problem.clone()?;
        Some(format!("archive: what is new is not archived: {problem}"))
    }

    /// Statistics: name and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("used_bytes", self.0.copies.used_bytes()),
            ("hosts", self.0.copies.hosts().len() as u64),
            ("days_deleted_total", self.0.copies.deleted()),
        ]
    }

    /// Notes that there are no other hosts to archive.
    pub fn note_alone(&self) {
        self.note(Some(
            "this sensor has joined no domain, so there are no other hosts (visperf join)".to_owned(),
        ));
    }

    /// Notes a problem of the archive as a whole, or that there is none.
    fn note(&self, problem: Option<String>) {
        let mut shown = locked(&self.0.state);
        if let Some(problem) = problem.as_ref().filter(|problem| shown.problem.as_ref() != Some(problem)) {
            tracing::warn!("archive: {problem}");
        }
        shown.problem = problem;
    }

    /// Notes how copying a host went.
    fn note_host(&self, host: &HostName, copied: Result<bool, String>) {
        let mut shown = locked(&self.0.state);
        let progress = shown.hosts.entry(host.clone()).or_default();
        match copied {
            Ok(is_complete) => {
                progress.problem = None;
                progress.complete = if is_complete { Some(calendar()) } else { progress.complete };
            }
            Err(problem) => progress.problem = Some(problem),
        }
    }
}

fn archived(name: &HostName, extent: Extent, progress: Progress, days: &[DayLen]) -> ArchivedHost {
    ArchivedHost {
        host: name.to_string(),
        is_own: progress.is_own,
        bytes: extent.bytes,
        oldest: extent.oldest.map(|date| date.to_string()),
        newest: extent.newest.map(|date| date.to_string()),
        complete: progress.complete.map(UnixTime),
        problem: progress.problem,
        days: days
            .iter()
            .map(|day| wire::api::archive::DayLen { day: day.date.to_string(), bytes: day.len })
            .collect(),
    }
}
