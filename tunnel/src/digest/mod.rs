//! HTTP Digest (RFC 7616): proofs of a secret from client to server, and from server to client.
//!
//! ```text
//! client ── GET /d/UT-ICL/RPC2 ──▶ server
//!        ◀── 401, WWW-Authenticate: Digest realm, nonce, qop="auth", algorithm=SHA-256 ──
//!        ── Authorization: Digest username, nonce, nc, cnonce, uri, response ──▶
//!        ◀── 200, Authentication-Info: rspauth, nextnonce ──
//!
//! HA1      = H(username:realm:secret)             stored by the server; as good as the secret
//! response = H(HA1:nonce:nc:cnonce:auth:H(method:uri))
//! rspauth  = H(HA1:nonce:nc:cnonce:auth:H(:uri))  proves that the server knows HA1 too
//! ```
//! Pure. Rule: qop=auth only. A request without it (RFC 2069) could be replayed for ever, auth-int requires
//! buffering a whole body, and hardly any client supports the -sess variants and userhash.
//! Not here: issued and used nonces, and accounts (`proxy`).

pub mod client;
pub mod header;

use crate::hash::Algorithm;
use data_encoding::HEXLOWER_PERMISSIVE;
use header::Credentials;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Hash of name, realm and secret. It is as good as the secret for its realm, and is never logged.
#[derive(Clone)]
pub struct Ha1 {
    algorithm: Algorithm,
    hex: String,
}

impl Ha1 {
    /// Hash a name and a secret in a realm (RFC 7616, section 3.4.2).
    #[must_use]
    pub fn of(algorithm: Algorithm, name: &str, realm: &str, secret: &str) -> Ha1 {
        Ha1 { algorithm, hex: algorithm.hash_hex(&[name, ":", realm, ":", secret]) }
    }

    /// Parse the hexadecimal digits from an account file; `None` if they are not a hash of this algorithm.
    #[must_use]
    pub fn from_hex(algorithm: Algorithm, text: &str) -> Option<Ha1> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
        let fits = bytes.len() == algorithm.len_bytes();
        fits.then(|| Ha1 { algorithm, hex: text.to_ascii_lowercase() })
    }

    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The hexadecimal digits, for the private account file only.
    #[must_use]
    pub fn secret_hex(&self) -> &str {
        &self.hex
    }

    /// Response of a client.
    #[must_use]
    pub fn response(&self, method: &str, spoken: Spoken<'_>) -> String {
        self.prove(method, spoken)
    }

    /// Response of a server (RFC 7616, section 3.5): like a client's, without a method.
    #[must_use]
    pub fn rspauth(&self, spoken: Spoken<'_>) -> String {
        self.prove("", spoken)
    }

    /// Whether `credentials` prove this hash for a request of `method`, in constant time.
    #[must_use]
    pub fn is_proved_by(&self, method: &str, credentials: &Credentials) -> bool {
        let expected = self.response(method, credentials.spoken());
        let found = credentials.response.to_ascii_lowercase();
        expected.as_bytes().ct_eq(found.as_bytes()).into()
    }

    fn prove(&self, method: &str, spoken: Spoken<'_>) -> String {
        let Spoken { nonce, nc, cnonce, uri } = spoken;
        let asked = self.algorithm.hash_hex(&[method, ":", uri]);
        self.algorithm.hash_hex(&[&self.hex, ":", nonce, ":", nc, ":", cnonce, ":auth:", &asked])
    }
}

impl fmt::Debug for Ha1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ha1({}, …)", self.algorithm)
    }
}

/// Inputs of a response that are not secret, as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken<'a> {
    /// Nonce of the server.
    pub nonce: &'a str,
    /// How often the client used that nonce: eight hexadecimal digits as they were sent.
    pub nc: &'a str,
    /// Nonce of the client.
    pub cnonce: &'a str,
    /// Request target: path and query.
    pub uri: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        algorithm: Algorithm,
        (name, realm, secret): (&str, &str, &str),
        spoken: Spoken<'_>,
        expected: &str,
    ) {
        let ha1 = Ha1::of(algorithm, name, realm, secret);
        assert_eq!(ha1.response("GET", spoken), expected, "{algorithm}");
        let kept = Ha1::from_hex(algorithm, &ha1.secret_hex().to_ascii_uppercase()).expect("digits");
        assert_eq!(kept.response("GET", spoken), expected, "as a file keeps it");
    }

    #[test]
    fn responses_are_those_of_the_rfcs() {
        // RFC 7616, section 3.9.1.
        let spoken = Spoken {
            nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            nc: "00000001",
            cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            uri: "/dir/index.html",
        };
        let who = ("Mufasa", "http-auth@example.org", "Circle of Life");
        check(Algorithm::Md5, who, spoken, "8ca523f5e9506fed4657c9700eebdbec");
        let sha = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        check(Algorithm::Sha256, who, spoken, sha);
        // RFC 2617, section 3.5.
        let spoken = Spoken {
            nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093",
            nc: "00000001",
            cnonce: "0a4f113b",
            uri: "/dir/index.html",
        };
        let who = ("Mufasa", "testrealm@host.com", "Circle Of Life");
        check(Algorithm::Md5, who, spoken, "6629fae49393a05397450978507c4ef1");
    }

    #[test]
    fn each_part_of_what_was_said_changes_the_response() {
        let ha1 = Ha1::of(Algorithm::Sha256, "ana", "visperf", "secret");
        let spoken = Spoken { nonce: "n", nc: "00000001", cnonce: "c", uri: "/RPC2" };
        let right = ha1.response("POST", spoken);
        assert_ne!(ha1.response("GET", spoken), right);
        for other in [
            Spoken { nonce: "m", ..spoken },
            Spoken { nc: "00000002", ..spoken },
            Spoken { cnonce: "d", ..spoken },
            Spoken { uri: "/RPC3", ..spoken },
        ] {
            assert_ne!(ha1.response("POST", other), right, "{other:?}");
        }
        assert_ne!(ha1.rspauth(spoken), right, "a response cannot be sent back as the server's proof");
    }

    #[test]
    fn what_is_kept_is_checked_and_not_shown() {
        assert!(Ha1::from_hex(Algorithm::Md5, "00").is_none());
        assert!(Ha1::from_hex(Algorithm::Sha256, &"0".repeat(32)).is_none());
        assert!(Ha1::from_hex(Algorithm::Md5, &"g".repeat(32)).is_none());
        let ha1 = Ha1::of(Algorithm::Md5, "ana", "visperf", "secret");
        assert_eq!(format!("{ha1:?}"), "Ha1(MD5, …)");
    }
}
