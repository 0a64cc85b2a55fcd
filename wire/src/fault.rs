//! Fault codes: each has one meaning, for ever.
//!
//! Pure. The codes follow the Fault Code Interoperability table (2001) where it has one; visperf's own are in
//! -32099..=-32000, which that table leaves to implementations.
//! Not here: a fault with its message (`rpc::fault`), the reaction of a client (`client::recovery`).

/// The request is not well-formed XML, JSON or query string.
pub const PARSE: i32 = -32700;
/// The request declares an encoding other than UTF-8, ISO-8859-1 and US-ASCII.
pub const ENCODING: i32 = -32701;
/// The request contains bytes that are not characters of its encoding, or characters that XML forbids.
pub const CHARACTER: i32 = -32702;
/// The request is well formed, but not a call.
pub const INVALID_REQUEST: i32 = -32600;
/// No method has this name.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A parameter is missing, unknown, of the wrong type or out of range.
pub const INVALID_PARAMS: i32 = -32602;
/// The daemon failed; its log says more.
pub const INTERNAL: i32 = -32603;
/// The method could not execute the request.
pub const APPLICATION: i32 = -32500;
/// The operating system refused something the method needs.
pub const SYSTEM: i32 = -32400;
/// The HTTP request is ambiguous, truncated or otherwise not acceptable.
pub const TRANSPORT: i32 = -32300;
/// The request or the answer is larger than its limit.
pub const TOO_LARGE: i32 = -32001;
/// The request is nested too deeply or has too many parts.
pub const TOO_COMPLEX: i32 = -32002;
/// The request was not received completely, or the method did not answer, in time.
pub const FORBIDDEN_XML: i32 = -32003;
/// The request has a document type declaration or defines entities.
pub const TIMEOUT: i32 = -32004;
/// The daemon has reached its limit of connections, calls or bytes being processed.
pub const BUSY: i32 = -32005;
/// The request came from a forbidden origin (a web page, another host's name).
pub const FORBIDDEN: i32 = -32006;
/// A signature is not trusted, or its order is not allowed here.
pub const REFUSED: i32 = -32007;
/// The requested object does not exist (an unknown host, domain, cursor …).
pub const NOT_FOUND: i32 = -32010;
/// The requested object exists, but cannot be reached now; a retry may succeed.
pub const UNAVAILABLE: i32 = -32011;

/// All codes with their names, the HTTP status of the JSON form, and their meaning, in the order of the
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

/// Faults that are permanent: a retry gives the same fault.
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

/// Whether a fault with this code is permanent.
#[must_use]
pub fn is_final(code: i32) -> bool {
    FINAL.contains(&code)
}
