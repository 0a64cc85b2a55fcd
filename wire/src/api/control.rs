//! Method that signals or renices a process: `sensor.control`.
//!
//! Pure. Not here: the signed command ([`crate::control`]).

use super::{Effect, Request, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Send a signal to a process of this sensor's host, or renice it, by a signed command of an operator.
///
/// The command names the domain, the host, the process and the action. It is valid for 30 s and executed
/// once, if an operator of the domain signed it and [sensor.control] of the sensor's configuration lists the
/// user of the process. `visperf kill` and `visperf renice` create it. Fault refused: the signature is
/// invalid or expired, or the process may not be controlled. Fault not_found: the process has ended. Fault
/// busy: too many commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlParams {
    /// Signed command, as one line of text.
    pub order: String,
}

impl Request for ControlParams {
    const METHOD: &'static str = "sensor.control";
    const EFFECT: Effect = Effect::ChangesByProof;
    const SUBJECT: Subject = Subject::Host;
    type Answer = ControlAnswer;
}

/// Result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ControlAnswer {
    /// Id of the command.
    pub order: String,
    /// Name of the host.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Start time of the process, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// Name of the process.
    pub name: String,
    /// User id of the process.
    pub uid: u32,
    /// User name of the process. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Action that was executed.
    pub act: String,
    /// Whether the process has ended. Absent for renice and for signals that do not end a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}
