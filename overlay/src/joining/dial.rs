//! One request to a domain's issuer, over a connection that is closed after the answer.
//!
//! Rule: the request, which may contain a token's secret, is sent to the issuer's key and to no other,
//! whichever daemon answers at its addresses. Every address that failed is reported with the reason.
//! Not here: the content of the request, and verification of the answer (`identity::join`).

use super::{AllTried, Error, Tried};
use crate::authenticator::Authenticator;
use crate::clock;
use crate::identity::admission::{Gate, Principal};
use crate::identity::key::Key;
use crate::identity::revocation_lists::RevocationLists;
use crate::identity::trust::{Readers, Trust};
use crate::net::dial_error::DialErrorKind;
use crate::net::event_loop::{Config, Event, EventLoop};
use crate::net::handle::{AskError, Handle};
use crate::net::hello::Admission;
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::id::{DomainName, PeerKey};
use wire::join::{Question, Reply};

/// Timeout of one name lookup and of one connection attempt: more than a slow name server or an
/// intercontinental link needs.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout of the handshake on an address that accepts connections.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the issuer's answer: it writes to its disk first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause between two rounds through the addresses.
const ROUND_PAUSE: Duration = Duration::from_millis(700);

/// Most addresses tried per host name.
const RESOLVED_MAX: usize = 4;

/// The issuer to ask, and its addresses.
#[derive(Clone, Debug)]
pub(super) struct IssuerTarget {
    pub(super) domain: DomainName,
    pub(super) root: PeerKey,
    pub(super) issuer: PeerKey,
    pub(super) addresses: Vec<Address>,
}

/// Admits the issuer by its key only, shows nothing of this daemon, and records which other peer answered.
struct IssuerAdmission {
    gate: Authenticator,
    issuer: PeerKey,
    met: watch::Sender<Responder>,
}

/// The peer that answered last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Responder {
    #[default]
    NotYet,
    Issuer,
    Other(PeerKey),
}

impl Admission for IssuerAdmission {
    fn proof(&self) -> Vec<u8> {
        self.gate.proof()
    }

    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String> {
        if peer != self.issuer {
            self.met.send_replace(Responder::Other(peer));
            return Err("this host is about to join a domain and looks for its issuer only".to_owned());
        }
        let admitted = self.gate.admit(peer, proof);
        self.met.send_replace(Responder::Issuer);
        admitted
    }

    fn review(&self, principal: &Principal) -> Result<(), String> {
        self.gate.review(principal)
    }
}

/// Send `question` until an answer arrives or `deadline` expires. `progress` receives each new reason of a
/// failure.
///
/// # Errors
/// If no answer arrived, with the reason for every address.
pub(super) async fn ask(
    key: &Key,
    target: &IssuerTarget,
    question: &Question,
    deadline: Duration,
    progress: &mut (dyn FnMut(&Tried) + Send),
) -> Result<Reply, Error> {
    if target.addresses.is_empty() {
        return Err(Error::NoAddress { domain: target.domain.clone() });
    }
    // The issuer is authenticated by its key, as a directory is; its certificate does not matter here.
    let trust = Trust::of_member(target.domain.clone(), target.root, Readers::Nobody);
    let gate =
        Authenticator::joining(Gate::new(trust, RevocationLists::default(), BTreeSet::from([target.issuer])));
    let (met, meeting) = watch::channel(Responder::NotYet);
    let admission = Arc::new(IssuerAdmission { gate, issuer: target.issuer, met });
    let start = u64::try_from(clock::now().0.as_nanos()).unwrap_or(u64::MAX);
    let config = Config { is_joining: true, ..Config::new(Vec::new()) };
    let (event_loop, net, events) = EventLoop::open(config, key, admission.clone(), start)?;
    let said = "was not tried any more".to_owned();
    let untried =
        target.addresses.iter().map(|address| Tried { address: address.clone(), said: said.clone() });
    let mut asking = Asking { net, admission, meeting, events, target, question, tried: untried.collect() };
    let ended = CancellationToken::new();
    tokio::select! {
        () = event_loop.run(ended) => unreachable!("it has no end"),
        answered = tokio::time::timeout(deadline, asking.rounds(progress)) => answered,
    }
    .map_err(|_| Error::Unreachable {
        domain: target.domain.clone(),
        waited: deadline,
        tried: AllTried(asking.tried),
    })
}

struct Asking<'a> {
    net: Handle,
    admission: Arc<IssuerAdmission>,
    meeting: watch::Receiver<Responder>,
    events: mpsc::Receiver<Event>,
    target: &'a IssuerTarget,
    question: &'a Question,
    tried: Vec<Tried>,
}

