//! Entering and leaving the lab: as root and as any user, without leftovers, and without silently skipped
//! tests.
//!
//! Rule: what must be gone at the end is first verified to exist. Not here: what hosts do in the lab
//! (`lab_network`).

use anyhow::Result;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use system_tests::lab;
use system_tests::program;
use system_tests::wait::{self, Seen};

/// Timeout for a lab to exist, or to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// Environment variable: the folder in which the watched test writes its marks, and reads what to do then.
const WATCHED: &str = "VISPERF_LAB_WATCHED";
const WATCHED_STORY: &str = "lab_entry::a_lab_is_watched";
/// A test that passes wherever the lab can be entered.
const GOOD_STORY: &str = "lab_network::a_partition_parts_groups_and_leaves_each_whole";

/// The program of these tests, with the arguments to run one.
fn story(name: &str) -> Command {
    let mut command = program::command(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]);
    command
}

/// Whether a command succeeds, and its output.
fn output_of(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), texts.concat())
}

/// The watched test: it starts a process in a host, and writes the names of the namespaces into a folder.
#[test]
fn a_lab_is_watched() {
    let Some(lab) = lab::enter(WATCHED_STORY).unwrap() else { return };
    let network = lab.network(2).unwrap();
    let namespace = || Ok(std::fs::read_link("/proc/thread-self/ns/net")?.display().to_string());
    let mut namespaces = network.each(|host| host.run(namespace)).unwrap();
    namespaces.push(namespace().unwrap());
    assert_eq!(namespaces.iter().collect::<BTreeSet<_>>().len(), 3, "{namespaces:?}");
    let Some(folder) = std::env::var_os(WATCHED) else { return };
    let folder = Path::new(&folder);
    let sleep = || Ok(program::command("sleep").arg("86400").stdin(Stdio::null()).spawn()?);
    let mut sleeping = network.host("h1").run(sleep).unwrap();
    std::fs::write(folder.join("marks.new"), namespaces.join("\n")).unwrap();
    std::fs::rename(folder.join("marks.new"), folder.join("marks")).unwrap();
    match std::fs::read_to_string(folder.join("then")).unwrap().as_str() {
        "end" => {}
        "fail" => panic!("this story fails on request"),
        _ => _ = sleeping.wait().unwrap(),
    }
}

/// Pids of the processes in one of these network namespaces.
fn processes_in(namespaces: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok());
    let is_in = |path: &Path| {
        let namespace = std::fs::read_link(path.join("ns/net")).unwrap_or_default().display().to_string();
        !namespace.is_empty() && namespaces.lines().any(|line| line == namespace)
    };
    all.filter(|entry| is_in(&entry.path())).map(|entry| entry.file_name().display().to_string()).collect()
}

fn watched(folder: &Path, then: &str) -> Command {
    std::fs::write(folder.join("then"), then).unwrap();
    let mut command = story(WATCHED_STORY);
    command.env(WATCHED, folder);
    command
}

fn assert_gone(namespaces: &str) {
    wait::until(PATIENCE, "the end of all processes of the lab", || {
        let left = processes_in(namespaces);
        Ok(if left.is_empty() { Seen::Done(()) } else { Seen::NotYet(format!("left: {left:?}")) })
    })
    .unwrap();
    // A namespace without a process exists only while it is mounted somewhere.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_left = namespaces.lines().any(|namespace| !namespace.is_empty() && mounts.contains(namespace));
    assert!(!is_left && !mounts.contains(" - tmpfs lab "), "{namespaces}{mounts}");
    assert!(!Path::new("/run/netns/h1").exists());
}

#[test]
fn everything_is_gone_when_a_lab_ends_or_fails() {
    for (then, expected) in [("end", true), ("fail", false)] {
        let folder = tempfile::tempdir().unwrap();
        let (good, output) = output_of(&mut watched(folder.path(), then));
        assert_eq!(good, expected, "{output}");
        assert_eq!(output.contains("fails on request"), !expected, "{output}");
        assert_gone(&std::fs::read_to_string(folder.path().join("marks")).unwrap());
    }
}

#[test]
fn everything_is_gone_when_a_lab_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running =
        watched(folder.path(), "sleep").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let marks = wait::until(PATIENCE, "a lab", || -> Result<_> {
        if let Some(ended) = running.try_wait()? {
            anyhow::bail!("expected a lab that stays, found it ended: {ended}");
        }
        let Ok(marks) = std::fs::read_to_string(folder.path().join("marks")) else {
            return Ok(Seen::NotYet("no marks".into()));
        };
        // The test itself and the process that sleeps in a host.
        Ok(if processes_in(&marks).len() >= 2 { Seen::Done(marks) } else { Seen::NotYet(marks) })
    })
    .unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_gone(&marks);
}

#[test]
fn a_name_that_is_no_test_does_not_pass() {
    let refused = lab::enter("lab_entry::there_is_no_such_test").unwrap_err().to_string();
    assert!(refused.contains("did not enter the lab"), "{refused}");
}

#[test]
fn a_program_that_is_missing_fails_the_story_and_is_named() {
    let entered = lab::enter("lab_entry::a_program_that_is_missing_fails_the_story_and_is_named").unwrap();
    let Some(lab) = entered else { return };
    lab.hide("nft").unwrap();
    let refused = format!("{:#}", lab.network(2).unwrap_err());
    assert!(refused.contains("`nft`") && refused.contains("nftables"), "{refused}");
    lab.hide("unshare").unwrap();
    let (good, output) = output_of(story(GOOD_STORY).env_remove("VISPERF_LAB"));
    assert!(!good && output.contains("`unshare`") && output.contains("util-linux"), "{output}");
}

#[test]
fn where_the_kernel_forbids_it_the_story_fails_and_names_the_setting() {
    // In a new user namespace whose limit of nested ones is zero, and without capabilities.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let exe = std::env::current_exe().unwrap();
    let mut command = program::command("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(exe);
    let (good, output) = output_of(command.args(["--exact", GOOD_STORY, "--nocapture"]));
    assert!(!good && output.contains("user.max_user_namespaces="), "{output}");
}

#[test]
fn an_ordinary_user_has_a_lab_too() {
    // Copies in a folder that every user can read, wherever the source tree is.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let exe = copy(&std::env::current_exe().unwrap(), "stories");
    let visperf = copy(program::visperf().unwrap(), "visperf");
    let is_root = output_of(program::command("id").arg("-u")).1.trim() == "0";
    let rights: &[&str] =
        if is_root { &["--reuid", "65534", "--regid", "65534", "--clear-groups"] } else { &[] };
    let mut command = program::command("setpriv");
    command.args(rights).arg(exe).args(["--exact", GOOD_STORY, "--nocapture"]);
    command.env("VISPERF_BIN", visperf).env("TMPDIR", "/tmp").env("HOME", folder.path());
    let (good, output) = output_of(command.current_dir("/"));
    assert!(good && output.contains("1 passed"), "{output}");
}
