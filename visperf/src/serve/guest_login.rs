//! Visitors of a proxy: answers their logins over the overlay, signs visas, and disconnects those whose
//! account was removed or changed.
//!
//! Rules: the proxy itself answers a visitor nothing but logins; a visitor receives the address of a domain
//! only if its account may see it; one whose account was removed or changed loses its connection, and every
//! circuit with it, within [`LOOK_INTERVAL`].
//! Not here: the check of a login (`proxy::login::raw`), the permissions of a visa
//! (`overlay::identity::guest_certificate`).

use super::remote_domains::RemoteDomains;
use overlay::authenticator::Authenticator;
use overlay::clock;
use overlay::identity::guest_certificate::{self, LIFE};
use overlay::identity::key::Key;
use overlay::net::event_loop::Question as Asked;
use overlay::net::handle::{Answer, Handle};
use proxy::authorizer::ProxyAuthorizer;
use proxy::authorizer::guests;
use proxy::grant::Grant;
use proxy::login::raw::{Ends, Entered};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::entering::{ADDRESSES_MAX, Inside, Place, Question, Reply};
use wire::id::{DomainName, PeerKey};

/// Interval of the check for removed and changed accounts.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Most logins in progress; further ones wait.
const IN_WORK_MAX: usize = 64;

/// Timeout for finding a domain.
const LOOK_UP_TIME: Duration = Duration::from_secs(3);

/// Service of logins; cheap to clone.
#[derive(Clone)]
pub(crate) struct GuestLogin {
    pub(crate) authorizer: Arc<ProxyAuthorizer>,
    pub(crate) others: RemoteDomains,
    pub(crate) key: Key,
    pub(crate) gate: Arc<Authenticator>,
    pub(crate) net: Handle,
}

impl GuestLogin {
    /// Serve until `shutdown`.
    pub(crate) async fn run(self, mut questions: mpsc::Receiver<Asked>, shutdown: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        let mut in_work = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(_) = in_work.join_next() => {}
                _ = look.tick() => self.look().await,
                asked = questions.recv(), if in_work.len() < IN_WORK_MAX => match asked {
                    None => return,
                    Some(asked) => drop(in_work.spawn(self.clone().answer(asked))),
                },
            }
        }
    }

    async fn look(&self) {
        self.part();
        for visitor in self.authorizer.put_out() {
            tracing::info!(target: "audit", %visitor, "a visitor is put out: its account was changed or removed");
            // Without this its visa would let it in again.
            self.gate.shut_out(visitor);
            self.net.close(visitor).await;
        }
    }

    /// Remove visitors that are no longer connected.
    fn part(&self) {
        for (visitor, account) in self.authorizer.forget(|visitor| self.net.is_connected(visitor)) {
            tracing::info!(target: "audit", %visitor, account, "a visitor went");
        }
    }

    async fn answer(self, asked: Asked) {
        let Asked { peer, address, body, reply, .. } = asked;
        let answer = match postcard::from_bytes(&body) {
            Ok(question) => {
                let decision = self.reply(peer, address.map(|at| at.ip()), question).await;
                let decision = decision.unwrap_or_else(Reply::Refused);
                Answer::Done(postcard::to_stdvec(&decision).expect("plain data is encoded"))
            }
            Err(_) => Answer::Refused("the login is not understood; is it of another version?".to_owned()),
        };
        // The visitor may have gone.
        let _ = reply.send(answer);
    }

    async fn reply(
        &self,
        visitor: PeerKey,
        from: Option<IpAddr>,
        question: Question,
    ) -> Result<Reply, String> {
        match question {
            Question::Begin { account, hash, nonce } => {
                self.authorizer.begin(visitor, &account, hash, nonce).map_err(|error| error.to_string())
            }
            Question::Prove { proof, domain } => {
                // Visitors through another proxy count as one source.
                let source = from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
                let ends = Ends { visitor, proxy: self.net.me(), source };
                // Commands connect briefly; those that have gone make room at once.
                self.part();
                // A visitor that is already inside logs in again to renew its visa.
                let is_new = !self.authorizer.is_inside(visitor);
                let entered = self.authorizer.prove(ends, &proof);
                let entered = entered.map_err(|error| {
                    tracing::debug!(target: "audit", %visitor, %source, %error, "a visitor was not let in");
                    error.to_string()
                })?;
                if is_new {
                    let account = &entered.visitor.name;
                    tracing::info!(target: "audit", %visitor, account, %source, %domain, "a visitor came in");
                }
                self.let_in(visitor, entered, &domain).await.map(|inside| Reply::In(Box::new(inside)))
            }
        }
    }

    async fn let_in(
        &self,
        visitor: PeerKey,
        entered: Entered,
        domain: &DomainName,
    ) -> Result<Inside, String> {
        let visa = guests::visa(&entered, visitor, clock::calendar(), LIFE);
        let chain = self.gate.chain().ok_or("this proxy has no certificate")?;
        let visa =
            guest_certificate::make(&self.key, &chain, &visa).map_err(|refused| refused.to_string())?;
        let proof = entered.tag.bytes().to_vec();
        let place = self.place(&entered.visitor.grant, domain).await;
        Ok(Inside { proof, visa, place })
    }

    async fn place(&self, grant: &Grant, domain: &DomainName) -> Result<Place, String> {
        if !grant.domains.holds(domain) {
            return Err(proxy::grant::Refused::Domain.to_string());
        }
        let found = self.others.reach_of(domain, LOOK_UP_TIME).await;
        let mut reach = found.map_err(|fault| fault.message.into_owned())?;
        // Addresses through other proxies are useless with this proxy's visa, which is for its own circuits.
        reach.addresses.retain(|at| at.via().is_none());
        reach.addresses.truncate(ADDRESSES_MAX);
        Ok(Place { representative: reach.peer, root: reach.root, addresses: reach.addresses })
    }
}
