//! Gossip of revocation lists in a domain: a member that receives a newer list sends it to every connected
//! member.
//!
//! Rule: a list that one member has reaches all connected members within seconds, with or without
//! directories. Otherwise, a revoked host that some members still admit would learn from them that there is a
//! representative, and never notice that it is alone. A member that was disconnected asks the representative.
//! A list is accepted by its signature, and is on disk once it is in force.
//! Not here: directories (`revocation_sync`), which lists are accepted (`identity::revocation_lists`).

use crate::authenticator::Authenticator;
use crate::clock;
use crate::domain::DomainHandle;
use crate::identity::admission::Principal;
use crate::joining::revocation_file::RevocationFile;
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

/// Interval of checks for a newer list, or for another representative.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of questions to the same representative: it may have received a list while this member was not
/// connected to the sender.
const ASK_INTERVAL: Duration = Duration::from_secs(60);

/// Timeout of a member's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// The gossip task.
#[derive(Debug)]
pub struct RevocationGossip {
    pub domain: DomainName,
    /// The authorizer, which holds the lists.
    pub gate: Arc<Authenticator>,
    /// Where the lists are stored.
    pub denials: Arc<RevocationFile>,
    /// The connected peers.
    pub net: Handle,
    /// This sensor's part in its domain.
    pub members: DomainHandle,
    /// Questions of `Protocol::Directory`.
    pub questions: mpsc::Receiver<Asked>,
}

/// The answer of a member: its lists, or nothing useful.
type MemberLists = (PeerKey, Vec<Denial>);

/// What was done last.
struct Done {
    /// The numbers of the lists that were sent to all members.
    spread: (u64, u64),
    /// The representative that was asked, and when.
    asked: Option<(PeerKey, Moment)>,
}

impl RevocationGossip {
    /// Send and receive lists until `shutdown`, or until the overlay ends.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut done = Done { spread: self.numbers(), asked: None };
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        let mut asking: JoinSet<Option<MemberLists>> = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                question = self.questions.recv() => match question {
                    Some(question) => self.answer(question).await,
                    None => return,
                },
                Some(answered) = asking.join_next() => {
                    if let Ok(Some((peer, lists))) = answered {
                        // A refusal is in the audit log.
                        let _ = self.denials.take(&self.gate, peer, &lists).await;
                    }
                }
                _ = look.tick() => self.look(&mut done, &mut asking),
            }
        }
    }

    fn look(&self, done: &mut Done, asking: &mut JoinSet<Option<MemberLists>>) {
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
        // The peer may have closed the connection.
        let _ = reply.send(Reply::Done(bytes));
    }
}

async fn push(net: Handle, member: PeerKey, lists: Vec<Denial>) -> Option<MemberLists> {
    for list in lists {
        exchange(&net, member, &Question::Deny(Box::new(list))).await?;
    }
    None
}

async fn ask(net: Handle, member: PeerKey, domain: DomainName) -> Option<MemberLists> {
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
