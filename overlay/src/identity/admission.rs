//! Admission and authorization: which peers a daemon admits, and which actions it allows them. Every stream
//! and call is checked again.
//!
//! Pure: callers pass the calendar time `now` and the moment `at` of a monotonic clock.
//! Rule: an admitted peer is checked again with the newest revocation lists and roots.
//! Not here: how a chain is verified (`certificate`), what each role allows (`principal`).

pub use super::principal::{Action, Principal};

use super::audit::{self, Audit, AuditedAction, Subject, Trail};
use super::certificate;
use super::guest_certificate;
use super::peer_clocks::PeerClocks;
use super::record::Opener;
use super::refused::Refused;
use super::revocation_lists::{self, RevocationLists, TakeOutcome};
use super::signed_command::Recipient;
use super::trust::{Affiliation, Trust};
use super::verified::Verified;
use super::{key, proxy_ticket};
use std::collections::{BTreeMap, BTreeSet};
use wire::control::{Order, SignedOrder};
use wire::credential::{Chain, Delegation, Denial, DenyList, Pass, Role, ShownPass, Statement};
use wire::entering::ShownVisa;
use wire::id::PeerKey;
use wire::registration::Record;
use wire::replication::{Farewell, Leave};
use wire::time::{Moment, Time};

/// The authorizer of a daemon: what it trusts, the revocation lists that it holds, and the audit log of its
/// decisions.
#[derive(Debug)]
pub struct Gate {
    trust: Trust,
    deny: RevocationLists,
    directories: BTreeSet<PeerKey>,
    trail: Trail,
    verified: Verified,
    clocks: PeerClocks,
    /// Guests whose certificates (visas) no longer count, each until the last of these would have expired.
    shut_out: BTreeMap<PeerKey, Time>,
}

impl Gate {
    /// An authorizer that recognizes these directories by their keys.
    #[must_use]
    pub fn new(trust: Trust, deny: RevocationLists, directories: BTreeSet<PeerKey>) -> Gate {
        Gate {
            trust,
            deny,
            directories,
            trail: Trail::default(),
            verified: Verified::default(),
            clocks: PeerClocks::default(),
            shut_out: BTreeMap::new(),
        }
    }

