//! A process of one host ended from another, by an operator of the domain: the signed command passes the
//! daemons that forward queries, and only the sensor of that host decides.
//!
//! Rule: only the commands of `docs/control.md` are used. Not here: large numbers of commands
//! (`visperf/src/serve/control`).

use anyhow::Result;
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, settled, state, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::wait::{self, Seen};

/// Timeout for an event to reach the representative, or a process to be seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// User whose processes are ended: root's never are.
const NOBODY: &str = "65534";

/// Whether processes of a user other than root can be started in the lab: not if an ordinary user entered it.
fn has_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_whitespace().nth(2).is_some_and(|count| count != "1")
}

/// Start a sleeping process of an unprivileged user; returns its pid.
fn sleeper(host: &Host) -> u32 {
    let line = "sleep 86400 >/dev/null 2>&1 & echo $!";
    let start = || {
        let mut command = match has_users() {
            true => {
                let mut command = program::command("setpriv");
                command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "sh", "-c", line]);
                command
            }
            false => {
                let mut command = program::command("sh");
                command.args(["-c", line]);
                command
            }
        };
        Ok(command.current_dir("/").stdin(Stdio::null()).output()?)
    };
    let output = host.run(start).unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Run `visperf ARGUMENTS…` on a host.
fn ran(host: &Host, arguments: &[&str]) -> Output {
    host.run(|| Ok(program::command(program::visperf()?).args(arguments).output()?)).unwrap()
}

/// Certify a key of `host` as an operator, by the root key on `issuer`; returns its state folder.
fn operator(issuer: &Host, host: &Host) -> Result<String> {
    let folder = host.folder().join("operator").display().to_string();
    let key = visperf(host, &["key", "--state", &folder])?;
    let words =
        ["domain", "certify", key.trim(), "--host", "ws1", "--role", "operator", "--state", &state(issuer)];
    let file = host.folder().join("ws1.cert");
    std::fs::write(&file, visperf(issuer, &words)?)?;
    visperf(host, &["join", &file.display().to_string(), "--state", &folder])?;
    Ok(folder)
}

/// Wait until `daemon` lists this process of `host`.
fn sees(daemon: &Daemon, host: &str, pid: u32) {
    wait::until(PATIENCE, "a sweep that sees the process", || {
        let answer = match daemon.result("sensor.processes", &json!({ "host": host, "pid": pid })) {
            Ok(answer) => answer,
            // The forwarding daemon may time out once.
            Err(error) => return Ok(Seen::NotYet(error.to_string())),
        };
        let seen = answer["processes"].as_array().is_some_and(|found| !found.is_empty());
        Ok(if seen { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap();
}

#[test]
fn an_operator_ends_a_process_of_another_host_and_no_one_else_does() {
    let name = "lab_control::an_operator_ends_a_process_of_another_host_and_no_one_else_does";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let hosts = network.hosts();
    let (issuer, target, desk, closed) = (&hosts[0], &hosts[1], &hosts[2], &hosts[3]);
    // Pids are those of the lab's process namespace, as in its /proc.
    let text = "[sensor]\nprocess_source = 'procfs'\n";
    std::fs::write(closed.folder().join("sensor.toml"), text).unwrap();
    let text = format!("{text}[sensor.control]\nusers = ['{NOBODY}']\n");
    std::fs::write(target.folder().join("sensor.toml"), text).unwrap();
    let domain = Domain::create("UT-ICL", hosts).unwrap();
    let daemons = domain.start(&[], |_| Vec::new()).unwrap();
    agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let folder = operator(issuer, desk).unwrap();
    let pid = sleeper(target);
    sees(&daemons[2], target.name(), pid);
    sees(&daemons[2], closed.name(), pid);
    let kill = |host: &Host, folder: &str| {
        let number = pid.to_string();
        let words = [
            "kill",
            host.name(),
            &number,
            "--yes",
            "--json",
            "--state",
            folder,
            "--connect",
            "127.0.0.1:7317",
        ];
        let start = Stopwatch::start();
        loop {
            let output = ran(desk, &words);
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            // The forwarding daemon may still be looking for a representative.
            if !complaint.contains("-32011") || !lives(pid) || start.elapsed() > PATIENCE {
                return (output.status.code(), complaint, String::from_utf8(output.stdout).unwrap());
            }
        }
    };
    // A member's certificate is not an operator's; a host that lists no users accepts no commands.
    let (code, complaint, _) = kill(target, &state(desk));
    assert!(code == Some(1) && complaint.contains("not operator"), "{complaint}");
    let (code, complaint, _) = kill(closed, &folder);
    assert!(code == Some(4) && complaint.contains("takes no orders"), "{complaint}");
    assert!(lives(pid));
    let (code, complaint, printed) = kill(target, &folder);
    if !has_users() {
        assert!(code == Some(4) && complaint.contains("root's") && lives(pid), "{complaint}");
        return;
    }
    assert_eq!(code, Some(0), "{complaint}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert!(printed["ended"].is_boolean(), "{printed}");
    wait::until(PATIENCE, "the end of the process", || {
        Ok(if lives(pid) { Seen::NotYet(printed.to_string()) } else { Seen::Done(()) })
    })
    .unwrap();
    // The whole domain sees the event, at whichever host is queried.
    let event = wait::until(PATIENCE, "the event of the order", || {
        let answer = daemons[0].result("domain.events", &json!({ "kind": "message" }))?;
        let is_it = |event: &&Value| event["attributes"]["order"] == printed["order"];
        Ok(match answer["events"].as_array().and_then(|events| events.iter().find(is_it)) {
            Some(event) => Seen::Done(event.clone()),
            None => Seen::NotYet(answer.to_string()),
        })
    })
    .unwrap();
    assert_eq!(event["attributes"]["result"], "obeyed");
    assert_eq!((event["from"].as_str(), event["to"].as_str()), (Some("ws1"), Some(target.name())));
}
