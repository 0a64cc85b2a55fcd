//! Limits of modules: what a module may use, and under which user it runs.

use crate::modules::rig::{COLLECTOR, Rig, is_alive, mode, until};
use nix::unistd::User;
use sensor::module::worker::Refusal;
use std::os::unix::process::CommandExt;
use wire::api::modules::ModuleAct;

#[tokio::test(flavor = "multi_thread")]
async fn root_its_memory_is_bounded() {
    let rig = Rig::start();
    // Doubles a text until there is no memory left; writes its length to a file.
    let body = "text=0123456789abcdef; while :; do text=$text$text; echo ${#text} >> $dir/sizes; done";
    let bomb = rig.script("bomb.sh", COLLECTOR, body);
    rig.load("bomb", &bomb, "memory_mib = 32\nanswer_s = 30\ncpu_ms = 1000").await;
    let status = rig.state("bomb", "quarantined").await;
    assert!(status.starts_with("it ended ("), "{status}");
    let sizes: Vec<u64> = rig.lines("sizes").iter().map(|size| size.parse().unwrap()).collect();
    let largest = sizes.iter().max().copied().unwrap_or(0);
    assert!((1 << 20..=32 << 20).contains(&largest), "{largest}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_it_has_few_rights_files_and_variables() {
    let rig = Rig::start();
    let body = "{ cat /proc/self/status; env; ulimit -n; ulimit -d; pwd; } > $dir/seen.new; mv $dir/seen.new $dir/seen; echo '{}'";
    let one = rig.script("one.sh", COLLECTOR, body);
    rig.load("one", &one, "memory_mib = 48\nenv = { GPUS = 'all of them' }").await;
    rig.goes_on("one", 1).await;
    let seen = rig.lines("seen");
    let has = |line: &str| assert!(seen.iter().any(|seen| seen == line), "{line}: {seen:?}");
    for line in ["NoNewPrivs:\t1", "CapAmb:\t0000000000000000", "GPUS=all of them", "64", "49152"] {
        has(line);
    }
    has(&rig.path("state/modules/one").display().to_string());
    let variables = seen.iter().filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    let variables: Vec<_> = variables.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let known = ["PATH", "LANG", "HOME", "GPUS", "PWD", "OLDPWD", "SHLVL"];
    assert!(variables.iter().all(|name| known.contains(name)), "{variables:?}");
    rig.end().await;
}

/// Whether this test may start a process as another user.
#[allow(clippy::disallowed_methods)] // There is no other method to find out.
fn may_be(user: &User) -> bool {
    let mut nothing = std::process::Command::new("/bin/true");
    nothing.uid(user.uid.as_raw()).gid(user.gid.as_raw()).status().is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn root_it_runs_as_the_user_that_its_file_names() {
    let rig = Rig::start();
    let nobody = User::from_name("nobody").unwrap().unwrap();
    std::fs::create_dir(rig.path("out")).unwrap();
    // Neither the folder of the test nor the files in it belong to the other user.
    mode(rig.folder.path(), 0o755);
    mode(&rig.path("out"), 0o777);
    for (name, user) in [("named", "nobody".to_owned()), ("numbered", nobody.uid.to_string())] {
        let body = format!(
            "{{ cat /proc/self/status; pwd; }} > $dir/out/new && mv $dir/out/new $dir/out/{name}; echo '{{}}'"
        );
        let one = rig.script(&format!("{name}.sh"), COLLECTOR, &body);
        rig.load(name, &one, &format!("user = '{user}'")).await;
        if !may_be(&nobody) {
            let status = rig.state(name, "quarantined").await;
            assert!(status.contains("not permitted"), "{status}");
            continue;
        }
        rig.goes_on(name, 1).await;
        let seen = rig.lines(&format!("out/{name}"));
        let of = |what: &str| {
            let line = seen.iter().find_map(|line| line.strip_prefix(what));
            line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("Uid:"), vec![nobody.uid.to_string(); 4], "real, effective, saved, of files");
        assert_eq!(of("Gid:"), vec![nobody.gid.to_string(); 4]);
        assert!(of("Groups:").is_empty(), "groups of the sensor: {seen:?}");
        assert_eq!(of("CapEff:"), ["0000000000000000"]);
        assert_eq!(seen.last().unwrap(), "/", "where it may be in any case");
    }
    let one = rig.script("none.sh", COLLECTOR, "echo '{}'");
    rig.load("none", &one, "user = 'unknown of this name'").await;
    let status = rig.state("none", "quarantined").await;
    assert!(status.contains("expected a user of this host, found \"unknown of this name\""), "{status}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_its_cpu_time_is_bounded() {
    let rig = Rig::start();
    let body = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; echo '{}'";
    let busy = rig.script("busy.sh", COLLECTOR, body);
    rig.load("busy", &busy, "cpu_ms = 5\nanswer_s = 30").await;
    let status = rig.state("busy", "quarantined").await;
    assert!(status.starts_with("expected at most 5 ms of CPU time a second over 10 s"), "{status}");
    let status = rig.status_when("busy", "counted", |_| true).await;
    assert!(status.cpu.as_millis() > 100, "{:?}", status.cpu);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_a_program_that_others_may_write_is_not_run() {
    let rig = Rig::start();
    let program = rig.script("open.sh", COLLECTOR, "echo '{}'");
    mode(&program, 0o777);
    rig.load("open", &program, "").await;
    let refused = rig.handle.refused();
    assert!(
        refused["open"].contains("found mode 777") && refused["open"].contains("chmod go-w"),
        "{refused:?}"
    );
    assert!(rig.handle.statuses().is_empty());
    let order = rig.handle.order(Some("open".to_owned()), ModuleAct::Start).await;
    assert!(matches!(order, Err(Refusal::Refused { .. })), "an order does not run it either: {order:?}");
    mode(&program, 0o755);
    rig.reload().await;
    rig.goes_on("open", 1).await;
    assert!(rig.handle.refused().is_empty());
    // The program becomes writable for others while it runs: the module is stopped.
    let pid =
        rig.status_when("open", "running", |status| status.pid.is_some()).await.pid.unwrap().to_string();
    mode(&program, 0o757);
    rig.reload().await;
    assert!(until(|| !is_alive(&pid) && rig.handle.statuses().is_empty()).await);
    assert!(until(|| rig.handle.refused().contains_key("open")).await, "{:?}", rig.handle.refused());
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_a_module_s_file_or_folder_that_others_may_write_is_not_believed() {
    let rig = Rig::start();
    let program = rig.script("one.sh", COLLECTOR, "echo '{}'");
    rig.load("one", &program, "").await;
    rig.goes_on("one", 1).await;
    let file = rig.path("modules/one.toml");
    mode(&file, 0o646);
    rig.reload().await;
    assert!(
        until(|| rig.handle.refused().get("one").is_some_and(|why| why.contains("found mode 646"))).await
    );
    mode(&file, 0o644);
    rig.reload().await;
    rig.goes_on("one", 1).await;
    mode(&rig.path("modules"), 0o777);
    rig.reload().await;
    assert!(rig.handle.trouble().unwrap().contains("found mode 777"));
    assert!(until(|| rig.handle.statuses().is_empty()).await, "nothing of the folder is believed");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_mistakes_in_a_file_are_reported_and_too_many_files_left_out() {
    let rig = Rig::start();
    rig.write("wrong", "run = ['/bin/sh']\n\nmemory = 7\n");
    rig.write("none", "run = ['/nowhere/at/all']\n");
    rig.write("Upper", "run = ['/bin/sh']\n");
    rig.reload().await;
    let refused = rig.handle.refused();
    assert!(refused["wrong"].starts_with("line 3: "), "{refused:?}");
    assert!(refused["none"].starts_with("cannot look at /nowhere/at/all"), "{refused:?}");
    assert!(refused["Upper"].starts_with("expected a file called NAME.toml"), "{refused:?}");
    for number in 10..50 {
        rig.write(&format!("m{number}"), "run = ['/nowhere']\n");
    }
    rig.reload().await;
    assert!(rig.handle.trouble().unwrap().contains("expected at most 32 modules, found 11 more"));
    assert_eq!(rig.handle.refused().len(), 32);
    rig.end().await;
}
