//! Somebody who was admitted, and what its roles let it do.
//!
//! Pure. Rule: a principal is made from a checked certificate, the configured key of a directory, or a checked visa, by
//! nothing else; another domain's principals may read, and nothing else.
//!
//! | action                        | who                                                      |
//! | ----------------------------- | -------------------------------------------------------- |
//! | read                          | viewer, representative, filter-admin, operator; directories where those they admit may |
//! | publish for its own host      | publisher                                                |
//! | represent                     | representative                                           |
//! | state its own domain's record | representative                                           |
//! | deploy filters                | filter-admin                                             |
//! | control processes             | operator                                                 |
//! | issue certificates            | the daemon to whom the root delegated it                 |
//! | replicate records             | a directory                                              |
//!
//! A visitor reads what its visa allows, while the proxy that gave it may read.
//!
//! Not here: who is admitted, and whether that still holds (`admission`).

use super::audit::{Subject, What};
use super::certificate::Opened;
use super::deny_list::Denials;
use super::refused::Refused;
use super::trust::Standing;
use super::visa::Visit;
use std::sync::Arc;
use wire::credential::{Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::Time;

/// Something that somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Ask or subscribe.
    Read,
    /// Publish samples and events of this host.
    Publish {
        /// Whose.
        host: &'a HostName,
    },
    /// Stand for election, and lead.
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
    /// What it is, as it follows "to".
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

    /// Roles any one of which is enough, and their names.
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

    /// Whether every success is told in the audit, not the refusals alone.
    pub(super) const fn is_grave(self) -> bool {
        matches!(self, Action::DeployFilters | Action::ControlProcesses | Action::Issue)
    }
}

/// Somebody admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its key.
    pub peer: PeerKey,
    /// What it is here.
    pub standing: Standing,
    /// Whether it is a configured directory, be it a member besides (one daemon may be both).
    pub directory: bool,
    /// Its domain; none for a directory.
    pub domain: Option<DomainName>,
    /// The root of its domain; none for a directory.
    pub root: Option<PeerKey>,
    /// Its host; none for a directory.
    pub host: Option<HostName>,
    /// Its roles.
    pub roles: Roles,
    /// The operator's wish in an election.
    pub priority: u8,
    /// Number of its certificate; 0 for a directory.
    pub serial: Serial,
    /// When its certificate was issued.
    pub issued: Time,
    /// Until when it and what it rests on hold.
    pub expires: Time,
    /// Who issued it and when the root delegated that; none if the root signed it itself.
    pub delegated: Option<(PeerKey, Time)>,
    /// What a proxy says of it; none but for a visitor.
    pub visit: Option<Arc<Visit>>,
}

impl Principal {
    pub(super) fn of(opened: Opened, standing: Standing) -> Principal {
        let Opened { certificate, delegation } = opened;
        let expires =
            delegation.as_ref().map_or(certificate.expires, |it| it.expires.min(certificate.expires));
        Principal {
            peer: certificate.peer,
            standing,
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
            visit: None,
        }
    }

    pub(super) fn of_directory(peer: PeerKey, may_read: bool) -> Principal {
        Principal {
            peer,
            standing: Standing::Directory,
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
            visit: None,
        }
    }

    /// A visitor: it has the role of a viewer, of no domain.
    pub(super) fn of_visitor(peer: PeerKey, visit: Visit) -> Principal {
        let expires = visit.visa.expires.min(visit.proxy.expires);
        let roles = Roles::NONE.with(Role::Viewer);
        let nobody = Principal::of_directory(peer, false);
        let issued = visit.visa.issued;
        Principal {
            standing: Standing::Visitor,
            directory: false,
            roles,
            issued,
            expires,
            visit: Some(Arc::new(visit)),
            ..nobody
        }
    }

    /// Whether it may do this, as far as its roles say.
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
        let allowed = match (action, self.standing) {
            (action, Standing::Directory | Standing::Visitor) if action != Action::Read => false,
            (Action::Issue, Standing::Member) => is_issuer,
            _ => roles.iter().any(|&role| self.roles.has(role)),
        };
        if let (Standing::Reader, Some(domain)) = (self.standing, &self.domain)
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

    /// Whether neither it nor its issuer was denied.
    pub(super) fn check_denials(&self, deny: &Denials) -> Result<(), Refused> {
        let (Some(domain), Some(root)) = (&self.domain, self.root) else { return Ok(()) };
        if let Some((issuer, delegated)) = self.delegated {
            deny.check(domain, root, issuer, delegated)?;
        }
        deny.check(domain, root, self.peer, self.issued)
    }

    pub(super) fn subject(&self, what: What) -> Subject<'_> {
        let (domain, host) = (self.domain.as_ref(), self.host.as_ref());
        Subject { peer: self.peer, domain, host, said: None, what }
    }
}
