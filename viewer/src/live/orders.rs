//! Signals to processes: a command is signed here and handed to the daemon.
//!
//! Rule: only an operator's command ends a process, and it names exactly the process that was shown
//! (docs/control.md). It is sent once; if no answer comes, the result is reported as unknown, since it may
//! have been obeyed. Not here: the confirmation by the user (`app::flock::kill`).

use super::about;
use super::ask::Client;
use super::via::Where;
use crate::feed::Kill;
use client::Error;
use client::typed::About;
use overlay::identity::operator::Operator;
use overlay::identity::state_folder;
use std::path::PathBuf;
use wire::api::control::ControlParams;
use wire::api::daemon::{Info, InfoParams};
use wire::control::Act;
use wire::process::ProcessKey;

/// Sign and send a signal; returns the text to show, or the error.
pub(super) fn kill(client: &mut Client, kill: &Kill) -> Result<String, String> {
    let info = client.call(&InfoParams {}, &About::default()).map_err(|error| error.to_string())?;
    let domain = if kill.host.domain.is_empty() {
        info.domain.clone().unwrap_or_default()
    } else {
        kill.host.domain.to_string()
    };
    let domain = wire::id::DomainName::try_from(domain.as_str()).map_err(|error| error.to_string())?;
    let host = wire::id::HostName::try_from(&*kill.host.host).map_err(|error| error.to_string())?;
    let operator =
        Operator::find(&folders(client.address(), &info), &domain).map_err(|error| error.to_string())?;
    let process = ProcessKey { pid: kill.pid, start_ns: kill.start_ns };
    let order = operator.order(&host, process, Act::Signal(kill.signal), crate::clock::now());
    let order = order.map_err(|error| error.to_string())?;
    let answer = client.order(&ControlParams { order }, &about(&kill.host));
    let then = match answer.map_err(|error| unanswered(kill, &error))?.ended {
        Some(true) => "; it has ended",
        Some(false) => "; it is there still",
        None => "",
    };
    Ok(format!("sent {} to {} ({}) on {}{then}", kill.signal.as_str(), kill.name, kill.pid, host))
}

/// Text of an error: the reason of a refusal, or that the result is unknown because no answer came.
fn unanswered(kill: &Kill, error: &Error) -> String {
    match error {
        Error::Fault { .. } => error.to_string(),
        Error::Unreachable(_)
        | Error::Mistake(_)
        | Error::Lost { .. }
        | Error::Late { .. }
        | Error::Answer { .. } => {
            format!(
                "{error}; whether {} ({}) was sent {} is not known",
                kill.name,
                kill.pid,
                kill.signal.as_str()
            )
        }
    }
}

/// Folders that may hold the operator's key: the usual one, and that of the daemon, if it is on this machine.
fn folders(address: &Where, info: &Info) -> Vec<PathBuf> {
    let usual = state_folder::usual();
    let of_daemon = match address {
        Where::Here(_) | Where::Local(_) => Some(PathBuf::from(&info.state_directory)),
        Where::Proxy(_) => None,
    };
    let of_daemon = of_daemon.filter(|folder| folder.is_absolute() && *folder != usual);
    std::iter::once(usual).chain(of_daemon).collect()
}
