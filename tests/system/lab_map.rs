//! The viewer outside a site, its map through the site's proxy: only a user with an account there sees it.
//!
//! Rule: all are the real programs, each on its own host. Not here: what a map shows (`viewer`).

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use system_tests::lab::proxies::Site;
use system_tests::wait::{self, Seen};
use system_tests::{lab, program};

/// Timeout for a grid's first answer through a proxy.
const FIRST: Duration = Duration::from_secs(60);

#[test]
fn a_map_comes_through_a_proxy_to_an_account() {
    let name = "lab_map::a_map_comes_through_a_proxy_to_an_account";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let [outside, gate, head, user] = network.hosts() else { panic!("four hosts") };
    let site = Site::prepare(outside, gate, head).unwrap();
    let proxy = &site.proxy;
    let secret = user.folder().join("secret");
    std::fs::write(&secret, proxy.account("ana", &["--domain", "UT-ICL"]).unwrap()).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let _running = site.start("").unwrap();
    let via = format!("{}/d/UT-ICL", proxy.url());
    // The viewer's output, and its errors.
    let map_for = |account: &str| {
        let run = || {
            let mut viewer = program::command(program::viewer().unwrap());
            viewer.args(["--via", &via, "--account", account, "--tell", "--secret"]).arg(&secret);
            Ok(viewer.arg("--certificate").arg(proxy.certificate()).output()?)
        };
        let output = user.run(run).unwrap();
        let value = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        (value, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let found = wait::until(FIRST, "a map with the host behind the proxy", || {
        let (map, complaint) = map_for("ana");
        let is_whole = map["domains"] == json!(["UT-ICL"]) && map["hosts"] == json!(1);
        Ok(if is_whole { Seen::Done(()) } else { Seen::NotYet(format!("{map} {complaint}")) })
    });
    found.unwrap();
    let (map, complaint) = map_for("eve");
    assert!(complaint.contains("name or secret is wrong"), "{complaint}");
    assert!(map["hosts"] != json!(1), "no one of this name has an account: {map} {complaint}");
}
