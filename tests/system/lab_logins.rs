//! Bad logins at a running proxy: a thousand a second, and replays of recorded real ones.
//!
//! Rules: the recordings are the bytes that a real client sent, and they are replayed unchanged; a legitimate
//! client is admitted each time. Figures are printed. Each test is repeated where its protection cannot hold.
//! Not here: captured logins with other counts, paths and channels (`proxy::login`), timings (`benches/`).

use super::lab_door::visitor::Place;
use super::lab_door::{Site, at, more_addresses, report};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use system_tests::lab::domains::{OVERLAY, sensor, state, visperf};
use system_tests::lab::proxies::DOOR;
use system_tests::lab::{self, Host, Stopwatch, Trials};
use system_tests::program;
use system_tests::wait::{self, Seen};

const PATH: &str = "/d/UT-ICL/h3/api/v1/sensor.metrics?name=node_load1";
/// Timeout for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bad logins per second.
const RATE: u32 = 1_000;

/// Duration of the flood.
fn flood() -> Duration {
    let secs =
        std::env::var("VISPERF_FLOOD_SECS").map_or(6, |secs| secs.parse().expect("a number of seconds"));
    Duration::from_secs(secs)
}

/// Send bad logins from all of these addresses, under this name and unknown names, until `done`; returns how
/// many were answered, and how many admitted.
async fn guess(place: &Place, from: &[IpAddr], done: &AtomicBool) -> (usize, usize) {
    let (mut answered, mut admitted) = (0, 0);
    let mut tick = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut visitors = Vec::new();
    for address in from {
        visitors.push(place.connect_from(*address).await);
    }
    while !done.load(Ordering::Relaxed) {
        tick.tick().await;
        let number = answered % visitors.len();
        let name = if answered % 2 == 0 { "ana" } else { "nobody" };
        let field = format!(
            "Authorization: Digest username=\"{name}\", realm=\"visperf\", nonce=\"0123456789\", uri=\"{PATH}\", \
             response=\"{:064x}\", algorithm=SHA-256, qop=auth, nc=00000001, cnonce=\"c\"\r\n",
            answered
        );
        let request = visitors[number].request(PATH, &field);
        let answer = visitors[number].exchange(&request).await;
        (answered, admitted) = (answered + 1, admitted + usize::from(answer.status == 200));
        if answer.fields("connection").contains(&"close") {
            visitors[number] = place.connect_from(from[number]).await;
        }
    }
    (answered, admitted)
}

#[test]
fn a_flood_of_bad_logins_cuts_off_no_client() {
    let name = "lab_logins::a_flood_of_bad_logins_cuts_off_no_client";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let (network, secrets) = (lab.network(5).unwrap(), Mutex::new(Vec::new()));
    let site = Site::start(&network, |proxy| {
        secrets.lock().unwrap().push(proxy.account("ana", &["--domain", "UT-ICL"]).unwrap());
    });
    let secret = secrets.into_inner().unwrap().remove(0);
    let (place, home, elsewhere) = (site.place(), &network.hosts()[2], &network.hosts()[3]);
    let come = |host: &Host| {
        at(host, async { place.connect().await.with_account("ana", &secret).get(PATH).await }).status
    };
    site.until_answered(("ana", &secret), PATH);
    assert_eq!(come(home), 200);
    let from = more_addresses(&site.viewer, 40);
    let (done, watch) = (AtomicBool::new(false), Stopwatch::start());
    let mut times = Trials::default();
    let (answered, admitted) = std::thread::scope(|scope| {
        let guessing = scope.spawn(|| at(&site.viewer, guess(&place, &from, &done)));
        while watch.elapsed() < flood() && !guessing.is_finished() {
            let asked = Stopwatch::start();
            assert_eq!(come(home), 200, "{}", site.daemon.output());
            times.add(asked.elapsed());
        }
        // The control: from an address where she never logged in, the guesses under her name lock her out.
        let newcomer = come(elsewhere);
        done.store(true, Ordering::Relaxed);
        assert_eq!(newcomer, 429, "no account was guessed at");
        guessing.join().unwrap()
    });
    assert!(times.count() > 0, "no visitor was answered");
    let per_sec = answered as f64 / watch.elapsed().as_secs_f64();
    report(&format!("{per_sec:.0} bad logins a second, {admitted} let in; good ones meanwhile: {times}"));
    assert!(admitted == 0 && answered > 500, "{admitted} of {answered}");
    assert!(site.figure("door", "held_up_total") > 0);
    let back =
        || Ok(if come(elsewhere) == 200 { Seen::Done(()) } else { Seen::NotYet("held up".to_owned()) });
    wait::until(PATIENCE, "the newcomer let in when the flood is over", back).unwrap();
}

