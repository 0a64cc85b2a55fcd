//! The sensor put together: tail, sampler and the answers to queries. Wiring only.
//!
//! Not here: the listener and the directory (the composing program has them).

use crate::config::Config;
use crate::filters::{Choice, Filtering};
use crate::journal::reader::Reader;
use crate::query;
use crate::sample::collector::Collectors;
use crate::sample::figures::Figures;
use crate::sample::host::{PROC, collectors};
use crate::sample::sampler::{self, Sampler};
use crate::tail;
use log_filters::join::Joiner;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use tokio_util::sync::CancellationToken;
use wire::id::SensorKey;

/// Why a sensor could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The logs cannot be followed.
    #[error(transparent)]
    Tail(#[from] tail::Error),
    /// The host cannot be sampled.
    #[error(transparent)]
    Sample(#[from] sampler::Error),
    /// Two methods have one name.
    #[error(transparent)]
    Method(#[from] rpc::method::Error),
    /// The thread that follows the logs is gone.
    #[error(
        "following the logs ended by a defect; the journal is as after a crash and the next start goes on from it"
    )]
    TailEnded,
}

/// A sensor that is open: it follows logs; it samples and answers once [`Sensor::run`].
pub struct Sensor {
    config: Config,
    filtering: Arc<Filtering>,
    joiner: Arc<Mutex<Joiner>>,
    tail: Arc<tail::handle::Handle>,
    sampler: Sampler,
    address: Arc<OnceLock<String>>,
    /// Ends queries that wait.
    ending: CancellationToken,
}

/// What others ask of a running sensor, beside its methods.
#[derive(Clone)]
pub struct Status {
    filtering: Arc<Filtering>,
    tail: Arc<tail::handle::Handle>,
    sampler: sampler::Handle,
}

impl Sensor {
    /// Open the state directory and begin to follow the logs.
    ///
    /// # Errors
    /// If another process has the state directory, or it cannot be used.
    pub fn open(config: Config, state: &Path) -> Result<Sensor, Error> {
        let filtering = Arc::new(Filtering::load(&config.filters));
        let joiner = Arc::new(Mutex::new(Joiner::default()));
        let choice = Choice::new(Arc::clone(&filtering), &config);
        let join = Box::new(Arc::clone(&joiner));
        let tail = tail::handle::Handle::start(config.tail(), state, Box::new(choice), join)?;
        let sampler = Sampler::new(Collectors::new(collectors(Path::new(PROC))), config.sample_rate);
        Ok(Sensor {
            config,
            filtering,
            joiner,
            tail: Arc::new(tail),
            sampler,
            address: Arc::new(OnceLock::new()),
            ending: CancellationToken::new(),
        })
    }

    /// How it behaves.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> SensorKey {
        self.tail.sensor()
    }

    /// Reads its events.
    #[must_use]
    pub fn events(&self) -> Reader {
        self.tail.reader()
    }

    /// Its calls.
    #[must_use]
    pub fn calls(&self) -> Arc<Mutex<Joiner>> {
        Arc::clone(&self.joiner)
    }

    /// What others ask of it.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            filtering: Arc::clone(&self.filtering),
            tail: Arc::clone(&self.tail),
            sampler: self.sampler.handle(),
        }
    }

    /// Tell where it answers, once that is known.
    pub fn set_address(&self, address: String) {
        // A second address changes nothing: a daemon binds once.
        let _ = self.address.set(address);
    }

    /// Its methods.
    ///
    /// # Errors
    /// If two have one name, which a test rules out.
    pub fn methods(&self) -> Result<rpc::method::Registry, Error> {
        let mut registry = rpc::method::Registry::new();
        let events = query::events::Events {
            reader: self.tail.reader(),
            joiner: Arc::clone(&self.joiner),
            ending: self.ending.clone(),
        };
        let (tail, status) = (Arc::clone(&self.tail), self.status());
        let counted = self.tail.subscribe();
        let domain = query::domain::Domain {
            domain: self.config.domain.clone(),
            host: self.config.host.clone(),
            sensor: self.key(),
            address: Arc::clone(&self.address),
            sampler: self.sampler.handle(),
            joiner: Arc::clone(&self.joiner),
            events: Box::new(move || *counted.borrow()),
            health: Box::new(move || status.health()),
        };
        let methods = events
            .methods()
            .into_iter()
            .chain(query::calls::methods(&self.joiner))
            .chain(query::metrics::methods(&self.sampler.handle(), &self.config.host))
            .chain([
                query::files::files_method(&self.config, move || tail.files()),
                query::files::filters_method(&self.filtering),
            ])
            .chain(domain.methods());
        for method in methods {
            registry.add(method)?;
        }
        Ok(registry)
    }

    /// Sample until `shutdown`; then read what there is of the logs and make it durable.
    ///
    /// # Errors
    /// If a part ended that should not have.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let Sensor { tail, sampler, ending, .. } = self;
        let watched = Arc::clone(&tail);
        let mut look = tokio::time::interval(std::time::Duration::from_secs(1));
        let sampling = sampler.run(shutdown.clone());
        tokio::pin!(sampling);
        let result = loop {
            tokio::select! {
                result = &mut sampling => break result.map_err(Error::from),
                _ = look.tick() => if !watched.is_running() {
                    break Err(Error::TailEnded);
                },
            }
        };
        ending.cancel();
        drop(watched);
        let drained = tokio::task::spawn_blocking(move || tail.stop()).await;
        drained.map_err(|_| Error::TailEnded)?;
        result
    }
}

impl Status {
    /// What is wrong now, in sentences.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let mut health = self.filtering.refused().to_vec();
        health.extend(self.tail.state().health);
        let files = self.tail.files();
        let troubled = files.iter().filter(|file| file.is_ill());
        health.extend(troubled.map(|file| format!("{}: {}", file.path.display(), file.health)));
        health
    }

    /// Figures of the sensor itself: name and value.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        let files = self.tail.files();
        let sum = |of: fn(&tail::board::FileState) -> u64| files.iter().map(of).sum();
        let counts = self.sampler.counts();
        vec![
            ("files", files.len() as u64),
            ("events_total", *self.tail.subscribe().borrow()),
            ("lines_total", sum(|file| file.lines)),
            ("lag_bytes", sum(|file| file.lag_bytes)),
            ("gaps_total", sum(|file| file.gaps)),
            ("gap_bytes_total", sum(|file| file.gap_bytes)),
            ("events_lost_total", self.tail.state().lost),
            ("sweeps_total", counts.sweeps_total),
            ("sweeps_slipped_total", counts.slipped_total),
            ("history_bytes", counts.history_bytes as u64),
        ]
    }

    /// The host's figures.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        self.sampler.figures()
    }
}
