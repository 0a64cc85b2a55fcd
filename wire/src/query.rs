//! A method of the query interface, asked of another daemon on `/visperf/query/3`: one question, one
//! answer on a stream.
//!
//! Pure. Rules: what is left of time and hops travels with the question and only shrinks, so that a question
//! can neither run in a circle nor outlive its asker; whoever knows the answer writes it as the client will read it, if
//! its asker says how, and whoever is between hands its bytes on.
//! Not here: how parameters and results are packed (`rpc::packed`), who answers (the daemons).

use crate::id::PeerKey;
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
    /// As what the client at its beginning reads the answer; none where a daemon itself reads it, packed.
    pub form: Option<Form>,
    /// For whom of several it asks; none where the asker asks for itself.
    pub account: Option<Account>,
}

/// One of those for whom a daemon asks, as that daemon tells them apart: a digest of the account's name and of what it may see, so
/// that whoever may see less is another one. It gives nothing: it keeps apart what belongs to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account(pub [u8; 16]);

/// Who asks a daemon: another one, for itself or for one of those whom it lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Who handed the question over.
    pub peer: PeerKey,
    /// For whom.
    pub account: Option<Account>,
}

/// How the document of an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// In which language.
    pub syntax: Syntax,
    /// How integers are that its reader may not be able to hold.
    pub integers: Integers,
}

/// The languages of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Syntax {
    /// A JSON value and a line end.
    Json,
    /// A response of XML-RPC.
    Xml,
}

/// How integers are sent which a client may not be able to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Integers {
    /// As integers, exactly.
    #[default]
    Number,
    /// As decimal text, exactly.
    Text,
    /// As a number with a fraction; bits beyond the 53rd are lost.
    Double,
}

/// What became of it. It is borrowed, so that what is long is read and written without a copy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer<'a> {
    /// The result, packed.
    Done(#[serde(borrow, serialize_with = "crate::bytes::serialize")] &'a [u8]),
    /// The document of the result, in the form that the question named: the words of whoever answers, which nobody on the
    /// way has looked at.
    Written(#[serde(borrow, serialize_with = "crate::bytes::serialize")] &'a [u8]),
    /// A fault, as a client would get it.
    Fault {
        /// Its code.
        code: i32,
        /// What it says.
        message: &'a str,
    },
}
