//! A server with an authorizer: which clients are rejected, and what the authorized ones can reach.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served::{Answer, Served};
use rpc::dispatch::permissions::{CallTarget, Permissions, Permit, Scope};
use rpc::fault::Fault;
use rpc::http::authorizer::{Admitted, Authorizer, Credentials, Decision, Rejected};
use rpc::limits::Limits;
use std::sync::Arc;
use wire::fault;
use wire::query::Account;

/// Admits clients with `Token good`, to the scope in the first part of the path.
struct Gate;

struct OnlyReading;

impl Permissions for OnlyReading {
    fn may(
        &self,
        CallTarget { method, is_reading, domain, host, .. }: CallTarget<'_>,
    ) -> Result<Permit, Fault> {
        let described = format!("{method} {is_reading} {domain:?} {host:?}");
        if is_reading && domain != Some("secret") {
            Ok(Box::new(()))
        } else {
            Err(Fault::new(fault::FORBIDDEN, described))
        }
    }

    fn account(&self) -> Option<Account> {
        Some(Account([7; 16]))
    }
}

impl Authorizer for Gate {
    fn authorize(&self, credentials: &Credentials<'_>) -> Decision {
        assert!(credentials.source.is_loopback() && credentials.target.starts_with(credentials.path));
        if credentials.authorization != Some("Token good") {
            let fields =
                vec![("www-authenticate", "Token a".to_owned()), ("www-authenticate", "Token b".to_owned())];
            let fault = Fault::new(fault::FORBIDDEN, "expected a token");
            return Decision::Rejected(Rejected { status: 401, fields, fault });
        }
        let named = credentials.path.strip_prefix("/d/").and_then(|rest| rest.split_once('/'));
        let (domain, path) = named.map_or((None, credentials.path.to_owned()), |(domain, rest)| {
            (Some(domain.to_owned()), format!("/{rest}"))
        });
        let scope = Scope { domain, host: None, access: Some(Arc::new(OnlyReading)), ..Scope::default() };
        let fields = vec![("authentication-info", "welcome".to_owned())];
        Decision::Admitted(Admitted { path, scope, fields, permit: Box::new(()) })
    }
}

fn ask(served: &Served, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: anywhere.example\r\n{fields}Content-Length: {length}\r\n\r\n");
    served.ask(format!("{head}{body}").as_bytes())
}

const GOOD: &str = "Authorization: Token good\r\n";

#[test]
fn a_rejected_client_learns_how_to_come_in() {
    let served = Served::start_behind(Arc::new(Gate), Limits::default());
    for fields in ["", "Authorization: Token bad\r\n", "Authorization: \u{fc}\r\n"] {
        let answer = ask(&served, "/api/v1/test.echo", fields, "{}");
        assert_eq!((answer.status, answer.fault_code()), (401, Some(fault::FORBIDDEN)), "{answer:?}");
        assert_eq!(answer.head.matches("www-authenticate").count(), 2, "{answer:?}");
    }
    let twice = ask(&served, "/api/v1/test.echo", &format!("{GOOD}{GOOD}"), "{}");
    assert_eq!((twice.status, twice.fault_code()), (400, Some(fault::TRANSPORT)));
    assert_eq!(served.counted().calls_total, 0);
    let answer = ask(&served, "/api/v1/test.echo", GOOD, "{}");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("authentication-info: welcome"), "{answer:?}");
}

#[test]
fn a_body_is_not_read_before_its_sender_is_let_in() {
    let served = Served::start_behind(Arc::new(Gate), Limits::default());
    let head = "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
    let answer = served.ask(head.as_bytes());
    assert_eq!(answer.status, 401, "nothing of the body has come: {answer:?}");
}

#[test]
fn what_the_path_names_is_what_is_called() {
    let served = Served::start_behind(Arc::new(Gate), Limits::default());
    let check = |path: &str, body: &str, expected: Result<&str, i32>| {
        let answer = ask(&served, path, GOOD, body);
        let found = answer.fault_code().map_or(Ok(answer.body.trim_end()), Err);
        assert_eq!(found, expected, "{path} {body}");
    };
    check("/api/v1/test.here", "{}", Ok(r#"{"domain":null}"#));
    check("/d/alpha/api/v1/test.here", "{}", Ok(r#"{"domain":"alpha"}"#));
    check("/d/alpha/api/v1/test.here", r#"{"domain":null}"#, Ok(r#"{"domain":"alpha"}"#));
    check("/d/alpha/api/v1/test.here", r#"{"domain":"alpha"}"#, Ok(r#"{"domain":"alpha"}"#));
    check("/d/alpha/api/v1/test.here", r#"{"domain":"beta"}"#, Err(fault::FORBIDDEN));
    check("/d/alpha/api/v1/test.echo", "{}", Err(fault::NOT_FOUND));
    check("/d/secret/api/v1/test.here", "{}", Err(fault::FORBIDDEN));
    check("/api/v1/test.here", r#"{"domain":"secret"}"#, Err(fault::FORBIDDEN));
    check("/api/v1/test.fail", "{}", Err(fault::FORBIDDEN));
    let listed = ask(&served, "/d/alpha/api/v1/system.listMethods", GOOD, "{}");
    assert!(listed.body.contains("test.here"), "{listed:?}");
}

#[test]
fn a_call_is_run_for_the_account_that_came_in() {
    let served = Served::start_behind(Arc::new(Gate), Limits::default());
    let answer = ask(&served, "/api/v1/test.whose", GOOD, "{}");
    assert_eq!(answer.body.trim_end(), r#"{"account":7}"#);
    let calls = r#"{"calls":[{"methodName":"test.whose"}]}"#;
    let answer = ask(&served, "/api/v1/system.multicall", GOOD, calls);
    assert!(answer.body.contains(r#"{"account":7}"#), "{answer:?}");
    let open = Served::start(Limits::default()).get("/api/v1/test.whose");
    assert_eq!(open.body.trim_end(), r#"{"account":null}"#);
}

#[test]
fn each_call_of_a_multicall_is_looked_at() {
    let served = Served::start_behind(Arc::new(Gate), Limits::default());
    let calls = r#"{"calls":[
        {"methodName":"test.here"},
        {"methodName":"test.here","params":{"domain":"secret"}},
        {"methodName":"test.fail"}]}"#;
    let answer = ask(&served, "/api/v1/system.multicall", GOOD, calls);
    let codes: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(codes[0][0]["domain"], serde_json::Value::Null);
    assert_eq!((&codes[1]["faultCode"], &codes[2]["faultCode"]), (&(-32006).into(), &(-32006).into()));
    let within =
        ask(&served, "/d/secret/api/v1/system.multicall", GOOD, r#"{"calls":[{"methodName":"test.here"}]}"#);
    let codes: serde_json::Value = serde_json::from_str(&within.body).unwrap();
    assert_eq!(codes[0]["faultCode"], -32006, "{within:?}");
}
