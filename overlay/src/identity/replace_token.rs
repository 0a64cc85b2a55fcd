//! Tokens of the type replace: with one, a host whose name belongs to a lost key joins again, as a host
//! without a disk does at each start.
//!
//! Pure: secrets are drawn by the caller. Rules: only the hash of a secret is stored, and it is compared in
//! constant time. A token is valid for the hosts that its patterns match, until it expires or is revoked.
//! These tokens are stored separately from the others, in a form that an older version neither reads nor
//! damages.
//! Not here: which host names may change keys (`issuer_store`), how often (`issuer`).

use super::certificate::SKEW_MAX;
use super::refused::Refused;
use super::replace_refused;
use super::token::{self, SpecError};
use globset::GlobBuilder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use wire::credential::{Certificate, Denied, Roles};
use wire::id::{HostName, PeerKey};
use wire::join::{Join, Secret};
use wire::time::Time;

/// Default lifetime of a token: host images are rebuilt within it.
pub const LIFE: Duration = Duration::from_secs(90 * 86_400);

/// Maximum lifetime.
pub const LIFE_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Most tokens of this type.
pub const TOKENS_MAX: usize = 100;

/// Most patterns of one token.
pub const HOSTS_MAX: usize = 1000;

/// Longest pattern, in bytes: a name and some brackets.
pub const PATTERN_LEN_MAX_BYTES: usize = 300;

/// Specification of a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceSpec {
    /// Glob patterns of host names, as in shells: `wn[0-9]*`.
    pub hosts: Vec<String>,
    /// Roles that it gives; the root's own roles are not allowed.
    pub roles: Roles,
    /// Priority of the hosts in an election.
    pub priority: u8,
    /// How often it may be used; none means without a limit.
    pub uses: Option<u32>,
    /// Its lifetime.
    pub life: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    hash: [u8; 32],
    hosts: Vec<String>,
    roles: Roles,
    priority: u8,
    uses: u32,
    uses_max: Option<u32>,
    expires: Time,
    is_revoked: bool,
}

/// A token in a list, of either type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Identifier by which it is revoked.
    pub id: String,
    /// Patterns of the hosts that it is valid for; `None` for a token that only joins.
    pub hosts: Option<Vec<String>>,
    pub roles: Roles,
    /// How often it was used.
    pub uses: u32,
    /// How often it may be used; none means without a limit.
    pub uses_max: Option<u32>,
    pub expires: Time,
    /// Whether it was revoked.
    pub is_revoked: bool,
}

/// The revocation of a replaced key, and when its last certificate expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Replaced {
    issued_until: Time,
    expires: Time,
}

/// The tokens of this type, and the keys that they replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaceTokens {
    tokens: Vec<Entry>,
    replaced: BTreeMap<PeerKey, Replaced>,
}

impl ReplaceTokens {
    /// Store a token with this secret; returns when it expires.
    ///
    /// # Errors
    /// If there are too many, or a token may not give what `spec` specifies.
    pub fn add(&mut self, secret: Secret, spec: ReplaceSpec, now: Time) -> Result<Time, SpecError> {
        if spec.roles.is_empty() || spec.roles.need_root() {
            return Err(SpecError::Roles { found: spec.roles });
        }
        if spec.uses == Some(0) {
            return Err(SpecError::NoUses);
        }
        if spec.life.is_zero() || spec.life > LIFE_MAX {
            return Err(SpecError::ReplaceLife { found: spec.life });
        }
        if spec.hosts.is_empty() || spec.hosts.len() > HOSTS_MAX {
            return Err(SpecError::Hosts { found: spec.hosts.len() });
        }
        if let Some(found) = spec.hosts.iter().find(|pattern| !is_pattern(pattern)) {
            return Err(SpecError::Pattern { found: found.chars().take(80).collect() });
        }
        self.tokens.retain(|token| now < token.expires.plus(token::KEPT_AFTER));
        if self.tokens.len() >= TOKENS_MAX {
            return Err(SpecError::ReplaceFull);
        }
        let ReplaceSpec { hosts, roles, priority, uses, life } = spec;
        let expires = now.plus(life);
        let hash = token::hash(secret);
        let entry =
            Entry { hash, hosts, roles, priority, uses: 0, uses_max: uses, expires, is_revoked: false };
        self.tokens.push(entry);
        Ok(expires)
    }

