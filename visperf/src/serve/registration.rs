//! Registration of a domain with a directory of the same process: renews the record until shutdown.
//!
//! The term is stored on disk and grows with every start, so that a directory that remembers an earlier start
//! accepts the later one. Not here: registration over the network (the overlay).

use super::late_files::LateFiles;
use anyhow::Context as _;
use daemon::state_file;
use directory::handle::Handle;
use directory::registry::RENEWAL_INTERVAL;
use std::path::Path;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, HostName};
use wire::registration::{Record, SensorType};

const TERM_FILE: &str = "term";

/// Longest file of a term, in bytes: a number and a newline.
const TERM_LEN_MAX_BYTES: u64 = 32;

/// A term higher than any used with this state directory before.
pub(crate) fn next_term(state: &Path, files: &LateFiles) -> anyhow::Result<u64> {
    let path = state.join(TERM_FILE);
    let read = state_file::read(&path, TERM_LEN_MAX_BYTES);
    let text = read.with_context(|| format!("cannot read {}", path.display()))?.unwrap_or_default();
    let last = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    let term = last + 1;
    // A directory of the same process loses its terms with the process: a term that is not written yet does
    // no harm.
    files.write(&path, format!("{term}\n").into_bytes());
    Ok(term)
}

/// Register the record now and at every renewal until `shutdown`.
pub(crate) async fn keep(
    directory: Handle,
    first: Record,
    shutdown: CancellationToken,
) -> Result<(), directory::registry::outcome::Refused> {
    let mut record = first;
    let mut renewal = tokio::time::interval(RENEWAL_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            _ = renewal.tick() => {}
        }
        record.stated = crate::output::times::now();
        match directory.register(record.clone()) {
            Ok(_) => {}
            // The state directory was lost or copied: continue above the term that the directory remembers.
            Err(directory::registry::outcome::Refused::Behind { held_term, .. }) => {
                record.term = held_term + 1
            }
            Err(refused) => return Err(refused),
        }
        record.sequence += 1;
    }
}

/// The record of a representative that answers at `address`.
pub(crate) fn record(
    domain: &DomainName,
    host: &HostName,
    address: std::net::SocketAddr,
    term: u64,
) -> Record {
    Record {
        domain: domain.clone(),
        host: host.clone(),
        port: address.port(),
        sensor_type: SensorType::Representative,
        addresses: vec![format!("http://{address}")],
        term,
        sequence: 1,
        stated: crate::output::times::now(),
        reach: None,
    }
}
