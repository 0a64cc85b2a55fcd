//! Interface to the verification of signed commands, through which the sensor uses the overlay's identities.
//!
//! Rule: a valid command was signed by an operator of this domain for this host, has not expired, and arrived
//! for the first time. That it arrived is on disk before it counts as valid.
//! Not here: the verification itself (`overlay::identity::signed_command`, set by the composing program).

use wire::control::Order;
use wire::id::{HostName, PeerKey};

/// Verifies signed commands. It may wait for the disk.
pub trait Authority: Send + Sync {
    /// Returns the command in this text, if it is valid now. The same command is not accepted a second time.
    ///
    /// # Errors
    /// If it is not valid: the reason, and what it claims.
    fn verify(&self, text: &str) -> Result<VerifiedCommand, RejectedCommand>;
}

/// A command that an operator signed for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCommand {
    pub order: Order,
    /// Key of the operator.
    pub operator: PeerKey,
    /// Host of the operator, as the operator's certificate states.
    pub from: HostName,
}

/// A command that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedCommand {
    /// Reason, as a sentence that states what to do.
    pub why: String,
    /// The command that it claims to be, if it can be parsed at all; nothing of it is proved.
    pub claimed: Option<Box<Order>>,
    /// Key that it claims to be signed by.
    pub signer: Option<PeerKey>,
}
