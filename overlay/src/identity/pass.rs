//! Passes: lines by which programs of a member's host ask a proxy, without an account there.
//!
//! ```text
//! visperfpass1-… : the member's certificate, and its word, signed by its daemon's key: to this proxy, until then
//! ```
//! Pure. Rules: a pass is for one proxy and for [`LIFE_MAX`] at most; it gives what the certificate gives and ends with
//! it; whoever reads it may use it until then, so it travels encrypted alone.
//! Not here: HTTP, and what its holder may ask (`proxy`).

use super::certificate::check_life;
use super::key::Key;
use super::line::{self, Kind};
use super::refused::Refused;
use std::time::Duration;
use wire::credential::{Chain, Pass, ShownPass};
use wire::id::PeerKey;
use wire::time::Time;

const LINE: Kind = Kind { prefix: "visperfpass1-", what: "pass", made_by: "visperf account pass" };

/// How long a pass holds at most: a working day.
pub const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);

/// Longest line that is looked at, in bytes.
pub const LINE_LEN_MAX_BYTES: usize = 8 << 10;

/// A pass to `proxy` from `now` on, for `life`.
///
/// # Errors
/// If it would hold for longer than [`LIFE_MAX`].
pub fn make(key: &Key, chain: &Chain, proxy: PeerKey, now: Time, life: Duration) -> Result<String, Refused> {
    let pass = Pass { proxy, issued: now, expires: now.plus(life) };
    check_life("pass", &pass.issued, pass.expires, LIFE_MAX)?;
    Ok(line::write(LINE, &ShownPass { pass: key.seal(&pass)?, chain: chain.clone() }))
}

/// What a line holds; nothing of it is checked yet.
///
/// # Errors
/// If it is no pass.
pub fn read(text: &str) -> Result<ShownPass, line::Error> {
    if text.len() > LINE_LEN_MAX_BYTES {
        return Err(line::Error::Prefix { kind: LINE });
    }
    line::read(LINE, text)
}
