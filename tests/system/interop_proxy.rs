//! Clients in other languages at a running proxy: each logs in with its own HTTP Digest implementation, and
//! gets the same answers.
//!
//! Rule: the proxy's counters show which hash each login used; clients need only their documented options
//! (`docs/firewalls.md`).
//! Not here: logins that are refused (the tests of `proxy`), firewalls (`lab_proxy`).

use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::proxies::{Proxy, Running, Site};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::wait::Seen;

/// Timeout for the first answer.
const FIRST: Duration = Duration::from_secs(60);

struct Client<'a> {
    at: &'a Host,
    proxy: &'a Proxy,
    secret: &'a str,
}

impl Client<'_> {
    /// The answer to `curl --digest`, or its error.
    fn curl(&self, name: &str, path: &str, more: &[&str]) -> Result<Value, String> {
        let (login, url) = (format!("{name}:{}", self.secret), format!("{}{path}", self.proxy.url()));
        let certificate = self.proxy.certificate();
        let run = || {
            let mut curl = program::command("curl");
            curl.args(["--silent", "--show-error", "--max-time", "20", "--digest", "--user", &login]);
            Ok(curl.args(more).arg("--cacert").arg(&certificate).arg(&url).output()?)
        };
        let output = self.at.run(run).unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&printed)
            .map_err(|_| format!("{printed}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The header line `Authorization` that curl sent.
    fn captured(&self, name: &str, path: &str) -> String {
        let (login, url) = (format!("{name}:{}", self.secret), format!("{}{path}", self.proxy.url()));
        let certificate = self.proxy.certificate();
        let run = || {
            let mut curl = program::command("curl");
            curl.args(["--silent", "--verbose", "--max-time", "20", "--digest", "--user", &login]);
            Ok(curl.arg("--cacert").arg(&certificate).arg(&url).output()?)
        };
        let output = self.at.run(run).unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = printed.lines().find_map(|line| line.strip_prefix("> Authorization: "));
        format!("Authorization: {}", line.unwrap_or_else(|| panic!("no login in {printed}")))
    }

    /// The answer to curl without a login of its own.
    fn curl_with(&self, path: &str, more: &[&str]) -> Result<Value, String> {
        let (certificate, url) = (self.proxy.certificate(), format!("{}{path}", self.proxy.url()));
        let run = || {
            let mut curl = program::command("curl");
            Ok(curl.args(["--silent"]).args(more).arg("--cacert").arg(&certificate).arg(&url).output()?)
        };
        let output = self.at.run(run).unwrap();
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }

    /// The output of a script in `clients/`, one line of JSON.
    fn script(&self, interpreter: &str, script: &str, name: &str) -> Value {
        let path = program::workspace().join("tests/clients").join(script);
        let certificate = self.proxy.certificate();
        let run = || {
            let mut client = program::command(interpreter);
            client.arg(&path).arg(self.proxy.url()).arg(&certificate).args([name, self.secret]);
            Ok(client.output()?)
        };
        let output = self.at.run(run).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script} ended with {}: {complaint}", output.status);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{script}: {error}: {complaint}"))
    }
}

/// Requests admitted, and those of them by MD5.
fn admitted(proxy: &Daemon) -> (u64, u64) {
    let figure = |name: &str| proxy.figure("door", name).unwrap();
    (figure("admitted_total"), figure("admitted_md5_total"))
}

