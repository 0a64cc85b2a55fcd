//! Choice of the daemon: `--connect`; or the local socket or the address that a running daemon wrote into its
//! state folder; or a service of this machine, by its socket; or the default port.

use crate::client::via::Via;
use crate::state_folder::{self, LISTEN_DEFAULT, SOCKET_MARK};
use crate::wrong_word;
use ::client::Error;
use ::client::connect::{self, Connect, Connected, Connecting};
use ::client::proxy_address::certificate_refused;
use overlay::identity::state_folder::{SOCKETS, sockets_of};
use rpc::http::config::PORT_DEFAULT as PORT;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Options that select the daemon to query.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Target {
    #[arg(long, value_name = "ADDR", env = "VISPERF_CONNECT", value_parser = address)]
    #[arg(help = format!("Daemon to query: HOST:PORT, HOST for port {PORT}, or unix:PATH"), long_help = format!(
        "Daemon to query: HOST:PORT, HOST for port {PORT}, or unix:PATH for a local socket\n\nDefault: the daemon on this \
         machine. Its socket and address are read from the file `listen` in its state folder, else the sockets in \
         {SOCKETS} are tried, else {LISTEN_DEFAULT}. Over a socket the daemon identifies the user, and shows what that \
         user may see."
    ))]
    connect: Option<String>,
    /// State folder of the daemon to query, as passed to the daemon
    #[arg(long, value_name = "DIR", env = "VISPERF_STATE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) via: Via,
}

/// A candidate address, and why it is tried.
struct Choice {
    address: String,
    reason: String,
}

impl Choice {
    fn socket(path: &Path, reason: String) -> Choice {
        Choice { address: format!("{SOCKET_MARK}{}", path.display()), reason }
    }
}

impl Target {
    /// The state folder from the command line.
    pub(crate) fn named_state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// A target with this address, for tests.
    #[cfg(test)]
    pub(crate) fn of_address(address: &str) -> Target {
        Target { connect: Some(address.to_owned()), ..Target::default() }
    }

    /// The domain named in the path behind a proxy.
    pub(crate) fn door_domain(&self) -> Option<&str> {
        self.via.domain()
    }

    /// The address to try first.
    pub(crate) fn first_choice(&self) -> String {
        self.choices().first().map_or_else(String::new, |choice| choice.address.clone())
    }

    /// Whether the daemon cannot identify the local user: over TCP, without an account of a proxy.
    pub(crate) fn is_anonymous(&self) -> bool {
        !self.via.is_some() && !self.first_choice().starts_with(SOCKET_MARK)
    }

    /// Connect to the first address that answers.
    ///
    /// # Errors
    /// If none answers; the text lists each and what to do.
    async fn connected(&self) -> Result<Connected, Error> {
        self.check()?;
        if self.via.is_inside() {
            let address = self.first_choice();
            return match self.via.connect_inside(&address).await {
                Err(Error::Unreachable(why)) => {
                    Err(Error::Unreachable(format!("no way through the proxy at {address}: {why}")))
                }
                connected => connected,
            };
        }
        let tls = self.via.tls().map_err(Error::Mistake)?;
        if let Some(address) = self.via.address() {
            return connect::tcp(&address, tls.as_ref()).await.map_err(|error| {
                Error::Unreachable(match certificate_refused(&error) {
                    Some(reason) => format!("nothing was sent to {address}: {reason}"),
                    None => format!(
                        "no proxy answers at {address}: {error}; is `visperf proxy` running there, and is that the port of its \
                         door?"
                    ),
                })
            });
        }
        let mut tried = Vec::new();
        if let Err(why) = self.address_from_folder() {
            tried.push(format!("\n  {why}"));
        }
        for choice in self.choices() {
            let Choice { address, reason } = &choice;
            match open(address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => tried.push(format!("\n  {address} ({reason}): {error}")),
            }
        }
        if let (Some(folder), true) = (&self.state, tried.is_empty()) {
            tried.push(match folder.is_dir() {
                true => {
                    let file = folder.join(state_folder::LISTEN_FILE);
                    format!("\n  {}: no daemon wrote its address there", file.display())
                }
                false => {
                    let meant = folder.to_str().and_then(|word| wrong_word::meant_state("jobs", word));
                    let meant = meant.map_or_else(String::new, |meant| format!("; was {meant} meant?"));
                    format!("\n  the state folder {}: there is no such folder{meant}", folder.display())
                }
            });
        }
        Err(Error::Unreachable(format!(
            "no daemon could be reached; tried:{}\nstart one with: visperf up    (or name one with --connect HOST:PORT)",
            tried.concat()
        )))
    }

