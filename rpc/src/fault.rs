//! Why a call was not answered: a code that never changes its meaning, and a message for a person.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! The codes follow the Fault Code Interoperability table (2001) where it has one; our own lie in
//! -32099..=-32000, which that table leaves to implementations. A code is never given a second meaning.
//! Not here: how a fault is written (`xmlrpc`, `json`).

use std::borrow::Cow;

/// The request is not well-formed XML, JSON or query string.
pub const PARSE: i32 = -32700;
/// The request declares an encoding other than UTF-8, ISO-8859-1 and US-ASCII.
pub const ENCODING: i32 = -32701;
/// The request holds bytes which are not characters of its encoding, or characters which XML forbids.
pub const CHARACTER: i32 = -32702;
/// The request is well formed, but not a call.
pub const INVALID_REQUEST: i32 = -32600;
/// No method has this name.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A parameter is missing, unknown, of the wrong type or out of range.
pub const INVALID_PARAMS: i32 = -32602;
/// The daemon failed; its log says more.
pub const INTERNAL: i32 = -32603;
/// The method could not do what was asked.
pub const APPLICATION: i32 = -32500;
/// The operating system refused something the method needs.
pub const SYSTEM: i32 = -32400;
/// The HTTP request is ambiguous, cut short or otherwise not one we answer.
pub const TRANSPORT: i32 = -32300;
/// The request or the answer is larger than its limit.
pub const TOO_LARGE: i32 = -32001;
/// The request is nested too deeply or has too many parts.
pub const TOO_COMPLEX: i32 = -32002;
/// The request has a document type declaration or an entity of its own.
pub const FORBIDDEN_XML: i32 = -32003;
/// The request did not arrive, or the method did not answer, in time.
pub const TIMEOUT: i32 = -32004;
/// The daemon has as many connections, calls or bytes in work as it takes.
pub const BUSY: i32 = -32005;
/// The request came from where it may not come (a web page, another host's name).
pub const FORBIDDEN: i32 = -32006;
/// What is signed is not believed, or what it asks is not allowed here.
pub const REFUSED: i32 = -32007;
/// What was asked for does not exist (an unknown host, domain, cursor …).
pub const NOT_FOUND: i32 = -32010;
/// What was asked for exists, but cannot be reached now; asking later may help.
pub const UNAVAILABLE: i32 = -32011;

/// Every code with its name, the HTTP status of the JSON form, and its meaning, in the order of the
/// documentation.
pub const CODES: &[(i32, &str, u16, &str)] = &[
    (PARSE, "parse error", 400, "not well-formed XML, JSON or query string"),
    (ENCODING, "unsupported encoding", 400, "an encoding other than UTF-8, ISO-8859-1 and US-ASCII"),
    (CHARACTER, "invalid character", 400, "bytes that are no characters, or characters XML forbids"),
    (INVALID_REQUEST, "invalid request", 400, "well formed, but not a call"),
    (METHOD_NOT_FOUND, "method not found", 404, "no method has this name"),
    (INVALID_PARAMS, "invalid parameters", 400, "a parameter is missing, unknown, mistyped or out of range"),
    (INTERNAL, "internal error", 500, "the daemon failed; its log says more"),
    (APPLICATION, "application error", 422, "the method could not do what was asked"),
    (SYSTEM, "system error", 500, "the operating system refused something the method needs"),
    (TRANSPORT, "transport error", 400, "the HTTP request is ambiguous, cut short or of the wrong form"),
    (TOO_LARGE, "too large", 413, "the request or the answer is larger than its limit"),
    (TOO_COMPLEX, "too complex", 400, "nested too deeply, or too many parts"),
    (FORBIDDEN_XML, "forbidden XML", 400, "a document type declaration or an entity of its own"),
    (TIMEOUT, "timeout", 504, "the request did not arrive, or the method did not answer, in time"),
    (BUSY, "busy", 503, "as many connections, calls or bytes in work as the daemon takes"),
    (FORBIDDEN, "forbidden", 403, "from a web page, or for a host name, that may not ask"),
    (REFUSED, "refused", 403, "what is signed is not believed, or what it asks is not allowed here"),
    (NOT_FOUND, "not found", 404, "what was asked for does not exist"),
    (UNAVAILABLE, "unavailable", 503, "it exists, but cannot be reached now; ask again later"),
];

/// Faults that no waiting mends: the same question is answered so again.
const FINAL: [i32; 11] = [
    PARSE,
    ENCODING,
    CHARACTER,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    INVALID_PARAMS,
    TOO_LARGE,
    TOO_COMPLEX,
    FORBIDDEN_XML,
    FORBIDDEN,
    REFUSED,
];

/// Whether no waiting mends a fault of this code.
#[must_use]
pub fn is_final(code: i32) -> bool {
    FINAL.contains(&code)
}

/// Why a call was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (fault {code})")]
pub struct Fault {
    /// One of the constants of this module.
    pub code: i32,
    /// What was expected, what was found, and what to do.
    pub message: Cow<'static, str>,
}

impl Fault {
    /// A fault with one of the codes of this module.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Fault {
        Fault { code, message: message.into() }
    }

    /// [`PARSE`]
    pub fn parse(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(PARSE, message)
    }

    /// [`INVALID_REQUEST`]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INVALID_REQUEST, message)
    }

    /// [`INVALID_PARAMS`]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INVALID_PARAMS, message)
    }

    /// [`METHOD_NOT_FOUND`], with where to look. A name longer than any method's is not repeated.
    #[must_use]
    pub fn method_not_found(name: &str) -> Fault {
        let shown = if name.len() <= crate::method::NAME_MAX_BYTES { name } else { "of this length" };
        Fault::new(METHOD_NOT_FOUND, format!("no method {shown:?}; system.listMethods lists them"))
    }

    /// [`INTERNAL`]
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(INTERNAL, message)
    }

    /// [`APPLICATION`]
    pub fn application(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(APPLICATION, message)
    }

    /// [`NOT_FOUND`]
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(NOT_FOUND, message)
    }

    /// [`UNAVAILABLE`]
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(UNAVAILABLE, message)
    }

    /// The HTTP status with which the JSON form answers.
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
        assert_eq!(Fault::new(BUSY, "x").http_status(), 503);
    }

    #[test]
    fn an_overlong_method_name_is_not_repeated() {
        assert!(Fault::method_not_found(&"x".repeat(100_000)).message.len() < 100);
    }
}
