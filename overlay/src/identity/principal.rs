//! An authenticated peer (principal), and what its roles allow.
//!
//! Pure. Rule: a principal is made from a verified certificate, the configured key of a directory, or a
//! verified guest certificate (visa), and from nothing else. Principals of another domain may only read.
//!
//! | action                        | allowed for                                                            |
//! | ----------------------------- | ---------------------------------------------------------------------- |
//! | read                          | viewer, representative, filter-admin, operator; a directory, if the    |
//! |                               | domains that directories admit may read here                           |
//! | publish for its own host      | publisher                                                              |
//! | represent                     | representative                                                         |
//! | state its own domain's record | representative                                                         |
//! | deploy filters                | filter-admin                                                           |
//! | control processes             | operator                                                               |
//! | issue certificates            | the daemon that the root delegated this to                             |
//! | replicate records             | a directory                                                            |
//!
//! A guest reads what its guest certificate allows, as long as the proxy that issued it may read.
//!
//! Not here: authentication, and whether it is still valid (`admission`).

use super::audit::{AuditedAction, Subject};
use super::certificate::Opened;
use super::guest_certificate::Guest;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::trust::Affiliation;
use std::sync::Arc;
use wire::credential::{Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::Time;

/// An action that needs authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Query or subscribe.
    Read,
    /// Publish samples and events of this host.
    Publish {
        /// The host that the samples are of.
        host: &'a HostName,
    },
    /// Run in an election, and be the representative.
    Represent,
    /// Deploy log filters.
    DeployFilters,
    /// Signal processes.
    ControlProcesses,
    /// Sign certificates.
    Issue,
    /// Exchange records as a directory.
    Replicate,
}

impl Action<'_> {
    /// Its name, as it follows "to" in a message.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Publish { .. } => "publish",
            Action::Represent => "represent",
            Action::DeployFilters => "deploy filters",
            Action::ControlProcesses => "control processes",
            Action::Issue => "issue certificates",
            Action::Replicate => "replicate records",
        }
    }

    /// Roles that allow it, one of them is enough, and their names for messages.
    const fn roles(self) -> (&'static [Role], &'static str) {
        match self {
            Action::Read => (
                &[Role::Viewer, Role::Representative, Role::FilterAdmin, Role::Operator],
                "viewer, representative, filter-admin or operator",
            ),
            Action::Publish { .. } => (&[Role::Publisher], "publisher"),
            Action::Represent => (&[Role::Representative], "representative"),
            Action::DeployFilters => (&[Role::FilterAdmin], "filter-admin"),
            Action::ControlProcesses => (&[Role::Operator], "operator"),
            Action::Issue => (&[], "the root's delegation"),
            Action::Replicate => (&[], "the key of a configured directory"),
        }
    }

    /// Whether the audit log has every success, not only the refusals.
    pub(super) const fn is_grave(self) -> bool {
        matches!(self, Action::DeployFilters | Action::ControlProcesses | Action::Issue)
    }
}

/// An authenticated peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub peer: PeerKey,
    /// How it belongs to this daemon's domain.
    pub affiliation: Affiliation,
    /// Whether it is a configured directory; it may also be a member, because one daemon may be both.
    pub directory: bool,
    /// Its domain; none for a directory or a guest.
    pub domain: Option<DomainName>,
    /// The root of its domain; none for a directory or a guest.
    pub root: Option<PeerKey>,
    /// Its host; none for a directory or a guest.
    pub host: Option<HostName>,
    pub roles: Roles,
    /// Its priority in an election, set by the operator.
    pub priority: u8,
    /// Number of its certificate; 0 for a directory or a guest.
    pub serial: Serial,
    /// When its certificate was issued.
    pub issued: Time,
    /// When its certificate or the delegation for that expires, whichever is first.
    pub expires: Time,
    /// The issuer of its certificate, and when the root delegated to it; none if the root signed the
    /// certificate.
    pub delegated: Option<(PeerKey, Time)>,
    /// The guest certificate and the proxy that issued it; none except for a guest.
    pub guest: Option<Arc<Guest>>,
}

impl Principal {
    pub(super) fn of(opened: Opened, affiliation: Affiliation) -> Principal {
        let Opened { certificate, delegation } = opened;
        let expires =
            delegation.as_ref().map_or(certificate.expires, |it| it.expires.min(certificate.expires));
        Principal {
            peer: certificate.peer,
            affiliation,
            directory: false,
            domain: Some(certificate.domain),
            root: Some(certificate.root),
            host: Some(certificate.host),
            roles: certificate.roles,
            priority: certificate.priority,
            serial: certificate.serial,
            issued: certificate.issued,
            expires,
            delegated: delegation.map(|delegation| (delegation.issuer, delegation.issued)),
            guest: None,
        }
    }

    pub(super) fn of_directory(peer: PeerKey, may_read: bool) -> Principal {
        Principal {
            peer,
            affiliation: Affiliation::Directory,
            directory: true,
            domain: None,
            root: None,
            host: None,
            roles: if may_read { Roles::NONE.with(Role::Viewer) } else { Roles::NONE },
            priority: 0,
            serial: Serial(0),
            issued: Time::from_micros(0),
            expires: Time::from_micros(i64::MAX),
            delegated: None,
            guest: None,
        }
    }

    /// A guest: it has the role of a viewer, in no domain.
    pub(super) fn of_guest(peer: PeerKey, guest: Guest) -> Principal {
        let expires = guest.visa.expires.min(guest.proxy.expires);
        let roles = Roles::NONE.with(Role::Viewer);
        let empty = Principal::of_directory(peer, false);
        let issued = guest.visa.issued;
        Principal {
            affiliation: Affiliation::Visitor,
            directory: false,
            roles,
            issued,
            expires,
            guest: Some(Arc::new(guest)),
            ..empty
        }
    }

    /// Check that its roles allow this action.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may(&self, action: Action<'_>) -> Result<(), Refused> {
        let (roles, needed) = action.roles();
        let missing =
            || Refused::Role { action: action.as_str(), peer: self.peer, needed, found: self.roles };
        let is_issuer = self.delegated.is_some_and(|(issuer, _)| issuer == self.peer);
        if action == Action::Replicate {
            return if self.directory { Ok(()) } else { Err(missing()) };
        }
        let allowed = match (action, self.affiliation) {
            (action, Affiliation::Directory | Affiliation::Visitor) if action != Action::Read => false,
            (Action::Issue, Affiliation::Member) => is_issuer,
            _ => roles.iter().any(|&role| self.roles.has(role)),
        };
        if let (Affiliation::Reader, Some(domain)) = (self.affiliation, &self.domain)
            && action != Action::Read
        {
            let domain = domain.clone();
            return Err(Refused::Foreigner { action: action.as_str(), peer: self.peer, domain });
        }
        if !allowed {
            return Err(missing());
        }
        match (action, &self.host) {
            (Action::Publish { host }, Some(own)) if host != own => {
                Err(Refused::Host { found: host.clone(), own: own.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Check that neither the peer nor its issuer is on a revocation list.
    pub(super) fn check_denials(&self, deny: &RevocationLists) -> Result<(), Refused> {
        let (Some(domain), Some(root)) = (&self.domain, self.root) else { return Ok(()) };
        if let Some((issuer, delegated)) = self.delegated {
            deny.check(domain, root, issuer, delegated)?;
        }
        deny.check(domain, root, self.peer, self.issued)
    }

    pub(super) fn subject(&self, what: AuditedAction) -> Subject<'_> {
        let (domain, host) = (self.domain.as_ref(), self.host.as_ref());
        Subject { peer: self.peer, domain, host, said: None, what }
    }
}
