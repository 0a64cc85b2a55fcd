//! Eavesdropping on a session through a proxy, recorded by tcpdump: the traffic reveals no secrets, hashes,
//! logs or monitored values.
//!
//! Rules: all traffic of a host except loopback is recorded; the same search in a record of loopback, where
//! nothing is encrypted, finds each of them.
//! Not here: which traffic is encrypted how (`docs/decisions/0016-proxy.md`).

use super::lab_door::{IN_LOGS, Site, report};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use system_tests::lab::{self, Host};
use system_tests::program;
use system_tests::wait::{self, Seen};

/// Timeout for tcpdump.
const PATIENCE: Duration = Duration::from_secs(20);
/// File with the account's hash for HTTP Digest, SHA-256.
const ACCOUNTS: &str = "proxy/proxy/accounts";

/// A recording of the traffic on an interface of a host.
struct Record {
    child: Child,
    file: PathBuf,
}

impl Record {
    fn start(host: &Host, interface: &str) -> Record {
        let file = host.folder().join(format!("{interface}.pcap"));
        let messages = host.folder().join(format!("{interface}.tcpdump"));
        let to = std::fs::File::create(&messages).unwrap();
        let child = host.run(|| {
            let mut tcpdump = program::command("tcpdump");
            // Started as root it would switch to a user that may not write here.
            tcpdump.args(["-Z", "root", "-U", "-s", "0", "-i", interface, "-w"]).arg(&file);
            Ok(tcpdump.stderr(to).spawn()?)
        });
        let look = || {
            let text = std::fs::read_to_string(&messages)?;
            Ok(if text.contains("listening on") { Seen::Done(()) } else { Seen::NotYet(text) })
        };
        let record = Record { child: child.unwrap(), file };
        wait::until(PATIENCE, "tcpdump", look).unwrap();
        record
    }

    /// The bytes recorded so far; the recording continues.
    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.file).unwrap()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Words of hexadecimal digits in the accounts file: hashes that are as sensitive as the secret.
fn hashes(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(ACCOUNTS)).unwrap();
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit()).filter(|word| word.len() >= 32);
    words.map(str::to_owned).collect()
}

fn curl(host: &Host, words: &[&str]) -> String {
    let output = host
        .run(|| Ok(program::command("curl").args(["--silent", "--max-time", "20"]).args(words).output()?));
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_record_of_a_session_holds_nothing_in_clear() {
    let name = "lab_capture::a_record_of_a_session_holds_nothing_in_clear";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let (network, secrets) = (lab.network(5).unwrap(), std::sync::Mutex::new(Vec::new()));
    // Both ends of each connection: the client, the proxy, the queried daemons.
    let records: Vec<Record> = network.hosts()[1..].iter().map(|host| Record::start(host, "eth0")).collect();
    let site = Site::start(&network, |proxy| {
        secrets.lock().unwrap().push(proxy.account("ana", &["--domain", "UT-ICL", "--legacy"]).unwrap());
    });
    let secret = secrets.into_inner().unwrap().remove(0);
    let hashes = hashes(site.proxy.host.folder());
    assert!(hashes.len() >= 2, "SHA-256 and MD5: {}", hashes.len());
    site.until_answered(("ana", &secret), "/d/UT-ICL/h3/api/v1/sensor.events");
    let (login, certificate) = (format!("ana:{secret}"), site.proxy.certificate().display().to_string());
    let ask = |path: &str| {
        let url = format!("{}{path}", site.proxy.url());
        curl(&site.viewer, &["--digest", "--user", &login, "--cacert", &certificate, &url])
    };
    let answers = |expected: &str, paths: &[&str]| {
        let look = || {
            let found: String = paths.iter().map(|path| ask(path)).collect();
            Ok(if found.contains(expected) { Seen::Done(()) } else { Seen::NotYet(found) })
        };
        wait::until(PATIENCE, expected, look).unwrap();
    };
    answers("node_boot_time_seconds", &["/d/UT-ICL/h3/api/v1/sensor.metrics?name=node_boot_time_seconds"]);
    answers("job_submit", &["/d/UT-ICL/h3/api/v1/sensor.events", "/d/UT-ICL/h4/api/v1/sensor.events"]);
    let mut sought = vec![secret, "node_boot_time_seconds".to_owned(), "node_load1".to_owned()];
    sought
        .extend(["job_submit", IN_LOGS, "authorization: digest", "Authorization: Digest"].map(str::to_owned));
    sought.extend(hashes);

    // The control: on loopback, where a sensor answers without encryption, each is found.
    let head = site.sensors[0].host().clone();
    let loopback = Record::start(&head, "lo");
    for word in &sought {
        let url = format!("http://{}/api/v1/sensor.metrics", site.sensors[0].address().unwrap());
        curl(&head, &["--header", &format!("X-Sought: {word}"), "--get", "--data", "name=node_load1", &url]);
    }
    let all_found = || {
        let bytes = loopback.bytes();
        let missing: Vec<&String> = sought.iter().filter(|word| !holds(&bytes, word)).collect();
        Ok(if missing.is_empty() { Seen::Done(()) } else { Seen::NotYet(format!("{missing:?}")) })
    };
    wait::until(PATIENCE, "what is sought in a record of loopback", all_found).unwrap();
    let mut total = 0;
    for record in &records {
        let bytes = record.bytes();
        total += bytes.len();
        for word in &sought {
            assert!(!holds(&bytes, word), "{word:?} passed {} in clear", record.file.display());
        }
    }
    assert!(total > 20_000, "{total} bytes were recorded: too few for a session");
    report(&format!("{total} bytes recorded off loopback, none of {} words in clear", sought.len()));
}
