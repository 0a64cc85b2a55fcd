//! Fault of a call: a stable code, and a message for a person.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Not here: the codes (`wire::fault`), the syntax of a fault (`xml_writer`, `json`).

use std::borrow::Cow;
use wire::fault::{
    APPLICATION, CODES, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, PARSE,
    UNAVAILABLE,
};

/// Fault of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (fault {code})")]
pub struct Fault {
    /// One of the codes of [`wire::fault`].
    pub code: i32,
    /// What was expected, what was found, and what to do.
    pub message: Cow<'static, str>,
}

impl Fault {
    /// Create a fault with one of the codes of [`wire::fault`].
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Fault {
        Fault { code, message: message.into() }
    }

    /// Fault with the code [`PARSE`].
    pub fn parse(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(PARSE, message)
    }

    /// Fault with the code [`INVALID_REQUEST`].
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INVALID_REQUEST, message)
    }

    /// Fault with the code [`INVALID_PARAMS`].
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INVALID_PARAMS, message)
    }

    /// Fault with the code [`METHOD_NOT_FOUND`] and a hint where to look. A name longer than any method's is
    /// not repeated.
    #[must_use]
    pub fn method_not_found(name: &str) -> Fault {
        let shown = if name.len() <= crate::limits::METHOD_NAME_BYTES { name } else { "of this length" };
        Fault::new(METHOD_NOT_FOUND, format!("no method {shown:?}; system.listMethods lists them"))
    }

    /// Fault with the code [`INTERNAL`].
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INTERNAL, message)
    }

    /// Fault with the code [`APPLICATION`].
    pub fn application(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(APPLICATION, message)
    }

    /// Fault with the code [`NOT_FOUND`].
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(NOT_FOUND, message)
    }

    /// Fault with the code [`UNAVAILABLE`].
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(UNAVAILABLE, message)
    }

    /// HTTP status of the fault in JSON answers.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        CODES.iter().find(|(code, ..)| *code == self.code).map_or(500, |(_, _, status, _)| *status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_once() {
        let mut codes: Vec<i32> = CODES.iter().map(|(code, ..)| *code).collect();
        codes.sort_unstable();
        let listed = codes.len();
        codes.dedup();
        assert_eq!((codes.len(), listed), (19, 19));
    }

    #[test]
    fn statuses_follow_the_table() {
        assert_eq!(Fault::parse("x").http_status(), 400);
        assert_eq!(Fault::method_not_found("x").http_status(), 404);
        assert_eq!(Fault::new(wire::fault::BUSY, "x").http_status(), 503);
    }

    #[test]
    fn an_overlong_method_name_is_not_repeated() {
        assert!(Fault::method_not_found(&"x".repeat(100_000)).message.len() < 100);
    }
}
