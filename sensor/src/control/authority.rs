//! Who knows whether an order is to be believed: the seam at which the sensor is given the overlay's identities.
//!
//! Rule: what is believed was signed by an operator of this domain for this host, has not ended, and came for the first
//! time; that it came is on disk before it is believed.
//! Not here: the knowing itself (`overlay::identity::order`, put in by the composing program).

use wire::control::Order;
use wire::id::{HostName, PeerKey};

/// Tells whether an order is to be believed. It may wait for the disk.
pub trait Authority: Send + Sync {
    /// The order in this text, if it is to be believed now. It is not believed a second time.
    ///
    /// # Errors
    /// Why not, and what it claims.
    fn believe(&self, text: &str) -> Result<Believed, Disbelieved>;
}

/// An order that was signed by an operator for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Believed {
    /// What is ordered.
    pub order: Order,
    /// By whom.
    pub operator: PeerKey,
    /// On which host that is, as its certificate says.
    pub from: HostName,
}

/// One that is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disbelieved {
    /// Why, in a sentence that says what to do.
    pub why: String,
    /// What it claims to order, if it can be read at all; nothing of it is proved.
    pub claimed: Option<Box<Order>>,
    /// By whom it claims to be signed.
    pub signer: Option<PeerKey>,
}
