//! Replace tokens on the command line: created, used by real daemons, listed, revoked.

use crate::membership::{IssuerDaemon, created};
use crate::program::Home;
use serde_json::Value;

fn tokens(home: &Home) -> Vec<Value> {
    home.run(&["token", "list", "--state", "head", "--json"]).ok().json()
}

#[test]
fn an_image_carries_one_token_for_hosts_that_lose_their_keys() {
    let home = Home::new();
    created(&home);
    let daemon = IssuerDaemon::start(&home);
    let make = ["token", "create", "--state", "head", "--replace", "wn[0-9]*,gpu01", "--address"];
    let ran = home.run(&[&make[..], &[&daemon.address]].concat()).ok();
    let ran = ran.notes(&["for hosts wn[0-9]*, gpu01, in place of lost keys", "visperf token revoke"]);
    let token = ran.out.trim().strip_prefix("visperf join ").unwrap().to_owned();
    assert!(token.starts_with("visperfreplace1-"), "{token}");
    home.file("image/token", &token);
    let boot = |state: &str, host: &str| home.run(&["join", "image/token", "--state", state, "--host", host]);
    boot("boot1", "wn01").ok().prints(&["wn01 joined: domain UT-ICL, as viewer, publisher, representative"]);
    // The state folder was on tmpfs.
    boot("boot2", "wn01").ok().prints(&["wn01 joined"]);
    boot("boot2", "wn01").ok().prints(&["wn01 is a member already"]);
    boot("other", "head01").with_code(4).notes(&["not for host head01, but for wn[0-9]*, gpu01"]);
    let members = home.run(&["domain", "members", "--state", "head", "--json"]).ok().json();
    let key = &home.run(&["key", "--state", "boot2", "--json"]).ok().json()[0]["key"];
    let of_host: Vec<&Value> = members.iter().filter(|member| member["host"] == "wn01").collect();
    assert_eq!((of_host.len(), &of_host[0]["key"]), (1, key), "{members:?}");
    let listed = tokens(&home).remove(0);
    assert_eq!(
        (&listed["type"], &listed["used"], &listed["uses"]),
        (&"replace".into(), &2.into(), &Value::Null)
    );
    assert_eq!((&listed["state"], &listed["hosts"][1]), (&"good".into(), &"gpu01".into()));
    let id = listed["id"].as_str().unwrap();
    home.run(&["token", "list", "--state", "head"]).ok().prints(&[id, "replace", "no limit", "wn[0-9]*"]);
    home.run(&["token", "revoke", id, "--state", "head"]).ok().prints(&["revoked token", id]);
    assert_eq!(tokens(&home)[0]["state"], "revoked");
    boot("boot3", "wn01").with_code(4).notes(&["token was revoked"]);
    home.run(&["token", "revoke", "nonsense", "--state", "head"]).with_code(1).notes(&["visperf token list"]);
}

#[test]
fn an_ordinary_token_is_listed_and_revoked_too() {
    let home = Home::new();
    created(&home);
    home.run(&["token", "list", "--state", "head"]).ok().notes(&["there is no token"]);
    let made =
        home.run(&["token", "create", "--state", "head", "--uses", "3", "--json"]).ok().json().remove(0);
    let listed = tokens(&home).remove(0);
    assert_eq!((&listed["id"], &listed["type"], &listed["uses"]), (&made["id"], &"join".into(), &3.into()));
    home.run(&["token", "revoke", made["id"].as_str().unwrap(), "--state", "head"]).ok();
    assert_eq!(tokens(&home), [Value::Null; 0]);
}

#[test]
fn a_token_that_cannot_be_is_a_mistake_of_the_command_line() {
    let home = Home::new();
    created(&home);
    let check = |more: &[&str], expected: &str| {
        let arguments = [&["token", "create", "--state", "head", "--replace"], more].concat();
        home.run(&arguments).with_code(2).notes(&[expected]);
    };
    check(&["wn[0"], "is no pattern of host names; expected one such as wn07");
    check(&["wn*", "--ttl", "400d"], "--ttl: a token is good for 366 days at most; found 400 days");
    check(&["wn*", "--uses", "0"], "expected 1 or more");
    check(&["wn*", "--role", "operator"], "root's to give");
}
