//! Ctrl-C handler of commands: runs a final action and ends the program.
//!
//! Not here: daemons, which shut down by themselves (`daemon::shutdown`).

use crate::exit::{Failure, INTERRUPTED};

/// Handles Ctrl-C for as long as the program runs.
pub(crate) struct Interrupt {
    _thread: std::thread::JoinHandle<()>,
}

impl Interrupt {
    /// Install the handler: Ctrl-C runs this action and then ends the program.
    ///
    /// # Errors
    /// If the system refuses the handler.
    pub(crate) fn catch(before_the_end: impl FnOnce() + Send + 'static) -> Result<Interrupt, Failure> {
        let fail = |error| Failure::of("cannot catch Ctrl-C", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let entered = runtime.enter();
        let mut signal =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map_err(fail)?;
        drop(entered);
        let waiting = move || {
            if runtime.block_on(signal.recv()).is_some() {
                before_the_end();
                std::process::exit(INTERRUPTED.into());
            }
        };
        let thread = std::thread::Builder::new().name("interrupt".to_owned()).spawn(waiting).map_err(fail)?;
        Ok(Interrupt { _thread: thread })
    }
}
