//! Limits of the resources that a server spends on clients.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Each limit is a named constant with its reason; [`Limits`] contains them so that tests can lower them.
//! Not here: the behaviour at a limit (`framing`, `guarded_stream`, `connections`, `dispatch`).

use crate::stream_limits::StreamLimits;
use std::time::Duration;

/// Largest body: the largest useful request is a multicall of some hundred KiB.
pub const BODY_BYTES: usize = 1 << 20;
/// Largest header, request line and fields together; browsers and proxies send up to 8 KiB.
pub const HEAD_BYTES: usize = 16 << 10;
/// Most header lines; hyper's own limit, clients send about ten.
pub const HEADERS: usize = 100;
/// Longest request target; a longer query belongs in a body.
pub const TARGET_BYTES: usize = 8 << 10;
/// Deadline from the first byte of a header to its end; a new connection must send that byte within the same
/// time.
pub const HEAD_TIME: Duration = Duration::from_secs(5);
/// Deadline from the end of the header to the end of the body.
pub const BODY_TIME: Duration = Duration::from_secs(15);
/// Time after which a persistent connection without a request is closed.
pub const IDLE_TIME: Duration = Duration::from_secs(60);
/// Time after which a client that reads nothing of its answer is disconnected.
pub const WRITE_TIME: Duration = Duration::from_secs(30);
/// Timeout of a method.
pub const CALL_TIME: Duration = Duration::from_secs(30);
/// Time that running calls have to finish after the stop signal.
pub const DRAIN_TIME: Duration = Duration::from_secs(5);
/// Deepest nesting: XML elements, JSON arrays and objects. A multicall of scalars is 15 elements deep.
pub const DEPTH: usize = 32;
/// Most parts of one request: XML elements, texts and comments, JSON values.
pub const NODES: usize = 10_000;
/// Most attributes in one XML request; XML-RPC has none, some clients declare a namespace.
pub const ATTRIBUTES: usize = 64;
/// Most parameters in a query string.
pub const QUERY_PARAMETERS: usize = 64;
/// Longest name of a method.
pub const METHOD_NAME_BYTES: usize = 64;
/// Most calls in one `system.multicall`.
pub const MULTICALL_CALLS: usize = 100;
/// Largest answer, so that one multicall cannot use all memory.
pub const ANSWER_BYTES: usize = 32 << 20;
/// Most connections, each with some 20 KiB of buffers; streams have limits of their own.
pub const CONNECTIONS: usize = 2_000;
/// Most connections from one address, so that one host leaves room for others.
pub const CONNECTIONS_PER_ADDRESS: usize = 1_200;
/// Most running calls; each belongs to one connection.
pub const CALLS_IN_WORK: usize = 1_500;
/// Bodies up to this size do not count against [`LARGE_BODIES_BYTES`]: the number of connections limits them.
pub const SMALL_BODY_BYTES: usize = 16 << 10;
/// Most bytes of larger bodies in memory.
pub const LARGE_BODIES_BYTES: usize = 64 << 20;

/// The limits of one server; `Limits::default()` has the constants of this module.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each field is the constant of the same name, documented above
pub struct Limits {
    pub body_bytes: usize,
    pub head_bytes: usize,
    pub headers: usize,
    pub target_bytes: usize,
    pub head_time: Duration,
    pub body_time: Duration,
    pub idle_time: Duration,
    pub write_time: Duration,
    pub call_time: Duration,
    pub drain_time: Duration,
    pub depth: usize,
    pub nodes: usize,
    pub attributes: usize,
    pub query_parameters: usize,
    pub multicall_calls: usize,
    pub answer_bytes: usize,
    pub connections: usize,
    pub connections_per_address: usize,
    pub calls_in_work: usize,
    pub small_body_bytes: usize,
    pub large_bodies_bytes: usize,
    pub follow: StreamLimits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: BODY_BYTES,
            head_bytes: HEAD_BYTES,
            headers: HEADERS,
            target_bytes: TARGET_BYTES,
            head_time: HEAD_TIME,
            body_time: BODY_TIME,
            idle_time: IDLE_TIME,
            write_time: WRITE_TIME,
            call_time: CALL_TIME,
            drain_time: DRAIN_TIME,
            depth: DEPTH,
            nodes: NODES,
            attributes: ATTRIBUTES,
            query_parameters: QUERY_PARAMETERS,
            multicall_calls: MULTICALL_CALLS,
            answer_bytes: ANSWER_BYTES,
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            calls_in_work: CALLS_IN_WORK,
            small_body_bytes: SMALL_BODY_BYTES,
            large_bodies_bytes: LARGE_BODIES_BYTES,
            follow: StreamLimits::default(),
        }
    }
}
