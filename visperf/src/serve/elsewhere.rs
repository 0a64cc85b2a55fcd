//! Which daemon has to answer, and asking it: a query may enter anywhere.
//!
//! ```text
//! client → any daemon ── hop 1 ──▶ the domain's representative ── hop 2 ──▶ the host
//! ```
//!
//! Rule: a question is answered here, or by the representative, or by the host it is about; nobody else
//! hands it on, and only the daemon that a client asked looks for another domain. A fault names the hop that failed
//! and what was tried.
//! Not here: serving what others hand on (`queries`), finding other domains (`others`).

use super::others::Others;
use overlay::domain::{DomainHandle, View};
use overlay::net::handle::{AskError, Handle};
use overlay::net::protocol::Protocol;
use rpc::elsewhere::{Caller, Elsewhere};
use rpc::fault::{self, Fault};
use rpc::method::Answer as Pending;
use rpc::packed;
use rpc::params::Params;
use rpc::value::{Name, Value};
use std::fmt;
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::query::{Answer, Question};

/// What is kept of the deadline at each hop, so that a fault arrives before its asker gives up.
const HOP_MARGIN: Duration = Duration::from_millis(200);

/// Knows this daemon's place in the grid.
pub(crate) struct Router {
    pub(crate) net: Handle,
    /// None: it is a directory.
    pub(crate) own: Option<Own>,
    pub(crate) others: Others,
}

/// This daemon's place in its domain.
pub(crate) struct Own {
    pub(crate) domain: DomainName,
    pub(crate) host: HostName,
    pub(crate) members: DomainHandle,
}

/// One hop: who is asked, and as what.
pub(crate) struct Hop {
    pub(crate) peer: PeerKey,
    pub(crate) host: Option<HostName>,
    pub(crate) part: &'static str,
    /// None for a directory.
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

/// Where a question goes.
enum Way {
    /// To this daemon, which is connected.
    Hop(Hop),
    /// To another domain's representative.
    Domain(DomainName),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Hop(hop) => hop.fmt(f),
            Way::Domain(domain) => write!(f, "the representative of {domain}"),
        }
    }
}

impl Elsewhere for Router {
    fn ask(&self, caller: &Caller, method: &'static str, params: &Params) -> Option<Pending> {
        let way = match self.way(caller, method, params) {
            Ok(None) => return None,
            Ok(Some(way)) => way,
            Err(fault) => return Some(Box::pin(std::future::ready(Err(fault)))),
        };
        let Some(hops_left) = caller.hops_left.checked_sub(1) else {
            let fault = unavailable(format!(
                "{method} was handed on too often; this daemon would hand it to {way}, so daemons of the domain do \
                 not agree on who represents it; ask again in some seconds"
            ));
            return Some(Box::pin(std::future::ready(Err(fault))));
        };
        let time_left = caller.time_left.saturating_sub(HOP_MARGIN);
        let question = question(method, params.values().to_vec(), time_left, hops_left);
        match way {
            Way::Hop(hop) => {
                let net = self.net.clone();
                Some(Box::pin(async move { ask_hop(&net, &hop, &question, time_left).await }))
            }
            Way::Domain(domain) => {
                let others = self.others.clone();
                Some(Box::pin(async move { others.ask(&domain, question, time_left).await }))
            }
        }
    }
}

impl Router {
    /// Who has to answer; nobody else if it is this daemon.
    fn way(&self, caller: &Caller, method: &str, params: &Params) -> Result<Option<Way>, Fault> {
        let named = params.text("domain")?.map(DomainName::try_from).transpose();
        let named = named.map_err(|error| Fault::invalid_params(format!("domain: {error}")))?;
        match (&self.own, named) {
            (Some(own), None) => own.hop(&self.net, method, params),
            (Some(own), Some(domain)) if domain == own.domain => own.hop(&self.net, method, params),
            (_, Some(domain)) if caller.peer.is_none() => Ok(Some(Way::Domain(domain))),
            (_, Some(domain)) => Err(Fault::not_found(format!(
                "a question for {domain} was handed to a daemon of another domain, which does not hand it on"
            ))),
            (None, None) => Err(Fault::invalid_params(
                "this daemon is a directory, of no domain itself: expected domain, found none; directory.domains \
                 tells which there are"
                    .to_owned(),
            )),
        }
    }
}

impl Own {
    fn hop(&self, net: &Handle, method: &str, params: &Params) -> Result<Option<Way>, Fault> {
        let view = self.members.view().borrow().clone();
        let hop = match params.text("host")? {
            Some(host) if method.starts_with("sensor.") => {
                let host = HostName::try_from(host)
                    .map_err(|error| Fault::invalid_params(format!("host: {error}")))?;
                self.to_host(net, &view, host)?
            }
            _ if method.starts_with("domain.") && !self.members.may_serve() => {
                Some(self.to_representative(net, &view)?)
            }
            _ => None,
        };
        Ok(hop.map(Way::Hop))
    }

