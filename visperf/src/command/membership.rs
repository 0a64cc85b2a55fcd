//! Shared code of the domain and membership commands: the state folder, names and roles as typed, suggested
//! next commands.
//!
//! Rule: a suggested command is exact: it names the state folder if one was named.
//! Not here: the files in the folder (`overlay::identity`).

use crate::exit::Failure;
use crate::host_name;
use crate::output::note;
use crate::output::times::to_second;
use crate::{state_folder, state_owner};
use jiff::tz::TimeZone;
use overlay::identity::domain_files::{self, DomainFiles};
use overlay::identity::join::Membership;
use overlay::identity::key::Key;
use overlay::identity::{key_file, member_files};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use wire::credential::{Role, Roles};
use wire::id::HostName;
use wire::join::Directory;
use wire::time::Time;

/// State folder of the sensor that systemd starts (deploy/visperf-sensor.service).
const SERVICE_STATE: &str = "/var/lib/visperf";

/// Exists if systemd is the init (sd_booted(3)).
const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// The state folder of this host's daemon.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct State {
    /// State folder of this host's daemon [default: /var/lib/visperf for root, else ~/.local/state/visperf]
    #[arg(long, value_name = "DIR", env = "VISPERF_STATE")]
    state: Option<PathBuf>,
}

impl State {
    /// Open the state folder for changes; a command run by root continues as its owner.
    ///
    /// # Errors
    /// As [`state_owner::assume`], and if other users can write to the folder.
    pub(crate) fn open(&self) -> Result<PathBuf, Failure> {
        let folder = self.path();
        state_owner::assume(&folder)?;
        if folder.exists() {
            daemon::state_folder::check(&folder).map_err(|error| Failure::Failed(error.to_string()))?;
        }
        Ok(folder)
    }

    fn path(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(state_folder::usual)
    }

    /// Command that starts this host's sensor: the service if the folder is the service's, else by hand.
    pub(crate) fn start_sensor(&self) -> String {
        let by_hand = self.with("visperf sensor");
        let path = self.path();
        let is_service = path == Path::new(SERVICE_STATE) && Path::new(SYSTEMD_RUNS).exists();
        let has_user = std::fs::metadata(&path).is_ok_and(|found| found.uid() != 0);
        if is_service && has_user { "systemctl restart visperf-sensor".to_owned() } else { by_hand }
    }

    /// The named folder, if it does not exist.
    pub(crate) fn missing(&self) -> Option<&Path> {
        self.state.as_deref().filter(|folder| !folder.exists())
    }

    /// A command with the option for the state folder, if it was named.
    pub(crate) fn with(&self, command: &str) -> String {
        match &self.state {
            Some(folder) => format!("{command} --state {}", quoted(folder)),
            None => command.to_owned(),
        }
    }

    /// The daemon's key, generated if there is none.
    ///
    /// # Errors
    /// If it cannot be read or created.
    pub(crate) fn key(&self) -> Result<Key, Failure> {
        key_file::load_or_create(&self.open()?).map_err(|error| Failure::Failed(error.to_string()))
    }

    /// This host's membership; `None` if it has not joined a domain.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn membership(&self) -> Result<Option<Membership>, Failure> {
        member_files::load_membership(&self.open()?).map_err(|error| Failure::Failed(error.to_string()))
    }

    /// Directories that this host knows as a member.
    ///
    /// # Errors
    /// As [`State::membership`].
    pub(crate) fn directories(&self) -> Result<Vec<Directory>, Failure> {
        Ok(self.membership()?.map(|held| held.directories).unwrap_or_default())
    }

    /// Files of the domain that was created here.
    ///
    /// # Errors
    /// If no domain was created here, or the key cannot be read.
    pub(crate) fn domain_files(&self) -> Result<DomainFiles, Failure> {
        let folder = self.open()?;
        // Checked first, so that a mistyped folder is not created by reading it.
        let absent = domain_files::Error::NotHere { path: folder.join("domain") };
        let key = key_file::load(&folder).map_err(|error| Failure::Failed(error.to_string()))?;
        let files = key.map(|key| DomainFiles::new(&folder, key)).filter(DomainFiles::exist);
        files.ok_or_else(|| failure(absent))
    }

    /// Whether a daemon seems to run with this folder.
    pub(crate) fn is_running(&self) -> bool {
        // If the address cannot be read, a daemon is assumed to run.
        !matches!(state_folder::listen_address(&self.path()), Ok(None))
    }
}

/// A failure of the domain's files; wrong arguments become usage errors.
pub(crate) fn failure(error: domain_files::Error) -> Failure {
    let text = error.to_string();
    if matches!(error, domain_files::Error::Spec(_)) { Failure::Usage(text) } else { Failure::Failed(text) }
}

/// This host's name as a member: from `--host`, or as the system reports it.
pub(crate) fn host(given: Option<&str>) -> Result<HostName, Failure> {
    let name = given.map_or_else(host_name::own, str::to_owned);
    let host = HostName::try_from(name.as_str()).map_err(|error| {
        Failure::Usage(format!("{name:?}: {error}; give the host's name with --host NAME"))
    })?;
    host.check_member().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(host)
}

/// Parse a role; `sensor` means all roles that a host's sensor needs.
pub(crate) fn role(text: &str) -> Result<Roles, String> {
    if text == "sensor" {
        return Ok(Roles::SENSOR);
    }
    let role: Role = text.parse().map_err(|_| {
        let words: Vec<&str> = Role::ALL.into_iter().map(Role::as_str).collect();
        format!("expected sensor (which is viewer, publisher and representative), {}", words.join(", "))
    })?;
    Ok(Roles::NONE.with(role))
}

/// Union of these roles.
pub(crate) fn roles(given: &[Roles]) -> Roles {
    given.iter().flat_map(|roles| roles.iter()).collect()
}

pub(crate) fn role_words(roles: Roles) -> Vec<&'static str> {
    roles.iter().map(Role::as_str).collect()
}

/// A time as shown in a sentence, to the second.
pub(crate) fn until(time: Time) -> String {
    to_second(time, &TimeZone::system())
}

/// Print the suggested next commands, each with what it does.
pub(crate) fn next(lines: &[(String, &str)]) {
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    note("next:");
    for (line, what) in lines {
        note(format!("  {line:<width$}  {what}").trim_end());
    }
}

/// A path quoted for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    wire::shell::quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_the_words_of_the_roles_and_one_more() {
        assert_eq!(role("sensor"), Ok(Roles::SENSOR));
        assert_eq!(role("viewer"), Ok(Roles::NONE.with(Role::Viewer)));
        let text = role("root").unwrap_err();
        assert!(text.contains("sensor") && text.contains("filter-admin"), "{text}");
        let both = roles(&[Roles::SENSOR, role("operator").unwrap()]);
        assert_eq!(role_words(both), ["viewer", "publisher", "representative", "operator"]);
    }

    #[test]
    fn a_host_joins_by_a_name_of_its_own() {
        for name in ["localhost", "LOCALHOST.", "127.0.0.1", "local", &"x".repeat(253)] {
            let Err(Failure::Usage(why)) = host(Some(name)) else { panic!("{name}") };
            assert!(why.contains("--host NAME"), "{why}");
        }
        assert!(host(Some("Wn01.site")).is_ok());
    }

    #[test]
    fn a_folder_is_written_as_a_shell_takes_it() {
        let named = State { state: Some("a b".into()) };
        assert_eq!(named.with("visperf sensor"), "visperf sensor --state 'a b'");
        assert_eq!(State { state: None }.with("visperf sensor"), "visperf sensor");
    }
}
