//! Domains from the command line: created, joined, listed, revoked, certified; every suggested command is
//! exact.

use crate::program::{DEADLINE, Home, Ran};
use overlay::identity::token;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::time::Instant;

pub(crate) fn created(home: &Home) {
    home.run(&["domain", "create", "UT-ICL", "--state", "head", "--host", "head01"]).ok();
}

/// Create a token; returns its line as printed.
fn token_line(home: &Home, more: &[&str]) -> String {
    let arguments = [&["token", "create", "--state", "head"], more].concat();
    let line = home.run(&arguments).ok().out;
    line.trim().strip_prefix("visperf join ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// `visperf sensor` of the host where the domain was created; killed when it is dropped.
pub(crate) struct IssuerDaemon {
    pub(crate) address: String,
    child: Child,
}

impl IssuerDaemon {
    pub(crate) fn start(home: &Home) -> IssuerDaemon {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        home.file("head.toml", format!("[sensor]\n[overlay]\nlisten = \"{free}\"\n"));
        let arguments = ["sensor", "--config", "head.toml", "--state", "head", "--listen", "127.0.0.1:0"];
        let child = home.command(&arguments).spawn().unwrap();
        let daemon = IssuerDaemon { address: free.to_string(), child };
        let until = Instant::now() + DEADLINE;
        // It writes this file once it serves.
        while !home.path().join("head/listen").exists() {
            assert!(Instant::now() < until, "it does not start");
            std::thread::yield_now();
        }
        daemon
    }
}

impl Drop for IssuerDaemon {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

#[test]
fn a_domain_is_created_once_in_files_that_no_other_user_reads() {
    let home = Home::new();
    let ran = home.run(&["domain", "create", "UT-ICL", "--state", "my head", "--host", "head01"]).ok();
    ran.prints(&["domain UT-ICL is created on head01", "root    12D3KooW", "issuer  12D3KooW"]).notes(&[
        "'my head/domain/root.key'",
        "visperf sensor --state 'my head'",
        "visperf token create --state 'my head'",
    ]);
    let state = home.path().join("my head");
    for name in ["key", "membership", "domain/root.key", "domain/delegation", "domain/book"] {
        let mode = std::fs::metadata(state.join(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    for name in ["", "domain"] {
        let mode = std::fs::metadata(state.join(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
    let again = |name: &str| {
        home.run(&["domain", "create", name, "--state", "my head", "--host", "head01", "--json"])
    };
    assert_eq!(again("UT-ICL").ok().json()[0]["created"], false);
    again("OTHER").with_code(1).notes(&["UT-ICL", "OTHER"]);
    again("a b").with_code(2).notes(&["domain name"]);
    home.run(&["domain", "create", "X", "--state", "s", "--host", "a b"])
        .with_code(2)
        .notes(&["--host NAME"]);
}

#[test]
fn without_a_domain_the_error_says_where_to_type_and_nothing_is_made() {
    let home = Home::new();
    for arguments in [&["token", "create"][..], &["domain", "members"], &["domain", "revoke", "wn01"]] {
        let arguments = [arguments, &["--state", "nowhere"]].concat();
        home.run(&arguments).with_code(1).notes(&["no domain was created", "visperf domain create"]);
    }
    assert!(!home.path().join("nowhere").exists());
}

#[test]
fn a_token_is_a_line_to_paste_and_contains_where_the_issuer_listens() {
    let home = Home::new();
    created(&home);
    let ran = home.run(&["token", "create", "--state", "head"]).ok();
    let ran = ran.notes(&["for one host, as viewer, publisher, representative", ":7318", "does not run yet"]);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let made = token::parse(ran.out.strip_prefix("visperf join ").unwrap()).unwrap();
    assert!(!made.addresses.is_empty() && made.addresses.iter().all(|address| address.port() == 7318));
    assert!(made.addresses.iter().all(|address| address.host() != "127.0.0.1"), "{:?}", made.addresses);
    let directory = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA@dir1.example:7318";
    let more =
        ["--role", "viewer", "--ttl", "1h", "--uses", "3", "--address", "head:9", "--directory", directory];
    let arguments = [&["token", "create", "--state", "head", "--json"], &more[..]].concat();
    let json = home.run(&arguments).ok().json().remove(0);
    assert_eq!((&json["roles"][0], &json["uses"]), (&"viewer".into(), &3.into()));
    assert_eq!((&json["addresses"][0], json["directories"].as_array().unwrap().len()), (&"head:9".into(), 1));
    let made = token::parse(json["token"].as_str().unwrap()).unwrap();
    assert_eq!((made.addresses[0].as_str(), made.directories[0].addresses[0].port()), ("head:9", 7318));
}

#[test]
fn a_wish_that_no_token_can_fulfil_is_a_mistake_of_the_command_line() {
    let home = Home::new();
    created(&home);
    let check = |more: &[&str], expected: &[&str]| {
        let arguments = [&["token", "create", "--state", "head"], more].concat();
        home.run(&arguments).with_code(2).notes(expected);
    };
    check(
        &["--role", "operator"],
        &["root's to give", "visperf domain certify KEY --role ROLE --state head"],
    );
    check(&["--role", "root"], &["expected sensor", "filter-admin"]);
    check(&["--ttl", "30d"], &["--ttl: a token is good for 7 days at most; found 30 days"]);
    check(&["--ttl", "169h"], &["found 7 days and 60m"]);
    check(&["--address", "a1.example"], &["such as head.example:7318"]);
    check(&["--ttl", "15"], &["unit", "15m"]);
    check(&["--uses", "0"], &["1 to 1000"]);
    check(&["--address", "head"], &["HOST:PORT"]);
    check(&["--directory", "dir1:7318"], &["KEY@HOST:PORT"]);
}

#[test]
fn what_is_no_token_is_reported_before_anything_is_made() {
    let home = Home::new();
    created(&home);
    let token = token_line(&home, &["--address", "127.0.0.1:9"]);
    let join = |text: &str| home.run(&["join", text, "--state", "new"]).with_code(2);
    let at = token.len() - 20;
    let other = if &token[at..=at] == "a" { "b" } else { "a" };
    join(&format!("{}{other}{}", &token[..at], &token[at + 1..]))
        .notes(&["token is mistyped or cut", "copy"]);
    join(&token[..token.len() - 8]).notes(&["mistyped or cut"]);
    join(&token.replacen("visperf1-", "visperf1-1", 1)).notes(&["character 10 of the token is mistyped"]);
    join("no-such-file").notes(&["this is no token", "visperf token create"]);
    join("visperfcert1-aaaa").notes(&["certificate is mistyped or cut"]);
    home.file("kept", "something else");
    join("kept").notes(&["kept: this is no token"]);
    assert!(!home.path().join("new").exists());
}

#[test]
fn where_no_issuer_answers_the_error_says_what_was_tried_and_what_to_start() {
    let home = Home::new();
    created(&home);
    let token = token_line(&home, &["--address", "127.0.0.1:1"]);
    let ran = home.run(&["join", &token, "--state", "new", "--host", "wn01", "--wait", "1s"]).with_code(3);
    ran.notes(&[
        "127.0.0.1:1: nothing listens there (connection refused); trying on",
        "issuer of domain UT-ICL was not reached within 1 s:",
        "visperf sensor",
        "TCP port",
        "the token is good until",
    ]);
    assert!(!home.path().join("new/membership").exists());
}

#[test]
fn a_folder_that_was_mistyped_for_a_key_is_not_made_unseen() {
    let home = Home::new();
    let ran = home.run(&["key", "--state", "no/such"]).ok();
    let key = ran.notes(&["no/such is not there; making it, with a new key"]).out;
    let again = home.run(&["key", "--state", "no/such"]).ok();
    assert_eq!((again.out, again.notes.as_str()), (key, ""));
    assert_eq!(home.run(&["key"]).ok().notes, "", "the usual folder is made without a word");
}

#[test]
fn a_host_joins_is_listed_and_revoked() {
    let home = Home::new();
    created(&home);
    let daemon = IssuerDaemon::start(&home);
    let token = token_line(&home, &["--address", &daemon.address, "--priority", "7"]);
    let join = |state: &str, host: &str| home.run(&["join", &token, "--state", state, "--host", host]);
    let ran = join("new", "wn01").ok();
    ran.prints(&["wn01 joined: domain UT-ICL, as viewer, publisher, representative"])
        .notes(&["certificate holds until", "visperf sensor --state new"]);
    join("new", "wn01").ok().prints(&["wn01 is a member already"]);
    join("thief", "wn02").with_code(4).notes(&["token was used by another daemon"]);
    let key = home.run(&["key", "--state", "new", "--json"]).ok().json().remove(0);
    assert_eq!(
        (&key["domain"], &key["host"], &key["priority"]),
        (&"UT-ICL".into(), &"wn01".into(), &7.into())
    );
    let members = |more: &[&str]| home.run(&[&["domain", "members", "--state", "head"], more].concat()).ok();
    members(&[]).prints(&["HOST", "wn01", "head01", key["key"].as_str().unwrap()]);
    let state_of = |host: &str| {
        let all = members(&["--json"]).json();
        all.iter().find(|member| member["host"] == host).unwrap_or_else(|| panic!("{all:?}"))["state"].clone()
    };
    assert_eq!((state_of("wn01"), state_of("head01")), ("member".into(), "member".into()));
    let revoke = |member: &str| home.run(&["domain", "revoke", member, "--state", "head"]);
    let revoked = revoke("wn01").ok().prints(&["revoked wn01 12D3KooW"]);
    assert!(!revoked.notes.contains("next:"), "the daemon runs: {revoked:#?}");
    assert_eq!(state_of("wn01"), "revoked");
    revoke("wn09").with_code(1).notes(&["no member wn09"]);
    revoke("head01").with_code(2).notes(&["the issuer itself"]);
    join("new", "wn01").with_code(4).notes(&["is denied by its domain"]);
    drop(daemon);
    std::fs::remove_file(home.path().join("head/listen")).unwrap();
    revoke("wn01").ok().notes(&["does not run", "visperf sensor --state head"]);
}

#[test]
fn an_operator_is_certified_by_the_root_and_joins_by_a_file() {
    let home = Home::new();
    created(&home);
    let key = home.run(&["key", "--state", "ws"]).ok().out.trim().to_owned();
    let certify = |more: &[&str]| home.run(&[&["domain", "certify", &key, "--state", "head"], more].concat());
    certify(&["--role", "operator"]).with_code(2).notes(&["--host NAME"]);
    certify(&["--role", "operator", "--host", "ws1", "--life", "500d"]).with_code(2).notes(&["366 days"]);
    let line = certify(&["--role", "operator", "--host", "ws1"]).ok().notes(&["visperf join FILE"]).out;
    home.file("ws1.cert", &line);
    let join = |state: &str| home.run(&["join", "ws1.cert", "--state", state]);
    join("other").with_code(1).notes(&["of use to its own key alone"]);
    join("ws")
        .ok()
        .prints(&["ws1 joined: domain UT-ICL, as operator"])
        .notes(&["only `visperf domain certify`"]);
    let by_pipe: Ran = home.run_with_input(&["join", "-", "--state", "ws"], line.as_bytes());
    by_pipe.ok().prints(&["ws1 is a member already"]);
    std::fs::rename(home.path().join("head/domain/root.key"), home.path().join("kept-elsewhere")).unwrap();
    certify(&["--role", "operator"]).with_code(1).notes(&["root.key is needed", "bring it back"]);
    home.run(&["token", "create", "--state", "head"]).ok();
}
