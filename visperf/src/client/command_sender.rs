//! Sender of signed commands to the processes of one host: looks up the process, signs, sends the command to
//! a daemon.
//!
//! Rule: a command is signed at the moment it is sent, with a number that was never used.
//! Not here: who signs and how (`overlay::identity::operator`), the confirmation by the user (`command::control`).

use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::output::times;
use crate::{state_folder, state_owner};
use ::client::typed::{About, Answered};
use overlay::identity::operator::Operator;
use std::net::IpAddr;
use std::path::PathBuf;
use wire::api::Request;
use wire::api::control::{ControlAnswer, ControlParams};
use wire::api::daemon::{Info, InfoParams};
use wire::api::processes::{Process, ProcessesParams};
use wire::control::Act;
use wire::id::{DomainName, HostName};
use wire::process::ProcessKey;

/// Sends commands to one host.
pub(crate) struct CommandSender {
    client: Client,
    domain: DomainName,
    host: HostName,
    operator: Operator,
}

impl CommandSender {
    /// A sender for `host` of `domain`. `localhost` is the host of the queried daemon, and its domain is the
    /// default.
    ///
    /// # Errors
    /// If no daemon is reached, or no operator certificate of the domain is found.
    pub(crate) fn new(target: &Target, domain: Option<&str>, host: &str) -> Result<CommandSender, Failure> {
        let mut client = Client::new(target);
        // A proxy shows its own info only to operators of that class, and it names no domain.
        let of_door = target.door_domain();
        let domain = domain.or(of_door);
        let info = match client.request(&InfoParams {}, &About::default(), PATIENCE) {
            Ok(answer) => answer.typed,
            Err(_) if domain.is_some() && host != "localhost" => Info::default(),
            Err(error) => return Err(client.explain(InfoParams::METHOD, error)),
        };
        let domain = domain.or(info.domain.as_deref()).unwrap_or_default();
        let host = if host == "localhost" { &info.host } else { host };
        let domain = DomainName::try_from(domain).map_err(|error| match domain {
            "" => {
                Failure::Usage("the daemon that is asked is of no domain; name one with --domain".to_owned())
            }
            _ => Failure::Usage(format!("--domain: {error}")),
        })?;
        let host = HostName::try_from(host).map_err(|error| Failure::Usage(error.to_string()))?;
        let folders = folders(target, &client.address(), &info.state_directory);
        if let Some(folder) = folders.first() {
            state_owner::assume(folder)?;
        }
        let operator =
            Operator::find(&folders, &domain).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(CommandSender { client, domain, host, operator })
    }

    /// Host and domain, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{} of {}", self.host, self.domain)
    }

    /// The process with this pid, as the sensor sees it.
    ///
    /// # Errors
    /// If there is none, or the sensor cannot be queried.
    pub(crate) fn find(&mut self, pid: u32) -> Result<Process, Failure> {
        let params = ProcessesParams { pid: Some(pid), limit: 1, ..ProcessesParams::default() };
        let found = self.ask(&params)?.typed.processes.pop();
        found.ok_or_else(|| {
            Failure::Failed(format!(
                "there is no process {pid} on {}; one that began within the last moment may not have been seen yet: \
                 try again",
                self.place()
            ))
        })
    }

    /// Send a command; returns the sensor's answer.
    ///
    /// # Errors
    /// If the command cannot be signed, or the sensor refuses it.
    pub(crate) fn send(&mut self, process: ProcessKey, act: Act) -> Result<Answered<ControlAnswer>, Failure> {
        let order = self
            .operator
            .order(&self.host, process, act, times::now())
            .map_err(|error| Failure::Failed(error.to_string()))?;
        self.ask(&ControlParams { order })
    }

    fn ask<R: Request>(&mut self, request: &R) -> Result<Answered<R::Answer>, Failure> {
        let about = About { domain: Some(self.domain.to_string()), host: Some(self.host.to_string()) };
        let answer = self.client.request(request, &about, PATIENCE);
        answer.map_err(|error| self.client.explain(R::METHOD, error))
    }
}

/// Folders that may hold an operator's certificate: the named state folder or the default one, and the folder
/// of the queried daemon if it is on this machine.
fn folders(target: &Target, address: &str, of_daemon: &str) -> Vec<PathBuf> {
    let named = target.named_state().map_or_else(state_folder::usual, ToOwned::to_owned);
    let of_daemon = PathBuf::from(of_daemon);
    let of_daemon =
        Some(of_daemon).filter(|folder| is_here(address) && folder.is_absolute() && *folder != named);
    std::iter::once(named).chain(of_daemon).collect()
}

/// Whether the address is on this machine.
pub(crate) fn is_here(address: &str) -> bool {
    if address.starts_with(state_folder::SOCKET_MARK) {
        return true;
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_daemon_elsewhere_is_not_looked_into() {
        let folder = "/var/lib/other";
        let check = |address: &str, expected: usize| {
            assert_eq!(folders(&Target::default(), address, folder).len(), expected, "{address}");
        };
        check("127.0.0.1:7317", 2);
        check("[::1]:7317", 2);
        check("localhost:7317", 2);
        check("wn01:7317", 1);
        check("10.0.0.1:7317", 1);
        assert_eq!(folders(&Target::default(), "127.0.0.1:1", "").len(), 1);
    }
}
