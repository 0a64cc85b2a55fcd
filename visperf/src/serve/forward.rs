//! Router of queries: decides which daemon has to answer, and asks it. A query may enter at any daemon.
//!
//! ```text
//! client → any daemon ── hop 1 ──▶ the domain's representative ── hop 2 ──▶ the host
//! ```
//!
//! Rule: a question is answered here, or by the representative, or by the host that it is about; no other
//! daemon forwards it, and only the daemon that a client asked looks up another domain. A fault names the hop
//! that failed and what was tried.
//! Not here: serving forwarded questions (`queries`), finding other domains (`remote_domains`).

use super::accounts;
use super::admission_status::AdmissionStatus;
use super::remote_domains::RemoteDomains;
use crate::hop::{Hop, NO_DOMAIN, answer_for, question, unavailable};
use overlay::domain::{DomainHandle, View};
use overlay::identity::admission::Principal;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use rpc::codec::value::{Name, Value};
use rpc::dispatch::encoded_answer::Answered;
use rpc::dispatch::forward::{Caller, Forward, Forwarding, forwarded};
use rpc::dispatch::method::Answer as Pending;
use rpc::dispatch::params::Params;
use rpc::fault::Fault;
use sensor::query::channels::relays::{self, Relays};
use std::fmt;
use std::time::Duration;
use wire::api::is_of_domain;
use wire::credential::Role;
use wire::id::{DomainName, HostName, PeerKey};
use wire::query::{Form, Question, Viewer};

/// Time subtracted from the deadline at each hop, so that a fault arrives before the asker's timeout.
const HOP_MARGIN: Duration = Duration::from_millis(200);

/// Router with this daemon's place in the grid.
pub(crate) struct Router {
    pub(crate) net: Handle,
    /// `None`: it is a directory, or a proxy.
    pub(crate) own: Option<Own>,
    pub(crate) others: RemoteDomains,
    /// Subscriptions to hosts of its domain, for the time in which it is the representative; `None` without a
    /// domain.
    pub(crate) relays: Option<Relays>,
}

/// Membership of this daemon in its domain.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) domain: DomainName,
    pub(crate) host: HostName,
    pub(crate) members: DomainHandle,
    pub(crate) belonging: DomainRole,
    /// Refusals of this daemon by others.
    pub(crate) welcome: AdmissionStatus,
}

/// Role of this daemon in its domain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DomainRole {
    /// A sensor, which publishes and takes part in the election.
    Sensor,
    /// It may not publish: it asks the representative, which directories know, or else any connected member.
    Visitor { has_directories: bool },
}

/// Route of a question.
enum Route {
    /// To this daemon, to which there is a connection.
    Hop(Hop),
    /// To the representative of the own domain.
    Representative,
    /// To another domain's representative.
    Domain(DomainName),
    /// To this host of the own domain, through the stream that its subscribers share.
    Relay(HostName),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Hop(hop) => hop.fmt(f),
            Route::Representative => f.write_str("the representative of this domain"),
            Route::Domain(domain) => write!(f, "the representative of {domain}"),
            Route::Relay(host) => host.fmt(f),
        }
    }
}

impl Forward for Router {
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding> {
        let route = match self.route(caller, method, params) {
            Ok(None) => return None,
            Ok(Some(route)) => route,
            Err(fault) => return Some(Box::pin(std::future::ready(Err(fault)))),
        };
        if let Route::Relay(host) = &route {
            return self.relays.as_ref()?.ask(caller, host.as_str(), method, params, form).map(forwarded);
        }
        let Some(hops_left) = caller.hops_left.checked_sub(1) else {
            let fault = unavailable(format!(
                "{method} was handed on too often; this daemon would hand it to {route}, so daemons of the \
                 domain do not agree on who represents it; ask again in some seconds"
            ));
            return Some(Box::pin(std::future::ready(Err(fault))));
        };
        let time_left = caller.time_left.saturating_sub(HOP_MARGIN);
        let question = question(method, params.handed_on(), time_left, hops_left);
        let (account, viewer) = (accounts::handed_on(caller), caller.viewer.handed_on());
        let question = Question { form, account, viewer, ..question };
        match route {
            Route::Hop(hop) => {
                let net = self.net.clone();
                Some(Box::pin(async move { ask_hop(&net, &hop, &question, time_left).await.map(Some) }))
            }
            Route::Representative => {
                let (net, own) = (self.net.clone(), self.own.clone()?);
                Some(Box::pin(async move { own.ask_representative(&net, question, time_left).await }))
            }
            Route::Relay(_) => None,
            Route::Domain(domain) => {
                let others = self.others.clone();
                Some(Box::pin(async move { others.ask_for(&domain, question, time_left).await.map(Some) }))
            }
        }
    }
}

