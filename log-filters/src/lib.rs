//! Log lines in, interaction events out: the filters and the engine that runs them.
//!
//! Pure: bytes and the time of reading go in, events come out. A filter is data (`filters/*.toml`); nothing
//! here knows a product. Not here: files (`sensor::tail`), where filters of users are kept.

pub mod found;
