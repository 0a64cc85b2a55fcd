//! Proxy tickets (passes): lines that let programs on a member's host query a proxy without an account there.
//!
//! ```text
//! visperfpass1-… : the member's certificate chain, and its daemon's signature over the proxy's key and the
//! validity
//! ```
//! Pure. Rules: a ticket is valid for one proxy and for at most [`LIFE_MAX`]; it gives the rights of the
//! certificate and ends with it. Any program that reads it may use it until then, so it is only sent over
//! encrypted connections.
//! Not here: HTTP, and what its bearer may request (`proxy`).

use super::certificate::check_life;
use super::key::Key;
use super::refused::Refused;
use super::token_text::{self, Kind};
use std::time::Duration;
use wire::credential::{Chain, Pass, ShownPass};
use wire::id::PeerKey;
use wire::time::Time;

const LINE: Kind = Kind { prefix: "visperfpass1-", what: "pass", made_by: "visperf account pass" };

/// Maximum lifetime of a ticket: a working day.
pub const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);

/// Longest line that is parsed, in bytes.
pub const LINE_LEN_MAX_BYTES: usize = 8 << 10;

/// Create a ticket for `proxy`, valid from `now` for `life`.
///
/// # Errors
/// If it would be valid for longer than [`LIFE_MAX`].
pub fn make(key: &Key, chain: &Chain, proxy: PeerKey, now: Time, life: Duration) -> Result<String, Refused> {
    let pass = Pass { proxy, issued: now, expires: now.plus(life) };
    check_life("pass", &pass.issued, pass.expires, LIFE_MAX)?;
    Ok(token_text::write(LINE, &ShownPass { pass: key.seal(&pass)?, chain: chain.clone() }))
}

/// Parse a ticket; its content is not verified yet.
///
/// # Errors
/// If it is not a ticket.
pub fn read(text: &str) -> Result<ShownPass, token_text::Error> {
    if text.len() > LINE_LEN_MAX_BYTES {
        return Err(token_text::Error::Prefix { kind: LINE });
    }
    token_text::read(LINE, text)
}