    /// Redeem a token: `question` has its secret. Counts one more use; returns the roles and the priority.
    ///
    /// # Errors
    /// If there is no such token, it is used up, expired or revoked, it is not for this host, or it gives
    /// fewer roles than requested; nothing has changed then.
    pub fn redeem(&mut self, question: &Join, now: Time) -> Result<(Roles, u8), Refused> {
        let hash = token::hash(question.secret);
        // Every token is compared, so that the duration reveals nothing.
        let found = self
            .tokens
            .iter_mut()
            .fold(None, |found, token| if bool::from(token.hash.ct_eq(&hash)) { Some(token) } else { found });
        let token = found.ok_or(Refused::TokenUnknown)?;
        if token.is_revoked {
            return Err(replace_refused::Refused::Revoked.into());
        }
        if now >= token.expires {
            return Err(Refused::TokenStale { expired: token.expires, now });
        }
        if let Some(uses) = token.uses_max.filter(|max| token.uses >= *max) {
            return Err(replace_refused::Refused::UsedUp { uses }.into());
        }
        if !token.hosts.iter().any(|pattern| matches(pattern, &question.host)) {
            let (host, hosts) = (question.host.clone(), token.hosts.join(", "));
            let hosts = hosts.chars().take(200).collect();
            return Err(replace_refused::Refused::Host { host, hosts }.into());
        }
        if !question.wanted.are_within(token.roles) {
            return Err(Refused::TokenRoles { wanted: question.wanted, given: token.roles });
        }
        token.uses = token.uses.saturating_add(1);
        let roles = if question.wanted.is_empty() { token.roles } else { question.wanted };
        Ok((roles, token.priority))
    }

    /// Revoke a token. Returns whether there is one with this id.
    pub fn revoke(&mut self, id: &str) -> bool {
        let found = self.tokens.iter_mut().find(|token| token::id(&token.hash) == id);
        found.map(|token| token.is_revoked = true).is_some()
    }

    /// The tokens that are valid or were until lately.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let listed = |token: &Entry| Listed {
            id: token::id(&token.hash),
            hosts: Some(token.hosts.clone()),
            roles: token.roles,
            uses: token.uses,
            uses_max: token.uses_max,
            expires: token.expires,
            is_revoked: token.is_revoked,
        };
        self.tokens.iter().map(listed).collect()
    }

    /// Store that `denied` revokes the key of this certificate, whose host name now belongs to another key.
    pub fn note_replaced(&mut self, certificate: &Certificate, denied: Denied) {
        let replaced = Replaced { issued_until: denied.issued_until, expires: certificate.expires };
        self.replaced.insert(certificate.peer, replaced);
    }

    /// Drop replaced keys whose certificates have expired, after their entries left the revocation list.
    /// Returns whether there were any.
    pub fn forget_over(&mut self, now: Time) -> bool {
        let before = self.replaced.len();
        self.replaced.retain(|_, replaced| now < replaced.expires.plus(SKEW_MAX));
        self.replaced.len() < before
    }

    /// Whether `denied` revokes a replaced key whose last certificate has expired, so that no list needs it
    /// any more.
    #[must_use]
    pub fn is_over(&self, denied: &Denied, now: Time) -> bool {
        self.replaced.get(&denied.peer).is_some_and(|replaced| {
            replaced.issued_until == denied.issued_until && now >= replaced.expires.plus(SKEW_MAX)
        })
    }
}

fn is_pattern(text: &str) -> bool {
    let is_short = !text.is_empty() && text.len() <= PATTERN_LEN_MAX_BYTES;
    is_short && !text.contains(char::is_whitespace) && compiled(text).is_some()
}

fn compiled(pattern: &str) -> Option<globset::GlobMatcher> {
    let folded = pattern.trim_end_matches('.');
    Some(GlobBuilder::new(folded).case_insensitive(true).build().ok()?.compile_matcher())
}

fn matches(pattern: &str, host: &HostName) -> bool {
    compiled(pattern).is_some_and(|glob| glob.is_match(host.as_str().trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_hosts_as_shells_do() {
        let check = |pattern: &str, name: &str| {
            assert!(is_pattern(pattern), "{pattern}");
            matches(pattern, &HostName::try_from(name).expect("a name"))
        };
        assert!(check("wn[0-9]*", "wn01") && check("wn[0-9]*", "WN1.site.") && check("wn0?", "wn07"));
        assert!(check("{wn01,wn02}", "wn02") && check("wn01.site", "wn01.site."));
        assert!(!check("wn[0-9]*", "head") && !check("wn0?", "wn10") && !check("wn1", "wn10"));
        for bad in ["", "wn[0", "wn 1", &"x".repeat(301)] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
