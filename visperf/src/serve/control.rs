//! Operators of a sensor: those of its domain, or, for a sensor in no domain, the users that can read a file
//! of its state folder.
//!
//! Rule: a sensor that may not control processes has no operator file of its own; the record of earlier
//! orders stays, however the sensor is configured now.
//! Not here: which orders are valid (`overlay::identity::signed_command`), how they are carried out
//! (`sensor::control`).

use overlay::authenticator::Authenticator;
use overlay::clock;
use overlay::identity::admission::Gate;
use overlay::identity::command_files;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::signed_command::{self, Recipient, ReplayGuard};
use overlay::identity::trust::{Readers, Trust};
use sensor::control::authority::{Authority, RejectedCommand, VerifiedCommand};
use sensor::run::Sensor;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(test)]
mod tests;

/// Verifier of the orders to one sensor.
pub(crate) struct Orders {
    state: PathBuf,
    here: Recipient,
    gate: Arc<Authenticator>,
    seen: Mutex<ReplayGuard>,
}

/// Let `sensor` accept orders of operators; `gate` is that of its domain, if it has joined one.
///
/// # Errors
/// If the record of earlier orders cannot be read, or the operator's file cannot be created or removed.
pub(crate) fn open(state: &Path, sensor: &Sensor, gate: Option<Arc<Authenticator>>) -> anyhow::Result<()> {
    let (worker, config) = (sensor.control(), sensor.config());
    if gate.is_some() || !worker.is_on() {
        command_files::remove_operator(state)?;
    }
    if !worker.is_on() {
        return Ok(());
    }
    let here = Recipient { domain: config.domain.clone(), host: config.host.clone() };
    let gate = match gate {
        Some(gate) => gate,
        None => own_gate(state, &here)?,
    };
    worker.set_authority(Arc::new(Orders::open(state, here, gate)?));
    Ok(())
}

/// The gate of a sensor in no domain: it trusts one operator, whose key is in its state folder.
fn own_gate(state: &Path, here: &Recipient) -> anyhow::Result<Arc<Authenticator>> {
    let operator = command_files::create_operator(state, &here.domain, &here.host, clock::calendar())?;
    let trust = Trust::of_member(here.domain.clone(), operator.root, Readers::Nobody);
    Ok(Arc::new(Authenticator::joining(Gate::new(trust, RevocationLists::default(), BTreeSet::new()))))
}

impl Orders {
    /// For the sensor with this state folder.
    ///
    /// # Errors
    /// If the record of earlier orders cannot be read.
    pub(crate) fn open(state: &Path, here: Recipient, gate: Arc<Authenticator>) -> anyhow::Result<Orders> {
        let seen = Mutex::new(command_files::load_seen(state)?);
        Ok(Orders { state: state.to_owned(), here, gate, seen })
    }
}

impl Authority for Orders {
    fn verify(&self, text: &str) -> Result<VerifiedCommand, RejectedCommand> {
        let unreadable = |error: signed_command::Unreadable| RejectedCommand {
            why: error.to_string(),
            claimed: None,
            signer: None,
        };
        let signed = signed_command::parse(text).map_err(unreadable)?;
        let refuse = |why: String| RejectedCommand {
            why,
            claimed: signed.order.unverified().ok().map(Box::new),
            signer: Some(signed.order.signer()),
        };
        let (order, operator) =
            self.gate.open_order(&signed, &self.here).map_err(|refused| refuse(refused.to_string()))?;
        let Some(from) = operator.host else {
            return Err(refuse("its signer's certificate names no host".to_owned()));
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Changed on a copy: an order that cannot be stored counts as not received.
        let mut next = seen.clone();
        let taken = next.take(operator.peer, &order, clock::calendar());
        taken.map_err(|refused| refuse(refused.to_string()))?;
        let kept = command_files::save_seen(&self.state, &next);
        kept.map_err(|error| {
            refuse(format!("the order cannot be kept in mind, so it is not obeyed: {error}"))
        })?;
        *seen = next;
        Ok(VerifiedCommand { order, operator: operator.peer, from })
    }
}
