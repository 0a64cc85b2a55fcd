//! One question to a domain's issuer, over a connection of its own that ends with the answer.
//!
//! Rule: the question, which may hold a token's secret, goes to the issuer's key and to no other, whoever answers at
//! its addresses; every address that did not help is told with what happened there.
//! Not here: what is asked and believed (`identity::join`).

use super::{AllTried, Error, Tried};
use crate::clock;
use crate::gatekeeper::Gatekeeper;
use crate::identity::admission::{Gate, Principal};
use crate::identity::deny_list::Denials;
use crate::identity::key::Key;
use crate::identity::trust::{Readers, Trust};
use crate::net::event_loop::{Config, Event, EventLoop};
use crate::net::handle::{AskError, Handle};
use crate::net::hello::Admission;
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use crate::net::undialled::Undialled;
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

/// How long one look-up, and one connection to one address, may take: with a site's slowest name server and a link
/// around the world there is time left.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an answering host may take to show who it is.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the issuer may take to answer: it writes to its disk first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Between two rounds through the addresses.
const ROUND_PAUSE: Duration = Duration::from_millis(700);

/// Most addresses that a name may stand for before the rest is left out.
const RESOLVED_MAX: usize = 4;

/// Whom to ask, and where.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) domain: DomainName,
    pub(super) root: PeerKey,
    pub(super) issuer: PeerKey,
    pub(super) addresses: Vec<Address>,
}

/// Welcomes the issuer by its key alone, shows nothing of this daemon, and notes who else is met.
struct Door {
    gate: Gatekeeper,
    issuer: PeerKey,
    met: watch::Sender<Met>,
}

/// Who was met last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Met {
    #[default]
    NotYet,
    Issuer,
    Other(PeerKey),
}

impl Admission for Door {
    fn proof(&self) -> Vec<u8> {
        self.gate.proof()
    }

    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String> {
        if peer != self.issuer {
            self.met.send_replace(Met::Other(peer));
            return Err("this host is about to join a domain and looks for its issuer only".to_owned());
        }
        let admitted = self.gate.admit(peer, proof);
        self.met.send_replace(Met::Issuer);
        admitted
    }

    fn review(&self, principal: &Principal) -> Result<(), String> {
        self.gate.review(principal)
    }
}

/// Ask, for as long as `deadline`.
///
/// # Errors
/// If no answer came, with what became of every address.
pub(super) async fn ask(
    key: &Key,
    errand: &Errand,
    question: &Question,
    deadline: Duration,
    progress: &mut (dyn FnMut(&Tried) + Send),
) -> Result<Reply, Error> {
    if errand.addresses.is_empty() {
        return Err(Error::NoAddress { domain: errand.domain.clone() });
    }
    // The issuer is known by its key, as a directory is; what certificate it shows does not matter here.
    let trust = Trust::of_member(errand.domain.clone(), errand.root, Readers::Nobody);
    let gate = Gatekeeper::joining(Gate::new(trust, Denials::default(), BTreeSet::from([errand.issuer])));
    let (met, meeting) = watch::channel(Met::NotYet);
    let door = Arc::new(Door { gate, issuer: errand.issuer, met });
    let start = u64::try_from(clock::now().0.as_nanos()).unwrap_or(u64::MAX);
    let config = Config { is_joining: true, ..Config::new(Vec::new()) };
    let (event_loop, net, events) = EventLoop::open(config, key, door.clone(), start)?;
    let said = "was not tried any more".to_owned();
    let untried =
        errand.addresses.iter().map(|address| Tried { address: address.clone(), said: said.clone() });
    let mut asking = Asking { net, door, meeting, events, errand, question, tried: untried.collect() };
    let ended = CancellationToken::new();
    tokio::select! {
        () = event_loop.run(ended) => unreachable!("nobody ends it"),
        answered = tokio::time::timeout(deadline, asking.rounds(progress)) => answered,
    }
    .map_err(|_| Error::Unreachable {
        domain: errand.domain.clone(),
        waited: deadline,
        tried: AllTried(asking.tried),
    })
}

struct Asking<'a> {
    net: Handle,
    door: Arc<Door>,
    meeting: watch::Receiver<Met>,
    events: mpsc::Receiver<Event>,
    errand: &'a Errand,
    question: &'a Question,
    tried: Vec<Tried>,
}