impl Router {
    /// The daemon that has to answer; `None` if it is this one.
    fn route(&self, caller: &Caller, method: &str, params: &Params) -> Result<Option<Route>, Fault> {
        let named = params.text("domain")?.map(DomainName::try_from).transpose();
        let named = named.map_err(|error| Fault::invalid_params(format!("domain: {error}")))?;
        let is_own = |own: &&Own| named.as_ref().is_none_or(|domain| *domain == own.domain);
        if let Some(own) = self.own.as_ref().filter(is_own) {
            return match own.belonging {
                DomainRole::Sensor => own.hop(&self.net, method, params),
                DomainRole::Visitor { has_directories } => {
                    own.route_for_guest(&self.net, caller, method, params, has_directories)
                }
            };
        }
        match named {
            Some(domain) if caller.peer.is_none() => Ok(Some(Route::Domain(domain))),
            Some(domain) => Err(Fault::not_found(format!(
                "a question for {domain} was handed to a daemon of another domain, which does not hand it on"
            ))),
            None => Err(Fault::invalid_params(format!(
                "{NO_DOMAIN}: expected domain, found none; directory.domains lists the known ones"
            ))),
        }
    }
}

impl Own {
    fn hop(&self, net: &Handle, method: &str, params: &Params) -> Result<Option<Route>, Fault> {
        let view = self.members.view().borrow().clone();
        let of_host = |host: &str| {
            HostName::try_from(host).map_err(|error| Fault::invalid_params(format!("host: {error}")))
        };
        Ok(match params.text("host")? {
            // All of these calls use the same route, so that the daemon that has a subscription also gets its
            // `take`.
            Some(host) if relays::METHODS.contains(&method) && of_host(host)? != self.host => {
                if !self.members.may_serve() {
                    return Ok(Some(Route::Representative));
                }
                let host = of_host(host)?;
                if method == relays::METHODS[0] {
                    self.to_host(net, &view, host.clone())?;
                }
                Some(Route::Relay(host))
            }
            Some(host) if method.starts_with("sensor.") => self.to_host(net, &view, of_host(host)?)?,
            _ if is_of_domain(method) && !self.members.may_serve() => Some(Route::Representative),
            _ => None,
        })
    }

    /// The route for a daemon that is no member of its domain.
    fn route_for_guest(
        &self,
        net: &Handle,
        caller: &Caller,
        method: &str,
        params: &Params,
        has_directories: bool,
    ) -> Result<Option<Route>, Fault> {
        let is_of_others = match params.text("host")? {
            Some(host) if method.starts_with("sensor.") => host != self.host.as_str(),
            _ => is_of_domain(method),
        };
        if !is_of_others {
            return Ok(None);
        }
        if caller.peer.is_some() {
            let host = &self.host;
            return Err(Fault::not_found(format!(
                "{host} has no part in {}, and answers for itself alone",
                self.domain
            )));
        }
        if has_directories {
            return Ok(Some(Route::Domain(self.domain.clone())));
        }
        let member = net.ready().into_iter().find(|peer| self.is_member(peer)).ok_or_else(|| {
            unavailable(format!(
                "no member of {} is reached now, and no directory is configured; ask again in some seconds",
                self.domain
            ))
        })?;
        let domain = Some(self.domain.clone());
        Ok(Some(Route::Hop(Hop { peer: member.peer, host: member.host.clone(), part: "member", domain })))
    }

