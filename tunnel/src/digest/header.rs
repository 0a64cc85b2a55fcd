//! Header fields of HTTP Digest (RFC 7616, section 3): parsing of untrusted input, and writing.
//!
//! Pure. Rules: a field is parsed completely or refused, and each name may occur once; no more than its limit
//! is stored.
//! Not here: the verification of a proof (the module above).

use super::Spoken;
use crate::hash::Algorithm;
use wire::harmless::is_harmless;

/// Longest field, in bytes: enough for a name, a realm, two nonces and a path with a query.
pub const FIELD_LEN_MAX_BYTES: usize = 12 << 10;

/// Most parameters of a field: the RFCs define a dozen.
pub const PARTS_MAX: usize = 24;

/// Why a field is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not of the form `Digest name=value, name="value" …`.
    #[error("expected Digest with parts name=value, separated by commas, found something else")]
    Form,
    /// Longer than its limit.
    #[error("expected at most {FIELD_LEN_MAX_BYTES} bytes and {PARTS_MAX} parts, found more")]
    TooLong,
    /// A name occurs twice: its meaning would depend on the parser.
    #[error("expected each part once, found {0} twice")]
    Twice(String),
    /// A required parameter is missing.
    #[error("expected {0}, found none")]
    Missing(&'static str),
    /// A parameter has an invalid value.
    #[error("expected {expected}, found another value")]
    Value {
        /// Expected value.
        expected: &'static str,
    },
}

/// Content of the field `Authorization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the account.
    pub username: String,
    pub realm: String,
    pub nonce: String,
    /// Request target: path and query.
    pub uri: String,
    /// Proof of the client, in hexadecimal digits.
    pub response: String,
    /// Hash; MD5 if the client names none.
    pub algorithm: Algorithm,
    /// Nonce of the client.
    pub cnonce: String,
    /// How often the client used the server's nonce, as sent.
    pub nc: String,
}

impl Credentials {
    /// Parse the value of an `Authorization` field; `None` if its scheme is not Digest.
    ///
    /// # Errors
    /// If it is Digest and malformed or ambiguous.
    pub fn read(value: &str) -> Result<Option<Credentials>, Error> {
        let Some(rest) = of_scheme(value, "Digest") else { return Ok(None) };
        let mut parts = Parts::read(rest)?;
        let algorithm = match parts.take("algorithm") {
            None => Algorithm::Md5,
            Some(name) => Algorithm::by_name(&name)
                .ok_or(Error::Value { expected: "algorithm=SHA-256 or algorithm=MD5" })?,
        };
        if parts.need("qop")? != "auth" {
            return Err(Error::Value { expected: "qop=auth" });
        }
        if parts.take("userhash").is_some_and(|value| !value.eq_ignore_ascii_case("false")) {
            return Err(Error::Value { expected: "userhash=false, for it was not offered" });
        }
        let credentials = Credentials {
            username: parts.need("username")?,
            realm: parts.need("realm")?,
            nonce: parts.need("nonce")?,
            uri: parts.need("uri")?,
            response: parts.need("response")?,
            algorithm,
            cnonce: parts.need("cnonce")?,
            nc: parts.need("nc")?,
        };
        credentials.count()?;
        Ok(Some(credentials))
    }

    /// The parts of the response that are not secret.
    #[must_use]
    pub fn spoken(&self) -> Spoken<'_> {
        Spoken { nonce: &self.nonce, nc: &self.nc, cnonce: &self.cnonce, uri: &self.uri }
    }

    /// `nc` as a number.
    ///
    /// # Errors
    /// If it is not eight hexadecimal digits.
    pub fn count(&self) -> Result<u32, Error> {
        let is_hex = self.nc.len() == 8 && self.nc.bytes().all(|byte| byte.is_ascii_hexdigit());
        let count = is_hex.then(|| u32::from_str_radix(&self.nc, 16).ok()).flatten();
        count.ok_or(Error::Value { expected: "nc of eight hexadecimal digits" })
    }

    /// Value of the header field.
    #[must_use]
    pub fn write(&self) -> String {
        format!(
            "Digest username={}, realm={}, nonce={}, uri={}, response=\"{}\", algorithm={}, cnonce={}, nc={}, qop=auth",
            quoted(&self.username),
            quoted(&self.realm),
            quoted(&self.nonce),
            quoted(&self.uri),
            self.response,
            self.algorithm,
            quoted(&self.cnonce),
            self.nc
        )
    }
}

/// Content of one field `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Realm of the accounts.
    pub realm: String,
    /// Nonce for the client's answer.
    pub nonce: String,
    pub algorithm: Algorithm,
    /// The last answer was correct but its nonce expired: the same secret can be used again.
    pub is_stale: bool,
}

