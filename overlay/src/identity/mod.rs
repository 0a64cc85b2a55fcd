//! Identity and admission: keys, certificates, tokens, revocation lists, and what each peer may do.
//!
//! ```text
//! root key ── delegation ──▶ issuer's key ── certificate ──▶ daemon's key      (`wire::credential`)
//!    └──────── certificate of operators and filter-admins ──────▶
//! ```
//!
//! Rule: every decision is made in pure files that take `now`. `key_file`, `domain_files` and `member_files`
//! only store what was decided, each file replaced as a whole and on disk before anything is handed out.
//! `issuer` answers requests with them.
//! Not here: the types that are sent (`wire::credential`, `wire::join`, `wire::entering`), how they are sent
//! (`net`).

pub mod admission;
pub mod audit;
pub mod certificate;
pub mod command_files;
pub mod domain_files;
pub mod guest_certificate;
pub mod issuer;
pub mod issuer_clock;
pub mod issuer_store;
pub mod join;
pub mod key;
pub mod key_file;
pub mod member_files;
pub mod operator;
pub mod peer_clocks;
mod principal;
pub mod proxy_ticket;
pub mod record;
pub mod refused;
pub mod repeats;
pub mod replace_refused;
pub mod replace_token;
pub mod revocation_lists;
pub mod safe_file;
pub mod secret;
mod shown_time;
pub mod signed_command;
pub mod state_folder;
pub mod throttle;
pub mod token;
pub mod token_text;
pub mod trust;
mod verified;
