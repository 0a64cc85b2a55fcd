//! Which daemon has to answer, and asking it: a query may enter anywhere.
//!
//! ```text
//! client → any daemon ── hop 1 ──▶ the domain's representative ── hop 2 ──▶ the host
//! ```
//!
//! Rule: a question is answered here, or by the representative, or by the host it is about; nobody else
//! hands it on. A fault names the hop that failed and what was tried.
//! Not here: serving what others hand on (`queries`), looking other domains up (the directories).

use compact_str::ToCompactString as _;
use overlay::domain::{DomainHandle, View};
use overlay::net::handle::{AskError, Handle};
use overlay::net::protocol::Protocol;
use rpc::elsewhere::{Caller, Elsewhere};
use rpc::fault::{self, Fault};
use rpc::method::Answer as Pending;
use rpc::packed;
use rpc::params::Params;
use rpc::value::Value;
use std::fmt;
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::query::{Answer, Question};

/// What is kept of the deadline at each hop, so that a fault arrives before its asker gives up.
const HOP_MARGIN: Duration = Duration::from_millis(200);

/// Knows this daemon's place in its domain.
pub(crate) struct Router {
    pub(crate) net: Handle,
    pub(crate) domain: DomainName,
    pub(crate) host: HostName,
    pub(crate) members: DomainHandle,
}

/// One hop: who is asked, and as what.
struct Hop {
    peer: PeerKey,
    host: Option<HostName>,
    part: &'static str,
    domain: DomainName,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hop { peer, host, part, domain } = self;
        match host {
            Some(host) => write!(f, "{host}, {part} of {domain}"),
            None => write!(f, "{peer}, {part} of {domain}"),
        }
    }
}

impl Elsewhere for Router {
    fn ask(&self, caller: &Caller, method: &'static str, params: &Params) -> Option<Pending> {
        let hop = match self.hop(method, params) {
            Ok(None) => return None,
            Ok(Some(hop)) => hop,
            Err(fault) => return Some(Box::pin(std::future::ready(Err(fault)))),
        };
        let Some(hops_left) = caller.hops_left.checked_sub(1) else {
            let fault = unavailable(format!(
                "{method} was handed on too often; this daemon would hand it to {hop}, so daemons of the domain do \
                 not agree on who represents it; ask again in some seconds"
            ));
            return Some(Box::pin(std::future::ready(Err(fault))));
        };
        let mut packed_params = Vec::new();
        packed::write(&Value::Struct(params.values().to_vec()), &mut packed_params);
        let time_left = caller.time_left.saturating_sub(HOP_MARGIN);
        let question = Question {
            method: method.to_compact_string(),
            params: packed_params,
            time_left_ms: u32::try_from(time_left.as_millis()).unwrap_or(u32::MAX),
            hops_left,
        };
        let net = self.net.clone();
        Some(Box::pin(async move { ask_hop(&net, &hop, &question, time_left).await }))
    }
}

impl Router {
    /// Who has to answer; nobody else if it is this daemon.
    fn hop(&self, method: &str, params: &Params) -> Result<Option<Hop>, Fault> {
        let name = |what, text: &str| {
            HostName::try_from(text).map_err(|error| Fault::invalid_params(format!("{what}: {error}")))
        };
        if let Some(domain) = params.text("domain")?
            && domain != self.domain.as_str()
        {
            return Err(Fault::not_found(format!(
                "this daemon is of {} and knows no way to {domain}; ask a daemon of that domain",
                self.domain
            )));
        }
        let view = self.members.view().borrow().clone();
        match params.text("host")? {
            Some(host) if method.starts_with("sensor.") => self.to_host(&view, name("host", host)?),
            _ if method.starts_with("domain.") && !self.members.may_serve() => {
                self.to_representative(&view).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn to_host(&self, view: &View, host: HostName) -> Result<Option<Hop>, Fault> {
        if host == self.host {
            return Ok(None);
        }
        let known = view.members.iter().find(|seen| seen.member.host == host);
        if let Some(seen) = known
            && self.net.is_ready(seen.member.key)
        {
            let domain = self.domain.clone();
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
        self.to_representative(view).map(Some)
    }

    fn to_representative(&self, view: &View) -> Result<Hop, Fault> {
        let own = self.net.me();
        let representative = view.state.representative.filter(|peer| *peer != own);
        let peer = representative.ok_or_else(|| {
            unavailable(format!("{} has no representative now; ask again in some seconds", self.domain))
        })?;
        let host =
            view.members.iter().find(|seen| seen.member.key == peer).map(|seen| seen.member.host.clone());
        Ok(Hop { peer, host, part: "representative", domain: self.domain.clone() })
    }
}

async fn ask_hop(net: &Handle, hop: &Hop, question: &Question, time_left: Duration) -> Result<Value, Fault> {
    let bytes = postcard::to_stdvec(question).expect("a question has no part that cannot be written");
    let answered = net.ask(hop.peer, Protocol::Query, &bytes, time_left).await;
    let bytes = answered.map_err(|error| failed(hop, &error))?;
    let unreadable = |error: &dyn fmt::Display| {
        unavailable(format!("the answer of {hop} cannot be read: {error}; is it of another version?"))
    };
    match postcard::from_bytes(&bytes).map_err(|error| unreadable(&error))? {
        Answer::Done(packed) => packed::read(&packed).map_err(|error| unreadable(&error)),
        Answer::Fault { code, message } => Err(Fault::new(code, message)),
    }
}

fn failed(hop: &Hop, error: &AskError) -> Fault {
    if let AskError::TimedOut { after, .. } = error {
        let millis = after.as_millis();
        return Fault::new(fault::TIMEOUT, format!("{hop} did not answer within {millis} ms"));
    }
    unavailable(format!("{hop} cannot be asked: {error}"))
}

fn unavailable(message: String) -> Fault {
    Fault::new(fault::UNAVAILABLE, message)
}
