//! The histories of a sensor: of its host, of its processes and jobs, of its calls, and of its domain; its archive.
//!
//! Not here: what they store ([`crate::history`]).

use super::Error;
use crate::archive::Archive;
use crate::call_history::{self, CallHistory};
use crate::config as sensor;
use crate::config::history::Config;
use crate::history::copies::{self, Copies};
use crate::history::exported::Exported;
use crate::history::handle::Handle;
use crate::history::sweeps;
use crate::job_series::log;
use crate::job_usage::worker as job_usage;
use crate::process_history::worker as processes;
use crate::representative::service;
use crate::sample::sampler::Sampler;
use log_filters::join::Joiner;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use wire::id::HostName;

/// Longest wait for the end of a thread.
const END_MAX: Duration = Duration::from_secs(2);

/// Histories, each `None` if the configuration turns it off.
pub(super) struct Pasts {
    own: Option<(sweeps::Worker, Handle)>,
    copies: Option<(copies::Worker, Copies)>,
    processes: Option<(processes::Worker, processes::Handle)>,
    usage: Option<(job_usage::Worker, job_usage::Handle)>,
    calls: Option<CallHistory>,
    domain_calls: Option<CallHistory>,
    archive: Option<Archive>,
    exported: Exported,
}

/// Handles of the histories, for health and statistics.
#[derive(Clone)]
pub(super) struct Handles {
    pub(super) own: Option<Handle>,
    pub(super) copies: Option<Handle>,
    pub(super) processes: Option<processes::Handle>,
    pub(super) usage: Option<job_usage::Handle>,
    pub(super) calls: Option<CallHistory>,
    pub(super) domain_calls: Option<CallHistory>,
    pub(super) archive: Option<Archive>,
}

/// Histories whose workers run.
pub(super) struct Running {
    storing: Option<JoinHandle<()>>,
    copying: Option<(JoinHandle<()>, Copies)>,
    /// Threads that may be left behind: what they store, and a receiver of their end.
    threads: Vec<(&'static str, oneshot::Receiver<()>)>,
    /// Of its own calls and of its domain's.
    calls: Vec<(JoinHandle<()>, CallHistory)>,
}

impl Pasts {
    /// Creates the histories in the state folder; the sampler's sweeps are stored.
    pub(super) fn set_up(
        config: Config,
        state: &Path,
        host: HostName,
        (sampler, joiner, representative): (&mut Sampler, &Arc<Mutex<Joiner>>, &service::Handle),
    ) -> Pasts {
        let exported = Exported::default();
        let own =
            sweeps::set_up(config.limits, state, (host, exported.clone())).map(|(worker, sink, handle)| {
                sampler.set_sink(Box::new(move |table| sink.store(table)));
                (worker, handle)
            });
        let calls = config.calls.map(|limit| {
            let take = call_history::of_own(joiner);
            CallHistory::new("call history", &state.join("call-history"), limit, take)
        });
        let representative = representative.clone();
        let domain_calls = config.domain_calls.map(|limit| {
            let take = representative.call_changes();
            CallHistory::new("call history of the domain", &state.join("domain-calls"), limit, take)
        });
        let copies = copies::set_up(config.copies, state, exported.clone());
        Pasts { own, copies, processes: None, usage: None, calls, domain_calls, archive: None, exported }
    }

    /// Adds what is stored of processes, and of the jobs that they serve.
    pub(super) fn with_processes(
        self,
        processes: Option<(processes::Worker, processes::Handle)>,
        usage: (job_usage::Worker, job_usage::Handle),
    ) -> Pasts {
        Pasts { processes, usage: Some(usage), ..self }
    }

    /// Opens the archive, if the configuration has one.
    pub(super) fn with_archive(self, config: &sensor::Config, state: &Path) -> Result<Pasts, Error> {
        let open = |archive| Archive::open(archive, state, config.host.clone());
        let archive = config.archive.map(open).transpose().map_err(Error::Archive)?;
        Ok(Pasts { archive, ..self })
    }