    /// Refuse a proxy together with a daemon on the command line. A daemon from an environment variable is
    /// ignored if there is a proxy.
    fn check(&self) -> Result<(), Error> {
        if !self.via.is_some() {
            return Ok(());
        }
        let is_typed =
            |name: &str, value: Option<&OsStr>| value.is_some() && std::env::var_os(name).as_deref() != value;
        for (option, variable, value) in [
            ("--connect", "VISPERF_CONNECT", self.connect.as_deref().map(OsStr::new)),
            ("--state", "VISPERF_STATE", self.state.as_deref().map(Path::as_os_str)),
        ] {
            if is_typed(variable, value) {
                return Err(Error::Mistake(format!(
                    "expected --via or {option}, found both: --via asks a proxy, {option} names a daemon to ask directly; \
                     leave one out"
                )));
            }
        }
        Ok(())
    }

    fn choices(&self) -> Vec<Choice> {
        if let Some(address) = self.via.address() {
            return vec![Choice { address, reason: "the proxy, as given".to_owned() }];
        }
        if let Some(address) = &self.connect {
            return vec![Choice { address: address.clone(), reason: "as given".to_owned() }];
        }
        let named = self.address_from_folder().ok().flatten();
        let socket = self.socket_from_folder();
        let usual = Choice { address: LISTEN_DEFAULT.to_string(), reason: "the usual address".to_owned() };
        if self.state.is_some() {
            return socket.into_iter().chain(named).collect();
        }
        let is_other = named.as_ref().is_none_or(|named| named.address != usual.address);
        // The socket of the state folder is tried only once.
        let of_system = sockets_of(Path::new(SOCKETS)).into_iter();
        let of_system = of_system.map(|path| Choice::socket(&path, "a service of this machine".to_owned()));
        let of_system = of_system.filter(|one| socket.as_ref().is_none_or(|own| own.address != one.address));
        let of_system: Vec<Choice> = of_system.collect();
        socket.into_iter().chain(named).chain(of_system).chain(is_other.then_some(usual)).collect()
    }
}

impl Target {
    /// Address from the state folder's file; `None` if a daemon or a proxy is named.
    fn address_from_folder(&self) -> Result<Option<Choice>, String> {
        if self.connect.is_some() || self.via.is_some() {
            return Ok(None);
        }
        let folder = self.state.clone().unwrap_or_else(state_folder::usual);
        let reason = format!("from {}", folder.join(state_folder::LISTEN_FILE).display());
        Ok(state_folder::listen_address(&folder)?.map(|address| Choice { address, reason }))
    }

    /// Local socket from the same file.
    fn socket_from_folder(&self) -> Option<Choice> {
        let folder = self.state.clone().unwrap_or_else(state_folder::usual);
        let reason = format!("from {}", folder.join(state_folder::LISTEN_FILE).display());
        state_folder::listen_socket(&folder).map(|path| Choice::socket(&path, reason))
    }
}

impl Connect for Target {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(self.connected())
    }

    fn address(&self) -> String {
        self.first_choice()
    }
}

async fn open(address: &str) -> io::Result<Connected> {
    let Some(path) = address.strip_prefix(SOCKET_MARK).map(Path::new) else {
        return connect::tcp(address, None).await;
    };
    let stream = rpc::http::listener::connect(path)?;
    stream.set_nonblocking(true)?;
    Ok(connect::local(path, UnixStream::from_std(stream)?))
}

