//! Lists of denied among the members of a domain: whoever learns a newer one hands it to every member it is connected to.
//!
//! Rule: a list that one member has reaches whoever is connected within seconds, with or without directories: a revoked
//! host that some still let in would hear from them that there is a representative, and never find that it is alone.
//! Who was away asks whoever represents the domain. A list is believed for its signature, and is on disk once it is
//! in force.
//! Not here: directories (`deny_sync`), what is believed (`identity::deny_list`).

use crate::clock;
use crate::domain::DomainHandle;
use crate::gatekeeper::Gatekeeper;
use crate::identity::admission::Principal;
use crate::joining::denials::DenialFile;
use crate::net::event_loop::Question as Asked;
use crate::net::handle::{Answer as Reply, Handle};
use crate::net::protocol::Protocol;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Denial;
use wire::id::{DomainName, PeerKey};
use wire::replication::{Answer, Question, Stated};
use wire::time::Moment;

/// How often it is looked whether there is a newer list here, or another representative.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the representative is asked though it is the same: what it was told while a member was not connected to
/// those who told it.
const ASK_INTERVAL: Duration = Duration::from_secs(60);

/// How long a member may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// The task's parts.
#[derive(Debug)]
pub struct DenySpread {
    /// This daemon's domain.
    pub domain: DomainName,
    /// What holds the lists.
    pub gate: Arc<Gatekeeper>,
    /// Where they are kept.
    pub denials: Arc<DenialFile>,
    /// Who is connected.
    pub net: Handle,
    /// This sensor's part in its domain.
    pub members: DomainHandle,
    /// Questions of `Protocol::Directory`.
    pub questions: mpsc::Receiver<Asked>,
}

/// What a member answered: the lists it has, or nothing of use.
type Told = (PeerKey, Vec<Denial>);

/// What was done last.
struct Done {
    /// The numbers of the lists that were handed on.
    spread: (u64, u64),
    /// The representative that was asked, and when.
    asked: Option<(PeerKey, Moment)>,
}

impl DenySpread {
    /// Hand on and take until `shutdown`, or until the overlay ends.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut done = Done { spread: self.numbers(), asked: None };
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        let mut asking: JoinSet<Option<Told>> = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                question = self.questions.recv() => match question {
                    Some(question) => self.answer(question).await,
                    None => return,
                },
                Some(told) = asking.join_next() => {
                    if let Ok(Some((peer, lists))) = told {
                        // What is not believed is in the audit.
                        let _ = self.denials.take(&self.gate, peer, &lists).await;
                    }
                }
                _ = look.tick() => self.look(&mut done, &mut asking),
            }
        }
    }

    fn look(&self, done: &mut Done, asking: &mut JoinSet<Option<Told>>) {
        let numbers = self.numbers();
        if done.spread != numbers {
            done.spread = numbers;
            let lists = self.gate.decide(|gate| gate.denials().of(&self.domain));
            let members = self.net.ready().into_iter().filter(|peer| self.is_own(peer));
            for member in members {
                asking.spawn(push(self.net.clone(), member.peer, lists.clone()));
            }
        }
        let representative = self.members.view().borrow().state.representative;
        let Some(peer) = representative.filter(|peer| *peer != self.net.me() && self.net.is_ready(*peer))
        else {
            return;
        };
        let now = clock::now();
        if done.asked.is_none_or(|(asked, at)| asked != peer || now.since(at) >= ASK_INTERVAL) {
            done.asked = Some((peer, now));
            asking.spawn(ask(self.net.clone(), peer, self.domain.clone()));
        }
    }

    fn numbers(&self) -> (u64, u64) {
        self.gate.decide(|gate| gate.denials().numbers(&self.domain))
    }

    fn is_own(&self, peer: &Principal) -> bool {
        peer.host.is_some() && peer.domain.as_ref() == Some(&self.domain)
    }

    async fn answer(&self, asked: Asked) {
        let Asked { peer, principal, body, reply, .. } = asked;
        let answer = match postcard::from_bytes(&body) {
            _ if !principal.is_some_and(|principal| self.is_own(&principal)) => {
                Answer::Refused(format!("this is a member of {}, and no directory", self.domain))
            }
            Ok(Question::DenyLists(domain)) if domain == self.domain => {
                Answer::DenyLists(self.gate.decide(|gate| gate.denials().of(&domain)))
            }
            Ok(Question::Deny(denial)) => match self.denials.take(&self.gate, peer, &[*denial]).await {
                Ok(()) => Answer::Stated(Stated::Taken),
                Err(refused) => Answer::Stated(Stated::Refused(refused.to_string())),
            },
            Ok(_) | Err(_) => Answer::Refused("a member is asked for lists of denied only".to_owned()),
        };
        let bytes = postcard::to_stdvec(&answer).expect("an answer has no part that cannot be written");
        // The peer may have gone.
        let _ = reply.send(Reply::Done(bytes));
    }
}

async fn push(net: Handle, member: PeerKey, lists: Vec<Denial>) -> Option<Told> {
    for list in lists {
        exchange(&net, member, &Question::Deny(Box::new(list))).await?;
    }
    None
}

async fn ask(net: Handle, member: PeerKey, domain: DomainName) -> Option<Told> {
    let answer = exchange(&net, member, &Question::DenyLists(domain)).await?;
    if let Answer::DenyLists(lists) = answer { Some((member, lists)) } else { None }
}

async fn exchange(net: &Handle, member: PeerKey, question: &Question) -> Option<Answer> {
    let bytes = postcard::to_stdvec(question).expect("a question has no part that cannot be written");
    let answered = net.ask(member, Protocol::Directory, &bytes, DEADLINE).await;
    answered
        .inspect_err(|error| tracing::debug!(%error, "no list of denied was exchanged with a member"))
        .ok()
        .and_then(|bytes| postcard::from_bytes(&bytes).ok())
}
