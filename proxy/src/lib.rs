//! Monitor proxy (visPerf, section 3.4): lets authorized clients outside a firewall query daemons inside.
//!
//! ```text
//! any HTTP client ─▶ listener (rpc: framing, deadlines, TLS) ─▶ login: authentication (Digest) ─▶ request_path: which domain, host?
//!      ─▶ grant: permissions ─▶ the composing program: domain ─▶ directory ─▶ representative ─▶ host
//! daemons inside, by web traffic ─▶ listener ─▶ upgrade ─▶ overlay
//! visitors over the overlay ─▶ guests: authentication (challenge and response) ─▶ a visa, accepted by the hosts inside
//! ```
//! Decisions are pure (`account`, `grant`, `nonces`, `attempts`, `login`, `request_path`); `authorizer` is the shell with
//! a clock.
//! Rule: a client that is not authenticated learns nothing: neither which accounts, nor which domains and
//! hosts exist.
//! Not here: HTTP (`rpc`), reaching a domain (`overlay` and the composing program), hash functions
//! (`tunnel`).

pub mod account;
pub mod account_file;
pub mod attempts;
pub mod authorizer;
pub mod certificate;
pub mod config;
pub mod figures;
pub mod grant;
pub mod htdigest;
pub mod login;
pub mod nonces;
pub mod request_path;
pub mod upgrade;
pub mod watch;
