//! What answers calls: a process, or WebAssembly in this one.
//!
//! Shell. Rules: whichever it is, a call is a line and its answer a line; after a failure what failed is given up. What looks at
//! files or starts a process runs where that may block; what runs is the very file that was found to be trusted.
//! Not here: when it is called (`task`).

use super::child::{self, Child, Start};
use super::spec::{Runs, Spec};
use super::stderr::Tail;
use super::trust;
#[cfg(feature = "wasm")]
use super::wasm;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What went wrong with a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its file is not trusted.
    #[error(transparent)]
    Trust(#[from] trust::Error),
    /// Its process.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Its folder cannot be made.
    #[error("cannot make its folder {}: {error}", path.display())]
    Folder {
        /// Where.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Its WebAssembly.
    #[cfg(feature = "wasm")]
    #[error(transparent)]
    Wasm(#[from] wasm::Error),
    /// This program has none.
    #[error("expected a program with the feature wasm, which this one was built without; use run = […]")]
    NoWasm,
    /// The sensor failed.
    #[error("calling it failed by a defect of the sensor; the daemon's log says more")]
    Defect,
}

/// How often a file is tried again that somebody has open for writing, and after what time.
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// Something that answers.
pub struct Runner(Kind);

enum Kind {
    Process(Box<Child>),
    #[cfg(feature = "wasm")]
    Wasm {
        /// None while it is called, and after a failure.
        instance: Option<Box<wasm::Instance>>,
        cpu: Duration,
    },
}

impl Runner {
    /// Start it; `folder` is where a process begins, and `tail` keeps what is said beside answers.
    ///
    /// # Errors
    /// If it cannot be started, or its file is not trusted.
    pub async fn start(spec: &Spec, folder: &Path, tail: Tail) -> Result<Runner, Error> {
        match &spec.runs {
            Runs::Executable { .. } => {
                Ok(Runner(Kind::Process(Box::new(once_written(spec, folder, tail).await?))))
            }
            Runs::Wasm { file } => open(file, spec, tail).await,
        }
    }

    /// Say a line, and give the line that it answers. WebAssembly is bounded by what it computes, not by time.
    ///
    /// # Errors
    /// If it does not answer as it should: it is of no use any more then.
    pub async fn call(&mut self, line: String, within: Duration) -> Result<Vec<u8>, Error> {
        match &mut self.0 {
            Kind::Process(child) => Ok(child.call(&line, within).await?),
            #[cfg(feature = "wasm")]
            Kind::Wasm { instance, cpu } => {
                let mut called = instance.take().ok_or(Error::Defect)?;
                let calling = tokio::task::spawn_blocking(move || {
                    let begun = crate::channel::hub::thread_time();
                    let answer = called.call(&line);
                    (called, answer, crate::channel::hub::thread_time().saturating_sub(begun))
                });
                let (called, answer, took) = calling.await.map_err(|_| Error::Defect)?;
                *cpu += took;
                *instance = Some(called);
                Ok(answer?)
            }
        }
    }

    /// Wait until it does something unasked. Gives what.
    pub async fn unasked(&mut self) -> Error {
        match &mut self.0 {
            Kind::Process(child) => child.unasked().await.into(),
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => std::future::pending().await,
        }
    }

    /// CPU time that it has used; as long as it keeps its budget this is to be asked now and then.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        match &self.0 {
            Kind::Process(child) => {
                let used = child::cpu_time(child.pid());
                child.move_cpu_limit(used);
                used
            }
            #[cfg(feature = "wasm")]
            Kind::Wasm { cpu, .. } => *cpu,
        }
    }

    /// The number of its process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.0 {
            Kind::Process(child) => Some(child.pid()),
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => None,
        }
    }

    /// Nothing more comes: it ends by itself, or is ended.
    pub async fn end(self) {
        match self.0 {
            Kind::Process(child) => child.end().await,
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => {}
        }
    }

    /// End it at once.
    pub async fn kill(self) {
        match self.0 {
            Kind::Process(child) => child.end_at_once().await,
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => {}
        }
    }
}

#[cfg(feature = "wasm")]
async fn open(file: &Path, spec: &Spec, tail: Tail) -> Result<Runner, Error> {
    let (file, limits) = (file.to_owned(), spec.limits);
    let opening = tokio::task::spawn_blocking(move || -> Result<wasm::Instance, Error> {
        Ok(wasm::Instance::open(&trust::file(&file)?.path, limits, tail)?)
    });
    let instance = opening.await.map_err(|_| Error::Defect)??;
    Ok(Runner(Kind::Wasm { instance: Some(Box::new(instance)), cpu: Duration::ZERO }))
}

#[cfg(not(feature = "wasm"))]
#[allow(clippy::unused_async)] // As where there is WebAssembly.
async fn open(file: &Path, _spec: &Spec, _tail: Tail) -> Result<Runner, Error> {
    trust::file(file)?;
    Err(Error::NoWasm)
}

/// Start it once no one writes its file any more: whoever changes it has it open for a moment longer than the change is seen.
async fn once_written(spec: &Spec, folder: &Path, tail: Tail) -> Result<Child, Error> {
    let mut tries = 0;
    loop {
        let (spec, folder, tail) = (spec.clone(), folder.to_owned(), tail.clone());
        // Given up meanwhile, it is killed when it is dropped.
        let starting = tokio::task::spawn_blocking(move || begin(&spec, &folder, tail));
        match starting.await.map_err(|_| Error::Defect)? {
            Err(Error::Child(child::Error::Start { error, .. }))
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(BUSY_WAIT).await;
            }
            started => return started,
        }
    }
}

/// Start its process; it blocks.
fn begin(spec: &Spec, folder: &Path, tail: Tail) -> Result<Child, Error> {
    let Runs::Executable { program, arguments, user, env } = &spec.runs else { return Err(Error::Defect) };
    let found = trust::executable(program)?;
    let folder = make(folder, user.as_deref())?;
    let (user, limits) = (user.as_deref(), spec.limits);
    let start = Start { program: &found.path, called: program, arguments, user, env, folder, limits };
    Ok(Child::start(&start, tail)?)
}

/// Its folder, for the sensor's user alone; who runs as another has none, for the way to it is the sensor's alone too.
fn make<'a>(folder: &'a Path, user: Option<&str>) -> Result<&'a Path, Error> {
    if user.is_some() {
        return Ok(Path::new("/"));
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::Folder { path: folder.to_owned(), error }).map(|()| folder)
}