#[test]
fn clients_of_other_languages_log_in() {
    let name = "interop_proxy::clients_of_other_languages_log_in";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let [outside, gate, head, user] = network.hosts() else { panic!("four hosts") };
    let site = Site::prepare(outside, gate, head).unwrap();
    let proxy = &site.proxy;
    let new = proxy.account("ana", &["--domain", "UT-ICL"]).unwrap();
    let old = proxy.account("old", &["--domain", "UT-ICL", "--legacy"]).unwrap();
    let Running { directory: _directory, sensors, proxy: daemon } = site.start("md5 = true").unwrap();
    let ana = Client { at: user, proxy, secret: &new };
    let hosts = "/d/UT-ICL/api/v1/domain.hosts";
    let is_there = |answer: &Result<Value, String>| {
        answer.as_ref().is_ok_and(|answer| answer["hosts"][0]["host"] == json!(head.name()))
    };
    let look = || {
        let answer = ana.curl("ana", hosts, &[]);
        Ok(if is_there(&answer) { Seen::Done(()) } else { Seen::NotYet(format!("{answer:?}")) })
    };
    let found = Stopwatch::start().until(FIRST, "an answer through the proxy", look);
    found.unwrap_or_else(|error| panic!("{error:#}\n{}\n{}", daemon.output(), sensors[0].output()));

    // Counts the logins by hash: in total, and those by MD5.
    let mut before = admitted(&daemon);
    let mut check = |client: &str, by_md5: bool| {
        let now = admitted(&daemon);
        assert!(now.0 > before.0, "{client} did not come in");
        let expected = if by_md5 { now.0 - before.0 } else { 0 };
        assert_eq!(now.1 - before.1, expected, "{client} came in by the other hash");
        before = now;
    };
    assert!(is_there(&ana.curl("ana", hosts, &[])));
    check("curl", false);
    let posted = ana.curl("ana", "/d/UT-ICL/h3/api/v1/sensor.metrics", &["--data", "{}"]).unwrap();
    assert!(posted["metrics"].is_array(), "{posted}");
    check("curl that posts", false);
    let legacy = Client { secret: &old, ..ana };
    assert!(is_there(&legacy.curl("old", "/md5/d/UT-ICL/api/v1/domain.hosts", &[])));
    check("curl by MD5", true);
    let seen = legacy.script("python3", "proxy.py", "old");
    assert_eq!(seen, json!({ "urllib": [head.name(), head.name()], "post": true, "requests": head.name() }));
    check("Python", true);
    assert_eq!(legacy.script("perl", "proxy.pl", "old"), json!([head.name(), head.name()]));
    check("Perl", true);

    // A captured login is valid once, for the request it was made for.
    let captured = ana.captured("ana", hosts);
    let replayed = |path: &str| ana.curl_with(path, &["--header", &captured]).unwrap();
    let before = admitted(&daemon);
    for path in [hosts, hosts, "/d/UT-ICL/h3/api/v1/domain.hosts", "/d/UT-ICL/api/v1/domain.summary"] {
        assert!(replayed(path)["error"].is_object(), "{path} was answered by a captured login");
    }
    assert_eq!(admitted(&daemon), before);

    // An account without `--legacy` is not admitted by MD5, and a wrong secret not at all.
    let refused = ana.curl("ana", "/md5/d/UT-ICL/api/v1/domain.hosts", &[]).unwrap();
    assert_eq!(refused["error"]["message"], json!("name or secret is wrong"));
    let wrong = Client { secret: "a guess", at: user, proxy };
    assert_eq!(wrong.curl("ana", hosts, &[]).unwrap()["error"]["message"], json!("name or secret is wrong"));
    // If MD5 is not offered, Python's requests uses SHA-256; an account marked for MD5 is admitted by SHA-256
    // too.
    assert!(!daemon.output().contains(&new) && !daemon.output().contains(&old), "a secret is in the log");
    daemon.kill().unwrap();
    let daemon = site.start_proxy("").unwrap();
    Stopwatch::start().until(FIRST, "the domain behind the new one", look).unwrap();
    let (before, _) = admitted(&daemon);
    assert_eq!(
        ana.script("python3", "proxy_sha256.py", "ana"),
        json!([head.name(), head.name(), head.name()])
    );
    assert_eq!(admitted(&daemon), (before + 3, 0));
    assert!(is_there(&legacy.curl("old", hosts, &[])));
    assert!(legacy.curl("old", "/md5/d/UT-ICL/api/v1/domain.hosts", &[]).is_ok());
    assert_eq!(admitted(&daemon), (before + 5, 0), "MD5 is not offered");
    assert!(!daemon.output().contains(&new) && !daemon.output().contains(&old), "a secret is in the log");
}