    pub(super) fn handles(&self) -> Handles {
        Handles {
            own: self.own(),
            copies: self.copies().map(|copies| copies.handle().clone()),
            processes: self.processes(),
            usage: self.usage(),
            calls: self.calls(),
            domain_calls: self.domain_calls(),
            archive: self.archive(),
        }
    }

    pub(super) fn archive(&self) -> Option<Archive> {
        self.archive.clone()
    }

    pub(super) fn own(&self) -> Option<Handle> {
        self.own.as_ref().map(|(_, handle)| handle.clone())
    }

    pub(super) fn exported(&self) -> &Exported {
        &self.exported
    }

    pub(super) fn copies(&self) -> Option<Copies> {
        self.copies.as_ref().map(|(_, copies)| copies.clone())
    }

    pub(super) fn processes(&self) -> Option<processes::Handle> {
        self.processes.as_ref().map(|(_, handle)| handle.clone())
    }

    pub(super) fn usage(&self) -> Option<job_usage::Handle> {
        self.usage.as_ref().map(|(_, handle)| handle.clone())
    }

    pub(super) fn series(&self) -> Option<log::Handle> {
        self.usage.as_ref().and_then(|(_, handle)| handle.series().cloned())
    }

    pub(super) fn calls(&self) -> Option<CallHistory> {
        self.calls.clone()
    }

    pub(super) fn domain_calls(&self) -> Option<CallHistory> {
        self.domain_calls.clone()
    }

    /// Starts the workers. That of the host's history ends after the sampling thread, whose last sweep it stores.
    pub(super) fn start(self, shutdown: &CancellationToken) -> Running {
        use tokio::task::spawn_blocking;
        let processes = self.processes.and_then(|(worker, _)| start("process history", || worker.run()));
        let usage = self.usage.and_then(|(worker, _)| start("usage of jobs", || worker.run()));
        Running {
            storing: self.own.map(|(worker, _)| spawn_blocking(move || worker.run())),
            copying: self.copies.map(|(worker, copies)| (spawn_blocking(move || worker.run()), copies)),
            threads: processes.into_iter().chain(usage).collect(),
            calls: self
                .calls
                .into_iter()
                .chain(self.domain_calls)
                .map(|calls| start_calls(calls, shutdown))
                .collect(),
        }
    }
}

fn start_calls(calls: CallHistory, shutdown: &CancellationToken) -> (JoinHandle<()>, CallHistory) {
    let (running, shutdown) = (calls.clone(), shutdown.clone());
    (tokio::spawn(async move { running.run(shutdown).await }), calls)
}

/// Starts a worker on a thread of its own, which may be left behind at the end.
fn start(
    what: &'static str,
    run: impl FnOnce() + Send + 'static,
) -> Option<(&'static str, oneshot::Receiver<()>)> {
    let (done, ended) = oneshot::channel();
    let run = move || {
        run();
        // An error means that the end waits no longer.
        let _ = done.send(());
    };
    // The kernel cuts the name of a thread at 15 bytes.
    match std::thread::Builder::new().name(what.chars().take(15).collect()).spawn(run) {
        Ok(_) => Some((what, ended)),
        Err(error) => {
            tracing::error!(%error, "the {what} is not stored: the system gives no thread");
            None
        }
    }
}

impl Running {
    /// Waits until all is written. The logs are read to their ends before.
    ///
    /// # Errors
    /// If a worker panicked.
    pub(super) async fn end(self) -> Result<(), JoinError> {
        for (running, calls) in self.calls {
            running.await?;
            calls.end().await;
        }
        if let Some(storing) = self.storing {
            storing.await?;
        }
        if let Some((copying, copies)) = self.copying {
            tokio::task::spawn_blocking(move || copies.end()).await?;
            copying.await?;
        }
        for (what, ended) in self.threads {
            if tokio::time::timeout(END_MAX, ended).await.is_err() {
                tracing::warn!("the last of the {what} is not stored: its thread does not end");
            }
        }
        Ok(())
    }
}
