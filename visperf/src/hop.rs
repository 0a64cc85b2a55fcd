//! Hop of a question to another daemon: the question that is sent, and the reading of the answer.
//!
//! Pure. Rule: a fault names the daemon of the hop.
//! Not here: the choice of the daemon (`serve::forward`), connections (`overlay`).

use bytes::Bytes;
use overlay::net::handle::AskError;
use rpc::codec::value::{Name, Value};
use rpc::codec::value_codec;
use rpc::dispatch::encoded_answer::Answered;
use rpc::fault::Fault;
use std::fmt;
use std::time::Duration;
use wire::fault;
use wire::id::{DomainName, HostName, PeerKey};
use wire::query::{Answer, Form, Question, Viewer};

/// Prefix of the fault of a daemon that needs the name of the queried domain (`serve::forward` sends it).
pub(crate) const NO_DOMAIN: &str = "this daemon is of no domain that could be meant";

/// Next daemon on the route of a question, and its role.
pub(crate) struct Hop {
    pub(crate) peer: PeerKey,
    pub(crate) host: Option<HostName>,
    pub(crate) part: &'static str,
    /// `None` for a directory.
    pub(crate) domain: Option<DomainName>,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{host}, {}", self.part)?,
            None => write!(f, "{}, {}", self.peer, self.part)?,
        }
        self.domain.as_ref().map_or(Ok(()), |domain| write!(f, " of {domain}"))
    }
}

/// A call that this daemon makes for itself, to read the answer.
pub(crate) fn question(
    method: &'static str,
    params: Vec<(Name, Value)>,
    time_left: Duration,
    hops_left: u8,
) -> Question {
    let mut packed_params = Vec::new();
    value_codec::write(&Value::Struct(params), &mut packed_params);
    let time_left_ms = millis(time_left);
    Question {
        method: method.into(),
        params: packed_params,
        time_left_ms,
        hops_left,
        form: None,
        account: None,
        viewer: Viewer::Trusted,
    }
}

/// The value that `hop` answered.
pub(crate) fn answer(hop: &Hop, answered: Result<Vec<u8>, AskError>) -> Result<Value, Fault> {
    answer_for(hop, None, answered)?.value()
}

/// The answer of `hop`: a document if `form` is named, else a value.
pub(crate) fn answer_for(
    hop: &Hop,
    form: Option<Form>,
    answered: Result<Vec<u8>, AskError>,
) -> Result<Answered, Fault> {
    match answered {
        Ok(bytes) => read_for(hop, form, bytes.into()),
        Err(AskError::TimedOut { after, .. }) => {
            let millis = after.as_millis();
            Err(Fault::new(fault::TIMEOUT, format!("{hop} did not answer within {millis} ms")))
        }
        Err(error) => Err(unavailable(format!("{hop} cannot be asked: {}", error.reason()))),
    }
}

/// The value in the bytes of `hop`.
pub(crate) fn read(hop: &Hop, bytes: &[u8]) -> Result<Value, Fault> {
    read_for(hop, None, Bytes::copy_from_slice(bytes))?.value()
}

/// The answer in the bytes of `hop`: a document only where a form was requested, else a value, from which a
/// document can be written.
fn read_for(hop: &Hop, form: Option<Form>, bytes: Bytes) -> Result<Answered, Fault> {
    let unreadable = |error: &dyn fmt::Display| {
        unavailable(format!("the answer of {hop} cannot be read: {error}; is it of another version?"))
    };
    match postcard::from_bytes(&bytes).map_err(|error| unreadable(&error))? {
        Answer::Done(packed) => {
            value_codec::read(packed).map(Answered::Value).map_err(|error| unreadable(&error))
        }
        Answer::Written(document) if form.is_some() => Ok(Answered::Written(bytes.slice_ref(document))),
        Answer::Written(_) => Err(unreadable(&"a document came where a value was asked for")),
        Answer::Fault { code, message } => Err(Fault::new(code, message.to_owned())),
    }
}

pub(crate) fn unavailable(message: String) -> Fault {
    Fault::new(fault::UNAVAILABLE, message)
}

/// A time limit as it is sent in a question.
pub(crate) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