impl Challenge {
    /// Parse the value of one field with one challenge; `None` if this crate cannot answer it: another scheme
    /// or hash, or without qop=auth.
    ///
    /// # Errors
    /// If it is Digest and malformed or ambiguous.
    pub fn read(value: &str) -> Result<Option<Challenge>, Error> {
        let Some(rest) = of_scheme(value, "Digest") else { return Ok(None) };
        let mut parts = Parts::read(rest)?;
        let algorithm =
            parts.take("algorithm").map_or(Some(Algorithm::Md5), |name| Algorithm::by_name(&name));
        let qop = parts.take("qop").unwrap_or_default();
        let has_auth = qop.split(',').any(|word| word.trim().eq_ignore_ascii_case("auth"));
        let (Some(algorithm), true) = (algorithm, has_auth) else { return Ok(None) };
        let is_stale = parts.take("stale").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Some(Challenge { realm: parts.need("realm")?, nonce: parts.need("nonce")?, algorithm, is_stale }))
    }

    /// Value of the header field.
    #[must_use]
    pub fn write(&self) -> String {
        let stale = if self.is_stale { ", stale=true" } else { "" };
        format!(
            "Digest realm={}, qop=\"auth\", algorithm={}, nonce={}{stale}",
            quoted(&self.realm),
            self.algorithm,
            quoted(&self.nonce)
        )
    }
}

/// Content of the field `Authentication-Info` (RFC 7616, section 3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Proof of the server.
    pub rspauth: String,
    /// Nonce of the client, repeated.
    pub cnonce: String,
    /// Count of the client, repeated.
    pub nc: String,
    /// Nonce for the following requests.
    pub nextnonce: Option<String>,
}

impl Info {
    /// Parse the value of the field.
    ///
    /// # Errors
    /// If it is malformed or ambiguous.
    pub fn read(value: &str) -> Result<Info, Error> {
        let mut parts = Parts::read(value)?;
        Ok(Info {
            rspauth: parts.need("rspauth")?,
            cnonce: parts.need("cnonce")?,
            nc: parts.need("nc")?,
            nextnonce: parts.take("nextnonce"),
        })
    }

    /// Value of the header field.
    #[must_use]
    pub fn write(&self) -> String {
        let next = self.nextnonce.as_ref().map(|nonce| format!(", nextnonce={}", quoted(nonce)));
        format!(
            "qop=auth, rspauth=\"{}\", cnonce={}, nc={}{}",
            self.rspauth,
            quoted(&self.cnonce),
            self.nc,
            next.unwrap_or_default()
        )
    }
}

/// The rest of `value` after the name of the scheme; `None` if it is another scheme.
#[must_use]
pub fn of_scheme<'a>(value: &'a str, scheme: &str) -> Option<&'a str> {
    let (name, rest) = value.trim_start().split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then_some(rest)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Parameters of one field, by unique names in lower case.
struct Parts(Vec<(String, String)>);

impl Parts {
    fn read(text: &str) -> Result<Parts, Error> {
        if text.len() > FIELD_LEN_MAX_BYTES {
            return Err(Error::TooLong);
        }
        let mut parts = Parts(Vec::new());
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').ok_or(Error::Form)?;
            let name = name.trim().to_ascii_lowercase();
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'*');
            if name.is_empty() || !name.bytes().all(is_word) {
                return Err(Error::Form);
            }
            if parts.0.iter().any(|(known, _)| *known == name) {
                return Err(Error::Twice(name));
            }
            let (value, after) = value(after.trim_start())?;
            parts.0.push((name, value));
            if parts.0.len() > PARTS_MAX {
                return Err(Error::TooLong);
            }
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(next) if !next.trim().is_empty() => next.trim_start(),
                None if after.is_empty() => after,
                _ => return Err(Error::Form),
            };
        }
        Ok(parts)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn need(&mut self, name: &'static str) -> Result<String, Error> {
        self.take(name).ok_or(Error::Missing(name))
    }
}

/// Parse a token or a quoted string (RFC 9110, section 5.6.4). Returns it with the rest.
fn value(text: &str) -> Result<(String, &str), Error> {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        return if token.is_empty() || token.contains('"') {
            Err(Error::Form)
        } else {
            Ok((token.to_owned(), rest))
        };
    };
    let mut value = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &inside[at + 1..])),
            '\\' => value.push(chars.next().ok_or(Error::Form)?.1),
            char if !is_harmless(char) => return Err(Error::Form),
            char => value.push(char),
        }
    }
    Err(Error::Form)
}

#[cfg(test)]
mod tests;
