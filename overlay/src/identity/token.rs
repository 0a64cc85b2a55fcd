//! Tokens: the line that a person copies, and the issuer's store of valid ones.
//!
//! Pure: secrets are drawn by the caller. Rules: only the hash of a secret is stored, and it is compared in
//! constant time. A token that one key has used up is invalid for another; the same key may show it again.
//! Not here: the encoding of a line (`token_text`), the certificate that a token is exchanged for (`issuer_store`).

use super::certificate::SKEW_MAX;
use super::refused::Refused;
use super::replace_token::{self, Listed};
use super::token_text::{self, Kind};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use wire::credential::Roles;
use wire::id::PeerKey;
use wire::join::{ADDRESSES_MAX, DIRECTORIES_MAX, Join, Secret, Token, TokenType};
use wire::time::Time;

/// Default lifetime of a token.
pub const LIFE: Duration = Duration::from_secs(15 * 60);

/// Maximum lifetime: a token is an unprotected key.
pub const LIFE_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Most daemons that one token admits.
pub const USES_MAX: u32 = 1000;

/// Most tokens stored at a time.
pub const TOKENS_MAX: usize = 1000;

/// How long an expired token stays in the store: to say that it has expired, and to send a joiner its
/// certificate again if it did not receive the answer.
pub const KEPT_AFTER: Duration = Duration::from_secs(86_400);

const REPLACE_LINE: Kind =
    Kind { prefix: "visperfreplace1-", what: "token", made_by: "visperf token create --replace" };

const LINE: Kind = Kind { prefix: "visperf1-", what: "token", made_by: "visperf token create" };

/// Encode `token` as a line to be copied.
#[must_use]
pub fn text(token: &Token) -> String {
    token_text::write(kind(token.token_type), token)
}

/// Parse the token in a line; white space that mail programs insert does not matter.
///
/// # Errors
/// If it is another text, or was mistyped or cut.
pub fn parse(text: &str) -> Result<Token, token_text::Error> {
    let token_type = if is_replace(text) { TokenType::Replace } else { TokenType::Join };
    let mut token: Token = token_text::read(kind(token_type), text)?;
    token.token_type = token_type;
    let addresses = token.directories.iter().map(|directory| &directory.addresses).chain([&token.addresses]);
    let most = addresses.map(Vec::len).max().unwrap_or(0);
    if token.directories.len() > DIRECTORIES_MAX || most > ADDRESSES_MAX {
        return Err(token_text::too_much(LINE));
    }
    Ok(token)
}

/// Whether a line starts as one of the type replace.
#[must_use]
pub fn is_replace(text: &str) -> bool {
    let prefix = REPLACE_LINE.prefix;
    let mut letters = text.chars().filter(|c| !c.is_whitespace());
    prefix.chars().all(|expected| letters.next().is_some_and(|found| found.eq_ignore_ascii_case(&expected)))
}

fn kind(token_type: TokenType) -> Kind {
    match token_type {
        TokenType::Join => LINE,
        TokenType::Replace => REPLACE_LINE,
    }
}

/// Check before dialing that the token has not expired: by the joiner's clock, so within the tolerated
/// difference of clocks.
///
/// # Errors
/// If it has expired.
pub fn check_fresh(token: &Token, now: Time) -> Result<(), Refused> {
    if now.minus(SKEW_MAX) >= token.expires {
        return Err(Refused::TokenStale { expired: token.expires, now });
    }
    Ok(())
}

/// Specification of a new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Roles that it gives; the root's own roles are not allowed.
    pub roles: Roles,
    /// Priority of the daemons in an election.
    pub priority: u8,
    /// How many daemons it admits.
    pub uses: u32,
    /// Its lifetime.
    pub life: Duration,
}

impl Default for Spec {
    /// One sensor, within 15 minutes.
    fn default() -> Spec {
        Spec { roles: Roles::SENSOR, priority: 0, uses: 1, life: LIFE }
    }
}

/// A token in the issuer's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredToken {
    hash: [u8; 32],
    roles: Roles,
    priority: u8,
    uses_left: u32,
    expires: Time,
    used_by: Vec<PeerKey>,
}

/// Result of redeeming a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// A new certificate.
    First {
        /// Roles of the certificate.
        roles: Roles,
        priority: u8,
    },
    /// The certificate that the same key received before: it repeats the request because it did not receive
    /// the answer.
    Again,
}

/// The issuer's tokens that are valid or expired lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenStore {
    tokens: Vec<StoredToken>,
}

impl TokenStore {
    /// Store a token with this secret; returns when it expires.
    ///
    /// # Errors
    /// If there are too many, or a token may not give what `spec` specifies.
    pub fn add(&mut self, secret: Secret, spec: Spec, now: Time) -> Result<Time, SpecError> {
        if spec.roles.is_empty() || spec.roles.need_root() {
            return Err(SpecError::Roles { found: spec.roles });
        }
        if spec.uses == 0 || spec.uses > USES_MAX {
            return Err(SpecError::Uses { found: spec.uses });
        }
        if spec.life.is_zero() || spec.life > LIFE_MAX {
            return Err(SpecError::Life { found: spec.life });
        }
        self.forget_old(now);
        if self.tokens.len() >= TOKENS_MAX {
            return Err(SpecError::Full);
        }
        let Spec { roles, priority, uses, life } = spec;
        let expires = now.plus(life);
        let hash = hash(secret);
        self.tokens.push(StoredToken {
            hash,
            roles,
            priority,
            uses_left: uses,
            expires,
            used_by: Vec::new(),
        });
        Ok(expires)
    }