/// Parse an address as a user types it: a scheme and a path are cut off, the port is optional.
fn address(text: &str) -> Result<String, String> {
    let refuse = || format!("expected HOST:PORT such as 127.0.0.1:{PORT}, found {text:?}");
    if text.starts_with("https://") {
        return Err("daemons answer http, not https; give HOST:PORT".to_owned());
    }
    if let Some(path) = text.strip_prefix(SOCKET_MARK) {
        return match Path::new(path).is_absolute() {
            true => Ok(text.to_owned()),
            false => Err(format!("expected the whole path of a socket after {SOCKET_MARK}, found {path:?}")),
        };
    }
    let bare = text.trim().trim_start_matches("http://");
    let bare = bare.split('/').next().unwrap_or("");
    if bare.is_empty() || bare.contains(char::is_whitespace) || !bare.is_ascii() {
        return Err(refuse());
    }
    if let Ok(ip) = bare.parse::<std::net::Ipv6Addr>() {
        return Ok(format!("[{ip}]:{PORT}"));
    }
    let port_at = bare.rfind(':').filter(|&at| bare.rfind(']').is_none_or(|bracket| at > bracket));
    match port_at {
        None => Ok(format!("{bare}:{PORT}")),
        Some(at) if bare[at + 1..].parse::<u16>().is_ok_and(|port| port > 0) && at > 0 => Ok(bare.to_owned()),
        Some(_) => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(target: &Target) -> Result<Connected, Error> {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(target.connect())
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(address(text).ok().as_deref(), expected, "{text}");
        };
        check("127.0.0.1:80", Some("127.0.0.1:80"));
        check("grid.example", Some("grid.example:7317"));
        check("http://grid.example:99/RPC2", Some("grid.example:99"));
        check("[::1]:99", Some("[::1]:99"));
        check("[::1]", Some("[::1]:7317"));
        check("::1", Some("[::1]:7317"));
        check("unix:/run/visperf/sensor.sock", Some("unix:/run/visperf/sensor.sock"));
        check("unix:sensor.sock", None);
        for wrong in ["", "a:b", "a:0", "a:70000", ":80", "a b:80", "https://x:1", "grid\r\nX: y"] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_daemon_beside_a_proxy_is_a_mistake() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            target: Target,
        }
        let typed = |words: &[&str]| {
            let login = ["x", "--via", "127.0.0.1:1/d/A", "--account", "a", "--secret", "/nowhere"];
            let line = <Line as clap::Parser>::parse_from(login.iter().chain(words));
            line.target.check().map_err(|error| error.to_string())
        };
        assert_eq!(typed(&[]), Ok(()));
        for option in ["--connect", "--state"] {
            let text = typed(&[option, "127.0.0.9:1"]).unwrap_err();
            assert!(text.contains(&format!("expected --via or {option}, found both")), "{text}");
        }
    }

    #[test]
    fn a_closed_port_is_reported_as_such() {
        let target = Target { via: Via::of_door("http://127.0.0.1:1/d/A"), ..Target::default() };
        let Err(Error::Unreachable(text)) = connected(&target) else { panic!("reached") };
        assert!(text.contains("no proxy answers at 127.0.0.1:1") && !text.contains("visperf up"), "{text}");
    }

    #[test]
    fn what_was_tried_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target { state: Some(folder.path().to_owned()), ..Target::default() };
        let Err(Error::Unreachable(text)) = connected(&target) else { panic!("reached") };
        assert!(text.contains("listen: no daemon wrote") && text.contains("visperf up"), "{text}");
        std::fs::write(folder.path().join("listen"), "127.0.0.1:1\n").unwrap();
        let Err(Error::Unreachable(text)) = connected(&target) else { panic!("reached") };
        assert!(text.contains("127.0.0.1:1 (from"), "{text}");
        std::fs::remove_file(folder.path().join("listen")).unwrap();
        std::fs::create_dir(folder.path().join("listen")).unwrap();
        let Err(Error::Unreachable(text)) = connected(&target) else { panic!("reached") };
        assert!(text.contains("listen: expected a regular file, found a folder"), "{text}");
    }
}
