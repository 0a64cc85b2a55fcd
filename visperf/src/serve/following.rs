//! Asking whoever represents the own domain, also while that changes.
//!
//! ```text
//! nobody represents it ─▶ wait for somebody ─▶ ask ─▶ lost, or another one came ─▶ ask that one
//!                                 └─ it is this daemon: answered here                └─ (only what is read)
//! ```
//!
//! Rule: an election lasts seconds, so a question that comes meanwhile waits for its end, within its own time. What
//! may have been carried out is not asked twice.
//! Not here: whether a question is for the representative at all (`elsewhere`), the election (`overlay::domain`).

use super::elsewhere::{Hop, Own, answer_for, ask_hop, millis, unavailable};
use overlay::clock;
use overlay::domain::View;
use overlay::net::handle::{AskError, Handle};
use overlay::net::protocol::Protocol;
use rpc::fault::Fault;
use rpc::written::Answered;
use std::time::Duration;
use wire::id::PeerKey;
use wire::query::Question;

/// So long is waited for somebody to represent a domain that has nobody, or has lost who did.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(5);

/// The right to answer comes without being told of: it is looked for so often.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Who represents the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Represented {
    /// This daemon.
    Here,
    /// That one.
    By(PeerKey),
}

/// This daemon represents the domain: what is asked of the domain it answers. What is asked of another host is not its to
/// answer, and the way there is another one now.
fn here(method: &str) -> Result<Option<Answered>, Fault> {
    match method.starts_with("domain.") {
        true => Ok(None),
        false => Err(unavailable("this daemon represents the domain by now; ask again".to_owned())),
    }
}

impl Own {
    /// The answer of whoever represents the domain; `None` once that is this daemon, and the question is for it.
    pub(super) async fn ask_representative(
        &self,
        net: &Handle,
        mut question: Question,
        time_left: Duration,
    ) -> Result<Option<Answered>, Fault> {
        let began = clock::now();
        let left = || time_left.saturating_sub(clock::now().since(began));
        let peer = match self.found(net, None, left()).await {
            Some(Represented::Here) => return here(&question.method),
            Some(Represented::By(peer)) => peer,
            None => return Err(self.unrepresented()),
        };
        question.time_left_ms = millis(left());
        let bytes = question.to_bytes();
        let is_read = question.method.starts_with("domain.");
        let asked = tokio::select! {
            asked = net.ask(peer, Protocol::Query, &bytes, left()) => Some(asked),
            // One that hangs is followed before it is lost.
            () = self.is_followed(net, peer), if is_read => None,
        };
        let asked = match asked {
            Some(lost @ Err(AskError::Open { .. } | AskError::Broken { .. })) if is_read => lost,
            Some(asked) => return answer_for(&self.hop_to(net, peer), question.form, asked).map(Some),
            None => Err(AskError::TimedOut { peer, after: clock::now().since(began) }),
        };
        let next = match self.found(net, Some(peer), left()).await {
            Some(Represented::Here) => return here(&question.method),
            Some(Represented::By(next)) => next,
            None => return answer_for(&self.hop_to(net, peer), question.form, asked).map(Some),
        };
        question.time_left_ms = millis(left());
        ask_hop(net, &self.hop_to(net, next), &question, left()).await.map(Some)
    }

    /// Who represents the domain and is not `lost`; `None` if nobody does soon.
    async fn found(&self, net: &Handle, lost: Option<PeerKey>, time_left: Duration) -> Option<Represented> {
        tokio::time::timeout(FOLLOWED_WITHIN.min(time_left), self.represented(net, lost)).await.ok()
    }

    /// Another one than `peer` represents the domain.
    async fn is_followed(&self, net: &Handle, peer: PeerKey) {
        self.represented(net, Some(peer)).await;
    }

    /// Who represents the domain and is not `lost`, once somebody does.
    async fn represented(&self, net: &Handle, lost: Option<PeerKey>) -> Represented {
        let own = net.me();
        let mut view = self.members.view();
        loop {
            if self.members.may_serve() {
                return Represented::Here;
            }
            let told = view.borrow_and_update().state.representative;
            if let Some(peer) = told.filter(|peer| *peer != own && Some(*peer) != lost) {
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

    /// `peer` as the one that is asked for the domain.
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
    fn who_comes_to_represent_the_domain_answers_for_it_and_not_for_another_host() {
        assert_eq!(here("domain.summary"), Ok(None));
        for method in ["sensor.processes", "sensor.subscribe"] {
            assert_eq!(here(method).unwrap_err().code, rpc::fault::UNAVAILABLE);
        }
    }
}
