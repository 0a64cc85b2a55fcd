//! Authenticator of a running daemon: a lock around the pure [`Gate`], which reads the clocks and logs the
//! decisions.
//!
//! Rule: the lock is held for one decision, never across an await; every decision in the audit queue of
//! [`Gate`] is logged under the target `audit`.
//! Not here: the decisions (`identity::admission`), files (`identity::member_files`).

use crate::clock;
use crate::identity::admission::{Action, Gate, Principal};
use crate::identity::certificate;
use crate::identity::peer_clocks::Members;
use crate::identity::refused::Refused;
use crate::identity::revocation_lists::TakeOutcome;
use crate::identity::signed_command::Recipient;
use crate::net::hello::Admission;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use wire::control::{Order, SignedOrder};
use wire::credential::{Chain, Delegation, Denial, DenyList, ShownPass, Statement};
use wire::entering::ShownVisa;
use wire::id::PeerKey;
use wire::registration::Record;
use wire::replication::{Farewell, Leave};
use wire::time::Time;

/// The credentials that this daemon shows to its peers.
#[derive(Clone, Debug)]
enum Shown {
    /// A certificate, or none for a directory; and the previous certificate.
    Chain(Option<Box<Chain>>, Option<Box<Chain>>),
    /// Nothing: the daemon is about to join, or to log in.
    Nothing,
    /// A guest certificate (visa): the program is a guest.
    Visa(Box<ShownVisa>),
}

/// First byte of a visa; an optional chain starts with 1 or 0.
const VISA_FIRST: u8 = 2;

/// The authorizer, and the credentials of the daemon.
#[derive(Debug)]
pub struct Authenticator {
    gate: Mutex<Gate>,
    shown: RwLock<Shown>,
}

impl Authenticator {
    /// For a daemon that shows `chain`; a directory shows none and is recognized by its key.
    #[must_use]
    pub fn new(gate: Gate, chain: Option<Chain>) -> Authenticator {
        Authenticator { gate: Mutex::new(gate), shown: RwLock::new(Shown::Chain(chain.map(Box::new), None)) }
    }

    /// For a daemon that is about to join and has nothing to show.
    #[must_use]
    pub fn joining(gate: Gate) -> Authenticator {
        Authenticator { gate: Mutex::new(gate), shown: RwLock::new(Shown::Nothing) }
    }

