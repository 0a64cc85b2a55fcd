//! Why a request was refused: which check failed, what was expected and found, and what to do.
//!
//! Pure. Every check of this module returns one of these, so that the same text appears at the daemon that
//! refused, at the peer that was refused, and in the audit log.

use super::replace_refused;
use super::shown_time::At;
use std::time::Duration;
use wire::credential::{Roles, Serial};
use wire::id::{DomainName, HostName, NoMemberName, PeerKey};
use wire::time::Time;

/// Reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The peer showed no certificate.
    #[error(
        "{peer} showed no certificate; type `visperf token create` on its domain's issuer and `visperf join \
         TOKEN` on its host"
    )]
    NoCertificate {
        /// The connected peer.
        peer: PeerKey,
    },
    /// The hello has another version of the overlay.
    #[error("it speaks version {found} of the overlay, this daemon {expected}; update the older one")]
    Version {
        found: u16,
        /// Version of this daemon.
        expected: u16,
    },
    /// The account of a guest was removed or changed after its login.
    #[error("the account of the visitor {visitor} was removed or changed; log in again")]
    ShutOut {
        /// Key of the guest.
        visitor: PeerKey,
    },
    /// A proxy ticket for another proxy.
    #[error(
        "the pass is for the proxy {found}, and this one is {expected}; make one with `visperf account pass {expected}`"
    )]
    OtherProxy {
        /// The proxy in the ticket.
        found: PeerKey,
        /// The proxy that received it.
        expected: PeerKey,
    },
    /// The certificate chain cannot be read at all.
    #[error("what it shows is no certificate chain; is it of another version?")]
    Unreadable,
    /// The bytes are not a sealed value of this kind.
    #[error(transparent)]
    Bytes(#[from] wire::sealed::Error),
    /// No trusted directory vouches for the domain.
    #[error(
        "domain {domain} is not known here; a member's own domain, and those that its directories admit, are: \
         check the directories in the configuration and that they admit {domain}"
    )]
    UnknownDomain {
        /// The domain in the certificate, list or record.
        domain: DomainName,
    },
    /// Members of the domain may not read here.
    #[error("domain {domain} may not read here; name it in `readers` of the configuration to let it")]
    NotReader {
        /// The domain in the certificate.
        domain: DomainName,
    },
    /// Another domain of the same name.
    #[error(
        "domain {domain} has root {expected} here, but the certificate says {found}: it is of another domain \
         of that name, or of one that was created again; join again by a new token"
    )]
    Root {
        domain: DomainName,
        /// The root in the certificate.
        found: PeerKey,
        /// The root trusted here.
        expected: PeerKey,
    },
    /// Directories name different roots of a domain.
    #[error(
        "the directories disagree on the root of domain {domain}: {one} or {other}; ask their operators which \
         is right, and remove the wrong one"
    )]
    RootDisputed {
        domain: DomainName,
        /// The root that one directory names.
        one: PeerKey,
        /// The root that another directory names.
        other: PeerKey,
    },
    /// The value is signed by another key.
    #[error("{what} is signed by {found}, expected {expected}; no other key may sign it")]
    Signer {
        /// The kind of value.
        what: &'static str,
        /// The key that signed.
        found: PeerKey,
        /// The key that should have signed.
        expected: PeerKey,
    },
    /// The signature is not that of the named signer.
    #[error("signature of the {what} is not that of {signer}: it was forged or damaged; ask for it again")]
    Signature {
        /// The kind of value.
        what: &'static str,
        /// The named signer.
        signer: PeerKey,
    },
    /// The root has not delegated to the signer.
    #[error(
        "{what} is signed by {signer}, which has no delegation from the root of {domain}; expected the root's \
         delegation to it"
    )]
    NotDelegated {
        /// The kind of value.
        what: &'static str,
        signer: PeerKey,
        domain: DomainName,
    },
    /// An issuer gave a role that only the root may give.
    #[error(
        "certificate gives {roles}, signed by issuer {signer}; filter-admin and operator are the root's alone to \
         give"
    )]
    RoleOfRoot {
        /// Roles in the certificate.
        roles: Roles,
        /// The issuer that signed it.
        signer: PeerKey,
    },
    /// The value is valid for longer than its signer may sign for.
    #[error("{what} holds for {days} days; at most {max_days} are allowed", days = span.as_secs() / 86400,
        max_days = max.as_secs() / 86400)]
    TooLong {
        /// The kind of value.
        what: &'static str,
        /// Its validity.
        span: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The value is valid only from a later time.
    #[error("{what} holds from {}, but it is {} here; compare the clocks of both hosts, and set the one that is wrong", At(*from),
        At(*now))]
    NotYetValid {
        /// The kind of value.
        what: &'static str,
        /// When it becomes valid.
        from: Time,
        /// Time on this host.
        now: Time,
    },
    /// The value has expired.
    #[error(
        "{what} expired at {}, and it is {} here; if the clocks of both hosts are right, join again by a new token \
         (`visperf token create` on the issuer)",
        At(*until), At(*now)
    )]
    Expired {
        /// The kind of value.
        what: &'static str,
        /// When it expired.
        until: Time,
        /// Time on this host.
        now: Time,
    },
    /// The issuer's own clock seems wrong.
    #[error(
        "the issuer does not sign: its clock says {}, but {by} {}; set the clock of the issuer's host, or, if it is \
         right, type `visperf domain confirm-clock` there", At(*now), At(*expected)
    )]
    IssuerClock {
        /// Time that it shows.
        now: Time,
        /// Time that it should show.
        expected: Time,
        /// The evidence, in the form that precedes the time in the message.
        by: String,
    },
    /// The peer is on a revocation list.
    #[error(
        "{peer} is denied by its domain (list {number}): every certificate up to {} was revoked; a new token is \
         needed", At(*issued_until)
    )]
    Denied {
        peer: PeerKey,
        /// Number of the list.
        number: u64,
        /// Certificates issued up to this time are revoked.
        issued_until: Time,
    },
    /// The certificate of another peer.
    #[error("{found} showed the certificate of {expected}; a certificate is of use to its own key alone")]
    Peer {
        /// The connected peer.
        found: PeerKey,
        /// The peer in the certificate.
        expected: PeerKey,
    },
    /// A role is missing.
    #[error(
        "to {action} needs {needed}, but {peer} has {found}; its domain's operator can give it by a new token"
    )]
    Role {
        /// The action.
        action: &'static str,
        peer: PeerKey,
        /// The roles that allow it; one is enough.
        needed: &'static str,
        /// The roles that it has.
        found: Roles,
    },
    /// A principal of another domain may only read.
    #[error(
        "{peer} of domain {domain} may read here and nothing else; to {action} is for the domain's own members"
    )]
    Foreigner {
        /// The action.
        action: &'static str,
        peer: PeerKey,
        domain: DomainName,
    },
    /// A sensor would publish for another host.
    #[error("{own} may not publish for {found}; every host speaks for itself")]
    Host {
        /// The host in the request.
        found: HostName,
        /// The sensor's host.
        own: HostName,
    },
    /// A representative would publish the record of another domain.
    #[error("a representative of {own} may not state a record of {found}")]
    Domain {
        /// The domain of the record.
        found: DomainName,
        /// The representative's domain.
        own: DomainName,
    },
    /// The record and its signer's certificate differ.
    #[error("record of {domain} says {field} {found}, its signer's certificate {expected}")]
    Record {
        domain: DomainName,
        /// The field that differs.
        field: &'static str,
        /// Its value in the record.
        found: String,
        /// Its value in the certificate.
        expected: String,
    },
    /// No token has this secret.
    #[error(
        "no such token here: it was used up and forgotten, or revoked, or it is of another issuer; type `visperf token create` \
         on this domain's issuer for a new one"
    )]
    TokenUnknown,
    /// The token is of another domain.
    #[error(
        "token is of a domain with root {found}, but this issuer's is {expected} ({domain}); dial the issuer that made it"
    )]
    TokenIssuer {
        /// The root in the token.
        found: PeerKey,
        /// The root of this domain.
        expected: PeerKey,
        /// This domain.
        domain: DomainName,
    },
    /// Another daemon has used the token.
    #[error(
        "token was used by another daemon; type `visperf token create` on the issuer for a new one, and `visperf domain members` to see who joined"
    )]
    TokenUsed,
    /// The token has expired.
    #[error("token expired at {}, and it is {} here; type `visperf token create` on the issuer for a new one", At(*expired), At(*now))]
    TokenStale {
        /// When it expired.
        expired: Time,
        /// Time on this host.
        now: Time,
    },
    /// The request is for more roles than the token gives.
    #[error("asked for {wanted}, but the token gives {given}; ask its maker for one with these roles")]
    TokenRoles {
        /// The requested roles.
        wanted: Roles,
        /// The roles of the token.
        given: Roles,
    },
    /// Refusals of tokens of the type replace.
    #[error(transparent)]
    Replace(#[from] replace_refused::Refused),
    /// The rate limit on refused attempts.
    #[error("too many refused attempts to join; try again in {} s", wait.as_secs() + 1)]
    TooManyAttempts {
        /// Time until the next attempt is allowed.
        wait: Duration,
    },
    /// Another key holds the host name.
    #[error(
        "host {host} belongs to {peer} until {}; if it was installed again, type `visperf domain revoke {host}` on \
         the issuer first, otherwise give this host another name", At(*until)
    )]
    HostTaken {
        host: HostName,
        /// The key that holds it.
        peer: PeerKey,
        /// When its certificate expires.
        until: Time,
    },
    /// Members may not have this host name.
    #[error(transparent)]
    HostName(#[from] NoMemberName),
    /// A renewal before half of the certificate's life.
    #[error("certificate {serial} is renewed from {} on", At(*from))]
    TooEarly {
        /// The serial number of the certificate.
        serial: Serial,
        /// When it becomes due for renewal.
        from: Time,
    },
    /// The revocation list is older than the stored one.
    #[error(
        "deny-list {found} of {domain} is older than {held}, which is held; ask its sender for the newest"
    )]
    DenyListOld {
        domain: DomainName,
        found: u64,
        /// The number of the stored list.
        held: u64,
    },
    /// Two revocation lists have the same number.
    #[error(
        "deny-list {number} of {domain} is held with another content; its signer must count on from the highest"
    )]
    DenyListTwice {
        domain: DomainName,
        /// The number of both.
        number: u64,
    },
    /// The order is for another domain or host.
    #[error(
        "order is for {field} {found}, and this is {here}; an order is of use where it was given for alone"
    )]
    OrderElsewhere {
        /// The field that differs.
        field: &'static str,
        /// Its value in the order.
        found: String,
        /// Its value here.
        here: String,
    },
    /// The signer of the order does not have the role of operator.
    #[error(
        "{peer} has {found}, but to control processes needs operator, which the root alone gives: type `visperf domain \
         certify {peer} --role operator` on the host with the domain's root key"
    )]
    NotOperator {
        peer: PeerKey,
        /// The roles that it has.
        found: Roles,
    },
    /// The order would be valid for too long, or for no time.
    #[error("order holds for {} s; expected more than none and at most {} s", span.as_secs(), max.as_secs())]
    OrderSpan {
        /// Its validity.
        span: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// The order has expired.
    #[error(
        "order ended at {}, {} s ago by this host's clock ({}); give it again, and if it is refused again compare the \
         clocks of both hosts: an order holds 30 s", At(*ended), now.since(*ended).as_secs(), At(*now)
    )]
    OrderStale {
        /// When it expired.
        ended: Time,
        /// Time on this host.
        now: Time,
    },
    /// The order was signed at a later time than this host's clock shows.
    #[error(
        "order is of {}, {} s ahead of this host's clock ({}); compare the clocks of both hosts", At(*issued),
        issued.since(*now).as_secs(), At(*now)
    )]
    OrderEarly {
        /// When it was signed.
        issued: Time,
        /// Time on this host.
        now: Time,
    },
    /// The order was received before.
    #[error("order {sequence} of {peer} came before; none is obeyed twice: give a new one")]
    OrderRepeated {
        /// Its signer.
        peer: PeerKey,
        /// Its number.
        sequence: u64,
    },
    /// Another order had the same number.
    #[error(
        "order {sequence} of {peer} differs from the one of that number that came before; is its key in use on two \
         hosts? Give each its own"
    )]
    OrderTwin {
        /// Its signer.
        peer: PeerKey,
        /// Its number.
        sequence: u64,
    },
    /// The order's number is not above the floor: orders up to it are no longer stored one by one.
    #[error(
        "order {sequence} of {peer} is not newer than {floor}, up to which all count as come before; give a new one"
    )]
    OrderOld {
        /// Its signer.
        peer: PeerKey,
        /// Its number.
        sequence: u64,
        /// The highest number that counts as received.
        floor: u64,
    },
    /// A limit is reached.
    #[error("{what} are {max} already, the most there may be; {remedy}")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        max: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// No member has this name.
    #[error("no member {found} here; `visperf domain members` lists them")]
    NoMember {
        /// The name.
        found: String,
    },
}
