//! Account file of the proxy: mode 0600, owned by the user that runs the proxy, replaced atomically.
//!
//! Rule: a file that other users may read or write is refused, and the error says what to type. A lock
//! serializes the commands that change the file.
//! Not here: what is in it (`account`), the checks of private files (`overlay::identity::safe_file`).

use crate::account::{self, Accounts};
use overlay::identity::safe_file;
use std::path::{Path, PathBuf};

/// Folder of the proxy in the state folder.
pub const FOLDER: &str = "proxy";

/// Name of the account file in that folder.
pub const FILE_NAME: &str = "accounts";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or written, or other users may access it.
    #[error(transparent)]
    File(#[from] safe_file::Error),
    /// The content is invalid.
    #[error("{}: {error}; mend the line, or move the file away and add the accounts again", path.display())]
    Content {
        path: PathBuf,
        /// First error in the file.
        error: account::Error,
    },
    /// The requested change is invalid.
    #[error(transparent)]
    Change(#[from] account::Error),
}

/// Path of the account file of the proxy with this state folder.
#[must_use]
pub fn path(state: &Path) -> PathBuf {
    state.join(FOLDER).join(FILE_NAME)
}

/// Read the accounts; `None` if there is no file.
///
/// # Errors
/// If the file cannot be used.
pub fn read(state: &Path) -> Result<Option<Accounts>, Error> {
    let path = path(state);
    let Some(bytes) = safe_file::read(&path)? else { return Ok(None) };
    let content = |error| Error::Content { path: path.clone(), error };
    let begins = account::Error::Line { line: 1, expected: "text in UTF-8" };
    let text = std::str::from_utf8(&bytes).map_err(|_| content(begins))?;
    Accounts::read(text).map(Some).map_err(content)
}

/// Change the accounts in the file. A new file gets the realm `realm`.
///
/// # Errors
/// If the file cannot be used, or `change` fails; the file is then unchanged.
pub fn change<T>(
    state: &Path,
    realm: &str,
    change: impl FnOnce(&mut Accounts) -> Result<T, account::Error>,
) -> Result<T, Error> {
    let path = path(state);
    let folder = safe_file::make_folder(state, FOLDER)?;
    let _held = safe_file::lock(&folder.join(".accounts.lock"))?;
    let mut accounts = match read(state)? {
        Some(accounts) => accounts,
        None => Accounts::new(realm)?,
    };
    let result = change(&mut accounts)?;
    safe_file::replace(&path, accounts.write().as_bytes())?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Name, Proofs};
    use crate::grant::{Chosen, Class, Grant, Rights};
    use std::os::unix::fs::PermissionsExt as _;

    fn account(name: &str) -> Account {
        let name: Name = name.parse().expect("a name");
        let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::USUAL.into() };
        let proofs = Proofs::of(&name, "visperf", "secret", false);
        Account { name, rights: Rights::Viewer, grant, proofs }
    }

    #[test]
    fn accounts_are_kept_privately() {
        let state = tempfile::tempdir().expect("a folder");
        assert!(read(state.path()).expect("readable").is_none());
        change(state.path(), "visperf", |all| all.add(account("ana"))).expect("added");
        change(state.path(), "another", |all| all.add(account("bob"))).expect("added");
        let held = read(state.path()).expect("readable").expect("there");
        assert_eq!((held.all().count(), held.realm()), (2, "visperf"), "the realm stays as it began");
        let file = path(state.path());
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
        assert!(change(state.path(), "visperf", |all| all.add(account("ana"))).is_err());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("changed");
        let said = read(state.path()).expect_err("open to others").to_string();
        assert!(said.contains("chmod 600"), "{said}");
    }
}
