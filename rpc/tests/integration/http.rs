//! The server over real sockets: paths and methods, ambiguous requests, limits, deadlines, shutdown.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::smuggled;

use crate::served::{Answer, Served, call, echo};
use rpc::limits::Limits;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use wire::fault;

fn start() -> Served {
    Served::start(Limits::default())
}

#[test]
fn json_methods_are_called_by_post_and_get() {
    let served = start();
    let check = |answer: Answer, status: u16, body: &str| {
        assert_eq!((answer.status, answer.body.trim_end()), (status, body), "{}", answer.head);
    };
    check(served.post("/api/v1/test.echo", b""), 200, r#"{"value":null,"limit":100}"#);
    check(served.post("/api/v1/test.echo", br#"{"value":[1,"x"]}"#), 200, r#"{"value":[1,"x"],"limit":100}"#);
    check(served.get("/api/v1/test.echo?limit=7&value=a+b"), 200, r#"{"value":"a b","limit":7}"#);
    let refusal = r#"{"error":{"code":-32602,"message":"limit: expected a whole number from 1 to 10000, found \"abc\""}}"#;
    check(served.get("/api/v1/test.echo?limit=abc"), 400, refusal);
    check(served.post("/api/v1/test.echo", br#"{"limit":"abc"}"#), 400, refusal);
    let missing = served.get("/api/v1/test.nothing");
    assert_eq!((missing.status, missing.fault_code()), (404, Some(fault::METHOD_NOT_FOUND)));
    let away = served.post("/api/v1/test.fail", b"");
    assert_eq!((away.status, away.fault_code()), (503, Some(fault::UNAVAILABLE)));
    let changes = served.get("/api/v1/test.fail");
    assert_eq!(changes.status, 405);
    assert!(changes.head.contains("allow: post, options"), "{}", changes.head);
    let calls = br#"{"calls":[{"methodName":"test.echo","params":{"limit":5}},{"methodName":"test.fail"}]}"#;
    let both = served.post("/api/v1/system.multicall", calls);
    assert!(both.body.starts_with(r#"[[{"value":null,"limit":5}],{"faultCode":-32011,"#), "{}", both.body);
}

#[test]
fn numbers_reach_json_and_xml_exactly() {
    let served = start();
    let json = served.get("/api/v1/test.counters").body;
    for expected in [
        "\"beyond_double\":9007199254740993",
        "\"unsigned\":18446744073709551615",
        "\"user\":\"J\u{fc}rgen \u{1f600}\"",
        "\"bytes\":\"AAH/\"",
        "\"control\":\"a\\u0001b\"",
        "\"time\":1700000000.123456",
    ] {
        assert!(json.contains(expected), "{expected} in {json}");
    }
    let json = served.get("/api/v1/test.counters?big_integers=string").body;
    assert!(json.contains("\"beyond_i4\":2147483648,\"beyond_double\":\"9007199254740993\""), "{json}");
    let big = |form: &str| {
        let member = format!("<member><name>big_integers</name><value>{form}</value></member>");
        let params = format!("<param><value><struct>{member}</struct></value></param>");
        served.post("/RPC2", call("test.counters", &params).as_bytes()).body
    };
    for (form, expected) in [
        ("number", "<i8>2147483648</i8>"),
        ("number", "<int>2147483647</int>"),
        ("number", "<i8>9223372036854775807</i8>"),
        ("number", "<string>18446744073709551615</string>"),
        ("number", "<base64>YQFi</base64>"),
        ("string", "<string>2147483648</string>"),
        ("string", "<int>2147483647</int>"),
        ("double", "<double>2147483648</double>"),
    ] {
        let body = big(form);
        assert!(body.contains(expected), "{form}: {expected} in {body}");
    }
    assert!(big("float").contains("<int>-32602</int>"));
}

#[test]
fn each_path_says_what_it_takes() {
    let served = start();
    let allowed = |answer: Answer| {
        let allow = answer.head.lines().find_map(|line| line.strip_prefix("allow: ").map(str::to_owned));
        (answer.status, allow.unwrap_or_default())
    };
    assert_eq!(allowed(served.get("/RPC2")), (405, "post, options".into()));
    assert!(served.get("/RPC2").body.contains("expected POST with an XML-RPC <methodCall>"));
    let ask = |method: &str, path: &str| {
        served.ask(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    };
    assert_eq!(allowed(ask("OPTIONS", "/RPC2")), (204, "post, options".into()));
    assert_eq!(allowed(ask("OPTIONS", "/")), (204, "get, head, post, options".into()));
    assert_eq!(allowed(ask("OPTIONS", "/api/v1/test.echo")), (204, "get, head, post, options".into()));
    assert_eq!(allowed(ask("DELETE", "/api/v1/test.echo")).0, 405);
    assert_eq!(ask("BREW", "/nowhere").status, 404);
    let index = served.get("/");
    assert!(
        index.status == 200 && index.body.contains("/RPC2") && index.body.contains("/api/v1"),
        "{index:?}"
    );
    let head = ask("HEAD", "/");
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains("content-length: "), "{head:?}");
    let list: serde_json::Value = serde_json::from_str(&served.get("/api/v1").body).unwrap();
    let names: Vec<_> =
        list["methods"].as_array().unwrap().iter().filter_map(|method| method["name"].as_str()).collect();
    assert!(names.contains(&"test.echo") && names.contains(&"system.multicall"), "{names:?}");
    assert_eq!(served.post("/", call("system.listMethods", "").as_bytes()).status, 200);
    let given = served.get("/given/path?limit=7");
    assert!(given.status == 200 && given.head.contains("application/json"), "{given:?}");
    assert_eq!(given.body, served.get("/api/v1/test.echo?limit=7").body);
    assert_eq!(served.get("/given/path/more").status, 404);
}

#[test]
fn ambiguous_requests_are_answered_400_and_closed() {
    let served = start();
    for request in smuggled::requests("/RPC2", &call("test.echo", "")) {
        // A second request behind the first must not be answered.
        let with_another = format!("{request}GET /api/v1/test.counters HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = served.ask(with_another.as_bytes());
        assert_eq!(
            (answer.status, answer.fault_code()),
            (400, Some(fault::TRANSPORT)),
            "{request:?} {answer:?}"
        );
        assert!(answer.head.contains("connection: close"), "{request:?} {answer:?}");
        assert!(!answer.body.contains("HTTP/1.1 "), "{request:?} {answer:?}");
    }
    let control = smuggled::control("/RPC2", &call("test.echo", ""));
    assert!(served.ask(control.as_bytes()).body.contains("<methodResponse><params>"));
    assert_eq!(served.counted().calls_total, 1, "only the control was called");
}

#[test]
fn a_target_that_hyper_cannot_parse_is_answered_as_json() {
    let served = start();
    for target in ["/<x>", "/api/v1/test.echo?x=\"y\"", "http:///x", "/a`b"] {
        let request = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n");
        let answer = served.ask(&[request.as_bytes(), &[b'x'; 200_000]].concat());
        assert_eq!(
            (answer.status, answer.fault_code()),
            (400, Some(fault::TRANSPORT)),
            "{target} {answer:?}"
        );
        assert!(answer.head.contains("nosniff"), "{answer:?}");
    }
    let counted = served.counted();
    assert_eq!((counted.requests_total, counted.requests_refused_total), (4, 4));
    assert!(counted.sent_bytes > 400, "{counted:?}");
    assert_eq!(served.get("/api/v1/test.echo?value={x}&limit=1").status, 200, "braces are well-formed");
}

#[test]
fn answers_keep_the_order_of_their_requests() {
    let served = start();
    let good = "GET /api/v1/test.echo?limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let bad = "GET / HTTP/1.1\nHost: localhost\r\n\r\n";
    let answers = String::from_utf8(served.exchange(format!("{good}{good}{bad}{good}").as_bytes())).unwrap();
    let statuses: Vec<&str> =
        answers.match_indices("HTTP/1.1 ").map(|(at, _)| &answers[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "200", "400"], "{answers}");
}

#[test]
fn bodies_that_are_not_as_announced_are_refused() {
    let served = start();
    let body = echo("<value>x</value>");
    let cut = |sent: &str, announced: usize| {
        served.ask(
            format!("POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n\r\n{sent}")
                .as_bytes(),
        )
    };
    let short = cut(&body, body.len() + 10);
    assert_eq!((short.status, short.fault_code()), (200, Some(fault::TRANSPORT)), "{short:?}");
    let large = cut("x", (1 << 20) + 1);
    assert_eq!(large.fault_code(), Some(fault::TOO_LARGE), "{large:?}");
    assert!(large.head.contains("connection: close"));
    let huge = cut("x", 99_999_999_999);
    assert_eq!(huge.fault_code(), Some(fault::TOO_LARGE), "{huge:?}");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).repeat(17);
    let chunked = format!(
        "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
    );
    assert_eq!(served.ask(chunked.as_bytes()).fault_code(), Some(fault::TOO_LARGE));
    for bad in ["5\r\nhelloXX", "5;a=b\r\nhello\r\n0\r\n\r\n", "0\r\nX: y\r\n\r\n"] {
        let head = "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        // Answered by a method that reads the body, and by one that does not.
        for (line, expected) in [("POST /RPC2", "chunk"), ("GET /api/v1/test.echo", "limit")] {
            let before = served.counted();
            let answers = served.exchange(format!("{line} HTTP/1.1\r\n{head}{bad}").as_bytes());
            let answers = String::from_utf8(answers).unwrap();
            assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
            assert!(answers.contains(expected), "{answers}");
            assert_eq!(served.counted().requests_total, before.requests_total + 1, "{line} {bad:?}");
        }
    }
    let zipped =
        "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(served.ask(zipped.as_bytes()).fault_code(), Some(fault::TRANSPORT));
    // The largest allowed body.
    let filler = "x".repeat((1 << 20) - echo("<value></value>").len());
    let largest = served.post("/RPC2", echo(&format!("<value>{filler}</value>")).as_bytes());
    assert_eq!((largest.status, largest.fault_code()), (200, None));
    served.still_answers();
}

#[test]
fn pages_from_elsewhere_and_other_hosts_are_refused() {
    let served = start();
    let ask =
        |headers: &str| served.ask(format!("GET /api/v1/test.echo HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes());
    for headers in [
        "Host: evil.example",
        "Host: localhost\r\nOrigin: https://evil.example",
        "Host: localhost\r\nOrigin: null",
        "Host: localhost\r\nSec-Fetch-Site: cross-site",
    ] {
        let answer = ask(headers);
        assert_eq!(
            (answer.status, answer.fault_code()),
            (403, Some(fault::FORBIDDEN)),
            "{headers} {answer:?}"
        );
    }
    assert_eq!(ask("Host: 127.0.0.1:9\r\nOrigin: http://127.0.0.1:9").status, 200);
}

#[test]
fn heads_and_bodies_must_come_in_time() {
    let limits = Limits {
        head_time: Duration::from_secs(1),
        body_time: Duration::from_secs(1),
        idle_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let served = Served::start(limits);
    // The client keeps its side open, so only the deadline can end these.
    let wait = |sent: &str| {
        let mut stream = served.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    };
    assert_eq!(wait(""), b"", "a connection that says nothing is closed");
    let head = Answer::read(&wait("GET / HTTP/1.1\r\nHost: local"));
    assert_eq!((head.status, head.fault_code()), (408, Some(fault::TIMEOUT)), "{head:?}");
    let body = Answer::read(&wait("POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n<x"));
    assert_eq!((body.status, body.fault_code()), (200, Some(fault::TIMEOUT)), "{body:?}");
    let idle = Answer::read(&wait("GET /api/v1/test.echo HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert_eq!(idle.status, 200, "an idle connection is closed after its answer");
    served.still_answers();
}

#[test]
fn a_body_that_drips_does_not_renew_its_time() {
    let limits = Limits { body_time: Duration::from_secs(1), ..Limits::default() };
    let served = Served::start(limits);
    let mut stream = served.connect();
    stream.write_all(b"POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut answer = [0; 512];
    for _ in 0..500 {
        let _ = stream.write_all(b"x");
        match stream.read(&mut answer) {
            Ok(count) => {
                assert!(String::from_utf8_lossy(&answer[..count]).contains("-32004"), "a timeout fault");
                return;
            }
            // It arrived after the answer, which is then lost with the connection.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => {
                assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
            }
        }
    }
    panic!("a dripping body was waited for");
}

#[test]
fn a_client_that_takes_no_answer_is_cut_off() {
    let limits = Limits { write_time: Duration::from_millis(200), ..Limits::default() };
    let served = Served::start(limits);
    let value = format!("<value>{}</value>", "x".repeat(1 << 19));
    let body = echo(&value);
    let request =
        format!("POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = served.connect();
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    for _ in 0..64 {
        if stream.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    served.wait_until(|counted| counted.connections_open == 0);
    served.still_answers();
}

#[test]
fn connections_beyond_the_limit_get_the_reason() {
    let served = Served::start(Limits { connections: 3, ..Limits::default() });
    let kept: Vec<TcpStream> = (0..3).map(|_| served.connect()).collect();
    served.wait_until(|counted| counted.connections_open == 3);
    let refused = served.get("/api/v1/test.echo");
    assert_eq!((refused.status, refused.fault_code()), (503, Some(fault::BUSY)), "{refused:?}");
    assert_eq!(served.counted().connections_refused_total, 1);
    drop(kept);
    served.wait_until(|counted| counted.connections_open == 0);
    served.still_answers();
}

#[test]
fn large_bodies_share_one_budget() {
    let served = Served::start(Limits { large_bodies_bytes: 64 << 10, ..Limits::default() });
    let body = echo(&format!("<value>{}</value>", "x".repeat(60 << 10)));
    let head = format!("POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut first = served.connect();
    first.write_all(head.as_bytes()).unwrap();
    served.wait_until(|counted| counted.requests_total == 1);
    assert_eq!(served.post("/RPC2", body.as_bytes()).fault_code(), Some(fault::BUSY));
    served.still_answers();
    first.write_all(body.as_bytes()).unwrap();
    first.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    first.read_to_end(&mut answer).unwrap();
    assert_eq!(Answer::read(&answer).fault_code(), None);
    assert_eq!(served.post("/RPC2", body.as_bytes()).fault_code(), None, "the budget came back");
}

#[test]
fn a_panic_or_a_silent_method_costs_one_fault() {
    let served = Served::start(Limits { call_time: Duration::from_millis(100), ..Limits::default() });
    let code = |method: &str| served.post("/RPC2", call(method, "").as_bytes()).fault_code();
    assert_eq!(code("test.panic"), Some(fault::INTERNAL));
    assert_eq!(code("test.never"), Some(fault::TIMEOUT));
    let counted = served.counted();
    assert_eq!((counted.panics_total, counted.faults_total, counted.calls_total), (1, 2, 2));
    served.still_answers();
}

#[test]
fn connections_without_a_request_in_progress_do_not_delay_the_end() {
    let mut served = Served::start(Limits { drain_time: Duration::from_secs(3600), ..Limits::default() });
    let mut idle = vec![served.connect(), served.connect(), served.connect()];
    // A client without a request, one between two requests, and one that has not read its answer yet.
    for stream in &mut idle[1..] {
        let body = call("test.echo", "");
        write!(
            stream,
            "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    }
    served.wait_until(|counted| counted.connections_open == 3 && counted.calls_total == 2);
    let mut first = [0; 15];
    idle[1].read_exact(&mut first).unwrap();
    let stopped = served.stop_within(Duration::from_secs(20));
    assert!(stopped, "connections were waited for although nothing was asked");
    assert_eq!(served.counted().connections_open, 0);
    let answers = idle.into_iter().map(|mut stream| {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    let answered: Vec<_> = answers.map(|answer| !answer.is_empty()).collect();
    assert_eq!(answered, [false, true, true], "answers are not taken away");
}

#[test]
fn the_end_lets_calls_finish_and_cuts_off_the_rest() {
    let limits = Limits {
        drain_time: Duration::from_millis(200),
        call_time: Duration::from_secs(60),
        ..Limits::default()
    };
    let mut served = Served::start(limits);
    let idle = served.connect();
    let mut waiting = served.connect();
    let body = call("test.never", "");
    let request =
        format!("POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    waiting.write_all(request.as_bytes()).unwrap();
    served.wait_until(|counted| counted.calls_in_work == 1 && counted.connections_open == 2);
    served.stop();
    let counted = served.counted();
    assert_eq!((counted.calls_in_work, counted.connections_open), (0, 0), "{counted:?}");
    assert!(TcpStream::connect(served.address).is_err(), "the port is closed");
    for mut stream in [idle, waiting] {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"");
    }
}
