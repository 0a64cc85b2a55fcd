//! Tokens of the type replace, in `STATE/domain/replace-tokens`, and the certificates issued for them.
//!
//! Rule: the revocation of the old key is on disk before the new key has the name; a crash in between costs
//! the joiner another attempt. Not here: the decisions (`replace_token`, `issuer_store`).

use super::{DomainFiles, Error};
use crate::identity::issuer_store::Signing;
use crate::identity::key_file;
use crate::identity::refused::Refused;
use crate::identity::replace_token::{Listed, ReplaceSpec, ReplaceTokens};
use crate::identity::safe_file;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Delegation, Denied};
use wire::id::PeerKey;
use wire::join::{Directory, Join, Secret, Token, TokenType};
use wire::time::Time;
use wire::version;

const FILE: &str = "replace-tokens";

/// The certificate issued to a joiner, and those that it replaces.
#[derive(Clone, Debug)]
pub struct Replacement {
    pub chain: Chain,
    /// Certificates that were revoked for it.
    pub replaced: Vec<Certificate>,
}

impl DomainFiles {
    /// Create a token of the type replace. `addresses` are those of this daemon, where joiners dial it.
    ///
    /// # Errors
    /// If no domain is here, or a token may not give what `spec` specifies.
    pub fn create_replace_token(
        &self,
        spec: ReplaceSpec,
        addresses: Vec<Address>,
        directories: Vec<Directory>,
        now: Time,
    ) -> Result<Token, Error> {
        let open = self.open(now)?;
        let mut tokens = self.replace_tokens()?;
        let secret = Secret(key_file::random(&self.path(FILE))?);
        let expires = tokens.add(secret, spec, now)?;
        self.save_replace_tokens(&tokens)?;
        let Delegation { domain, root, issuer, .. } = open.delegated;
        let token_type = TokenType::Replace;
        Ok(Token { domain, root, issuer, addresses, directories, secret, expires, token_type })
    }

    /// Redeem a token of the type replace that `peer` shows; the certificate is on disk when this returns.
    /// `allow` is called before a name is taken from the key of a certificate.
    ///
    /// # Errors
    /// If it is refused, or the files cannot be used.
    pub fn replace(
        &self,
        question: &Join,
        peer: PeerKey,
        now: Time,
        allow: &mut dyn FnMut(&Certificate) -> Result<(), Refused>,
    ) -> Result<Replacement, Error> {
        let mut open = self.open(now)?;
        let expected = open.store.root();
        if question.root != expected {
            let domain = open.delegated.domain.clone();
            return Err(Refused::TokenIssuer { found: question.root, expected, domain }.into());
        }
        let mut tokens = self.replace_tokens()?;
        let (roles, priority) = tokens.redeem(question, now)?;
        let host = &question.host;
        if let Some(chain) = open.store.held_by(peer, host, &open.deny, now) {
            // The peer has the name already: it did not receive the answer, or it stored only its key.
            return Ok(Replacement { chain, replaced: Vec::new() });
        }
        let replaced = open.store.replaceable(host, peer, roles, self.key.peer(), &open.deny, now)?;
        replaced.iter().try_for_each(allow)?;
        let denied = |certificate: &Certificate| Denied {
            peer: certificate.peer,
            issued_until: certificate.issued.max(now),
        };
        for certificate in &replaced {
            tokens.note_replaced(certificate, denied(certificate));
        }
        // The use of the token, and when its revocations may be dropped, are on disk before either takes
        // effect.
        self.save_replace_tokens(&tokens)?;
        if !replaced.is_empty() {
            let denied: Vec<Denied> = replaced.iter().map(denied).collect();
            self.deny(&mut open, &denied, &tokens, now)?;
            if tokens.forget_over(now) {
                self.save_replace_tokens(&tokens)?;
            }
        }
        let signing = Signing { key: &self.key, delegation: &open.delegation };
        let given = (roles, priority);
        let chain = open.store.replace(&replaced, peer, host.clone(), given, signing, &open.deny, now)?;
        self.save_store(&open.store)?;
        Ok(Replacement { chain, replaced })
    }

    /// Every token that is valid or was until lately.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn tokens(&self, now: Time) -> Result<Vec<Listed>, Error> {
        let mut open = self.open(now)?;
        Ok([open.store.tokens().list(), self.replace_tokens()?.list()].concat())
    }

    /// Revoke a token of either type. Returns whether there was one with this id.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn revoke_token(&self, id: &str, now: Time) -> Result<bool, Error> {
        let mut open = self.open(now)?;
        if open.store.tokens().revoke(id) {
            self.save_store(&open.store)?;
            return Ok(true);
        }
        let mut tokens = self.replace_tokens()?;
        let is_revoked = tokens.revoke(id);
        if is_revoked {
            self.save_replace_tokens(&tokens)?;
        }
        Ok(is_revoked)
    }

    pub(super) fn replace_tokens(&self) -> Result<ReplaceTokens, Error> {
        Ok(safe_file::read_framed(&self.path(FILE), version::REPLACE_TOKENS)?.unwrap_or_default())
    }

    fn save_replace_tokens(&self, tokens: &ReplaceTokens) -> Result<(), Error> {
        Ok(safe_file::replace_framed(&self.path(FILE), version::REPLACE_TOKENS, tokens)?)
    }
}
