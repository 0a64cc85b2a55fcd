//! Who a daemon is and who lets it in: keys, certificates, tokens, lists of denied, and what each may do.
//!
//! ```text
//! root key ── delegation ──▶ issuer's key ── certificate ──▶ daemon's key      (`wire::credential`)
//!    └──────── certificate of operators and filter-admins ──────▶
//! ```
//!
//! Rule: everything is decided in pure files that take `now`; `key_file`, `domain_files` and `member_files`
//! only keep what was decided, each file replaced whole and on disk before anything is handed out, and `issuer`
//! answers by them.
//! Not here: the types that travel (`wire::credential`, `wire::join`, `wire::entering`), how they travel (`net`).

pub mod admission;
pub mod audit;
pub mod book;
pub mod certificate;
pub mod deny_list;
pub mod domain_files;
pub mod issuer;
pub mod issuer_clock;
pub mod join;
pub mod key;
pub mod key_file;
pub mod line;
pub mod member_files;
pub mod operator;
pub mod order;
pub mod order_files;
pub mod pass;
pub mod peer_clocks;
mod principal;
pub mod record;
pub mod refused;
pub mod repeats;
pub mod replace_refused;
pub mod replace_token;
pub mod safe_file;
pub mod secret;
mod shown_time;
pub mod state_folder;
pub mod throttle;
pub mod token;
pub mod trust;
mod verified;
pub mod visa;
