//! Contract of the query interface: a daemon's description of its methods equals the documents.
//!
//! `docs/openapi.json` is the daemon's document; the marked parts of `docs/methods.md` are generated from it.
//! With VISPERF_UPDATE_DOCS set both are written instead of compared.

use crate::program::Home;
use crate::reference;
use crate::started::{Started, UP};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Compare the file with the expected text, or write it.
#[track_caller]
fn hold(name: &str, expected: &str) {
    let path = document(name);
    if std::env::var_os("VISPERF_UPDATE_DOCS").is_some() {
        return std::fs::write(path, expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    let other =
        found.lines().zip(expected.lines()).enumerate().find(|(_, (found, expected))| found != expected);
    assert!(
        found == expected,
        "docs/{name} is not what the types say, from {other:?} on; write it again: \
         VISPERF_UPDATE_DOCS=1 cargo test -p visperf --test cli contract"
    );
}

#[test]
fn the_documents_are_what_a_daemon_says_of_its_methods() {
    let home = Home::new();
    let up = Started::new(&home, &UP);
    let link = up.line("JSON     curl");
    let (address, _) = link.rsplit_once("http://").unwrap().1.split_once('/').unwrap();
    let openapi: Value = serde_json::from_str(&get(address, "/api/v1/openapi.json")).unwrap();
    up.end();
    hold("openapi.json", &format!("{openapi:#}\n"));
    let methods = std::fs::read_to_string(document("methods.md")).unwrap();
    hold("methods.md", &reference::rewritten(&methods, &openapi).unwrap());
}
