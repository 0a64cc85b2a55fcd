//! An order to end a process, signed here and handed over.
//!
//! Rule: only an operator's order ends a process, and it names the very process that was shown (docs/control.md); it is
//! sent once, and where no answer comes that is told: it may have been obeyed. Not here: asking the person
//! (`app::flock::kill`).

use super::answers;
use super::at;
use super::http::{Client, Error};
use super::via::Where;
use crate::feed::Kill;
use overlay::identity::operator::Operator;
use overlay::identity::state_folder;
use serde_json::{Value, json};
use std::path::PathBuf;
use wire::control::Act;
use wire::process::ProcessKey;

/// Order it; what to tell of it, or why not.
pub(super) fn kill(client: &mut Client, kill: &Kill) -> Result<String, String> {
    let info = client.ask("daemon.info", &json!({})).map_err(|error| error.to_string())?;
    let domain = if kill.host.domain.is_empty() {
        answers::text(&info, "domain")
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
    let params = at(&kill.host, json!({ "order": order }));
    let answer = client.order("sensor.control", &params).map_err(|error| unanswered(kill, &error))?;
    let then = match answer["ended"].as_bool() {
        Some(true) => "; it has ended",
        Some(false) => "; it is there still",
        None => "",
    };
    Ok(format!("sent {} to {} ({}) on {}{then}", kill.signal.as_str(), kill.name, kill.pid, host))
}

/// Why it was refused; where nobody answered, that it is not known what came of it.
fn unanswered(kill: &Kill, error: &Error) -> String {
    match error {
        Error::Fault { .. } => error.to_string(),
        Error::Unreachable { .. } | Error::Silent { .. } | Error::Answer { .. } => {
            format!(
                "{error}; whether {} ({}) was sent {} is not known",
                kill.name,
                kill.pid,
                kill.signal.as_str()
            )
        }
    }
}

/// Where an operator may be: the usual folder, and that of the daemon, where it is on this machine.
fn folders(address: &Where, info: &Value) -> Vec<PathBuf> {
    let usual = state_folder::usual();
    let of_daemon = match address {
        Where::Here(_) | Where::Local(_) => Some(PathBuf::from(answers::text(info, "state_directory"))),
        Where::Proxy(_) => None,
    };
    let of_daemon = of_daemon.filter(|folder| folder.is_absolute() && *folder != usual);
    std::iter::once(usual).chain(of_daemon).collect()
}
