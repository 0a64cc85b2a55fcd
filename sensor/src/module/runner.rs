//! Runner of a module: a process, or WebAssembly in the sensor's process.
//!
//! Shell. Rules: a call is one line and its answer one line, in both cases; after an error the runner must
//! not be used any more. Code that reads files or starts a process runs on the blocking pool. The file that
//! is run is exactly the one that was found to be trusted.
//! Not here: when the module is called (`task`).

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

/// Failure of a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its file is not trusted.
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Its working directory cannot be made.
    #[error("cannot make its folder {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        error: io::Error,
    },
    #[cfg(feature = "wasm")]
    #[error(transparent)]
    Wasm(#[from] wasm::Error),
    /// This program was built without WebAssembly.
    #[error("expected a program with the feature wasm, which this one was built without; use run = […]")]
    NoWasm,
    /// The sensor failed, by a panic or a wrong state.
    #[error("calling it failed by a defect of the sensor; the daemon's log says more")]
    Defect,
}

/// Retries, and the pause between them, when the executable is still open for writing.
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// A running module.
pub struct Runner(Kind);

enum Kind {
    Process(Box<Child>),
    #[cfg(feature = "wasm")]
    Wasm {
        /// `None` during a call, and after a failure.
        instance: Option<Box<wasm::Instance>>,
        cpu: Duration,
    },
}

impl Runner {
    /// Starts the module; `folder` is the working directory of a process, and `tail` receives its standard
    /// error or log.
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

    /// Sends a line and returns the line of the answer. WebAssembly is limited by its computation (fuel), not
    /// by time.
    ///
    /// # Errors
    /// If it does not answer as it should: it must not be used any more then.
    pub async fn call(&mut self, line: String, within: Duration) -> Result<Vec<u8>, Error> {
        match &mut self.0 {
            Kind::Process(child) => Ok(child.call(&line, within).await?),
            #[cfg(feature = "wasm")]
            Kind::Wasm { instance, cpu } => {
                let mut called = instance.take().ok_or(Error::Defect)?;
                let calling = tokio::task::spawn_blocking(move || {
                    let started = crate::channel::hub::thread_time();
                    let answer = called.call(&line);
                    (called, answer, crate::channel::hub::thread_time().saturating_sub(started))
                });
                let (called, answer, took) = calling.await.map_err(|_| Error::Defect)?;
                *cpu += took;
                *instance = Some(called);
                Ok(answer?)
            }
        }
    }

    /// Waits until the module does something without a call, and returns that as an error. Never completes
    /// for WebAssembly.
    pub async fn unasked(&mut self) -> Error {
        match &mut self.0 {
            Kind::Process(child) => child.unasked().await.into(),
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => std::future::pending().await,
        }
    }

    /// CPU time used so far. Call it regularly while the module stays within its budget: it also raises the
    /// CPU limit of the process.
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

    /// Process id; `None` for WebAssembly.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.0 {
            Kind::Process(child) => Some(child.pid()),
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => None,
        }
    }

    /// Ends the module: closes the input of a process, and kills it if it does not end.
    pub async fn end(self) {
        match self.0 {
            Kind::Process(child) => child.end().await,
            #[cfg(feature = "wasm")]
            Kind::Wasm { .. } => {}
        }
    }

    /// Kills the module at once.
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
#[allow(clippy::unused_async)] // The signature is the same as with WebAssembly.
async fn open(file: &Path, _spec: &Spec, _tail: Tail) -> Result<Runner, Error> {
    trust::file(file)?;
    Err(Error::NoWasm)
}

/// Starts the process, retrying while its file is open for writing: a writer may keep it open for a moment
/// after the change is seen.
async fn once_written(spec: &Spec, folder: &Path, tail: Tail) -> Result<Child, Error> {
    let mut tries = 0;
    loop {
        let (spec, folder, tail) = (spec.clone(), folder.to_owned(), tail.clone());
        // If the start is cancelled meanwhile, dropping the process kills it.
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

/// Starts the process; blocks.
fn begin(spec: &Spec, folder: &Path, tail: Tail) -> Result<Child, Error> {
    let Runs::Executable { program, arguments, user, env } = &spec.runs else { return Err(Error::Defect) };
    let found = trust::executable(program)?;
    let folder = make(folder, user.as_deref())?;
    let (user, limits) = (user.as_deref(), spec.limits);
    let start = Start { program: &found.path, called: program, arguments, user, env, folder, limits };
    Ok(Child::start(&start, tail)?)
}

/// Makes the working directory, private to the sensor's user. A module that runs as another user gets `/`
/// instead, because the path to the folder is private to the sensor too.
fn make<'a>(folder: &'a Path, user: Option<&str>) -> Result<&'a Path, Error> {
    if user.is_some() {
        return Ok(Path::new("/"));
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::Folder { path: folder.to_owned(), error }).map(|()| folder)
}
