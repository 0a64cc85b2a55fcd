//! A method of the query interface, asked of another daemon on `/visperf/query/3`: one question, one
//! answer on a stream.
//!
//! Pure. Rules: what is left of time and hops travels with the question and only shrinks, so that a question
//! can neither run in a circle nor outlive its asker; the daemon that knows the answer encodes it as the client will read it, if
//! its asker says how, and the daemons between forward its bytes.
//! Not here: how parameters and results are packed (`rpc::codec::value_codec`), who answers (the daemons).

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
    /// On behalf of which account; none if the asker asks for itself.
    pub account: Option<Account>,
    /// On whose behalf. Not part of the structure: it follows its bytes, where earlier versions do not look.
    #[serde(skip)]
    pub viewer: Viewer,
}

impl Question {
    /// Its bytes.
    ///
    /// # Panics
    /// Never: every part of a question can be encoded.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = postcard::to_stdvec(self).expect("a question has no part that cannot be written");
        bytes.extend(postcard::to_stdvec(&self.viewer).expect("a viewer has no part that cannot be written"));
        bytes
    }

    /// A question from its bytes. Without a viewer, as earlier versions send it, or with one of a later version, the viewer is
    /// anonymous.
    ///
    /// # Errors
    /// If the bytes are no question.
    pub fn from_bytes(bytes: &[u8]) -> Result<Question, postcard::Error> {
        let (question, rest): (Question, _) = postcard::take_from_bytes(bytes)?;
        let viewer: Viewer = postcard::from_bytes(rest).unwrap_or_default();
        Ok(Question { viewer: viewer.handed_on(), ..question })
    }
}

/// On whose behalf a daemon is asked. It decides what an answer contains of other users' processes: what `/proc` would refuse to
/// that user is absent (proc(5), ptrace(2) "Ptrace access mode checking").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Viewer {
    /// Not identified: a client on loopback TCP, a daemon of another domain, an account of a proxy. It sees what the user
    /// `nobody` would see.
    #[default]
    Anonymous,
    /// A local user, by its number.
    User(u32),
    /// Root, or a daemon of the domain for itself.
    Trusted,
    /// The user that runs the daemon, by its number: trusted by that daemon alone.
    Owner(u32),
}

impl Viewer {
    /// Whether it sees everything of a process of the user `uid`.
    #[must_use]
    pub fn may_inspect(self, uid: u32) -> bool {
        match self {
            Viewer::Anonymous => false,
            Viewer::User(own) => own == uid,
            Viewer::Trusted | Viewer::Owner(_) => true,
        }
    }

    /// Whether it may use and see everything at the daemon that it asks.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        matches!(self, Viewer::Trusted | Viewer::Owner(_))
    }

    /// What is stated of it to another daemon.
    #[must_use]
    pub fn handed_on(self) -> Viewer {
        match self {
            Viewer::Owner(uid) => Viewer::User(uid),
            other @ (Viewer::Anonymous | Viewer::User(_) | Viewer::Trusted) => other,
        }
    }
}

/// Who asks a daemon: a client of its own, or another daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// On whose behalf.
    pub viewer: Viewer,
    /// The daemon that handed the call on; none for a client.
    pub asker: Option<Asker>,
}

impl Principal {
    /// The daemon itself.
    pub const OWN: Principal = Principal { viewer: Viewer::Trusted, asker: None };
}

/// An account on whose behalf a daemon asks, as that daemon distinguishes them: a digest of the account's name and of what it may see, so
/// that an account with fewer rights is another one. It grants nothing: it separates what belongs to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Account(pub [u8; 16]);

/// The asker of a daemon: another one, for itself or for one of the clients that it lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asker {
    /// Who handed the question over.
    pub peer: PeerKey,
    /// On behalf of which account.
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
    /// The document of the result, in the form that the question named: written by the daemon that answers, which no one on the
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A question as the version before [`Viewer`] defined it.
    #[derive(Debug, Serialize, Deserialize)]
    struct Former {
        method: CompactString,
        #[serde(with = "crate::bytes")]
        params: Vec<u8>,
        time_left_ms: u32,
        hops_left: u8,
        form: Option<Form>,
        account: Option<Account>,
    }

    fn question(viewer: Viewer) -> Question {
        Question {
            method: "sensor.processes".into(),
            params: vec![1, 2, 3],
            time_left_ms: 5_000,
            hops_left: 2,
            form: None,
            account: Some(Account([7; 16])),
            viewer,
        }
    }

    #[test]
    fn the_viewer_travels_behind_the_question() {
        for viewer in [Viewer::Anonymous, Viewer::User(0), Viewer::User(u32::MAX), Viewer::Trusted] {
            let sent = question(viewer);
            assert_eq!(Question::from_bytes(&sent.to_bytes()), Ok(sent));
        }
    }

    #[test]
    fn the_version_before_reads_a_question_and_is_read() {
        let former: Former =
            postcard::from_bytes(&question(Viewer::User(1000)).to_bytes()).expect("it is read");
        assert_eq!((former.method.as_str(), former.hops_left), ("sensor.processes", 2));
        let bytes = postcard::to_stdvec(&former).expect("it is written");
        assert_eq!(Question::from_bytes(&bytes), Ok(question(Viewer::Anonymous)));
    }

    #[test]
    fn a_viewer_of_a_later_version_is_anonymous() {
        let mut bytes = question(Viewer::Anonymous).to_bytes();
        *bytes.last_mut().expect("it has bytes") = 99;
        assert_eq!(Question::from_bytes(&bytes), Ok(question(Viewer::Anonymous)));
    }

    #[test]
    fn a_user_inspects_its_own_processes() {
        let seen = |viewer: Viewer| [0, 1000, 1001].map(|uid| viewer.may_inspect(uid));
        assert_eq!(seen(Viewer::Anonymous), [false; 3]);
        assert_eq!(seen(Viewer::User(1000)), [false, true, false]);
        assert_eq!(seen(Viewer::Trusted), [true; 3]);
        assert_eq!(seen(Viewer::Owner(1000)), [true; 3]);
        assert_eq!(
            Viewer::Owner(1000).handed_on(),
            Viewer::User(1000),
            "it is trusted by its own daemon alone"
        );
    }
}
