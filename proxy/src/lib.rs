//! Monitor proxy (visPerf, section 3.4): lets authorized clients outside a firewall query daemons inside.
//!
//! ```text
//! any HTTP client ─▶ door (rpc: framing, deadlines, TLS) ─▶ login: authentication (Digest) ─▶ place: which domain, host?
//!      ─▶ grant: permissions ─▶ the composing program: domain ─▶ directory ─▶ representative ─▶ host
//! daemons inside, by web traffic ─▶ door ─▶ upgrade ─▶ overlay
//! visitors over the overlay ─▶ visitors: authentication (challenge and response) ─▶ a visa, accepted by the hosts inside
//! ```
//! Decisions are pure (`account`, `grant`, `nonces`, `attempts`, `login`, `place`); `door` is the shell with
//! a clock.
//! Rule: a client that is not authenticated learns nothing: neither which accounts, nor which domains and
//! hosts exist.
//! Not here: HTTP (`rpc`), reaching a domain (`overlay` and the composing program), hash functions
//! (`tunnel`).

pub mod access;
pub mod account;
pub mod account_file;
pub mod attempts;
pub mod certificate;
pub mod config;
pub mod door;
pub mod figures;
pub mod grant;
pub mod hatch;
pub mod htdigest;
pub mod login;
pub mod nonces;
pub mod place;
pub mod visitors;
pub mod watch;

mod lasting;
