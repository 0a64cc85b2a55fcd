//! The query interface: the parameters and the answer of each method, said once.
//!
//! Pure. Handlers, the commands and introspection use these types; their doc comments are what `system.methodHelp` answers. Methods that
//! are not here yet are declared by hand (`rpc::dispatch::method`). A method's parameters are a structure that implements [`Request`]; the parameters
//! `domain`, `host`, `big_integers` and `follow`, which many methods have, are not in it.
//! Rules: a name carries its unit (`age_secs`, `memory_used_bytes`); a field without a value is left out; a field that is added later has a
//! default, as a daemon of the version before does not send it.
//! Not here: how values are written (`rpc`), the handlers (the daemons).

mod bytes;
pub mod calls;
pub mod channels;
pub mod control;
pub mod daemon;
pub mod directory;
pub mod domain;
pub mod entries;
pub mod events;
pub mod files;
pub mod metrics;
pub mod modules;
mod moment;
mod named;
mod one_or_more;
pub mod processes;
pub mod recordings;
pub mod samples;
mod settings;

pub use bytes::Bytes;
pub use moment::{Span, UnixTime};
pub use named::Named;
pub use one_or_more::OneOrMore;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A field's name now, and the name that it had in the version before.
pub type Renamed = (&'static str, &'static str);

/// The parameters of a method. The doc comment of the type says what the method does: its first paragraph is the summary.
pub trait Request: Default + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// What it is called: `domain.hosts`.
    const METHOD: &'static str;

    /// What a call changes.
    const EFFECT: Effect;

    /// What it is about.
    const SUBJECT: Subject;

    /// Fields of the answer that had another name in the version before. They are answered under both names.
    const RENAMED: &'static [Renamed] = &[];

    /// Parameters that had another name in the version before. Both names are taken, and the former is sent, as a daemon of that version takes no
    /// other; the next version takes both still and sends the present one.
    const RENAMED_PARAMETERS: &'static [Renamed] = &[];

    /// What the method answers with.
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// What a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: GET may call it.
    Reads,
    /// It keeps something for the client, and changes nothing for others.
    KeepsForClient,
    /// It changes something.
    Changes,
    /// It changes something, and the parameters are the proof that its author may: any daemon may hand it on.
    ChangesByProof,
}

/// What a method is about, which decides where it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The daemon that is called.
    Daemon,
    /// A domain: the parameter `domain` names it, and its representative answers.
    Domain,
    /// A host of a domain: the parameters `domain` and `host` name it, and its sensor answers.
    Host,
}
