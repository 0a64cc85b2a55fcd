//! Versions of what is written to disk or sent.
//!
//! Rule: a reader refuses a version it does not know, with an error that names both; it never guesses.

/// Version of the frames of [`crate::codec`].
pub const FRAME: u8 = 2;
