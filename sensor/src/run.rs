//! The sensor put together: tail, sampler and the answers to queries. Wiring only.
//!
//! Not here: the listener and the directory (the composing program has them).

mod modules;
mod status;
mod sweeping;

use crate::channel::evaluating::Lane;
use crate::channel::handover;
use crate::channel::hub::Hub;
use crate::channel::pump::{self, Pump};
use crate::config::Config;
use crate::control;
use crate::filters::{Choice, Filtering};
use crate::journal::reader::Reader;
use crate::module;
use crate::process;
use crate::query;
use crate::recorder::{desk, store};
use crate::report::link::{self, Link};
use crate::report::own::own;
use crate::report::own_way::OwnWay;
use crate::representative::domain;
use crate::representative::office::{self, Duty, Office};
use crate::sample::beat;
use crate::sample::host::PROC;
use crate::sample::sampler::{self, Sampler};
use crate::serving::roll::Rolls;
use crate::serving::watch;
use crate::tail;
use log_filters::join::Joiner;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use tokio_util::sync::CancellationToken;
use wire::id::{HostName, SensorKey};

/// Why a sensor could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The logs cannot be followed.
    #[error(transparent)]
    Tail(#[from] tail::Error),
    /// The host cannot be sampled.
    #[error(transparent)]
    Sample(#[from] beat::Error),
    /// Its processes cannot be read as the configuration says.
    #[error("process_source: {0}")]
    Process(#[from] process::source::Error),
    /// The folder of recordings cannot be used.
    #[error("recordings: {0}")]
    Recorder(#[from] store::Error),
    /// Two methods have one name.
    #[error(transparent)]
    Method(#[from] rpc::dispatch::method::Error),
    /// The report cannot be made.
    #[error("the journal cannot be read for the report: {0}; check the state directory")]
    Report(std::io::Error),
    /// The representative's part ended.
    #[error(transparent)]
    Representative(#[from] office::Defect),
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
    processes: process::sampler::Sampler,
    /// None where the configuration wants none.
    recorder: Option<(desk::Desk, desk::Handle)>,
    serving: (watch::Watch, watch::Handle),
    channels: Hub,
    flowing: (Pump, Rolls, [handover::Taking; Lane::ALL.len()]),
    /// None where the configuration names no folder of them.
    modules: Option<(module::desk::Desk, module::desk::Handle)>,
    control: control::desk::Handle,
    office: Office,
    representative: office::Handle,
    /// None once it is taken: somebody else knows the way to the representative.
    link: Option<Link>,
    reporting: link::Board,
    address: Arc<OnceLock<String>>,
    beside: Arc<Beside>,
    /// Ends queries that wait.
    ending: CancellationToken,
}

/// What others ask of a running sensor, beside its methods.
#[derive(Clone)]
pub struct Status {
    filtering: Arc<Filtering>,
    tail: Arc<tail::handle::Handle>,
    sampler: sampler::Handle,
    processes: process::sampler::Handle,
    serving: watch::Handle,
    channels: Hub,
    recorder: Option<desk::Handle>,
    modules: Option<module::desk::Handle>,
    /// None while the sensor is put together.
    report: Option<(link::Board, office::Handle)>,
    beside: Arc<Beside>,
}

/// What is wrong with the daemon beside its sensor, once that can be asked.
type Beside = OnceLock<Box<dyn Fn() -> Vec<String> + Send + Sync>>;

impl Sensor {
    /// Open the state directory and begin to follow the logs.
    ///
    /// # Errors
    /// If another process has the state directory, or it cannot be used.
    pub fn open(config: Config, state: &Path) -> Result<Sensor, Error> {
        // Before anything else takes memory: reading the kernel's types takes some for a moment.
        let chosen = process::source::choose(Path::new(PROC), config.process_source)?;
        tracing::info!(source = %chosen.source.kind(), reasons = ?chosen.reasons, "processes are read");
        let filtering = Arc::new(Filtering::load(&config.filters));
        let joiner = Arc::new(Mutex::new(Joiner::default()));
        let choice = Choice::new(Arc::clone(&filtering), &config);
        let join = Box::new(Arc::clone(&joiner));
        let mut following = config.tail();
        following.files.push(control::trail::spec(state));
        let tail = tail::handle::Handle::start(following, state, Box::new(choice), join)?;
        let modules = modules::open(&config, state);
        let sampler = modules::sampler(&config, modules.as_ref());
        let tail = Arc::new(tail);
        let channels = Hub::default();
        let sweeping::Sweeping { processes, subscriptions, recorder, watch, serving } =
            sweeping::sweeping(chosen, &config, state, &tail, &channels)?;
        let rolls = Rolls::new(serving.clone(), Arc::clone(&joiner));
        channels.set_rolls(rolls.clone());
        let pump = Pump::new(&channels, tail.reader(), Arc::clone(&joiner));
        let control =
            control::desk::Handle::new(config.control.clone(), state, config.host.clone(), Path::new(PROC));
        let (office, representative) = Office::new(state.join("domain"), domain::Config::default());
        let beside = Arc::new(Beside::new());
        let status = Status {
            filtering: Arc::clone(&filtering),
            tail: Arc::clone(&tail),
            sampler: sampler.handle(),
            processes: processes.handle(),
            serving: serving.clone(),
            channels: channels.clone(),
            recorder: recorder.as_ref().map(|(_, handle)| handle.clone()),
            modules: modules.as_ref().map(|(_, handle)| handle.clone()),
            report: None,
            beside: Arc::clone(&beside),
        };
        let own = own(&config, state, &tail, &sampler.handle(), status, representative.clone())
            .map_err(Error::Report)?;
        let link = Link::new(own);
        Ok(Sensor {
            config,
            filtering,
            joiner,
            tail,
            sampler,
            processes,
            recorder,
            serving: (watch, serving),
            channels,
            flowing: (pump, rolls, subscriptions),
            modules,
            control,
            office,
            representative,
            reporting: link.board(),
            link: Some(link),
            address: Arc::new(OnceLock::new()),
            beside,
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
            processes: self.processes.handle(),
            serving: self.serving.1.clone(),
            channels: self.channels.clone(),
            recorder: self.recorder(),
            modules: self.modules(),
            report: Some((self.reporting.clone(), self.representative.clone())),
            beside: Arc::clone(&self.beside),
        }
    }

    /// Its flight recorder, where the configuration wants one.
    #[must_use]
    pub fn recorder(&self) -> Option<desk::Handle> {
        self.recorder.as_ref().map(|(_, handle)| handle.clone())
    }

    /// Its modules, where the configuration names a folder of them.
    #[must_use]
    pub fn modules(&self) -> Option<module::desk::Handle> {
        self.modules.as_ref().map(|(_, handle)| handle.clone())
    }

    /// Where orders to processes are obeyed: for whoever knows whom to believe.
    #[must_use]
    pub fn control(&self) -> control::desk::Handle {
        self.control.clone()
    }

    /// Its part as the representative of its domain: for whoever knows of the election.
    #[must_use]
    pub fn representative(&self) -> office::Handle {
        self.representative.clone()
    }

    /// Its report, for whoever knows the way to the representative and runs it. It can be taken once; a sensor of
    /// which it is not taken represents itself.
    pub fn take_report(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// What is wrong with the daemon beside its sensor: told of this host wherever its health is.
    pub fn set_health_beside(&self, ask: impl Fn() -> Vec<String> + Send + Sync + 'static) {
        // A second one changes nothing: a daemon is put together once.
        let _ = self.beside.set(Box::new(ask));
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
    pub fn methods(&self) -> Result<rpc::dispatch::method::Registry, Error> {
        let mut registry = rpc::dispatch::method::Registry::new();
        let (reader, joiner) = (self.tail.reader(), Arc::clone(&self.joiner));
        let events = query::events::Events::new(reader, joiner, self.ending.clone());
        let tail = Arc::clone(&self.tail);
        // Where its report was not taken, it is the whole domain.
        let is_alone = self.link.is_some();
        let domain = query::domain::Domain {
            domain: self.config.domain.clone(),
            host: self.config.host.clone(),
            address: Arc::clone(&self.address),
            office: self.representative.clone(),
            own: is_alone.then(|| query::domain::OwnLogs {
                calls: Arc::clone(&self.joiner),
                next: self.tail.reader().next(),
            }),
        };
        let of_domain = match is_alone {
            true => events.method_of_domain(),
            false => {
                let (office, ending) = (self.representative.clone(), self.ending.clone());
                query::domain_events::Events::new(office, ending).method()
            }
        };
        let methods = [
            events.method(),
            query::calls::method(&self.joiner),
            query::call_processes::CallProcesses {
                joiner: Arc::clone(&self.joiner),
                serving: self.serving.1.clone(),
                processes: self.processes.handle(),
                recorder: self.recorder(),
                proc: PROC.into(),
            }
            .method(),
            query::past_processes::method(self.recorder()),
            query::metrics::method(&self.sampler.handle()),
            query::processes::method(&self.processes.handle(), Path::new(PROC)),
            query::control::method(&self.control),
            query::files::files_method(&self.config, move || tail.files()),
            query::files::filters_method(&self.filtering),
            of_domain,
            query::domain_metrics::method(&self.representative),
        ];
        let recorder = self.recorder();
        let methods = methods.into_iter().chain(domain.methods()).chain(query::recordings::methods(recorder));
        let channels = query::channels::Channels { hub: self.channels.clone(), ending: self.ending.clone() };
        let methods = methods.chain(channels.methods()).chain(query::modules::methods(self.modules()));
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
        let Sensor {
            config,
            tail,
            sampler,
            processes,
            recorder,
            serving,
            channels,
            flowing: (pump, rolls, subscriptions),
            modules,
            office,
            representative,
            link,
            ending,
            ..
        } = self;
        let watched = Arc::clone(&tail);
        let mut look = tokio::time::interval(std::time::Duration::from_secs(1));
        let showing = pump::show_host(channels.clone(), sampler.handle().subscribe(), shutdown.clone());
        let (pumping, serving_rolls) = (pump.run(shutdown.clone()), rolls.run(shutdown.clone()));
        let sources = (channels, tail.reader(), sampler.handle());
        let extending = modules::run(modules, sources, shutdown.clone());
        let (sampling, representing) = (sampler.run(shutdown.clone()), office.run(shutdown.clone()));
        let sweeping = processes.run(shutdown.clone());
        let [plain, scripted] = subscriptions.map(|lane| lane.run(shutdown.clone()));
        let recording = sweeping::record(recorder, serving.0, shutdown.clone());
        let reporting = report_to_itself(link, representative, config.host, shutdown);
        let working = async {
            tokio::try_join!(
                async { sampling.await.map_err(Error::from) },
                async { sweeping.await.map_err(Error::from) },
                async { tokio::try_join!(plain, scripted).map(drop).map_err(Error::from) },
                async { representing.await.map_err(Error::from) },
                async { pumping.await.map_err(Error::from) },
                async {
                    tokio::join!(recording, extending, showing, serving_rolls);
                    Ok(())
                },
                async {
                    reporting.await;
                    Ok(())
                },
            )
        };
        tokio::pin!(working);
        let result = loop {
            tokio::select! {
                result = &mut working => break result.map(|_| ()),
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

/// A sensor that is in no domain of several represents its own; nothing is done where its report was taken.
async fn report_to_itself(
    link: Option<Link>,
    office: office::Handle,
    host: HostName,
    shutdown: CancellationToken,
) {
    if let Some(link) = link {
        office.set_duty(Duty::Serve { term: 0 });
        // Its journal and its calls answer for the domain: nothing is stored or joined twice.
        link.without_events().run(OwnWay { office, host }, shutdown).await;
    }
}
