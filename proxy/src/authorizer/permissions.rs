//! Permissions of an account, for calls by HTTP at the proxy and for the calls of a visitor at a host inside.
//!
//! Rules: every call is checked, and refused unless it is granted. The concurrent calls of each account for
//! one domain are limited, so that one script cannot block the others.
//! Not here: authentication (`login`), the rules of a grant (`grant`).

use super::lock;
use crate::figures::Figures;
use crate::grant::{Class, Grant, Rights};
use rpc::dispatch::permissions::{CallTarget, Permissions, Permit};
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tunnel::hash::Algorithm;
use wire::fault;
use wire::id::DomainName;
use wire::query::Account;

/// Concurrent calls of one account for one domain. They all wait for the one representative of the domain;
/// the limit is a sixteenth of the queries that a proxy may have open there (`overlay::net::connected_peers::QUESTIONS_MAX`).
pub const IN_WORK_FOR_DOMAIN_MAX: usize = 8;

/// Concurrent calls of the visitors of one account, who use several connections: a sixteenth of the queries
/// that a daemon answers at a time.
pub const IN_WORK_OF_VISITORS_MAX: usize = 32;

/// Number of concurrent calls per key, without the keys that have none.
pub type InWork<K> = Arc<Mutex<BTreeMap<K, usize>>>;

/// Permit for one call; dropping it releases the slot.
pub(crate) struct InWorkPermit<K: Ord> {
    key: K,
    in_work: InWork<K>,
}

impl<K: Ord + Clone> InWorkPermit<K> {
    /// Take a permit for `key`, unless `most` are taken.
    pub(crate) fn take(in_work: &InWork<K>, key: K, most: usize) -> Option<InWorkPermit<K>> {
        let mut counts = lock(in_work);
        let count = counts.entry(key.clone()).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(InWorkPermit { key, in_work: Arc::clone(in_work) })
    }
}

impl<K: Ord> Drop for InWorkPermit<K> {
    fn drop(&mut self) {
        let mut in_work = lock(&self.in_work);
        if let Some(count) = in_work.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                in_work.remove(&self.key);
            }
        }
    }
}

/// Permissions of one visitor.
pub struct AccountPermissions {
    /// Name of the account; for an account of another proxy, with that proxy.
    pub name: String,
    /// Domains, hosts and methods granted to the account.
    pub grant: Arc<Grant>,
    pub rights: Rights,
    /// Concurrent calls of each account for each domain.
    pub for_domain: InWork<(String, DomainName)>,
    /// Limit of `for_domain` for one account and domain.
    pub in_work_max: usize,
    /// Counters of the proxy.
    pub figures: Arc<Figures>,
}

impl AccountPermissions {
    /// Take a permit for `domain`, if a representative answers the call.
    fn wait_at(&self, class: Class, domain: Option<&str>) -> Result<Permit, Fault> {
        let domain = domain.and_then(|name| DomainName::try_from(name).ok());
        let (Some(domain), false) = (domain, matches!(class, Class::Grid | Class::Proxy)) else {
            return Ok(Box::new(()));
        };
        let key = (self.name.clone(), domain);
        match InWorkPermit::take(&self.for_domain, key, self.in_work_max) {
            Some(permit) => Ok(Box::new(permit)),
            None => {
                self.figures.busy_total.add();
                let message = format!(
                    "expected at most {} calls of one account in work for one domain, found more; call again when \
                     one of them is answered",
                    self.in_work_max
                );
                Err(Fault::new(fault::BUSY, message))
            }
        }
    }
}

/// Derive the account identifier that is sent to the queried daemons, from the text `what` with the key `of`.
#[must_use]
pub fn account(of: &[u8], what: &[u8]) -> Account {
    let tag = Algorithm::Sha256.tag(of, &[what]);
    let mut short = [0; 16];
    short.copy_from_slice(&tag.bytes()[..16]);
    Account(short)
}

impl Permissions for AccountPermissions {
    fn may(&self, asked: CallTarget<'_>) -> Result<Permit, Fault> {
        let method = asked.method;
        let AccountPermissions { name, grant, rights, .. } = self;
        grant.check(*rights, asked).map_err(|refused| {
            self.figures.forbidden_total.add();
            // Logged at debug level only: a client without permission may retry often, and must not fill a
            // disk.
            tracing::debug!(target: "audit", account = name, method, %refused, "refused a call");
            Fault::new(fault::FORBIDDEN, refused.to_string())
        })?;
        self.wait_at(Class::of_call(asked), asked.domain)
    }

    /// The identifier changes when the permissions change: earlier subscriptions then no longer belong to the
    /// account.
    fn account(&self) -> Option<Account> {
        let Grant { domains, hosts, classes } = &*self.grant;
        let classes: Vec<&str> = classes.iter().map(|class| class.word()).collect();
        let (domains, hosts) = (domains.to_string(), hosts.to_string());
        // No part contains a newline.
        let text = [&self.name, self.rights.word(), &domains, &hosts, &classes.join(",")].join("\n");
        Some(account(b"account", text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::Chosen;

    #[test]
    fn an_account_is_identified_by_its_name_and_all_that_it_may() {
        let permissions = |name: &str, rights, hosts: &[&str], classes: &[Class]| {
            let hosts = hosts.iter().map(|host| (*host).try_into().unwrap()).collect();
            let grant = Grant {
                domains: Chosen::All,
                hosts: Chosen::These(hosts),
                classes: classes.iter().copied().collect(),
            };
            let (for_domain, figures) = (InWork::default(), Arc::default());
            let name = name.to_owned();
            let permissions = AccountPermissions {
                name,
                grant: Arc::new(grant),
                rights,
                for_domain,
                in_work_max: 1,
                figures,
            };
            permissions.account().expect("one")
        };
        let both = [Class::Figures, Class::Logs];
        let names = [
            permissions("ana", Rights::Viewer, &["wn01"], &both),
            permissions("bob", Rights::Viewer, &["wn01"], &both),
            permissions("ana", Rights::Operator, &["wn01"], &both),
            permissions("ana", Rights::Viewer, &["wn02"], &both),
            permissions("ana", Rights::Viewer, &["wn01"], &both[..1]),
        ];
        for (nth, one) in names.iter().enumerate() {
            assert!(!names[nth + 1..].contains(one), "{nth}: {names:?}");
        }
        assert_eq!(permissions("ana", Rights::Viewer, &["wn01"], &both), names[0]);
    }
}
