//! Why somebody or something was not let in: which check failed, what was expected and found, what to do.
//!
//! Pure. Every check of this module answers with one of these, so that a person reads the same words at the
//! daemon that refused, at the one that was refused, and in the audit.

use super::replace_refused;
use super::shown_time::At;
use std::time::Duration;
use wire::credential::{Roles, Serial};
use wire::id::{DomainName, HostName, NoMemberName, PeerKey};
use wire::time::Time;

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing was shown.
    #[error(
        "{peer} showed no certificate; type `visperf token create` on its domain's issuer and `visperf join \
         TOKEN` on its host"
    )]
    NoCertificate {
        /// Who.
        peer: PeerKey,
    },
    /// A hello of another version of the overlay.
    #[error("it speaks version {found} of the overlay, this daemon {expected}; update the older one")]
    Version {
        /// Its version.
        found: u16,
        /// This daemon's.
        expected: u16,
    },
    /// A visitor whose account was removed or changed since.
    #[error("the account of the visitor {visitor} was removed or changed; log in again")]
    ShutOut {
        /// Who.
        visitor: PeerKey,
    },
    /// A pass to somebody else.
    #[error(
        "the pass is for the proxy {found}, and this one is {expected}; make one with `visperf account pass {expected}`"
    )]
    OtherProxy {
        /// For whom.
        found: PeerKey,
        /// Who was shown it.
        expected: PeerKey,
    },
    /// What was shown cannot be read at all.
    #[error("what it shows is no certificate chain; is it of another version?")]
    Unreadable,
    /// Bytes that are no such thing.
    #[error(transparent)]
    Bytes(#[from] wire::sealed::Error),
    /// A domain that no one vouches for.
    #[error(
        "domain {domain} is not known here; a member's own domain, and those that its directories admit, are: \
         check the directories in the configuration and that they admit {domain}"
    )]
    UnknownDomain {
        /// Which.
        domain: DomainName,
    },
    /// A domain whose members may not read here.
    #[error("domain {domain} may not read here; name it in `readers` of the configuration to let it")]
    NotReader {
        /// Which.
        domain: DomainName,
    },
    /// Another domain of the same name.
    #[error(
        "domain {domain} has root {expected} here, but the certificate says {found}: it is of another domain \
         of that name, or of one that was created anew; join again by a new token"
    )]
    Root {
        /// The name.
        domain: DomainName,
        /// In the certificate.
        found: PeerKey,
        /// Believed here.
        expected: PeerKey,
    },
    /// Directories disagree.
    #[error(
        "the directories disagree on the root of domain {domain}: {one} or {other}; ask their operators which \
         is right, and remove the wrong one"
    )]
    RootDisputed {
        /// The name.
        domain: DomainName,
        /// What one says.
        one: PeerKey,
        /// What another says.
        other: PeerKey,
    },
    /// Signed by somebody else.
    #[error("{what} is signed by {found}, expected {expected}; no other key may sign it")]
    Signer {
        /// The kind of value.
        what: &'static str,
        /// Who signed.
        found: PeerKey,
        /// Who should have.
        expected: PeerKey,
    },
    /// Not signed by whom it says.
    #[error("signature of the {what} is not that of {signer}: it was forged or damaged; ask for it again")]
    Signature {
        /// The kind of value.
        what: &'static str,
        /// Whose it should be.
        signer: PeerKey,
    },
    /// The signer has no word of the root.
    #[error(
        "{what} is signed by {signer}, to whom the root of {domain} delegated nothing; expected the root's \
         delegation to it"
    )]
    NotDelegated {
        /// The kind of value.
        what: &'static str,
        /// Who signed.
        signer: PeerKey,
        /// Of which domain.
        domain: DomainName,
    },
    /// A role that an issuer gave.
    #[error(
        "certificate gives {roles}, signed by issuer {signer}; filter-admin and operator are the root's alone to \
         give"
    )]
    RoleOfRoot {
        /// The roles.
        roles: Roles,
        /// Who signed.
        signer: PeerKey,
    },
    /// Longer than anybody may sign for.
    #[error("{what} holds for {days} days; at most {max_days} are allowed", days = span.as_secs() / 86400,
        max_days = max.as_secs() / 86400)]
    TooLong {
        /// The kind of value.
        what: &'static str,
        /// Its life.
        span: Duration,
        /// The longest.
        max: Duration,
    },
    /// From the future.
    #[error("{what} holds from {}, but it is {} here; compare the clocks of both hosts, and set the one that is wrong", At(*from),
        At(*now))]
    NotYetValid {
        /// The kind of value.
        what: &'static str,
        /// From when.
        from: Time,
        /// Here.
        now: Time,
    },
    /// Over.
    #[error(
        "{what} expired at {}, and it is {} here; if the clocks of both hosts are right, join again by a new token \
         (`visperf token create` on the issuer)",
        At(*until), At(*now)
    )]
    Expired {
        /// The kind of value.
        what: &'static str,
        /// When.
        until: Time,
        /// Here.
        now: Time,
    },
    /// The issuer's own clock.
    #[error(
        "the issuer does not sign: its clock says {}, but {by} {}; set the clock of the issuer's host, or, if it is \
         right, type `visperf domain confirm-clock` there", At(*now), At(*expected)
    )]
    IssuerClock {
        /// What it says.
        now: Time,
        /// What it should say.
        expected: Time,
        /// By which evidence, as it precedes the time.
        by: String,
    },
    /// On the list of denied.
    #[error(
        "{peer} is denied by its domain (list {number}): every certificate up to {} was revoked; a new token is \
         needed", At(*issued_until)
    )]
    Denied {
        /// Who.
        peer: PeerKey,
        /// By which list.
        number: u64,
        /// Up to when.
        issued_until: Time,
    },
    /// Somebody else's certificate.
    #[error("{found} showed the certificate of {expected}; a certificate is of use to its own key alone")]
    Peer {
        /// Who is connected.
        found: PeerKey,
        /// Whose certificate.
        expected: PeerKey,
    },
    /// A role is missing.
    #[error(
        "to {action} needs {needed}, but {peer} has {found}; its domain's operator can give it by a new token"
    )]
    Role {
        /// What was tried.
        action: &'static str,
        /// Who.
        peer: PeerKey,
        /// One of these.
        needed: &'static str,
        /// What it has.
        found: Roles,
    },
    /// Another domain's.
    #[error(
        "{peer} of domain {domain} may read here and nothing else; to {action} is for the domain's own members"
    )]
    Foreigner {
        /// What was tried.
        action: &'static str,
        /// Who.
        peer: PeerKey,
        /// Of which domain.
        domain: DomainName,
    },
    /// For another host.
    #[error("{own} may not publish for {found}; every host speaks for itself")]
    Host {
        /// For whom.
        found: HostName,
        /// Its own.
        own: HostName,
    },
    /// For another domain.
    #[error("a representative of {own} may not state a record of {found}")]
    Domain {
        /// Whose record.
        found: DomainName,
        /// Its own.
        own: DomainName,
    },
    /// The record says otherwise than its signer's certificate.
    #[error("record of {domain} says {field} {found}, its signer's certificate {expected}")]
    Record {
        /// Of which domain.
        domain: DomainName,
        /// What.
        field: &'static str,
        /// In the record.
        found: String,
        /// In the certificate.
        expected: String,
    },
    /// No such secret.
    #[error(
        "no such token here: it was used up and forgotten, or revoked, or it is of another issuer; type `visperf token create` \
         on this domain's issuer for a new one"
    )]
    TokenUnknown,
    /// Of another domain.
    #[error(
        "token is of a domain with root {found}, but this issuer's is {expected} ({domain}); dial the issuer that made it"
    )]
    TokenIssuer {
        /// In the token.
        found: PeerKey,
        /// Here.
        expected: PeerKey,
        /// Here.
        domain: DomainName,
    },
    /// By others.
    #[error(
        "token was used by another daemon; type `visperf token create` on the issuer for a new one, and `visperf domain members` to see who joined"
    )]
    TokenUsed,
    /// Too late.
    #[error("token expired at {}, and it is {} here; type `visperf token create` on the issuer for a new one", At(*expired), At(*now))]
    TokenStale {
        /// When.
        expired: Time,
        /// Here.
        now: Time,
    },
    /// More than the token gives.
    #[error("asked for {wanted}, but the token gives {given}; ask its maker for one with these roles")]
    TokenRoles {
        /// Asked for.
        wanted: Roles,
        /// In the token.
        given: Roles,
    },
    /// By a token of the type replace.
    #[error(transparent)]
    Replace(#[from] replace_refused::Refused),
    /// Guessing.
    #[error("too many refused attempts to join; try again in {} s", wait.as_secs() + 1)]
    TooManyAttempts {
        /// How long to wait.
        wait: Duration,
    },
    /// Two hosts of one name.
    #[error(
        "host {host} belongs to {peer} until {}; if it was installed anew, type `visperf domain revoke {host}` on \
         the issuer first, otherwise give this host another name", At(*until)
    )]
    HostTaken {
        /// Which.
        host: HostName,
        /// By whom.
        peer: PeerKey,
        /// Until when.
        until: Time,
    },
    /// A name that no member may have.
    #[error(transparent)]
    HostName(#[from] NoMemberName),
    /// Asked before half of its life.
    #[error("certificate {serial} is renewed from {} on", At(*from))]
    TooEarly {
        /// Which.
        serial: Serial,
        /// From when.
        from: Time,
    },
    /// A list that was replaced.
    #[error(
        "deny-list {found} of {domain} is older than {held}, which is held; ask whoever sent it for the newest"
    )]
    DenyListOld {
        /// Of which domain.
        domain: DomainName,
        /// Its number.
        found: u64,
        /// What is held.
        held: u64,
    },
    /// Two lists of one number.
    #[error(
        "deny-list {number} of {domain} is held with another content; its signer must count on from the highest"
    )]
    DenyListTwice {
        /// Of which domain.
        domain: DomainName,
        /// Of both.
        number: u64,
    },
    /// An order for somewhere else.
    #[error(
        "order is for {field} {found}, and this is {here}; an order is of use where it was given for alone"
    )]
    OrderElsewhere {
        /// What differs.
        field: &'static str,
        /// In the order.
        found: String,
        /// Here.
        here: String,
    },
    /// Of somebody who may not give any.
    #[error(
        "{peer} has {found}, but to control processes needs operator, which the root alone gives: type `visperf domain \
         certify {peer} --role operator` on the host with the domain's root key"
    )]
    NotOperator {
        /// Who.
        peer: PeerKey,
        /// What it has.
        found: Roles,
    },
    /// One that would hold for too long, or for no time.
    #[error("order holds for {} s; expected more than none and at most {} s", span.as_secs(), max.as_secs())]
    OrderSpan {
        /// Its life.
        span: Duration,
        /// The longest.
        max: Duration,
    },
    /// Too late.
    #[error(
        "order ended at {}, {} s ago by this host's clock ({}); give it again, and if it is refused again compare the \
         clocks of both hosts: an order holds 30 s", At(*ended), now.since(*ended).as_secs(), At(*now)
    )]
    OrderStale {
        /// When it ended.
        ended: Time,
        /// Here.
        now: Time,
    },
    /// From the future.
    #[error(
        "order is of {}, {} s ahead of this host's clock ({}); compare the clocks of both hosts", At(*issued),
        issued.since(*now).as_secs(), At(*now)
    )]
    OrderEarly {
        /// When it was given.
        issued: Time,
        /// Here.
        now: Time,
    },
    /// Given before.
    #[error("order {sequence} of {peer} came before; none is obeyed twice: give a new one")]
    OrderRepeated {
        /// Whose.
        peer: PeerKey,
        /// Which.
        sequence: u64,
    },
    /// A number that was used for another one.
    #[error(
        "order {sequence} of {peer} differs from the one of that number that came before; is its key in use on two \
         hosts? Give each its own"
    )]
    OrderTwin {
        /// Whose.
        peer: PeerKey,
        /// Which.
        sequence: u64,
    },
    /// Not newer than what is no longer remembered one by one.
    #[error(
        "order {sequence} of {peer} is not newer than {floor}, up to which all count as come before; give a new one"
    )]
    OrderOld {
        /// Whose.
        peer: PeerKey,
        /// Which.
        sequence: u64,
        /// Up to which.
        floor: u64,
    },
    /// No room.
    #[error("{what} are {max} already, the most there may be; {remedy}")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many.
        max: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// No one of that name.
    #[error("no member {found} here; `visperf domain members` lists them")]
    NoMember {
        /// What was looked for.
        found: String,
    },
}