/// Forwards traffic, and records what clients sent, by connection.
#[derive(Clone, Default)]
struct Recorder {
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    count: Arc<AtomicUsize>,
}

impl Recorder {
    /// Listen at `port` of this host and forward to `to`. It ends with the test.
    fn start(host: &Host, port: u16, to: SocketAddr) -> Recorder {
        let recorder = Recorder::default();
        let listening = host.run(|| Ok(TcpListener::bind(("0.0.0.0", port))?)).unwrap();
        let (kept, host) = (recorder.clone(), host.clone());
        std::thread::spawn(move || {
            for near in listening.incoming() {
                let (near, far) = (near.unwrap(), host.run(|| Ok(TcpStream::connect(to)?)));
                let Ok(far) = far else { continue };
                kept.clone().hand_on(near, far);
            }
        });
        recorder
    }

    fn hand_on(self, near: TcpStream, far: TcpStream) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.sent.lock().unwrap().push(Vec::new());
        let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
        std::thread::spawn(move || copy(back.0, back.1, |_| {}));
        std::thread::spawn(move || {
            copy(near, far, |bytes| self.sent.lock().unwrap()[number].extend_from_slice(bytes));
        });
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap().clone()
    }
}

/// Copy until either end closes; then close both.
fn copy(mut from: TcpStream, mut to: TcpStream, keep: impl Fn(&[u8])) {
    let mut page = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut page) {
        keep(&page[..count]);
        if to.write_all(&page[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Send these bytes to `to`; returns what is received within a second.
fn send(host: &Host, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let sent = host.run(|| {
        let mut stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        // The connection may be closed in the middle.
        let _ = stream.write_all(bytes);
        let (mut all, mut page) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = stream.read(&mut page) {
            all.extend_from_slice(&page[..count]);
        }
        Ok(all)
    });
    sent.unwrap()
}

/// The body of the answer to curl.
fn curl(host: &Host, words: &[&str]) -> String {
    let output = host
        .run(|| Ok(program::command("curl").args(["--silent", "--max-time", "20"]).args(words).output()?));
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_recorded_login_by_http_lets_no_one_in() {
    let name = "lab_logins::a_recorded_login_by_http_lets_no_one_in";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let (network, secrets) = (lab.network(5).unwrap(), Mutex::new(Vec::new()));
    let site = Site::start(&network, |proxy| {
        secrets.lock().unwrap().push(proxy.account("ana", &["--domain", "UT-ICL"]).unwrap());
    });
    let login = format!("ana:{}", secrets.into_inner().unwrap().remove(0));
    site.until_answered(("ana", &login[4..]), PATH);
    let door = SocketAddr::from((site.proxy.host.ipv4(), DOOR));
    let certificate = site.proxy.certificate().display().to_string();
    let between = &network.hosts()[0];

    // On the wire: the encrypted bytes.
    let recorder = Recorder::start(between, 8443, door);
    let name_of_proxy = site.proxy.host.ipv4().to_string();
    let url = format!("https://{name_of_proxy}:8443{PATH}");
    let to = format!("{name_of_proxy}:8443:{}:8443", between.ipv4());
    let words = ["--digest", "--user", &login, "--cacert", &certificate, "--connect-to", &to, &url];
    assert!(curl(&site.viewer, &words).contains("node_load1"), "the real login");
    let sent = recorder.sent();
    assert!(sent.iter().any(|one| one.len() > 500), "nothing was recorded");
    let before = site.figure("door", "admitted_total");
    for bytes in sent.iter().flat_map(|one| std::iter::repeat_n(one, 20)) {
        let back = send(between, door, bytes);
        assert!(!String::from_utf8_lossy(&back).contains("node_load1"));
    }
    assert_eq!(site.figure("door", "admitted_total"), before);

    // Inside TLS: the request itself, as the client wrote it, from the same address and from another.
    let url = format!("{}{PATH}", site.proxy.url());
    let words = ["--verbose", "--digest", "--user", &login, "--cacert", &certificate, &url];
    let output = site.viewer.run(|| Ok(program::command("curl").args(words).output()?)).unwrap();
    let trace = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = trace.rsplit("> GET ").next().unwrap();
    let lines = last.lines().map(|line| line.trim_start_matches("> ").trim_end());
    let head: Vec<&str> = lines.take_while(|line| !line.starts_with(['<', '*', '{'])).collect();
    let request = format!("GET {}\r\n\r\n", head.join("\r\n").trim_end());
    assert!(request.contains("Authorization: Digest username=\"ana\""), "{trace}");
    let again = |site: &Site, from: &Host| {
        let place = site.place();
        at(from, async { place.connect().await.exchange(request.as_bytes()).await }).status
    };
    let before = site.figure("door", "admitted_total");
    for _ in 0..20 {
        assert_eq!(again(&site, &site.viewer), 401);
    }
    assert_eq!(again(&site, between), 401);
    assert_eq!(site.figure("door", "admitted_total"), before);
    let site = site.start_again();
    assert_eq!(again(&site, &site.viewer), 401, "of the proxy before");
    assert_eq!(site.figure("door", "admitted_total"), 0);
    // The control: a real login is admitted by the present proxy.
    let words =
        ["--digest", "--user", &login, "--cacert", &certificate, &format!("{}{PATH}", site.proxy.url())];
    site.until_answered(("ana", &login[4..]), PATH);
    assert!(curl(&site.viewer, &words).contains("node_load1"));
}

#[test]
fn a_recorded_daemon_lets_no_one_else_in() {
    let name = "lab_logins::a_recorded_daemon_lets_no_one_else_in";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let mut site = Site::start(&network, |_| {});
    let (between, worker) = (&network.hosts()[0], network.hosts()[3].clone());
    let overlay = SocketAddr::from((site.proxy.host.ipv4(), OVERLAY));
    let recorder = Recorder::start(between, 9318, overlay);
    // Any other sensor might connect in the middle of the replay, so all are stopped.
    for sensor in std::mem::take(&mut site.sensors) {
        sensor.stop().unwrap();
    }
    let count_guests = || site.figure("overlay", "guests");
    let alone = || {
        let count = count_guests();
        Ok(if count <= 1 { Seen::Done(count) } else { Seen::NotYet(format!("{count} guests")) })
    };
    let before = wait::until(PATIENCE, "the proxy and its directory alone", alone).unwrap();

    // A daemon that dials the proxy through the recorder: Noise, its certificate, its registration.
    let key = site.proxy.contact.split_once('@').unwrap().0;
    let via = ["--via".to_owned(), format!("{key}@{}:9318", between.ipv4())];
    let member = sensor(&worker, &via).unwrap();
    let registered = || {
        let count = site.figure("overlay", "registered");
        Ok(if count > 0 { Seen::Done(()) } else { Seen::NotYet(site.daemon.output()) })
    };
    wait::until(PATIENCE, "the daemon registered with the proxy", registered).unwrap();
    assert!(count_guests() > before, "the control: a real one is a guest");
    member.kill().unwrap();
    wait::until(PATIENCE, "the daemon gone", alone).unwrap();
    let sent = recorder.sent();
    assert!(sent.iter().any(|one| one.len() > 500), "nothing was recorded");
    for bytes in sent.iter().flat_map(|one| std::iter::repeat_n(one, 10)) {
        let _ = send(between, overlay, bytes);
        assert!(count_guests() <= 1 && site.figure("overlay", "registered") == 0, "{}", site.daemon.output());
    }
}

#[test]
fn a_pass_is_for_one_proxy_and_one_domain() {
    let name = "lab_logins::a_pass_is_for_one_proxy_and_one_domain";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::start(&network, |_| {});
    let key = site.proxy.contact.split_once('@').unwrap().0;
    // A pass is a bearer token: any holder is admitted, at this proxy, for its domain, until it expires.
    let head = &network.hosts()[2];
    let pass = |proxy: &str| {
        visperf(head, &["account", "pass", proxy, "--state", &state(head)]).unwrap().trim().to_owned()
    };
    let show = |pass: &str, path: &str| {
        let (place, field) = (site.place(), format!("Authorization: Bearer {pass}\r\n"));
        at(&site.viewer, async {
            let mut visitor = place.connect().await;
            let request = visitor.request(path, &field);
            visitor.exchange(&request).await
        })
    };
    let own = pass(key);
    let seen = || {
        let answer = show(&own, PATH);
        Ok(if answer.status == 200 { Seen::Done(()) } else { Seen::NotYet(format!("{answer:?}")) })
    };
    wait::until(PATIENCE, "an answer by a pass", seen).unwrap();
    let other = pass("12D3KooWGYVCQzPYVjJUqwXKMHco28Xtambrdbs8nVpUd5PBouMU");
    assert_eq!(show(&other, PATH).status, 401, "it is for another proxy");
    let elsewhere = show(&own, "/d/CERN/api/v1/domain.hosts");
    assert_ne!(elsewhere.status, 200, "{elsewhere:?}");
    let mut bent = own.clone().into_bytes();
    let at = bent.len() / 2;
    // The encoding ignores case, so only another letter makes another pass.
    bent[at] = if bent[at].eq_ignore_ascii_case(&b'a') { b'b' } else { b'a' };
    assert_eq!(show(&String::from_utf8(bent).unwrap(), PATH).status, 401);
}
