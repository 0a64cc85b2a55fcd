//! Forwarding to the representative of the own domain, also while it changes.
//!
//! ```text
//! no representative ─▶ wait for one ─▶ ask ─▶ lost, replaced, or unavailable ─▶ retry (only reads)
//!                          └─ it is this daemon: answered here
//! ```
//!
//! Rule: an election takes seconds, so a question that arrives meanwhile is retried until its own timeout. A
//! call that may have been carried out is not repeated.
//! Not here: whether a question is for the representative at all (`forward`), the election
//! (`overlay::domain`).

use super::forward::Own;
use crate::hop::{Hop, answer_for, millis, unavailable};
use overlay::clock;
use overlay::domain::View;
use overlay::net::handle::{AskError, Handle};
use overlay::net::protocol::Protocol;
use rpc::dispatch::encoded_answer::Answered;
use rpc::fault::Fault;
use std::time::Duration;
use wire::api::is_of_domain;
use wire::fault;
use wire::id::PeerKey;
use wire::query::{Answer, Question};

/// Longest wait for a representative, if this daemon knows why it has none.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(5);

/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(100);

/// Polling interval of the lease: no notification reports that this daemon may answer.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Representative of the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Represented {
    Here,
    By(PeerKey),
}

/// This daemon represents the domain: it answers `domain.*` itself. It does not answer a question about
/// another host, for which there is another route now.
fn here(method: &str) -> Result<Option<Answered>, Fault> {
    match is_of_domain(method) {
        true => Ok(None),
        false => Err(unavailable("this daemon represents the domain by now; ask again".to_owned())),
    }
}

/// Whether a retry may succeed: the connection is gone, or the representative is unavailable now.
fn passes(asked: &Result<Vec<u8>, AskError>) -> bool {
    match asked {
        Ok(bytes) => {
            let answer = postcard::from_bytes(bytes);
            matches!(answer, Ok(Answer::Fault { code: fault::UNAVAILABLE, .. }))
        }
        Err(error) => matches!(error, AskError::Open { .. } | AskError::Broken { .. }),
    }
}

impl Own {
    /// The answer of the domain's representative; `None` once that is this daemon, and the question is for
    /// it.
    pub(super) async fn ask_representative(
        &self,
        net: &Handle,
        mut question: Question,
        time_left: Duration,
    ) -> Result<Option<Answered>, Fault> {
        let start = clock::now();
        let left = || time_left.saturating_sub(clock::now().since(start));
        let is_read = is_of_domain(&question.method);
        let mut failed = None;
        loop {
            let peer = match self.found(net, left()).await {
                Some(Represented::Here) => return here(&question.method),
                Some(Represented::By(peer)) => peer,
                // The reason of a refusal says more than the error of the last attempt.
                None => {
                    return Err(failed
                        .filter(|_| self.welcome.health().is_empty())
                        .unwrap_or_else(|| self.unrepresented()));
                }
            };
            question.time_left_ms = millis(left());
            let bytes = question.to_bytes();
            let asked = tokio::select! {
                asked = net.ask(peer, Protocol::Query, &bytes, left()) => asked,
                // A representative that does not answer is often replaced before its connection is lost.
                () = self.is_followed(net, peer), if is_read => continue,
            };
            let is_passing = is_read && passes(&asked);
            let answered = answer_for(&self.hop_to(net, peer), question.form, asked).map(Some);
            if !is_passing || left() <= AGAIN {
                return answered;
            }
            failed = answered.err();
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The representative of the domain; `None` if there is none in time.
    async fn found(&self, net: &Handle, time_left: Duration) -> Option<Represented> {
        let soon = FOLLOWED_WITHIN.min(time_left);
        if let Ok(found) = tokio::time::timeout(soon, self.represented(net, None)).await {
            return Some(found);
        }
        if !self.welcome.health().is_empty() {
            return None;
        }
        tokio::time::timeout(time_left.saturating_sub(soon), self.represented(net, None)).await.ok()
    }

    /// Wait until another daemon than `peer` represents the domain.
    async fn is_followed(&self, net: &Handle, peer: PeerKey) {
        self.represented(net, Some(peer)).await;
    }

    /// Wait for a representative that is not `lost`.
    async fn represented(&self, net: &Handle, lost: Option<PeerKey>) -> Represented {
        let own = net.me();
        let mut view = self.members.view();
        loop {
            if self.members.may_serve() {
                return Represented::Here;
            }
            let known = view.borrow_and_update().state.representative;
            if let Some(peer) = known.filter(|peer| *peer != own && Some(*peer) != lost) {
                return Represented::By(peer);
            }
            tokio::select! {
                Ok(()) = view.changed() => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    fn unrepresented(&self) -> Fault {
        let domain = &self.domain;
        match self.welcome.health().as_slice() {
            [] => unavailable(format!("{domain} has no representative now; ask again in some seconds")),
            reasons => unavailable(format!(
                "{domain} has no representative that this daemon reaches now; {}; if it was put out, it soon \
                 represents a domain of one here",
                reasons.join("; ")
            )),
        }
    }

    /// The hop to `peer` as the representative of the domain.
    fn hop_to(&self, net: &Handle, peer: PeerKey) -> Hop {
        let view = self.members.view();
        let named = |view: &View| {
            view.members.iter().find(|seen| seen.member.key == peer).map(|seen| seen.member.host.clone())
        };
        let ready = || net.ready().into_iter().find(|one| one.peer == peer).and_then(|one| one.host.clone());
        let host = named(&view.borrow()).or_else(ready);
        Hop { peer, host, part: "representative", domain: Some(self.domain.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_representative_that_cannot_answer_now_is_asked_again_and_no_other_answer_is() {
        let peer = PeerKey([7; 32]);
        let fault_answer = |code| Ok(postcard::to_allocvec(&Answer::Fault { code, message: "why" }).unwrap());
        assert!(passes(&fault_answer(fault::UNAVAILABLE)));
        assert!(passes(&Err(AskError::Broken { peer, reason: "it ended".to_owned() })));
        assert!(!passes(&fault_answer(fault::NOT_FOUND)));
        assert!(!passes(&Ok(b"not an answer of this version".to_vec())));
        assert!(!passes(&Err(AskError::Refused { peer, reason: "no".to_owned() })));
    }

    #[test]
    fn who_comes_to_represent_the_domain_answers_for_it_and_not_for_another_host() {
        assert_eq!(here("domain.summary"), Ok(None));
        for method in ["sensor.processes", "sensor.subscribe"] {
            assert_eq!(here(method).unwrap_err().code, wire::fault::UNAVAILABLE);
        }
    }
}
