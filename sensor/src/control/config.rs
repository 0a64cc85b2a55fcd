//! Users whose processes operators may control here: `[sensor.control]` of the configuration.
//!
//! Rule: no user's unless listed; root cannot be listed.
//! Not here: which keys are operators (certificates of the domain's root).

use crate::process::details;
use crate::recorder::config::KeyError;
use serde::Deserialize;

/// Most users listed: each is looked up at every command.
pub const USERS_MAX: usize = 64;

/// The section as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Users whose processes may be signalled and reniced: names, or uids as text.
    #[serde(default)]
    pub users: Vec<String>,
}

/// Checked form of the section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    users: Vec<String>,
}

impl Config {
    /// Checks the section.
    ///
    /// # Errors
    /// If values are invalid: all of them.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<KeyError>> {
        let mut mistakes = Vec::new();
        let mut complain = |keys: Vec<String>, message: &str| {
            let message = message.to_owned();
            mistakes.push(KeyError { keys, message });
        };
        if raw.users.len() > USERS_MAX {
            complain(vec!["users".into()], "more than 64 users; list those whose processes need it");
        }
        for (entry, user) in raw.users.iter().enumerate() {
            let keys = vec!["users".to_owned(), entry.to_string()];
            match user.trim() {
                "" => complain(keys, "it is empty; expected a user's name, or a number in quotes"),
                "root" | "0" => complain(keys, "root's processes are never controlled; leave root out"),
                _ => {}
            }
        }
        if mistakes.is_empty() { Ok(Config { users: raw.users }) } else { Err(mistakes) }
    }

    /// Allows processes of this user alone; of none if it is root.
    #[must_use]
    pub fn of_user(uid: u32) -> Config {
        Config { users: if uid == 0 { Vec::new() } else { vec![uid.to_string()] } }
    }

    /// Returns whether any user is listed.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.users.is_empty()
    }

    /// Returns the users as listed.
    #[must_use]
    pub fn users(&self) -> &[String] {
        &self.users
    }

    /// Returns their uids on this host now, each once; users that this host does not know are skipped.
    #[must_use]
    pub fn uids(&self) -> Vec<u32> {
        let mut uids = Vec::new();
        for uid in self.users.iter().filter_map(|user| details::uid(user)).filter(|uid| *uid != 0) {
            if !uids.contains(&uid) {
                uids.push(uid);
            }
        }
        uids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_until_an_account_is_listed_and_root_never_is() {
        let read = |users: &[&str]| {
            let users = users.iter().map(|user| (*user).to_owned()).collect();
            Config::new(RawConfig { users }).map_err(|mistakes| mistakes[0].keys.join("."))
        };
        assert_eq!(read(&[]).map(|config| config.is_on()), Ok(false));
        assert_eq!(
            read(&["1234567", "nobody-of-this-name"]).map(|config| config.uids()),
            Ok(vec![1_234_567])
        );
        assert_eq!(read(&["9", "7", "09", "7"]).map(|config| config.uids()), Ok(vec![9, 7]), "each once");
        assert_eq!(read(&["7", "root"]), Err("users.1".to_owned()));
        assert_eq!(read(&["0"]), Err("users.0".to_owned()));
        assert_eq!(read(&[" "]), Err("users.0".to_owned()));
        assert_eq!(read(&["7"; USERS_MAX + 1]), Err("users".to_owned()));
        assert!(!Config::of_user(0).is_on());
        assert_eq!(Config::of_user(5).uids(), [5]);
        // Another spelling of root's uid does not lead to root.
        assert_eq!(Config { users: vec!["00".to_owned()] }.uids(), [0_u32; 0]);
    }
}