    /// Authenticate `peer` by the chain that it shows on a new connection; a directory needs none.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn handle_hello(
        &mut self,
        peer: PeerKey,
        chain: Option<&Chain>,
        now: Time,
        at: Moment,
    ) -> Result<Principal, Refused> {
        let shown = chain.map(|chain| certificate::verify(chain, peer, now, &self.deny, &self.trust));
        let known = match (shown, self.directories.contains(&peer)) {
            (Some(Ok(principal)), directory) => Ok(Principal { directory, ..principal }),
            // The key of a directory is enough: if its chain does not verify, only the other roles in it are
            // lost.
            (_, true) => Ok(Principal::of_directory(peer, self.trust.admits_readers())),
            (Some(Err(refused)), false) => Err(refused),
            (None, false) => Err(Refused::NoCertificate { peer }),
        };
        match &known {
            Ok(principal) => {
                let what = match principal.affiliation {
                    Affiliation::Directory => "directory".to_owned(),
                    Affiliation::Member | Affiliation::Reader | Affiliation::Visitor => {
                        principal.roles.to_string()
                    }
                };
                self.trail.admit(principal.subject(AuditedAction::Hello), what, now, at);
            }
            Err(refused) => {
                let said = chain.and_then(audit::said);
                let subject = Subject { said: said.as_deref(), ..Subject::stranger(peer) };
                self.trail.refuse(subject, refused, now, at);
            }
        }
        known
    }

    /// Authenticate a guest, `peer`, by the guest certificate (visa) that it shows on a new connection.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn handle_visa(
        &mut self,
        peer: PeerKey,
        shown: &ShownVisa,
        now: Time,
        at: Moment,
    ) -> Result<Principal, Refused> {
        let opened = self
            .check_inside(peer)
            .and_then(|()| guest_certificate::open(shown, peer, now, &self.deny, &self.trust));
        match &opened {
            Ok(principal) => {
                let what = principal.guest.as_ref().map_or_else(String::new, |guest| guest.to_string());
                self.trail.admit(principal.subject(AuditedAction::Hello), what, now, at);
            }
            Err(refused) => self.trail.refuse(Subject::stranger(peer), refused, now, at),
        }
        opened
    }

    /// Reject every guest certificate of `visitor` from now on: this daemon is the proxy that issued them,
    /// and the account no longer exists.
    pub fn shut_out(&mut self, visitor: PeerKey, now: Time) {
        self.shut_out.retain(|_, until| *until > now);
        self.shut_out.insert(visitor, now.plus(guest_certificate::LIFE + certificate::SKEW_MAX));
    }

    fn check_inside(&self, visitor: PeerKey) -> Result<(), Refused> {
        if self.shut_out.contains_key(&visitor) { Err(Refused::ShutOut { visitor }) } else { Ok(()) }
    }

    /// Authenticate the bearer of a proxy ticket (pass) that is shown to the proxy `me`: it acts for the
    /// member that signed the ticket.
    ///
    /// # Errors
    /// If the ticket is for another proxy or has expired, or if its signer would not be admitted itself.
    pub fn handle_pass(
        &mut self,
        shown: &ShownPass,
        me: PeerKey,
        now: Time,
        at: Moment,
    ) -> Result<Principal, Refused> {
        let signer = shown.pass.signer();
        let opened = self.open_pass(shown, me, now);
        if let Err(refused) = &opened {
            self.trail.refuse(Subject::stranger(signer), refused, now, at);
        }
        opened
    }

    fn open_pass(&self, shown: &ShownPass, me: PeerKey, now: Time) -> Result<Principal, Refused> {
        let signer = shown.pass.signer();
        let pass: Pass = key::open(&shown.pass, signer)?;
        if pass.proxy != me {
            return Err(Refused::OtherProxy { found: pass.proxy, expected: me });
        }
        certificate::check_life("pass", &pass.issued, pass.expires, proxy_ticket::LIFE_MAX)?;
        certificate::check_times("pass", pass.issued, pass.expires, now)?;
        let principal = certificate::verify(&shown.chain, signer, now, &self.deny, &self.trust)?;
        principal.may(Action::Read)?;
        Ok(principal)
    }

    /// Log that `peer` was refused before what it shows could be checked.
    pub fn refuse_hello(&mut self, peer: PeerKey, refused: &Refused, now: Time, at: Moment) {
        self.trail.refuse(Subject::stranger(peer), refused, now, at);
    }

    /// Check that a principal that was admitted earlier would still be admitted.
    ///
    /// # Errors
    /// If its certificate expired or was revoked, or its domain may no longer read.
    pub fn review(&self, principal: &Principal, now: Time) -> Result<(), Refused> {
        if let Some(guest) = &principal.guest {
            self.check_inside(principal.peer)?;
            guest_certificate::check_times(&guest.visa, now)?;
            self.review(&guest.proxy, now)?;
            return guest.proxy.may(Action::Read);
        }
        let (Some(domain), Some(root)) = (&principal.domain, principal.root) else {
            let peer = principal.peer;
            return if self.directories.contains(&peer) {
                Ok(())
            } else {
                Err(Refused::NoCertificate { peer })
            };
        };
        self.trust.affiliation(domain, root)?;
        certificate::check_times("certificate", principal.issued, principal.expires, now)?;
        principal.check_denials(&self.deny)
    }

    /// Check that a principal may open this stream or make this call now.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(
        &mut self,
        principal: &Principal,
        action: Action<'_>,
        now: Time,
        at: Moment,
    ) -> Result<(), Refused> {
        let answer = self.review(principal, now).and_then(|()| principal.may(action));
        let subject = principal.subject(AuditedAction::Action(action.as_str()));
        match &answer {
            Ok(()) if action.is_grave() => self.trail.admit(subject, principal.roles, now, at),
            Ok(()) => {}
            Err(refused) => self.trail.refuse(subject, refused, now, at),
        }
        answer
    }

    /// Verify the record in `statement`, which `peer` handed over.
    ///
    /// # Errors
    /// If its signer may not publish it.
    pub fn handle_statement(
        &mut self,
        peer: PeerKey,
        statement: &Statement,
        now: Time,
        at: Moment,
    ) -> Result<(Record, Principal), Refused> {
        let opened = self.opener(now).record(statement);
        self.log_refused((peer, &statement.chain), opened.as_ref().err(), now, at);
        opened
    }

    /// Verify the leave in `farewell`, which `peer` handed over.
    ///
    /// # Errors
    /// If its signer may not publish it.
    pub fn handle_farewell(
        &mut self,
        peer: PeerKey,
        farewell: &Farewell,
        now: Time,
        at: Moment,
    ) -> Result<(Leave, Principal), Refused> {
        let opened = self.opener(now).leave(farewell);
        self.log_refused((peer, &farewell.chain), opened.as_ref().err(), now, at);
        opened
    }

    /// Verify the signed command (order) that this daemon received; returns it with the operator that signed
    /// it.
    ///
    /// # Errors
    /// If it is not for this host, not signed by an operator, or expired.
    pub fn handle_order(
        &mut self,
        signed: &SignedOrder,
        here: &Recipient,
        now: Time,
        at: Moment,
    ) -> Result<(Order, Principal), Refused> {
        let opened = self.opener(now).order(signed, here);
        let what = AuditedAction::Action(Action::ControlProcesses.as_str());
        match &opened {
            Ok((_, operator)) => self.trail.admit(operator.subject(what), operator.roles, now, at),
            Err(refused) => {
                let subject = Subject { what, ..Subject::stranger(signed.order.signer()) };
                self.trail.refuse(subject, refused, now, at);
            }
        }
        opened
    }

    /// Check that `principal` may publish the record of its own domain at this directory, whatever else its
    /// domain may do here.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_stating(&mut self, principal: &Principal, now: Time, at: Moment) -> Result<(), Refused> {
        let action = "state a record";
        let answer = self.review(principal, now).and_then(|()| {
            if principal.domain.is_some() && principal.roles.has(Role::Representative) {
                return Ok(());
            }
            let (peer, needed, found) = (principal.peer, "representative", principal.roles);
            Err(Refused::Role { action, peer, needed, found })
        });
        if let Err(refused) = &answer {
            self.trail.refuse(principal.subject(AuditedAction::Action(action)), refused, now, at);
        }
        answer
    }

    fn opener(&mut self, now: Time) -> Opener<'_> {
        Opener { trust: &self.trust, deny: &self.deny, verified: &mut self.verified, now }
    }

    /// Log a refused record or leave: the peer that handed it over, and the host and domain that its chain
    /// claims.
    fn log_refused(
        &mut self,
        (peer, chain): (PeerKey, &Chain),
        refused: Option<&Refused>,
        now: Time,
        at: Moment,
    ) {
        if let Some(refused) = refused {
            let said = audit::said(chain);
            let subject =
                Subject { what: AuditedAction::Record, said: said.as_deref(), ..Subject::stranger(peer) };
            self.trail.refuse(subject, refused, now, at);
        }
    }

    /// Take a revocation list, which `peer` handed over. An older list is common and is not logged.
    ///
    /// # Errors
    /// If it is not newer or not correctly signed; nothing has changed then.
    pub fn handle_denial(
        &mut self,
        peer: PeerKey,
        denial: &Denial,
        now: Time,
        at: Moment,
    ) -> Result<TakeOutcome, Refused> {
        let taken = self.deny.take(denial, &self.trust);
        let subject = Subject { what: AuditedAction::DenyList, ..Subject::stranger(peer) };
        match &taken {
            Ok(TakeOutcome::New) => self.trail.admit(subject, "newer", now, at),
            Ok(TakeOutcome::Known) | Err(Refused::DenyListOld { .. }) => {}
            Err(refused) => self.trail.refuse(subject, refused, now, at),
        }
        taken
    }

    /// Verify a revocation list, which `peer` handed over to be stored and passed on, even if it is older
    /// than the one in force. A newer one comes into force.
    ///
    /// # Errors
    /// If it is not correctly signed; nothing has changed then.
    pub fn open_denial(
        &mut self,
        peer: PeerKey,
        denial: &Denial,
        now: Time,
        at: Moment,
    ) -> Result<(DenyList, Option<Delegation>), Refused> {
        match self.handle_denial(peer, denial, now, at) {
            Ok(_) | Err(Refused::DenyListOld { .. }) => revocation_lists::open(denial, &self.trust),
            Err(refused) => Err(refused),
        }
    }

    /// `peer`, which shows `chain`, says that its clock is at `time`. The clock of a member counts even if it
    /// is so wrong that the certificate is not valid here.
    pub fn note_time(&mut self, peer: PeerKey, chain: &Chain, time: Time, at: Moment) {
        let Ok(opened) = certificate::open(chain) else { return };
        let starts = opened.starts();
        if let Ok(member) = certificate::verify(chain, peer, starts, &self.deny, &self.trust)
            && member.affiliation == Affiliation::Member
        {
            self.clocks.note(peer, opened.certificate.host, time, at);
        }
    }

    /// Clock readings of the members.
    #[must_use]
    pub fn clocks(&self) -> &PeerClocks {
        &self.clocks
    }

    /// What this daemon trusts: its own root, and the roots of other domains.
    pub fn trust(&mut self) -> &mut Trust {
        &mut self.trust
    }

    /// Revocation lists in force.
    #[must_use]
    pub fn denials(&self) -> &RevocationLists {
        &self.deny
    }

    /// The next decision to be logged.
    pub fn poll_output(&mut self) -> Option<Audit> {
        self.trail.poll_output()
    }
}
