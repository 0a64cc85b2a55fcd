//! Modules from the command line: listed with their errors, stopped, started and reloaded.

use crate::control::Sensor;
use crate::program::Home;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

const GOOD: &str = "#!/bin/sh\nread -r call; echo '{\"protocol\":1,\"name\":\"first one\",\"kind\":\"collector\",\"rate\":10}'\n\
    while read -r call; do echo '{\"figures\":[{\"name\":\"heat\",\"unit\":\"celsius\",\"value\":41}]}'; done\n";
const BAD: &str = "#!/bin/sh\necho 'no GPU here' >&2\nexit 4\n";

fn write(home: &Home, name: &str, text: &str, mode: u32) {
    let path = home.file(name, text);
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn modules_are_listed_stopped_started_and_refused() {
    let home = Home::new();
    fs::create_dir(home.path().join("modules")).unwrap();
    fs::set_permissions(home.path().join("modules"), Permissions::from_mode(0o755)).unwrap();
    let run = |program: &str| format!("run = ['{}']\ncpu_ms = 1000\n", home.path().join(program).display());
    for (program, text, mode) in [("good.sh", GOOD, 0o755), ("bad.sh", BAD, 0o755), ("open.sh", GOOD, 0o777)]
    {
        write(&home, program, text, mode);
        write(&home, &format!("modules/{}", program.replace(".sh", ".toml")), &run(program), 0o644);
    }
    let folder = home.path().join("modules");
    home.file("visperf.toml", format!("[sensor.modules]\nfolder = '{}'\n", folder.display()));
    let sensor = Sensor::start(&home, &["sensor", "--config", "visperf.toml"]);
    let module = |name: &str| {
        let all = sensor.run(&["modules", "--json"]).ok().json();
        all.into_iter().find(|module| module["name"] == name)
    };
    sensor.until("good answers, bad fails and open is refused", |_| {
        let (good, bad, open) = (module("good")?, module("bad")?, module("open")?);
        (good["calls"].as_u64()? > 1 && bad["failures"].as_u64()? > 0 && open["state"] == "refused")
            .then_some(())
    });
    sensor
        .run(&["modules"])
        .ok()
        .prints(&["MODULE", "first one", "running", "bad: it ended (exit status 4)", "bad says: no GPU here"])
        .prints(&["open: expected it to be writable by its owner alone, found mode 777"]);
    sensor.until("its figures are the host's", |sensor| {
        let metrics = sensor.run(&["metrics", "module.good.*", "--local", "--json"]);
        (metrics.code == 0 && metrics.json().first()?["value"] == 41).then_some(())
    });
    // Every user of this host may query, but only root and the sensor's user have the key.
    for key in [None, Some("key=0")] {
        let words: Vec<&str> =
            ["call", "sensor.change_module", "name=good", "act=stop"].into_iter().chain(key).collect();
        sensor.run(&words).with_code(4).notes(&["own/sensor/modules.key", "visperf modules"]);
    }
    assert_eq!(module("good").unwrap()["state"], "running");
    sensor.run(&["modules", "stop", "good"]).ok().prints(&["stopped"]);
    assert_eq!(module("good").unwrap()["state"], "stopped");
    sensor.run(&["modules", "start", "good"]).ok();
    sensor.until("good runs again", |_| (module("good")?["state"] == "running").then_some(()));
    sensor.run(&["modules", "reload", "none"]).with_code(4).notes(&["no module \"none\""]);
    sensor.run(&["modules", "start", "open"]).with_code(4).notes(&["chmod go-w"]);
    sensor.run(&["info"]).ok().prints(&["module open is refused"]);
    fs::remove_file(folder.join("good.toml")).unwrap();
    sensor.run(&["modules", "reload"]).ok();
    sensor.until("good is gone", |_| module("good").is_none().then_some(()));
}

#[test]
fn without_a_folder_there_are_none_and_it_is_said_how_to_have_some() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    sensor.run(&["modules"]).ok().notes(&["no modules", "[sensor.modules]"]);
    sensor.run(&["modules", "start", "gpu"]).with_code(4).notes(&["this sensor runs no modules"]);
}
