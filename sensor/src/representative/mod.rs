//! What the representative knows of its domain: its hosts, and what they come to together.
//!
//! Not here: how members report to it, how it is elected (the overlay).

pub mod summary;