    fn to_host(&self, net: &Handle, view: &View, host: HostName) -> Result<Option<Hop>, Fault> {
        if host == self.host {
            return Ok(None);
        }
        let known = view.members.iter().find(|seen| seen.member.host == host);
        if let Some(seen) = known
            && net.is_ready(seen.member.key)
        {
            let domain = Some(self.domain.clone());
            return Ok(Some(Hop { peer: seen.member.key, host: Some(host), part: "member", domain }));
        }
        if self.members.may_serve() {
            return Err(match known {
                Some(seen) => unavailable(format!(
                    "{host} of {} is {} and not connected to its representative {}",
                    self.domain,
                    seen.member.state.as_str(),
                    self.host
                )),
                None => Fault::not_found(format!(
                    "no host {host} in {}; ask domain.hosts for those that are",
                    self.domain
                )),
            });
        }
        self.to_representative(net, view).map(Some)
    }

    fn to_representative(&self, net: &Handle, view: &View) -> Result<Hop, Fault> {
        let own = net.me();
        let representative = view.state.representative.filter(|peer| *peer != own);
        let peer = representative.ok_or_else(|| {
            unavailable(format!("{} has no representative now; ask again in some seconds", self.domain))
        })?;
        let host =
            view.members.iter().find(|seen| seen.member.key == peer).map(|seen| seen.member.host.clone());
        Ok(Hop { peer, host, part: "representative", domain: Some(self.domain.clone()) })
    }
}

/// A sensor in no domain: what is asked of others has no answer.
pub(crate) struct Alone {
    pub(crate) domain: DomainName,
    pub(crate) host: HostName,
}

impl Elsewhere for Alone {
    fn ask(&self, _: &Caller, method: &'static str, params: &Params) -> Option<Pending> {
        let other = |name: &'static str, own: &str| {
            params.text(name).ok().flatten().filter(|named| *named != own).map(str::to_owned)
        };
        let host = other("host", self.host.as_str()).filter(|_| method.starts_with("sensor."));
        let (what, named) = match (other("domain", self.domain.as_str()), host) {
            (Some(domain), _) => ("domain", domain),
            (None, Some(host)) => ("host", host),
            (None, None) => return None,
        };
        let fault = Fault::not_found(format!(
            "{what} {named:?} is not here: this sensor has joined no domain, and answers for {} of {} alone",
            self.host, self.domain
        ));
        Some(Box::pin(std::future::ready(Err(fault))))
    }
}

/// A call as it is handed on.
pub(crate) fn question(
    method: &'static str,
    params: Vec<(Name, Value)>,
    time_left: Duration,
    hops_left: u8,
) -> Question {
    let mut packed_params = Vec::new();
    packed::write(&Value::Struct(params), &mut packed_params);
    Question { method: method.into(), params: packed_params, time_left_ms: millis(time_left), hops_left }
}

/// Its bytes.
pub(crate) fn bytes_of(question: &Question) -> Vec<u8> {
    postcard::to_stdvec(question).expect("a question has no part that cannot be written")
}

async fn ask_hop(net: &Handle, hop: &Hop, question: &Question, time_left: Duration) -> Result<Value, Fault> {
    let bytes = bytes_of(question);
    answer(hop, net.ask(hop.peer, Protocol::Query, &bytes, time_left).await)
}

/// What came of asking `hop`.
pub(crate) fn answer(hop: &Hop, answered: Result<Vec<u8>, AskError>) -> Result<Value, Fault> {
    match answered {
        Ok(bytes) => read(hop, &bytes),
        Err(AskError::TimedOut { after, .. }) => {
            let millis = after.as_millis();
            Err(Fault::new(fault::TIMEOUT, format!("{hop} did not answer within {millis} ms")))
        }
        Err(error) => Err(unavailable(format!("{hop} cannot be asked: {error}"))),
    }
}

/// The answer that `hop` gave.
pub(crate) fn read(hop: &Hop, bytes: &[u8]) -> Result<Value, Fault> {
    let unreadable = |error: &dyn fmt::Display| {
        unavailable(format!("the answer of {hop} cannot be read: {error}; is it of another version?"))
    };
    match postcard::from_bytes(bytes).map_err(|error| unreadable(&error))? {
        Answer::Done(packed) => packed::read(&packed).map_err(|error| unreadable(&error)),
        Answer::Fault { code, message } => Err(Fault::new(code, message)),
    }
}

pub(crate) fn unavailable(message: String) -> Fault {
    Fault::new(fault::UNAVAILABLE, message)
}

/// A deadline as it travels.
pub(crate) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
