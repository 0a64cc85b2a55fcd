//! A method of the query interface, asked of another daemon on `/visperf/query/1`: one question, one
//! answer on a stream.
//!
//! Pure. Rule: what is left of time and hops travels with the question and only shrinks, so that a question
//! can neither run in a circle nor outlive its asker.
//! Not here: how parameters and results are packed (`rpc::packed`), who answers (the daemons).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// A call handed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The method's name.
    pub method: CompactString,
    /// The structure of named parameters, packed.
    #[serde(with = "crate::bytes")]
    pub params: Vec<u8>,
    /// How long the asker waits, in milliseconds from when it asked.
    pub time_left_ms: u32,
    /// How often it may still be handed on.
    pub hops_left: u8,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The result, packed.
    Done(#[serde(with = "crate::bytes")] Vec<u8>),
    /// A fault, as a client would get it.
    Fault {
        /// Its code.
        code: i32,
        /// What it says.
        message: String,
    },
}
