//! The monitor proxy (visPerf, section 3.4): lets those outside a firewall ask daemons inside, and no others.
//!
//! ```text
//! any HTTP client ─▶ door (rpc: framing, deadlines, TLS) ─▶ login: who is it? (Digest) ─▶ place: what is it for?
//!      ─▶ grant: may it? ─▶ the composing program: domain ─▶ directory ─▶ representative ─▶ host
//! daemons inside, by web traffic ─▶ door ─▶ upgrade ─▶ overlay
//! visitors over the overlay ─▶ visitors: who is it? (challenge and response) ─▶ a visa, by which hosts inside let them ask
//! ```
//! Decisions are pure (`account`, `grant`, `nonces`, `attempts`, `login`, `place`); `door` is the shell that has a clock.
//! Rule: a client that is not let in learns nothing: not whether an account is there, nor which domains and hosts are.
//! Not here: HTTP itself (`rpc`), reaching a domain (`overlay` and the composing program), the hashes (`tunnel`).

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