impl Asking<'_> {
    /// Every address in turn, again and again.
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
        self.door.met.send_replace(Met::NotYet);
        // What became of the attempts before.
        while self.events.try_recv().is_ok() {}
        let target = Target::Seed(place.into());
        self.net.keep(target.clone(), vec![place.into()]).await;
        let result = self.ask_whoever_answers(&target).await;
        self.net.forget(target).await;
        if result.is_err() {
            // The next attempt begins with a connection of its own.
            self.net.close(self.errand.issuer).await;
        }
        result
    }

    async fn ask_whoever_answers(&mut self, target: &Target) -> Result<Reply, String> {
        let meeting = self.meeting.wait_for(|met| *met != Met::NotYet);
        let met = tokio::select! {
            biased;
            met = meeting => met.map(|met| met.clone()).unwrap_or_default(),
            why = undialled(&mut self.events, target) => return Err(unmet(Some(why))),
            () = tokio::time::sleep(GREETING_TIMEOUT) => Met::NotYet,
        };
        match met {
            Met::Issuer => self.ask_issuer().await,
            Met::Other(peer) => Err(format!(
                "{peer} answers there, not the issuer {}; is the token of another domain, or has the host a new key?",
                self.errand.issuer
            )),
            Met::NotYet => Err(unmet(None)),
        }
    }

    async fn ask_issuer(&self) -> Result<Reply, String> {
        let body = postcard::to_stdvec(self.question).expect("plain data is encoded");
        let answer = self.net.ask(self.errand.issuer, Protocol::Join, &body, ANSWER_TIMEOUT).await;
        let answer = answer.map_err(|error| match error {
            AskError::Refused { reason, .. } => format!("the daemon there cannot answer now: {reason}"),
            AskError::TimedOut { after, .. } => format!("no answer within {} s", after.as_secs()),
            AskError::Open { source, .. } => source.to_string(),
            AskError::Broken { reason, .. } => reason,
            AskError::Stopping => error.to_string(),
        })?;
        understood(&answer)
    }
}

/// Why an attempt at `target` failed, once one does.
async fn undialled(events: &mut mpsc::Receiver<Event>, target: &Target) -> Undialled {
    while let Some(event) = events.recv().await {
        match event {
            Event::Undialled(at, why) if at == *target => return why,
            Event::Undialled(..)
            | Event::Ready { .. }
            | Event::Gone(_)
            | Event::Unwelcome { .. }
            | Event::Question(_)
            | Event::Stream { .. } => {}
        }
    }
    std::future::pending().await
}

/// What is shown of an address where something accepts connections and no daemon was met; none where it stays silent.
fn unmet(why: Option<Undialled>) -> String {
    match why {
        Some(Undialled::Full) => "the daemon there is full: too many connections wait for their handshake, most of them from \
                                  this host's address; try again in a few seconds"
            .to_owned(),
        Some(Undialled::Cut) => "the connection was closed before the handshake was done: the daemon there has too many \
                                 unfinished connections, or something else listens at this port; try again, and check the port"
            .to_owned(),
        Some(Undialled::Foreign) => {
            "something answers there that is no daemon of the overlay; check the address and port".to_owned()
        }
        Some(Undialled::Closed) => NOTHING_LISTENS.to_owned(),
        Some(Undialled::Nowhere) => "the name stands for no address".to_owned(),
        Some(Undialled::Other(_)) | None => format!(
            "the handshake was not done within {} s: the daemon there is overloaded, or something else listens at this \
             port; try again, and check the port",
            GREETING_TIMEOUT.as_secs()
        ),
    }
}

/// What is shown of an address where every connection is refused.
const NOTHING_LISTENS: &str = "nothing listens there (connection refused)";

/// The answer of an issuer.
pub(super) fn understood(answer: &[u8]) -> Result<Reply, String> {
    postcard::from_bytes(answer)
        .map_err(|_| "its answer is not understood; is it of another version?".to_owned())
}

/// What `address` stands for, as far as something accepts connections there.
async fn connectable(address: &Address) -> Result<SocketAddr, String> {
    let looking = tokio::net::lookup_host((address.host(), address.port()));
    let places = match tokio::time::timeout(ADDRESS_TIMEOUT, looking).await {
        Ok(Ok(places)) => places,
        Ok(Err(_)) => return Err("the name is not known here".to_owned()),
        Err(_) => return Err(format!("the name was not looked up within {} s", ADDRESS_TIMEOUT.as_secs())),
    };
    let mut said = "the name stands for no address".to_owned();
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
    // The system's number tells a person nothing.
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
