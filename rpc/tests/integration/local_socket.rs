//! Queries on a local socket, as its clients make them.
#![allow(clippy::unwrap_used)] // a failure here is a failed test

use rpc::codec::value::Value;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::http::listener::{self, Error, LocalListener};
use rpc::http::server;
use rpc::limits::Limits;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn registry() -> Registry {
    let mut registry = Registry::new();
    let viewer = Declaration::new("test.viewer", "Says on whose behalf it is called").reading();
    let viewer = viewer
        .handler_for(|caller, _| std::future::ready(Ok(Value::Text(format!("{:?}", caller.principal())))));
    registry.add(viewer).unwrap();
    registry
}

/// Query the server at `path`.
fn ask(path: &Path) -> String {
    let mut stream = listener::connect(path).unwrap();
    stream.write_all(b"GET /api/v1/test.viewer HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn serve(path: &Path) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let (listener, shutdown) = (LocalListener::bind(path).unwrap(), CancellationToken::new());
    let dispatcher = Arc::new(Dispatcher::new(registry(), Limits::default(), Arc::default()));
    (shutdown.clone(), tokio::spawn(server::serve_local(listener, dispatcher, shutdown)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_the_daemon_is_trusted_and_the_file_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    let (shutdown, serving) = serve(&path);
    assert_eq!(std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    let asked = path.clone();
    let answer = tokio::task::spawn_blocking(move || ask(&asked)).await.unwrap();
    let viewer = match rustix::process::geteuid().as_raw() {
        0 => "Trusted".to_owned(),
        own => format!("Owner({own})"),
    };
    assert!(answer.contains(&format!("Principal {{ viewer: {viewer}, asker: None }}")), "{answer}");
    assert!(matches!(LocalListener::bind(&path), Err(Error::InUse(_))));
    shutdown.cancel();
    serving.await.unwrap();
    assert!(!path.exists(), "it is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_may_be_longer_than_the_address_of_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&deep).unwrap();
    let path = deep.join("a.sock");
    let (shutdown, serving) = serve(&path);
    let asked = path.clone();
    let answer = tokio::task::spawn_blocking(move || ask(&asked)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    shutdown.cancel();
    serving.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn what_a_dead_daemon_left_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(LocalListener::bind(&path).unwrap());
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(LocalListener::bind(&path), Err(Error::NoSocket(_))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    // A symbolic link of another user leads to a socket that must not be removed.
    let (other, link) = (folder.path().join("other.sock"), folder.path().join("link.sock"));
    drop(std::os::unix::net::UnixListener::bind(&other).unwrap());
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(matches!(LocalListener::bind(&link), Err(Error::NoSocket(_))));
    assert!(other.exists());
    let missing = LocalListener::bind(&folder.path().join("none/a.sock")).unwrap_err();
    assert!(missing.to_string().contains("its folder must exist"), "{missing}");
}

#[tokio::test]
async fn a_socket_that_another_daemon_made_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    let first = LocalListener::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _second = LocalListener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
}
