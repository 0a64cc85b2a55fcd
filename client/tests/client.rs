//! The client with servers that misbehave: bodies in every form, ends at every point, silence, TLS, streams.
#![allow(clippy::unwrap_used)]

use client::connect::{Connect, Connected, Connecting, Local, Tcp, reason, tcp};
use client::follow::Item;
use client::proxy_address::{ProxyAddress, Tls};
use client::recovery::{self, Recovery};
use client::typed::About;
use client::{Client, Error, Login, Patience};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use wire::api::control::ControlParams;
use wire::api::daemon::InfoParams;
use wire::fault::FORBIDDEN;

/// What the server does with one request.
#[derive(Clone, Copy)]
enum Does {
    /// Answer.
    Answer(&'static str),
    /// Answer and close the connection.
    Cut(&'static str),
    /// Close the connection.
    Close,
    /// Never answer.
    Wait,
}

use Does::{Answer, Close, Cut, Wait};

/// A server that does this on each connection, request by request. Returns its address and the requested
/// paths.
async fn daemon(
    connections: Vec<Vec<Does>>,
) -> (String, Arc<AtomicUsize>, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, (paths, seen)) = (Arc::clone(&asked), tokio::sync::mpsc::channel(64));
    tokio::spawn(async move {
        let mut kept = Vec::new();
        for script in connections {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            for does in script {
                let Some(path) = request(&mut stream).await else { break };
                count.fetch_add(1, Ordering::SeqCst);
                let _ = paths.try_send(path);
                match does {
                    Answer(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                    Cut(answer) => {
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        break;
                    }
                    Close => break,
                    Wait => kept.push(stream.get_ref().peer_addr()),
                }
                if matches!(does, Wait) {
                    std::future::pending::<()>().await;
                }
            }
        }
    });
    (address, asked, seen)
}

/// Read a request. Returns its path.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut path, mut len) = (None, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            len = text.parse().unwrap();
        }
        if line.is_empty() {
            stream.read_exact(&mut vec![0; len]).await.ok()?;
            return path;
        }
    }
}

fn client(address: &str) -> Client {
    Client::new(Tcp(address.to_owned()))
}

const WELL: Does = Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");

#[tokio::test]
async fn a_body_ends_where_the_head_says() {
    let check = async |answer: &'static str, expected: (u16, &str)| {
        let (address, ..) = daemon(vec![vec![Cut(answer)]]).await;
        let answer = client(&address).post("/x", "text/plain", "y".into()).await.unwrap();
        assert_eq!((answer.status, String::from_utf8(answer.body).unwrap().as_str()), expected);
    };
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcrest", (200, "abc")).await;
    check("HTTP/1.1 200 OK\r\ncontent-length:0\r\nConnection: close\r\n\r\n", (200, "")).await;
    check("HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", (404, "x")).await;
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n";
    check(chunked, (200, "abcde")).await;
    check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", (200, "x")).await;
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", (204, "")).await;
}

#[tokio::test]
async fn what_is_no_answer_is_shown_and_said_to_be_none() {
    let check = async |answer: &'static str, part: &str| {
        let (address, ..) = daemon(vec![vec![Cut(answer)]]).await;
        let mut client = client(&address);
        client.set_patience(Patience::of(Duration::from_secs(10)));
        let error = client.call_raw("daemon.info", &json!({})).await.unwrap_err();
        assert!(
            error.to_string().contains(part) && error.to_string().contains(&address),
            "{answer:?}: {error}"
        );
    };
    check("SSH-2.0-OpenSSH_9.2\r\n", "\"SSH-2.0-OpenSSH_9.2\", which is not HTTP").await;
    check("HTTP/1.1 abc\r\n\r\n", "invalid HTTP status").await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "more than 67108864 bytes").await;
    check("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "").await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "found Invalid chunk size line")
        .await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", "").await;
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "").await;
    check("HTTP/1.1 200 OK\r\nX: y", "").await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "no JSON").await;
    check("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}", "HTTP status 503").await;
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    check(events, "answers without end").await;
}

