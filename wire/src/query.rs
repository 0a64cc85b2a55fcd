//! Query to another daemon on `/visperf/query/3`: one call of a method and one answer per stream.
//!
//! Pure. Rules: the remaining time and hops are sent with the call and only decrease, so that a call can
//! neither loop nor outlive its caller; if the caller names the client's form, the answering daemon encodes
//! the answer in it, and the daemons in between forward its bytes.
//! Not here: the encoding of parameters and results (`rpc::codec::value_codec`), the handlers (the daemons).

use crate::id::PeerKey;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// A forwarded call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Name of the method.
    pub method: CompactString,
    /// Encoded structure of named parameters.
    #[serde(with = "crate::bytes")]
    pub params: Vec<u8>,
    /// Remaining time of the caller in milliseconds, from when it sent the call.
    pub time_left_ms: u32,
    /// Number of times that the call may still be forwarded.
    pub hops_left: u8,
    /// Form in which the first client reads the answer; `None` if a daemon reads an encoded value.
    pub form: Option<Form>,
    /// Account on whose behalf the call is made; `None` if the daemon calls for itself.
    pub account: Option<Account>,
    /// Viewer on whose behalf the call is made. It is not part of the structure but follows its bytes, where
    /// earlier versions do not look.
    #[serde(skip)]
    pub viewer: Viewer,
}

impl Question {
    /// Encode the call.
    ///
    /// # Panics
    /// Never: every part of a call can be encoded.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = postcard::to_stdvec(self).expect("a question has no part that cannot be written");
        bytes.extend(postcard::to_stdvec(&self.viewer).expect("a viewer has no part that cannot be written"));
        bytes
    }

    /// Decode a call. Without a viewer, as earlier versions send it, or with one of a later version, the
    /// viewer is anonymous.
    ///
    /// # Errors
    /// If the bytes are not a call.
    pub fn from_bytes(bytes: &[u8]) -> Result<Question, postcard::Error> {
        let (question, rest): (Question, _) = postcard::take_from_bytes(bytes)?;
        let viewer: Viewer = postcard::from_bytes(rest).unwrap_or_default();
        Ok(Question { viewer: viewer.handed_on(), ..question })
    }
}

/// Viewer on whose behalf a daemon is queried. It decides what an answer contains about other users'
/// processes: data that `/proc` would refuse to that user are absent (proc(5), ptrace(2) "Ptrace access mode
/// checking").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Viewer {
    /// Not identified: a client on loopback TCP, a daemon of another domain, an account of a proxy. It sees
    /// what the user `nobody` would see.
    #[default]
    Anonymous,
    /// A local user, by user id.
    User(u32),
    /// Root, or a daemon of the domain for itself.
    Trusted,
    /// The user that runs the daemon, by user id: trusted by that daemon only.
    Owner(u32),
}

impl Viewer {
    /// Whether it may see everything about a process of the user `uid`.
    #[must_use]
    pub fn may_inspect(self, uid: u32) -> bool {
        match self {
            Viewer::Anonymous => false,
            Viewer::User(own) => own == uid,
            Viewer::Trusted | Viewer::Owner(_) => true,
        }
    }

    /// Whether it may use and see everything at the queried daemon.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        matches!(self, Viewer::Trusted | Viewer::Owner(_))
    }

    /// The viewer to send to another daemon.
    #[must_use]
    pub fn handed_on(self) -> Viewer {
        match self {
            Viewer::Owner(uid) => Viewer::User(uid),
            other @ (Viewer::Anonymous | Viewer::User(_) | Viewer::Trusted) => other,
        }
    }
}

/// Identity of a caller: a client of the daemon, or another daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Viewer on whose behalf the call is made.
    pub viewer: Viewer,
    /// The daemon that forwarded the call; `None` for a client.
    pub asker: Option<Asker>,
}

impl Principal {
    /// The daemon itself.
    pub const OWN: Principal = Principal { viewer: Viewer::Trusted, asker: None };
}

/// Identifier of an account at a calling daemon: a digest of the account's name and permissions, so that an
/// account with reduced permissions is another one. It grants nothing; it separates the data of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Account(pub [u8; 16]);

/// A calling daemon, for itself or for one of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asker {
    /// Key of the daemon.
    pub peer: PeerKey,
    /// Account of the client; `None` if the daemon calls for itself.
    pub account: Option<Account>,
}

/// Form of the document of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// Syntax of the document.
    pub syntax: Syntax,
    /// Form of integers that its reader may not be able to represent.
    pub integers: Integers,
}

/// Syntax of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Syntax {
    /// A JSON value and a newline.
    Json,
    /// An XML-RPC response.
    Xml,
}

/// Form of integers that a client may not be able to represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Integers {
    /// Exact integers.
    #[default]
    Number,
    /// Exact decimal text.
    Text,
    /// Floating-point number; bits beyond the 53rd are lost.
    Double,
}

/// Result of a call. It is borrowed, so that long data are decoded and encoded without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer<'a> {
    /// The encoded result value.
    Done(#[serde(borrow, serialize_with = "crate::bytes::serialize")] &'a [u8]),
    /// The document of the result in the form that the call requested, encoded by the answering daemon and
    /// not inspected in between.
    Written(#[serde(borrow, serialize_with = "crate::bytes::serialize")] &'a [u8]),
    /// A fault, as a client would receive it.
    Fault {
        /// Fault code.
        code: i32,
        /// Fault message.
        message: &'a str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call as the version before [`Viewer`] defined it.
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
