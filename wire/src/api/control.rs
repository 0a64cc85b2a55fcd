//! Method that signals or renices a process: `sensor.control`.
//!
//! Pure. Not here: the signed command ([`crate::control`]).

use super::{Effect, Request, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Signal or renice a process of this sensor's host, by an operator's signed order.
///
/// The order names domain, host, process and what to do, holds 30 s, and is obeyed once, if an operator of the domain signed it and
/// [sensor.control] of the sensor's configuration lists the process's user. `visperf kill` and `visperf renice` make it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlParams {
    /// The order, signed, as one line.
    pub order: String,
}

impl Request for ControlParams {
    const METHOD: &'static str = "sensor.control";
    const EFFECT: Effect = Effect::ChangesByProof;
    const SUBJECT: Subject = Subject::Host;
    type Answer = ControlAnswer;
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ControlAnswer {
    /// The order's own number.
    pub order: String,
    /// The host.
    pub host: String,
    /// The number of the process.
    pub pid: u32,
    /// When it was started, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// Its name.
    pub name: String,
    /// The number of its user.
    pub uid: u32,
    /// The name of its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What was done.
    pub act: String,
    /// Of a signal that ends processes: whether it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}