#[tokio::test]
async fn a_program_bounds_answers_as_it_likes() {
    let five = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n";
    for (answer, most, expected) in
        [(five, 5, true), (five, 4, false), (chunked, 5, true), (chunked, 4, false)]
    {
        let (address, ..) = daemon(vec![vec![Answer(answer)]]).await;
        let answered = client(&address).answers_up_to(most).call_raw("x", &json!({})).await;
        assert_eq!(answered.is_ok(), expected, "{answered:?} of {most} bytes at most");
    }
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut stream = BufReader::new(listener.accept().await.unwrap().0);
        request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        while stream.write_all(b"X: y\r\n").await.is_ok() {}
    });
    let error = client(&address).call_raw("daemon.info", &json!({})).await.unwrap_err();
    assert!(matches!(&error, Error::Answer { .. }), "{error}");
}

#[tokio::test]
async fn who_speaks_first_is_no_daemon() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let error = client(&address).call_raw("daemon.info", &json!({})).await.unwrap_err();
    assert!(error.to_string().contains("\"SSH-2.0-OpenSSH_9.2\", which is not HTTP"), "{error}");
}

#[tokio::test]
async fn a_daemon_without_room_says_so_unasked_and_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 42\r\nConnection: close\r\n\r\n{\"error\":{\"code\":-32005,\"message\":\"full\"}}";
            let _ = stream.write_all(busy.as_bytes()).await;
        }
    });
    for _ in 0..20 {
        let error = client(&address).call_raw("daemon.info", &json!({})).await.unwrap_err();
        assert_eq!(recovery::of(&error, true), Recovery::Wait, "{error}");
    }
}

