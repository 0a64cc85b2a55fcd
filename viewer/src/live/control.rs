//! Commands to sensors: change and end channels, start and stop collectors.
//!
//! Rule: each command is sent once, and its result is shown. The key that authorizes it is sent only to the
//! daemon of this machine in whose folder the key is stored. Not here: the confirmation by the user
//! (`app::sensors`), signals to processes (`orders`).

use super::about;
use super::ask::Client;
use super::via::Where;
use crate::sensors::{At, Order};
use client::Error;
use client::typed::About;
use overlay::identity::state_folder;
use std::net::SocketAddr;
use std::path::PathBuf;
use wire::api::Request;
use wire::api::channels::{AlterParams, Settings, UnsubscribeParams};
use wire::api::daemon::{Info, InfoParams};
use wire::api::modules::{ChangeModuleParams, ModuleAct};

/// Send a command; returns the text to show.
pub(super) fn order(client: &mut Client, order: &Order) -> String {
    match order {
        Order::Alter { of, rate_hz, filter } => alter(client, of, *rate_hz, filter),
        Order::End { at, subscription } => {
            match at_sensor(client, at, &UnsubscribeParams { subscription: subscription.clone() }) {
                Ok(_) => "The channel is ended".to_owned(),
                Err(error) => format!("The channel is not ended: {}", words(&error)),
            }
        }
        Order::Module { at, name, starts } => {
            let (act, done) =
                if *starts { (ModuleAct::Start, "started") } else { (ModuleAct::Stop, "stopped") };
            match module(*at, name, act) {
                Ok(()) => format!("{name} is {done}"),
                Err(why) => format!("{name} is not {done}: {why}"),
            }
        }
    }
}

fn alter(client: &mut Client, of: &[(At, String)], rate_hz: f64, filter: &str) -> String {
    let mut refused: Vec<String> = Vec::new();
    for (at, subscription) in of {
        let settings =
            Settings { rate_hz: Some(rate_hz), filter: Some(filter.to_owned()), ..Settings::default() };
        let params = AlterParams { subscription: subscription.clone(), settings };
        if let Err(error) = at_sensor(client, at, &params) {
            refused.push(words(&error));
        }
    }
    let altered = of.len() - refused.len();
    let channels = if altered == 1 { "channel" } else { "channels" };
    match refused.first() {
        None => format!("{altered} {channels} altered"),
        Some(why) => format!("{altered} {channels} altered, {} not: {why}", refused.len()),
    }
}

fn at_sensor<R: Request>(client: &mut Client, at: &At, request: &R) -> Result<R::Answer, Error> {
    match at {
        At::Host(host) => client.order(request, &about(host)),
        At::Address(address) => Client::new(Where::Here(*address)).order(request, &About::default()),
    }
}

fn module(address: SocketAddr, name: &str, act: ModuleAct) -> Result<(), String> {
    let mut client = Client::new(Where::Here(address));
    let info = client.call(&InfoParams {}, &About::default()).map_err(|error| words(&error))?;
    let key = key(address, &info).unwrap_or_default();
    let params = ChangeModuleParams { name: Some(name.to_owned()), act, key };
    client.order(&params, &About::default()).map(drop).map_err(|error| words(&error))
}

/// The key from the daemon's folder, if the folder confirms that its daemon listens at this address: a
/// program that answers there could name any folder.
fn key(address: SocketAddr, info: &Info) -> Option<String> {
    let folder = PathBuf::from(&info.state_directory);
    // The IP address is compared too: on another address of this machine another program may listen on the
    // same port.
    state_folder::modules_key(&folder, |listen| {
        let listen: Option<SocketAddr> = listen.parse().ok();
        listen.is_some_and(|at| {
            at.port() == address.port() && (at.ip() == address.ip() || at.ip().is_unspecified())
        })
    })
}

/// Text of an error: the reason of a refusal, or that the result is unknown because no answer came.
fn words(error: &Error) -> String {
    match error {
        Error::Fault { message, .. } => message.clone(),
        Error::Unreachable(_) | Error::Mistake(_) => error.to_string(),
        Error::Lost { .. } | Error::Late { .. } | Error::Answer { .. } => {
            format!("{error}; whether it was obeyed is not known")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_key_is_read_of_the_daemon_in_whose_folder_it_lies_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sensor")).unwrap();
        std::fs::write(folder.path().join("listen"), "127.0.0.1:7417\n").unwrap();
        std::fs::write(folder.path().join("sensor/modules.key"), "00ffab5500ffab5500ffab5500ffab55\n")
            .unwrap();
        let of_folder =
            |folder: &Path| Info { state_directory: folder.display().to_string(), ..Info::default() };
        let info = of_folder(folder.path());
        let of = |port: u16| key(SocketAddr::from(([127, 0, 0, 1], port)), &info);
        assert_eq!((of(7417).as_deref(), of(7418)), (Some("00ffab5500ffab5500ffab5500ffab55"), None));
        assert_eq!(key(SocketAddr::from(([127, 0, 0, 1], 7417)), &of_folder(Path::new("/nowhere"))), None);
        assert_eq!(key(SocketAddr::from(([127, 0, 0, 2], 7417)), &info), None, "another user's");
        std::fs::write(folder.path().join("sensor/modules.key"), "not a key").unwrap();
        assert_eq!(of(7417), None);
    }
}
