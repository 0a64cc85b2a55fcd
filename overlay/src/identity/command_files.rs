//! Files for orders to processes: the orders that a sensor received, the last number that an operator used,
//! and the operator of a sensor that is in no domain.
//!
//! ```text
//! STATE/orders          the orders that this sensor received
//! STATE/order-sequence  the number of the last order signed in this folder, under a lock
//! STATE/operator        key and chain of the operator of a sensor in no domain; read access to it permits
//! orders
//! ```
//!
//! Rules: the order is on disk before the sensor obeys it; a number is on disk before it is used. The
//! operator of a sensor in no domain is created again at each start, under a root whose key is discarded.
//! Not here: the decisions (`order`).

use super::key::Key;
use super::key_file;
use super::refused::Refused;
use super::safe_file::{self, Error};
use super::signed_command::ReplayGuard;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::credential::{Certificate, Chain, Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::Time;
use wire::version;

const SEEN: &str = "orders";
const SEQUENCE: &str = "order-sequence";
const OPERATOR: &str = "operator";

/// How long before its start the operator of a sensor in no domain is already valid: the calendar may be set
/// back.
const BEFORE_START: Duration = Duration::from_secs(86_400);
/// How long it is valid.
const OPERATOR_LIFE: Duration = Duration::from_secs(365 * 86_400);

/// Load the orders that the sensor with this state folder received.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub fn load_seen(state: &Path) -> Result<ReplayGuard, Error> {
    Ok(safe_file::read_framed(&state.join(SEEN), version::ORDERS)?.unwrap_or_default())
}

/// Store the received orders; they are on disk when this returns.
///
/// # Errors
/// If the system refuses; the stored ones are unchanged then.
pub fn save_seen(state: &Path, seen: &ReplayGuard) -> Result<(), Error> {
    safe_file::replace_framed(&state.join(SEEN), version::ORDERS, seen)
}

/// The number of the next order signed in this state folder: higher than any before, even if the file was
/// lost (the number is at least the calendar time in microseconds).
///
/// # Errors
/// If the files cannot be used.
pub fn next_sequence(state: &Path, now: Time) -> Result<u64, Error> {
    safe_file::make_state(state)?;
    let path = state.join(SEQUENCE);
    let _lock: File = safe_file::lock(&state.join(format!("{SEQUENCE}.lock")))?;
    let last: u64 = safe_file::read_framed(&path, version::ORDER_SEQUENCE)?.unwrap_or(0);
    let next = last.saturating_add(1).max(u64::try_from(now.micros()).unwrap_or(0));
    safe_file::replace_framed(&path, version::ORDER_SEQUENCE, &next)?;
    Ok(next)
}

/// The operator of a sensor that is in no domain.
#[derive(Clone, Debug)]
pub struct Operator {
    pub key: Key,
    /// Its certificate, signed by `root`.
    pub chain: Chain,
    /// The root that the sensor trusts for orders.
    pub root: PeerKey,
}

#[derive(Serialize, Deserialize)]
struct StoredOperator {
    seed: [u8; 32],
    chain: Chain,
}

/// Create the operator of the sensor of `host`, which is in no domain and uses the name `domain`; the
/// previous operator can no longer give orders.
///
/// # Errors
/// If the system provides no random bytes, or refuses the file.
pub fn create_operator(
    state: &Path,
    domain: &DomainName,
    host: &HostName,
    now: Time,
) -> Result<Operator, Error> {
    let path = path_of_operator(state);
    let draw = || key_file::random::<32>(&path).map(Key::from_seed);
    let (root, key) = (draw()?, draw()?);
    let certificate = Certificate {
        domain: domain.clone(),
        root: root.peer(),
        peer: key.peer(),
        host: host.clone(),
        roles: Roles::NONE.with(Role::Operator),
        priority: 0,
        serial: Serial(1),
        issued: now.minus(BEFORE_START),
        expires: now.minus(BEFORE_START).plus(OPERATOR_LIFE),
    };
    let sealed = root.seal(&certificate).map_err(|refused: Refused| content(&path, &refused))?;
    let chain = Chain { certificate: sealed, delegation: None };
    safe_file::replace_framed(
        &path,
        version::OPERATOR,
        &StoredOperator { seed: key.seed(), chain: chain.clone() },
    )?;
    Ok(Operator { key, chain, root: root.peer() })
}

/// Load the operator of the sensor with this state folder; `None` if the file does not exist.
///
/// # Errors
/// If the file belongs to another user, is open to others, or is damaged.
pub fn load_operator(state: &Path) -> Result<Option<Operator>, Error> {
    let path = path_of_operator(state);
    let Some(StoredOperator { seed, chain }) = safe_file::read_framed(&path, version::OPERATOR)? else {
        return Ok(None);
    };
    let certificate = chain.certificate.unverified().map_err(|error| content(&path, &error))?;
    Ok(Some(Operator { key: Key::from_seed(seed), chain, root: certificate.root }))
}

/// Remove the operator: the sensor has joined a domain, whose operators count from now on, or it takes no
/// orders.
///
/// # Errors
/// If the system refuses.
pub fn remove_operator(state: &Path) -> Result<(), Error> {
    let path = path_of_operator(state);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

fn path_of_operator(state: &Path) -> PathBuf {
    state.join(OPERATOR)
}

fn content(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Content { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NOW: Time = Time::from_micros(1_795_240_800_000_000);

    #[test]
    fn numbers_only_rise_whatever_becomes_of_the_clock_and_the_file() {
        let state = tempfile::tempdir().expect("a folder");
        let next = |now| next_sequence(state.path(), now).expect("a number");
        let first = next(NOW);
        assert_eq!(next(NOW), first + 1);
        assert_eq!(next(NOW.minus(Duration::from_secs(3600))), first + 2, "the clock was set back");
        std::fs::remove_file(state.path().join(SEQUENCE)).expect("removed");
        assert!(next(NOW.plus(Duration::from_secs(1))) > first + 2);
    }

    #[test]
    fn the_operator_of_no_domain_is_private_and_of_one_start() {
        let state = tempfile::tempdir().expect("a folder");
        let (domain, host) = (DomainName::try_from("local"), HostName::try_from("h"));
        let (domain, host) = (domain.expect("a name"), host.expect("a name"));
        assert!(load_operator(state.path()).expect("readable").is_none());
        let made = create_operator(state.path(), &domain, &host, NOW).expect("made");
        let read = load_operator(state.path()).expect("readable").expect("there");
        assert_eq!((read.key.peer(), &read.chain, read.root), (made.key.peer(), &made.chain, made.root));
        let path = path_of_operator(state.path());
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = create_operator(state.path(), &domain, &host, NOW).expect("made");
        assert!(again.root != made.root && again.key.peer() != made.key.peer());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(load_operator(state.path()).is_err(), "others can read it");
        remove_operator(state.path()).expect("removed");
        remove_operator(state.path()).expect("nothing to remove");
    }

    #[test]
    fn what_came_outlives_a_restart() {
        let state = tempfile::tempdir().expect("a folder");
        let seen = load_seen(state.path()).expect("nothing yet");
        save_seen(state.path(), &seen).expect("kept");
        std::fs::write(state.path().join(SEEN), "cut").expect("written");
        assert!(load_seen(state.path()).is_err(), "damage is reported, not taken for nothing");
    }
}