#[tokio::test]
async fn a_cursor_that_is_not_known_any_more_starts_the_stream_over() {
    let answer_with = |cursor: &str| {
        let data = format!("data: {{\"skipped\":0,\"answer\":{{\"cursor\":\"{cursor}\"}}}}\n\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 0\n\n";
        &*Box::leak(format!("{head}{data}").into_boxed_str())
    };
    let unknown = Answer(
        "HTTP/1.1 400 Bad\r\nContent-Length: 42\r\n\r\n{\"error\":{\"code\":-32602,\"message\":\"none\"}}",
    );
    let first = vec![Cut(answer_with("a"))];
    let (address, _, mut paths) = daemon(vec![first, vec![unknown, Cut(answer_with("b"))]]).await;
    let params = Map::from_iter([("since".to_owned(), "10m".into())]);
    let mut stream = client(&address).follow("sensor.events", params, "1").await.unwrap();
    assert_eq!(stream.next_item().await, Ok(answer(json!({"cursor": "a"}), 0)));
    assert!(matches!(stream.next_item().await, Ok(Item::Lost(_))));
    assert_eq!(stream.next_item().await, Ok(Item::Restarted));
    assert_eq!(stream.next_item().await, Ok(answer(json!({"cursor": "b"}), 0)));
    let (begin, resumed, again) = (paths.recv().await, paths.recv().await, paths.recv().await);
    assert_eq!(begin, again);
    assert!(resumed.is_some_and(|path| path.contains("cursor=a") && !path.contains("since")));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_made_again_once() {
    let (address, asked, _) = daemon(vec![vec![WELL, Close], vec![WELL]]).await;
    let mut client = client(&address);
    client.call_raw("daemon.info", &json!({})).await.unwrap();
    client.call_raw("daemon.info", &json!({})).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3, "the second was read, not answered, and asked again");
}

#[tokio::test]
async fn what_was_answered_in_part_or_late_is_not_asked_again() {
    let part = Cut("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{");
    let part_of_head = Cut("HTTP/1.1 200 OK\r\nX: y");
    let ends = [(vec![WELL, part], false), (vec![WELL, part_of_head], false), (vec![WELL, Wait], true)];
    for (second, is_late) in ends {
        let (address, asked, _) = daemon(vec![second, vec![WELL]]).await;
        let mut client = client(&address);
        client.set_patience(Patience::of(Duration::from_millis(500)));
        client.call_raw("daemon.info", &json!({})).await.unwrap();
        let error = client.call_raw("sensor.take", &json!({})).await.unwrap_err();
        assert_eq!(matches!(error, Error::Late { .. }), is_late, "{error}");
        assert!(error.is_lost(), "{error}");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn an_order_is_sent_once() {
    let (address, asked, _) = daemon(vec![vec![WELL, WELL], vec![Close], vec![WELL]]).await;
    let mut client = client(&address);
    client.call_raw("daemon.info", &json!({})).await.unwrap();
    let error = client.order(&ControlParams::default(), &About::default()).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "it is not known whether it was obeyed");
}

fn logging_in(address: &str) -> Client {
    let login = Login { name: "ana".into(), secret: "s".into(), allows_md5: false };
    client(address).logging_in(login, "/d/UT-ICL")
}

const CHALLENGE: Does = Answer(
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"x\", qop=\"auth\", algorithm=SHA-256, nonce=\"n\"\r\n\
     Content-Length: 0\r\n\r\n",
);

#[tokio::test]
async fn an_order_is_not_sent_again_over_the_connection_that_asked_who_asks() {
    // The connection stays open after the challenge, and is closed after the order with its login was
    // received.
    let (address, asked, _) = daemon(vec![vec![CHALLENGE, Close], vec![CHALLENGE, WELL]]).await;
    let mut client = logging_in(&address);
    let error = client.order(&ControlParams::default(), &About::default()).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "it is not known whether it was obeyed");
}

#[tokio::test]
async fn an_answer_before_the_login_is_not_believed() {
    let missing = Answer(
        "HTTP/1.1 404 No\r\nContent-Length: 39\r\n\r\n{\"error\":{\"code\":-32001,\"message\":\"x\"}}",
    );
    for does in [WELL, missing] {
        let (address, asked, _) = daemon(vec![vec![does, does]]).await;
        let error = logging_in(&address).call_raw("daemon.info", &json!({})).await.unwrap_err();
        assert!(matches!(&error, Error::Fault { code, .. } if *code == i64::from(FORBIDDEN)), "{error}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_daemon_that_is_busy_is_asked_again_until_it_answers_or_time_is_up() {
    const BUSY: Does = Answer(
        "HTTP/1.1 503 Busy\r\nContent-Length: 42\r\n\r\n{\"error\":{\"code\":-32005,\"message\":\"busy\"}}",
    );
    let (address, asked, _) = daemon(vec![vec![BUSY, BUSY, WELL, BUSY, BUSY]]).await;
    let mut client = client(&address);
    let info = client.call_until(&InfoParams {}, &About::default(), Duration::from_secs(30)).await;
    // An empty answer is not of the type, and a retry cannot help; the third response was empty.
    assert!(matches!(info, Ok(_) | Err(Error::Answer { .. })), "{info:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let refused = client.call_until(&InfoParams {}, &About::default(), Duration::from_millis(100)).await;
    assert!(matches!(refused, Err(Error::Fault { code: -32005, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_port_without_a_daemon_is_unreachable() {
    // Port 1 of loopback: nothing listens there.
    let error = client("127.0.0.1:1").call(&InfoParams {}, &About::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable(why) if why.contains("127.0.0.1:1")), "{error}");
    let missing = Client::new(Local("/nowhere/socket".into())).call(&InfoParams {}, &About::default()).await;
    assert!(
        matches!(&missing, Err(Error::Unreachable(why)) if why.contains("unix:/nowhere/socket")),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_local_socket_is_asked_as_an_address_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let len = stream.read(&mut request).await.unwrap();
        let host = String::from_utf8_lossy(&request[..len]).contains("host: localhost\r\n");
        let status = if host { "200 OK" } else { "400 Bad" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\ntrue");
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    assert_eq!(Client::new(Local(path)).call_raw("x", &json!({})).await, Ok(true.into()));
}

#[tokio::test]
async fn a_program_learns_of_waiting() {
    let (address, ..) = daemon(vec![vec![Wait]]).await;
    let (notice, mut noticed) = tokio::sync::mpsc::channel(64);
    let mut client =
        client(&address).on_wait(move |address, left| notice.try_send((address.to_owned(), left)).unwrap());
    let (most, after) = (Duration::from_millis(300), Duration::from_millis(100));
    client.set_patience(Patience { notice_after: Some(after), ..Patience::of(most) });
    client.call_raw("x", &json!({})).await.unwrap_err();
    assert_eq!(noticed.recv().await, Some((address, most - after)));
}

/// Over TLS, to an address that is not in the listener's certificate.
struct Encrypted(String, Tls);

impl Connect for Encrypted {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected: std::io::Result<Connected> = tcp(&self.0, Some(&self.1)).await;
            connected.map_err(|error| Error::Unreachable(reason(&error)))
        })
    }

    fn address(&self) -> String {
        self.0.clone()
    }
}

/// A listener at this port with the certificate in this PEM.
fn tls(port: u16, pem: &str) -> Tls {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let proxy = ProxyAddress::parse(&format!("localhost:{port}"), |_| Ok(())).unwrap();
    proxy.tls(Some(file.path())).unwrap().unwrap()
}

#[tokio::test]
async fn over_tls_only_the_end_that_was_meant_is_asked() {
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, crypto};

    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let builder = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = TlsAcceptor::from(Arc::clone(&config)).accept(stream).await else {
                continue;
            };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue").await.unwrap();
        }
    });
    let ask = async |pem: &str| {
        let mut client = Client::new(Encrypted(address.to_string(), tls(address.port(), pem)));
        client.call_raw("x", &json!({})).await
    };
    assert_eq!(ask(&made.cert.pem()).await, Ok(true.into()));
    let refused = ask(&other.cert.pem()).await.unwrap_err().to_string();
    assert!(refused.contains("UnknownIssuer") && refused.contains("--certificate FILE"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn who_accepts_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pem = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let mut encrypted = Client::new(Encrypted(address.to_string(), tls(address.port(), &pem)));
    for (client, part) in [(&mut client(&address.to_string()), "within 40 s"), (&mut encrypted, "handshake")]
    {
        let error = client.call_raw("x", &json!({})).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 5\r\n\r\n";

fn answer(answer: Value, skipped: u64) -> Item {
    Item::Answer { answer, skipped }
}

#[tokio::test]
async fn a_stream_goes_on_from_the_last_cursor_when_its_connection_is_lost() {
    let first = concat!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        "4\r\nretr\r\n8\r\ny: 5\n\nda\r\n35\r\nta: {\"skipped\":2,\"answer\":{\"cursor\":\"c1\",\"n\":1}}\n\n::\n\r\n",
    );
    let second = Cut(concat!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
        "data: {\"skipped\":0,\"error\":{\"code\":-32011,\"message\":\"away\"}}\n\n",
        "data: {\"skipped\":0,\"answer\":{}}\r\n\r\n",
        "data: {\"skipped\":0,\"error\":{\"code\":-32006,\"message\":\"no more\"}}\n\n",
    ));
    let (address, _, mut paths) = daemon(vec![vec![Cut(first)], vec![Close], vec![second]]).await;
    let params = Map::from_iter([("last".to_owned(), true.into()), ("limit".to_owned(), 5.into())]);
    let mut stream = client(&address).follow("domain.events", params, "0.5").await.unwrap();
    assert_eq!(stream.next_item().await, Ok(answer(json!({"cursor": "c1", "n": 1}), 2)));
    assert!(matches!(stream.next_item().await, Ok(Item::Lost(Error::Lost { .. }))));
    assert_eq!(stream.next_item().await, Ok(Item::Again));
    let fault = Item::Fault { code: -32011, message: "away".to_owned() };
    assert_eq!(stream.next_item().await, Ok(fault));
    assert_eq!(stream.next_item().await, Ok(answer(json!({}), 0)));
    let ended = stream.next_item().await;
    assert_eq!(ended, Err(Error::Fault { code: -32006, message: "no more".to_owned() }));
    for expected in [["follow=0.5", "last=true", "limit=5"], ["cursor=c1", "follow=0.5", "limit=5"]] {
        let path = paths.recv().await.unwrap();
        let mut parts: Vec<&str> = path.strip_prefix("/api/v1/domain.events?").unwrap().split('&').collect();
        parts.sort_unstable();
        assert_eq!(parts, expected);
    }
}

#[tokio::test]
async fn who_refuses_to_be_followed_says_why_and_a_silent_stream_is_lost() {
    let fault =
        "HTTP/1.1 400 Bad\r\nContent-Length: 42\r\n\r\n{\"error\":{\"code\":-32602,\"message\":\"such\"}}";
    let (address, ..) = daemon(vec![vec![Answer(fault)], vec![WELL], vec![Cut(EVENTS)]]).await;
    let refused = client(&address).follow("domain.hosts", Map::new(), "1").await.unwrap_err();
    assert_eq!(refused, Error::Fault { code: -32602, message: "such".to_owned() });
    let once = client(&address).follow("domain.hosts", Map::new(), "1").await.unwrap_err();
    assert!(once.to_string().contains("one answer where many were asked for"), "{once}");
    let mut ended = client(&address).follow("domain.hosts", Map::new(), "1").await.unwrap();
    assert!(matches!(ended.next_item().await, Ok(Item::Lost(_))));
}