    /// Redeem a token: `peer` shows its secret, and the token counts as used by it. The caller stores this on
    /// disk before it hands anything out.
    ///
    /// # Errors
    /// If there is no such token, it is used up or expired, or it gives fewer roles than requested; nothing
    /// has changed then.
    pub fn redeem(&mut self, question: &Join, peer: PeerKey, now: Time) -> Result<Redeemed, Refused> {
        let hash = hash(question.secret);
        // Every token is compared, so that the duration reveals nothing.
        let found = self
            .tokens
            .iter_mut()
            .fold(None, |found, token| if bool::from(token.hash.ct_eq(&hash)) { Some(token) } else { found });
        let token = found.ok_or(Refused::TokenUnknown)?;
        if now >= token.expires.plus(KEPT_AFTER) {
            return Err(Refused::TokenUnknown);
        }
        if token.used_by.contains(&peer) {
            return Ok(Redeemed::Again);
        }
        if token.uses_left == 0 {
            return Err(Refused::TokenUsed);
        }
        if now >= token.expires {
            return Err(Refused::TokenStale { expired: token.expires, now });
        }
        if !question.wanted.are_within(token.roles) {
            return Err(Refused::TokenRoles { wanted: question.wanted, given: token.roles });
        }
        token.uses_left -= 1;
        token.used_by.push(peer);
        let roles = if question.wanted.is_empty() { token.roles } else { question.wanted };
        Ok(Redeemed::First { roles, priority: token.priority })
    }

    /// The tokens that are valid or expired lately.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let listed = |token: &StoredToken| {
            let uses = u32::try_from(token.used_by.len()).unwrap_or(u32::MAX);
            let uses_max = Some(uses.saturating_add(token.uses_left));
            let (id, roles, expires) = (id(&token.hash), token.roles, token.expires);
            Listed { id, hosts: None, roles, uses, uses_max, expires, is_revoked: false }
        };
        self.tokens.iter().map(listed).collect()
    }

    /// Remove a token. Returns whether there was one with this id.
    pub fn revoke(&mut self, of: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|token| id(&token.hash) != of);
        self.tokens.len() < before
    }

    /// Remove the tokens that expired more than [`KEPT_AFTER`] ago.
    pub fn forget_old(&mut self, now: Time) {
        self.tokens.retain(|token| now < token.expires.plus(KEPT_AFTER));
    }
}

/// Why a token cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No role, or a role that only the root may give.
    #[error(
        "a token cannot give {found}; expected one or more of viewer, publisher and representative (filter-admin \
         and operator are certified by the root)"
    )]
    Roles {
        /// The requested roles.
        found: Roles,
    },
    /// Too many uses, or none.
    #[error("a token cannot let {found} daemons in; expected 1 to {USES_MAX}")]
    Uses {
        /// The requested number.
        found: u32,
    },
    /// Too long a lifetime, or none.
    #[error(
        "a token cannot be good for {} s; expected 1 s to {} days", found.as_secs(), LIFE_MAX.as_secs() / 86_400
    )]
    Life {
        /// The requested lifetime.
        found: Duration,
    },
    /// A token of the type replace without uses.
    #[error("a token that may be used 0 times lets no host in; expected 1 or more, or no limit")]
    NoUses,
    /// A token of the type replace with too long a lifetime, or none.
    #[error(
        "a token of the type replace cannot be good for {} s; expected 1 s to {} days", found.as_secs(),
        replace_token::LIFE_MAX.as_secs() / 86_400
    )]
    ReplaceLife {
        /// The requested lifetime.
        found: Duration,
    },
    /// Too many patterns of host names, or none.
    #[error("a token names {found} patterns of hosts; expected 1 to {}", replace_token::HOSTS_MAX)]
    Hosts {
        /// The requested number.
        found: usize,
    },
    /// A text that is not a pattern.
    #[error("{found:?} is no pattern of host names; expected one such as wn07, wn0? or wn[0-9]*")]
    Pattern {
        /// The text, cut to 80 characters.
        found: String,
    },
    /// The store has no room for another token of the type replace.
    #[error(
        "{} tokens of the type replace are stored already; wait until some expire",
        replace_token::TOKENS_MAX
    )]
    ReplaceFull,
    /// The store has no room for another token.
    #[error("{TOKENS_MAX} tokens are kept already; wait until some expire, or make one with more uses")]
    Full,
}

/// The id of the token with this secret.
#[must_use]
pub fn id_of(secret: Secret) -> String {
    id(&hash(secret))
}

/// Identifier by which a token is listed and revoked; it reveals nothing of the secret.
pub(super) fn id(hash: &[u8; 32]) -> String {
    data_encoding::HEXLOWER.encode(&hash[..6])
}

pub(super) fn hash(secret: Secret) -> [u8; 32] {
    Sha256::new().chain_update(b"visperf token 1").chain_update(secret.0).finalize().into()
}