impl Asking<'_> {
    /// Try every address in turn, repeatedly.
    async fn rounds(&mut self, progress: &mut (dyn FnMut(&Tried) + Send)) -> Reply {
        loop {
            for at in 0..self.tried.len() {
                let address = self.tried[at].address.clone();
                let said = match self.try_at(&address).await {
                    Ok(reply) => return reply,
                    Err(said) => said,
                };
                if self.tried[at].said != said {
                    self.tried[at].said = said;
                    progress(&self.tried[at]);
                }
            }
            tokio::time::sleep(ROUND_PAUSE).await;
        }
    }

    async fn try_at(&mut self, address: &Address) -> Result<Reply, String> {
        let place = connectable(address).await?;
        self.admission.met.send_replace(Responder::NotYet);
        // Discard the events of earlier attempts.
        while self.events.try_recv().is_ok() {}
        let target = Target::Seed(place.into());
        self.net.keep(target.clone(), vec![place.into()]).await;
        let result = self.ask_first_reachable(&target).await;
        self.net.forget(target).await;
        if result.is_err() {
            // The next attempt starts with a new connection.
            self.net.close(self.target.issuer).await;
        }
        result
    }

    async fn ask_first_reachable(&mut self, target: &Target) -> Result<Reply, String> {
        let meeting = self.meeting.wait_for(|met| *met != Responder::NotYet);
        let met = tokio::select! {
            biased;
            met = meeting => met.map(|met| met.clone()).unwrap_or_default(),
            why = dial_error(&mut self.events, target) => return Err(unmet(Some(why))),
            () = tokio::time::sleep(GREETING_TIMEOUT) => Responder::NotYet,
        };
        match met {
            Responder::Issuer => self.ask_issuer().await,
            Responder::Other(peer) => Err(format!(
                "{peer} answers there, not the issuer {}; is the token of another domain, or has the host a new key?",
                self.target.issuer
            )),
            Responder::NotYet => Err(unmet(None)),
        }
    }

    async fn ask_issuer(&self) -> Result<Reply, String> {
        let body = postcard::to_stdvec(self.question).expect("plain data is encoded");
        let answer = self.net.ask(self.target.issuer, Protocol::Join, &body, ANSWER_TIMEOUT).await;
        let answer = answer.map_err(|error| match error {
            AskError::Refused { reason, .. } => format!("the daemon there cannot answer now: {reason}"),
            AskError::TimedOut { after, .. } => format!("no answer within {} s", after.as_secs()),
            AskError::Open { source, .. } => source.to_string(),
            AskError::Broken { reason, .. } => reason,
            AskError::Full { .. } | AskError::Stopping => error.to_string(),
        })?;
        understood(&answer)
    }
}

/// Wait until an attempt at `target` fails; returns why.
async fn dial_error(events: &mut mpsc::Receiver<Event>, target: &Target) -> DialErrorKind {
    while let Some(event) = events.recv().await {
        match event {
            Event::DialFailed(at, why) if at == *target => return why,
            Event::DialFailed(..)
            | Event::Ready { .. }
            | Event::Gone(_)
            | Event::Unwelcome { .. }
            | Event::Question(_)
            | Event::Stream { .. } => {}
        }
    }
    std::future::pending().await
}

/// Message for an address that accepts connections but where no handshake was completed; `why` is none if the
/// handshake timed out.
fn unmet(why: Option<DialErrorKind>) -> String {
    match why {
        Some(DialErrorKind::Full) => "the daemon there is full: too many connections wait for their handshake, most of them from \
                                  this host's address; try again in a few seconds"
            .to_owned(),
        Some(DialErrorKind::Cut) => "the connection was closed before the handshake was done: the daemon there has too many \
                                 unfinished connections, or something else listens at this port; try again, and check the port"
            .to_owned(),
        Some(DialErrorKind::Foreign) => {
            "something answers there that is no daemon of the overlay; check the address and port".to_owned()
        }
        Some(DialErrorKind::Closed) => NOTHING_LISTENS.to_owned(),
        Some(DialErrorKind::Nowhere) => "the name resolves to no address".to_owned(),
        Some(DialErrorKind::Other(_)) | None => format!(
            "the handshake was not done within {} s: the daemon there is overloaded, or something else listens at this \
             port; try again, and check the port",
            GREETING_TIMEOUT.as_secs()
        ),
    }
}

/// Message for an address that refuses connections.
const NOTHING_LISTENS: &str = "nothing listens there (connection refused)";

/// Decode the answer of an issuer.
pub(super) fn understood(answer: &[u8]) -> Result<Reply, String> {
    postcard::from_bytes(answer)
        .map_err(|_| "its answer is not understood; is it of another version?".to_owned())
}

/// Resolve `address`; returns the first of its socket addresses that accepts a connection.
async fn connectable(address: &Address) -> Result<SocketAddr, String> {
    let looking = tokio::net::lookup_host((address.host(), address.port()));
    let places = match tokio::time::timeout(ADDRESS_TIMEOUT, looking).await {
        Ok(Ok(places)) => places,
        Ok(Err(_)) => return Err("the name is not known here".to_owned()),
        Err(_) => return Err(format!("the name was not looked up within {} s", ADDRESS_TIMEOUT.as_secs())),
    };
    let mut said = "the name resolves to no address".to_owned();
    for place in places.take(RESOLVED_MAX) {
        match tokio::time::timeout(ADDRESS_TIMEOUT, TcpStream::connect(place)).await {
            Ok(Ok(_)) => return Ok(place),
            Ok(Err(error)) => said = reason_of(&error),
            Err(_) => said = format!("no answer within {} s; a firewall?", ADDRESS_TIMEOUT.as_secs()),
        }
    }
    Err(said)
}

fn reason_of(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::ConnectionRefused {
        return NOTHING_LISTENS.to_owned();
    }
    let text = error.to_string();
    // The system's error number does not help the reader.
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
