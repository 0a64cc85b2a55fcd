//! Table tests of the framing: what is admitted, what is refused, and that the split into reads changes
//! nothing.

use super::*;
use proptest::prelude::*;

/// Feed `input` in pieces of `step` bytes. Returns the admitted bytes, and the refusal if there was one.
fn feed(input: &[u8], step: usize) -> (Vec<u8>, Option<Refusal>, Phase) {
    let mut framing = Framing::new(&Limits::default());
    let (mut buffer, mut admitted) = (Vec::new(), Vec::new());
    for piece in input.chunks(step.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match framing.admit(&buffer) {
                Ok(0) => break,
                Ok(count) => admitted.extend(buffer.drain(..count)),
                Err(refusal) => return (admitted, Some(refusal), framing.phase(buffer.len())),
            }
        }
    }
    (admitted, None, framing.phase(buffer.len()))
}

fn check(input: &str, status: u16) {
    for step in [1, 7, input.len()] {
        let (admitted, refusal, phase) = feed(input.as_bytes(), step);
        assert_eq!(refusal.map_or(200, |refusal| refusal.status), status, "{input:?} in steps of {step}");
        if status == 200 {
            assert_eq!(admitted, input.as_bytes(), "{input:?} in steps of {step}");
            assert_eq!(phase, Phase::Idle);
        } else {
            assert_eq!(phase, Phase::Refused);
        }
    }
}

#[test]
fn good_requests_are_admitted_whole() {
    check("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200);
    check("GET / HTTP/1.0\r\n\r\n", 200);
    check("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 200);
    check("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 200);
    check("POST / HTTP/1.1\r\nHost: x\r\ncontent-length:5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n", 200);
    check(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
        200,
    );
    check("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\nb", 200);
}

#[test]
fn ambiguous_requests_are_refused() {
    let headers = |lines: &str| check(&format!("POST / HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\nhello"), 400);
    headers("Content-Length: 5\r\nTransfer-Encoding: chunked");
    headers("Transfer-Encoding: chunked\r\nContent-Length: 5");
    headers("Content-Length: 5\r\nContent-Length: 5");
    headers("Content-Length: 5\r\nContent-Length: 6");
    headers("Content-Length: 5, 5");
    headers("Content-Length: +5");
    headers("Content-Length: -5");
    headers("Content-Length: 0x5");
    headers("Content-Length: 5 5");
    headers("Content-Length:");
    headers("Content-Length: 99999999999999999999");
    headers("Content-Length : 5");
    headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked");
    headers("Transfer-Encoding : chunked");
    headers("Host: y");
    headers(" folded: x");
    headers("A: b\r\n folded");
    headers("no colon");
    headers(": no name");
    headers("A: b\rc");
    headers("A: b\0");
    check("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 501);
    check("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400);
    check("POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
}

#[test]
fn malformed_heads_are_refused() {
    check("GET / HTTP/1.1\nHost: x\r\n\r\n", 400);
    check("GET / HTTP/1.1\r\nHost: x\n\r\n", 400);
    check("GET / HTTP/1.1\r\nHost: x\r\n\n", 400);
    check("\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("GET / HTTP/1.1\r\n\r\n", 400);
    check("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("GET /\r\nHost: x\r\n\r\n", 400);
    check("GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("GET /\u{fc} HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
    check("GET / HTTP/0.9\r\nHost: x\r\n\r\n", 505);
    check(&format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(9000)), 414);
    check(&format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(100)), 431);
    check(&format!("GET / HTTP/1.1\r\nHost: x\r\na: {}\r\n\r\n", "b".repeat(17_000)), 431);
}

#[test]
fn malformed_chunks_are_refused() {
    let body = |body: &str| {
        check(&format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), 400)
    };
    body("x\r\n");
    body("5\nhello");
    body("5;name=value\r\nhello\r\n");
    body("5 \r\nhello\r\n");
    body("000000005\r\nhello\r\n");
    body("5\r\nhelloX");
    body("0\r\nTrailer: x\r\n\r\n");
    body("\r\n");
    body("-1\r\n");
}

#[test]
fn phases_follow_the_bytes() {
    let phase = |input: &str| feed(input.as_bytes(), 1).2;
    assert_eq!(phase(""), Phase::Fresh);
    assert_eq!(phase("G"), Phase::Head);
    assert_eq!(phase("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n"), Phase::Body);
    assert_eq!(phase("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"), Phase::Idle);
    assert_eq!(phase("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhelloP"), Phase::Head);
    let mut framing = Framing::new(&Limits::default());
    framing.refuse(Refusal { status: 408, message: "late", is_in_body: false });
    assert_eq!(framing.phase(0), Phase::Refused);
}

proptest! {
    #[test]
    fn cuts_between_reads_change_nothing(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "GET / HTTP/1.1\r\n", "POST /RPC2 HTTP/1.1\r\n", "Host: x\r\n", "Content-Length: 3\r\n",
                "Transfer-Encoding: chunked\r\n", "\r\n", "\n", "abc", "3\r\n", "0\r\n\r\n", "\r", " ", "\0", "a: b\r\n",
            ]),
            0..12,
        ),
        step in 1_usize..9,
    ) {
        let input = pieces.concat();
        let whole = feed(input.as_bytes(), input.len());
        prop_assert_eq!(feed(input.as_bytes(), step), whole);
    }
}