    /// Show this certificate from now on, or `previous` while that is valid and this one is not valid yet.
    pub fn show(&self, chain: Chain, previous: Option<Chain>) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) =
            Shown::Chain(Some(Box::new(chain)), previous.map(Box::new));
    }

    pub fn show_nothing(&self) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Shown::Nothing;
    }

    pub fn show_visa(&self, visa: ShownVisa) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Shown::Visa(Box::new(visa));
    }

    /// The newest certificate, even if it is not valid.
    #[must_use]
    pub fn newest_chain(&self) -> Option<Chain> {
        match &*self.shown.read().unwrap_or_else(PoisonError::into_inner) {
            Shown::Chain(chain, _) => chain.as_deref().cloned(),
            Shown::Nothing | Shown::Visa(_) => None,
        }
    }

    /// The certificate that the daemon shows: the newest that is valid now.
    #[must_use]
    pub fn chain(&self) -> Option<Chain> {
        match &*self.shown.read().unwrap_or_else(PoisonError::into_inner) {
            Shown::Chain(chain, previous) => {
                certificate::newest_that_holds(chain.as_deref(), previous.as_deref(), clock::calendar())
                    .cloned()
            }
            Shown::Nothing | Shown::Visa(_) => None,
        }
    }

    /// Check that `principal` may do this now.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self, principal: &Principal, action: Action<'_>) -> Result<(), Refused> {
        self.decide(|gate| gate.check(principal, action, clock::calendar(), clock::now()))
    }

    /// Reject every visa of `visitor`, a guest of this proxy, from now on.
    pub fn shut_out(&self, visitor: PeerKey) {
        self.decide(|gate| gate.shut_out(visitor, clock::calendar()));
    }

    /// Authenticate the bearer of a proxy ticket (pass) that is shown to the proxy `me`.
    ///
    /// # Errors
    /// Why the ticket is refused.
    pub fn open_pass(&self, shown: &ShownPass, me: PeerKey) -> Result<Principal, Refused> {
        self.decide(|gate| gate.handle_pass(shown, me, clock::calendar(), clock::now()))
    }

    /// Verify the record in a statement that `peer` handed over.
    ///
    /// # Errors
    /// If its signer may not publish it.
    pub fn open_statement(
        &self,
        peer: PeerKey,
        statement: &Statement,
    ) -> Result<(Record, Principal), Refused> {
        self.decide(|gate| gate.handle_statement(peer, statement, clock::calendar(), clock::now()))
    }

    /// Verify the leave in a farewell that `peer` handed over.
    ///
    /// # Errors
    /// If its signer may not publish it.
    pub fn open_farewell(&self, peer: PeerKey, farewell: &Farewell) -> Result<(Leave, Principal), Refused> {
        self.decide(|gate| gate.handle_farewell(peer, farewell, clock::calendar(), clock::now()))
    }

    /// Verify a signed command (order) that this daemon received; returns it with the operator that signed
    /// it.
    ///
    /// # Errors
    /// If it is not for this host, not signed by an operator, or expired.
    pub fn open_order(&self, signed: &SignedOrder, here: &Recipient) -> Result<(Order, Principal), Refused> {
        self.decide(|gate| gate.handle_order(signed, here, clock::calendar(), clock::now()))
    }

    /// Check that `principal` may publish the record of its own domain at this directory.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_stating(&self, principal: &Principal) -> Result<(), Refused> {
        self.decide(|gate| gate.check_stating(principal, clock::calendar(), clock::now()))
    }

    /// Verify a revocation list that `peer` handed over, even if it is older than the one in force.
    ///
    /// # Errors
    /// If it is not correctly signed.
    pub fn open_denial(
        &self,
        peer: PeerKey,
        denial: &Denial,
    ) -> Result<(DenyList, Option<Delegation>), Refused> {
        self.decide(|gate| gate.open_denial(peer, denial, clock::calendar(), clock::now()))
    }

    /// Take a revocation list that `peer` handed over.
    ///
    /// # Errors
    /// If it is not newer or not correctly signed.
    pub fn take_denial(&self, peer: PeerKey, denial: &Denial) -> Result<TakeOutcome, Refused> {
        self.decide(|gate| gate.handle_denial(peer, denial, clock::calendar(), clock::now()))
    }

    /// What the members' clocks say about this host's clock.
    #[must_use]
    pub fn members_clock(&self) -> Members {
        self.lock().clocks().members(clock::calendar(), clock::now())
    }

    /// Messages about wrong clocks, of this host or of members.
    #[must_use]
    pub fn clock_health(&self) -> Vec<String> {
        self.lock().clocks().health(clock::calendar(), clock::now())
    }

    /// Run one decision on the gate, and log the decisions in its audit queue.
    pub fn decide<T>(&self, decision: impl FnOnce(&mut Gate) -> T) -> T {
        let mut gate = self.lock();
        let result = decision(&mut gate);
        while let Some(audit) = gate.poll_output() {
            audit.log();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        // Each change of the gate's tables is a single step.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission for Authenticator {
    fn proof(&self) -> Vec<u8> {
        match &*self.shown.read().unwrap_or_else(PoisonError::into_inner) {
            Shown::Chain(chain, previous) => {
                let chain =
                    certificate::newest_that_holds(chain.as_deref(), previous.as_deref(), clock::calendar());
                postcard::to_stdvec(&chain).expect("a chain has no part that cannot be written")
            }
            Shown::Nothing => Vec::new(),
            Shown::Visa(visa) => postcard::to_extend(visa, vec![VISA_FIRST])
                .expect("a visa has no part that cannot be written"),
        }
    }

    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String> {
        let admitted = match read(proof) {
            None => {
                let refused = Refused::Unreadable;
                self.decide(|gate| gate.refuse_hello(peer, &refused, clock::calendar(), clock::now()));
                Err(refused)
            }
            Some(Read::Visa(visa)) => {
                self.decide(|gate| gate.handle_visa(peer, &visa, clock::calendar(), clock::now()))
            }
            Some(Read::Chain(chain)) => {
                let chain = chain.as_deref();
                self.decide(|gate| gate.handle_hello(peer, chain, clock::calendar(), clock::now()))
            }
        };
        admitted.map(Arc::new).map_err(|refused| refused.to_string())
    }

    fn note_time(&self, peer: PeerKey, proof: &[u8], time: Time) {
        if let Some(Read::Chain(Some(chain))) = read(proof) {
            self.lock().note_time(peer, &chain, time, clock::now());
        }
    }

    fn review(&self, principal: &Principal) -> Result<(), String> {
        self.lock().review(principal, clock::calendar()).map_err(|refused| refused.to_string())
    }
}

/// Credentials that a peer shows.
enum Read {
    Chain(Option<Box<Chain>>),
    Visa(Box<ShownVisa>),
}

fn read(proof: &[u8]) -> Option<Read> {
    match proof.split_first() {
        Some((&VISA_FIRST, visa)) => postcard::from_bytes(visa).ok().map(Read::Visa),
        _ => postcard::from_bytes(proof).ok().map(Read::Chain),
    }
}
