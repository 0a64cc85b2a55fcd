//! Typing errors of a user who queries through a proxy are reported at once: what was expected, what was
//! found, what to do, with the exit code of that kind of error.
//!
//! Not here: permissions of accounts (`lab_visits`, `lab_logins`).

use super::lab_ladder::{Site, WEB, report};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use system_tests::lab::{self, Host, Stopwatch};
use system_tests::program;

/// Exit codes (docs/command-line.md).
const USAGE: i32 = 2;
const UNREACHABLE: i32 = 3;
const FAULT: i32 = 4;

struct Typist<'a> {
    host: &'a Host,
    story: &'a str,
}

impl Typist<'_> {
    fn run(&self, words: &[&str], secret: &Path) -> Output {
        let output = self.host.run(|| {
            let mut command = program::command(program::visperf()?);
            command.env("VISPERF_KNOWN_DOMAINS", self.host.folder().join("known_domains"));
            command.env("VISPERF_ACCOUNT", "bea").env("VISPERF_SECRET", secret);
            Ok(command.args(words).output()?)
        });
        output.unwrap()
    }

    /// Check that the command ends with this code, and prints all of these texts.
    fn check(&self, words: &[&str], secret: &Path, code: i32, expected: &[&str]) {
        let watch = Stopwatch::start();
        let output = self.run(words, secret);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {complaint}");
        for part in expected {
            assert!(complaint.contains(part), "{words:?}: expected {part:?}, found: {complaint}");
        }
        let complaint = complaint.lines().next().unwrap_or_default();
        report(&format!("{}: {words:?} after {} ms: {complaint}", self.story, watch.elapsed().as_millis()));
    }
}

fn file(host: &Host, name: &str, text: &str, mode: u32) -> PathBuf {
    let file = host.folder().join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    file
}

#[test]
fn mistyped_input_is_reported_at_once() {
    let name = "lab_mistaken::mistyped_input_is_reported_at_once";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(network.hosts());
    let viewer = &site.viewer;
    let text = site.proxy.account("bea", &["--domain", "UT-ICL"]).unwrap();
    let secret = file(viewer, "bea.secret", &text, 0o600);
    let _directory = site.directory.start(&[], &[&site.domain]).unwrap();
    let gateway = site.proxy.start(std::slice::from_ref(&site.near), "md5 = true").unwrap();
    let typist = Typist { host: viewer, story: name };
    let check = |words: &[&str], code, expected: &[&str]| typist.check(words, &secret, code, expected);

    let (key, at) = site.proxy.contact.split_once('@').unwrap();
    let (other, place_of_directory) = site.near.contact.split_once('@').unwrap();
    let mistaken = format!("{other}@{at}/d/UT-ICL");
    let expected = [other, key, "expected the proxy of key", "found a daemon of key", "visperf key"];
    check(&["hosts", "--via", &mistaken], UNREACHABLE, &expected);
    let closed = format!("{key}@{}:1/d/UT-ICL", site.proxy.host.ipv4());
    check(&["hosts", "--via", &closed], UNREACHABLE, &["found none that listens there", "visperf proxy"]);
    let directory = format!("{other}@{place_of_directory}/d/UT-ICL");
    check(&["hosts", "--via", &directory], UNREACHABLE, &["is not a proxy"]);
    let shut = format!("https://{}:{}/d/UT-ICL", site.proxy.host.ipv4(), WEB + 1);
    let certificate = site.proxy.certificate().display().to_string();
    let by_door = ["hosts", "--via", &shut, "--certificate", &certificate];
    check(&by_door, UNREACHABLE, &["no proxy answers at", "is `visperf proxy` running there"]);
    let uncertified = ["hosts", "--via", &shut, "--certificate", "/nowhere"];
    check(&uncertified, USAGE, &["/nowhere", "--certificate FILE"]);

    let right = format!("{}/d/UT-ICL", site.proxy.contact);
    check(&["hosts", "--via", &right, "--legacy"], FAULT, &["leave --legacy"]);
    check(&["info", "--via", &right], USAGE, &["visperf hosts"]);
    check(
        &["hosts", "--via", &right, "--connect", "127.0.0.1:7317"],
        USAGE,
        &["expected --via or --connect"],
    );
    for (file, expected) in [
        (viewer.folder().join("none"), "found no file"),
        (file(viewer, "open.secret", "x", 0o644), "chmod 600"),
        (file(viewer, "empty.secret", "\n", 0o600), "found nothing in it"),
    ] {
        typist.check(&["hosts", "--via", &right], &file, USAGE, &["--secret", expected]);
    }
    let output = gateway.output();
    assert!(!output.contains("a visitor came in"), "{output}");
    // The account is admitted, although no host inside answers.
    let output = typist.run(&["hosts", "--via", &right], &secret);
    assert!(!output.status.success());
    let output = gateway.output();
    assert!(output.contains("a visitor came in") && output.contains("bea"), "{output}");
}
