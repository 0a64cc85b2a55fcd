//! Request smuggling: requests that two parsers may end at different positions, so that one passes a proxy
//! unseen.
//!
//! Rule: each must be answered by 400 and its connection closed, whatever follows it. Included by the tests
//! of every HTTP listener: a daemon's own, and a proxy's.
//! Not here: bodies with hostile content (`hostile`).
#![allow(dead_code, unreachable_pub)] // each uses a part of it

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}")
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// All such requests, each with `body` for `path`.
pub fn requests(path: &str, body: &str) -> Vec<String> {
    let length = body.len();
    let chunked = chunked(body);
    let post = |headers: &str, body: &str| post(path, headers, body);
    vec![
        post(&format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"), &chunked),
        post(&format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"), &chunked),
        post(&format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"), body),
        post(&format!("Content-Length: {length}\r\nContent-Length: 0\r\n"), body),
        post(&format!("Content-Length: {length}, {length}\r\n"), body),
        post(&format!("Content-Length: +{length}\r\n"), body),
        post(&format!("Content-Length : {length}\r\n"), body),
        post(&format!("Content-Length: {length}\nX: y\r\n"), body),
        post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", &chunked),
        post("Transfer-Encoding : chunked\r\n", &chunked),
        post(&format!(" Content-Length: {length}\r\n"), body),
        post(&format!("X: y\r\n Content-Length: {length}\r\n"), body),
        post(&format!("Host: evil.example\r\nContent-Length: {length}\r\n"), body),
        format!("POST {path} HTTP/1.1\nHost: localhost\nContent-Length: {length}\n\n{body}"),
        format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("POST {path} HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        format!("POST {path}\r\n\r\n{body}"),
    ]
}

/// A request with an unambiguous end, which is answered.
pub fn control(path: &str, body: &str) -> String {
    post(path, "Transfer-Encoding: chunked\r\n", &chunked(body))
}