    fn is_member(&self, peer: &Principal) -> bool {
        peer.domain.as_ref() == Some(&self.domain) && peer.roles.has(Role::Publisher)
    }

    /// The member with this host name, if it is connected.
    fn connected(&self, net: &Handle, host: &HostName) -> Option<PeerKey> {
        let found =
            net.ready().into_iter().find(|peer| self.is_member(peer) && peer.host.as_ref() == Some(host));
        found.map(|peer| peer.peer)
    }

    /// `None` if it is this host.
    fn to_host(&self, net: &Handle, view: &View, host: HostName) -> Result<Option<Route>, Fault> {
        if host == self.host {
            return Ok(None);
        }
        // A host whose key was replaced has two rows; the old one is not connected.
        let rows = || view.members.iter().filter(|seen| seen.member.host == host);
        let known = rows().find(|seen| net.is_ready(seen.member.key)).or_else(|| rows().next());
        if let Some(seen) = known
            && net.is_ready(seen.member.key)
        {
            let domain = Some(self.domain.clone());
            let hop = Hop { peer: seen.member.key, host: Some(host), part: "member", domain };
            return Ok(Some(Route::Hop(hop)));
        }
        if self.members.may_serve() {
            let domain = Some(self.domain.clone());
            // It is connected, and its first heartbeat has not arrived.
            if known.is_none()
                && let Some(peer) = self.connected(net, &host)
            {
                return Ok(Some(Route::Hop(Hop { peer, host: Some(host), part: "member", domain })));
            }
            return Err(match known {
                Some(seen) => unavailable(format!(
                    "{host} of {} is {} and not connected to its representative {}",
                    self.domain,
                    seen.member.state.as_str(),
                    self.host
                )),
                None => Fault::not_found(format!(
                    "no host {host} in {}; visperf hosts (domain.hosts) lists those that are",
                    self.domain
                )),
            });
        }
        Ok(Some(Route::Representative))
    }
}

/// Asks hosts of the own domain on behalf of subscribers.
pub(crate) struct Members {
    pub(crate) net: Handle,
    pub(crate) own: Own,
}

impl relays::HostClient for Members {
    fn call(
        &self,
        host: &str,
        viewer: Viewer,
        method: &'static str,
        params: Vec<(Name, Value)>,
        time: Duration,
    ) -> Pending {
        let view = self.own.members.view().borrow().clone();
        let to_host = HostName::try_from(host)
            .map_err(|error| Fault::invalid_params(format!("host: {error}")))
            .and_then(|host| self.own.to_host(&self.net, &view, host));
        let (net, host) = (self.net.clone(), host.to_owned());
        Box::pin(async move {
            // When another daemon has become the representative, subscriptions are made there.
            let Some(Route::Hop(hop)) = to_host? else {
                let asked = format!("{host} is asked by another representative now; subscribe again");
                return Err(unavailable(asked));
            };
            let (viewer, account) = (viewer.handed_on(), accounts::of_user(viewer));
            let question = Question { viewer, account, ..question(method, params, time, 0) };
            ask_hop(&net, &hop, &question, time).await?.value()
        })
    }
}

/// Router of a sensor in no domain: questions about others are answered by a fault.
pub(crate) struct StandaloneRouter {
    pub(crate) domain: DomainName,
    pub(crate) host: HostName,
}

impl Forward for StandaloneRouter {
    fn ask(&self, _: &Caller, method: &'static str, params: &Params, _: Option<Form>) -> Option<Forwarding> {
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

pub(super) async fn ask_hop(
    net: &Handle,
    hop: &Hop,
    question: &Question,
    time_left: Duration,
) -> Result<Answered, Fault> {
    let bytes = question.to_bytes();
    answer_for(hop, question.form, net.ask(hop.peer, Protocol::Query, &bytes, time_left).await)
}
