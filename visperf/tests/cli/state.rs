//! State folders: symbolic links in them are not followed, those that other users can write to are refused,
//! and a removed one is noticed.

use crate::followed::interrupt;
use crate::program::{DEADLINE, Home, Ran};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

/// The daemons, each with a state folder `own`.
const DAEMONS: [&[&str]; 4] = [
    &["up", "--listen", "127.0.0.1:0", "--state", "own"],
    &["sensor", "--config", "sensor.toml", "--listen", "127.0.0.1:0", "--state", "own"],
    &["directory", "--config", "directory.toml", "--listen", "127.0.0.1:0", "--state", "own"],
    &["proxy", "--config", "proxy.toml", "--listen", "127.0.0.1:0", "--state", "own"],
];

/// Files that a short run does not write, or removes at its end.
const MORE: [&str; 6] =
    ["listen", "reached-at", "election", "domains", "directory/directory.snapshot", "directory/admitted"];

/// A home with the files that the daemon of these arguments needs, and its state folder as a run leaves it.
fn home_of(arguments: &[&str]) -> Home {
    let home = Home::new();
    for (name, part) in [
        ("sensor", "[sensor]\n"),
        ("directory", "[directory]\n"),
        ("proxy", "[proxy]\nlisten = \"127.0.0.1:0\"\nnames = [\"localhost\"]\n"),
    ] {
        home.file(&format!("{name}.toml"), format!("{part}[overlay]\nlisten = \"127.0.0.1:0\"\n"));
    }
    if ["sensor", "proxy"].contains(&arguments[0]) {
        home.run(&["domain", "create", "UT-ICL", "--state", "own", "--host", "head01"]).ok();
    }
    if arguments[0] == "directory" {
        let (_, key) = (
            home.run(&["key", "--state", "own"]).ok(),
            "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA",
        );
        home.file(
            "directory.toml",
            format!("[directory.domains]\nUT-ICL = \"{key}\"\n[overlay]\nlisten = \"127.0.0.1:0\"\n"),
        );
    }
    run_once(&home, arguments).ok();
    home
}

/// Start it, wait until it answers or ends, and end it.
fn run_once(home: &Home, arguments: &[&str]) -> Ran {
    let mut child = home.command(arguments).spawn().unwrap();
    if is_up(home, &mut child) {
        interrupt(&child);
    }
    Ran::from(child.wait_with_output().unwrap())
}

/// Whether it answers; false if it ended.
fn is_up(home: &Home, child: &mut Child) -> bool {
    let listen = home.path().join("own/listen");
    let until = Instant::now() + DEADLINE;
    loop {
        if listen.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(Instant::now() < until, "it neither answers nor ends");
        std::thread::yield_now();
    }
}

/// Every file and folder below a folder; files with their content.
fn all(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_folder = path.symlink_metadata().unwrap().is_dir();
            found.insert(path.clone(), (!is_folder).then(|| std::fs::read(&path).unwrap()));
            if is_folder {
                waiting.push(path);
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for (path, content) in all(from) {
        let copied = to.join(path.strip_prefix(from).unwrap());
        match content {
            Some(content) => std::fs::write(&copied, content).unwrap(),
            None => std::fs::create_dir(&copied).unwrap(),
        }
        std::fs::set_permissions(&copied, path.metadata().unwrap().permissions()).unwrap();
    }
}

#[test]
fn no_daemon_follows_a_link_laid_in_its_state_folder() {
    for arguments in DAEMONS {
        let home = home_of(arguments);
        let at = |name: &str| home.path().join(name);
        std::fs::rename(at("own"), at("clean")).unwrap();
        let clean = at("clean");
        let mut names: Vec<PathBuf> =
            all(&clean).keys().map(|path| path.strip_prefix(&clean).unwrap().to_owned()).collect();
        names.extend(MORE.map(PathBuf::from).into_iter().filter(|name| {
            !clean.join(name).exists() && clean.join(name).parent().is_some_and(Path::is_dir)
        }));
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            copy(&clean, &at("own"));
            let (own, outside) = (at("own").join(&name), at("outside"));
            // The link's target is what the daemon would read there, so that only the link itself is wrong.
            match own.exists() {
                true => std::fs::rename(&own, &outside).unwrap(),
                false => std::fs::write(&outside, "untouched").unwrap(),
            }
            symlink(&outside, &own).unwrap();
            let look = || match outside.is_dir() {
                true => all(&outside),
                false => BTreeMap::from([(outside.clone(), Some(std::fs::read(&outside).unwrap()))]),
            };
            let before = look();
            let ran = run_once(&home, arguments);
            assert_eq!(look(), before, "{arguments:?} followed the link {}: {ran:#?}", name.display());
            if ran.code != 0 {
                let part = name.file_name().unwrap().to_str().unwrap();
                ran.notes(&[part, "found a symbolic link"]);
            }
            std::fs::remove_dir_all(at("own")).unwrap();
            let _removed = std::fs::remove_file(&outside).or_else(|_| std::fs::remove_dir_all(&outside));
        }
    }
}

#[test]
fn a_state_folder_that_others_can_write_is_refused_with_what_to_type() {
    let home = home_of(DAEMONS[1]);
    let own = home.path().join("own");
    let link = home.path().join("link");
    symlink(&own, &link).unwrap();
    let commands: [&[&str]; 3] = [&["key"], &["domain", "members"], &["token", "create"]];
    for mode in [0o770, 0o702, 0o1777] {
        std::fs::set_permissions(&own, Permissions::from_mode(mode)).unwrap();
        let resolved = own.canonicalize().unwrap().display().to_string();
        let expected = [format!("mode {mode:04o}"), format!("`chmod go-w {resolved}`")];
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        for arguments in DAEMONS {
            run_once(&home, arguments).with_code(1).notes(&expected);
            let by_link: Vec<&str> =
                arguments.iter().map(|word| if *word == "own" { "link" } else { word }).collect();
            run_once(&home, &by_link).with_code(1).notes(&expected);
        }
        for command in commands {
            home.run(&[command, &["--state", "own"]].concat()).with_code(1).notes(&expected);
        }
    }
    for mode in [0o755, 0o700] {
        std::fs::set_permissions(&own, Permissions::from_mode(mode)).unwrap();
        home.run(&["key", "--state", "link"]).ok();
        run_once(&home, DAEMONS[1]).ok();
    }
    std::fs::set_permissions(own.join("sensor"), Permissions::from_mode(0o777)).unwrap();
    run_once(&home, DAEMONS[1]).with_code(1).notes(&["own/sensor has mode 0777", "chmod go-w"]);
}

#[test]
fn files_of_the_version_before_are_read_and_private_from_then_on() {
    let home = home_of(DAEMONS[1]);
    let own = home.path().join("own");
    let mode = |name: &str| own.join(name).metadata().unwrap().permissions().mode() & 0o777;
    let term = || std::fs::read_to_string(own.join("term")).unwrap().trim().parse::<u64>().unwrap();
    assert_eq!(mode("term"), 0o600);
    std::fs::set_permissions(own.join("term"), Permissions::from_mode(0o644)).unwrap();
    let before = term();
    let mut child = home.command(DAEMONS[1]).spawn().unwrap();
    assert!(is_up(&home, &mut child));
    assert_eq!(mode("listen"), 0o600);
    interrupt(&child);
    child.wait().unwrap();
    assert_eq!((term(), mode("term")), (before + 1, 0o600));
}

#[test]
fn a_state_folder_that_is_removed_under_a_daemon_is_in_its_health_and_log() {
    let home = Home::new();
    let mut child = home.command(DAEMONS[0]).spawn().unwrap();
    assert!(is_up(&home, &mut child));
    let address = std::fs::read_to_string(home.path().join("own/listen")).unwrap();
    let wait_for = |what: &str, is_it: &dyn Fn(&str) -> bool| {
        let until = Instant::now() + DEADLINE;
        loop {
            let info = home
                .run(&["info", "--connect", address.lines().next().unwrap(), "--json"])
                .ok()
                .json()
                .remove(0);
            let health = info["health"].to_string();
            if is_it(&health) {
                return health;
            }
            assert!(Instant::now() < until, "{what}: {info}");
            std::thread::yield_now();
        }
    };
    wait_for("healthy", &|health| health == "[]");
    std::fs::rename(home.path().join("own"), home.path().join("aside")).unwrap();
    let text = wait_for("noticed", &|health| health.contains("own/lock was removed while this daemon runs"));
    assert!(text.contains("put the state folder") && text.contains("or restart this daemon"), "{text}");
    std::fs::rename(home.path().join("aside"), home.path().join("own")).unwrap();
    wait_for("healthy again", &|health| health == "[]");
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap()).ok();
    ran.notes(&["ERROR", "own/lock was removed", "the state folder is in its place again"]);
}

#[test]
fn a_journal_of_another_version_ends_the_sensor_with_its_folder_and_the_command_that_moves_it_away() {
    let home = home_of(DAEMONS[1]);
    let folder = home.path().join("own/sensor/journal");
    // A head as a later version may write it: the known fields, and an unknown version.
    let head = (1_u8, 9_u64, 1_u32, 0_u64, None::<u64>, 0_u64, 9_u16);
    let mut bytes = Vec::new();
    wire::codec::encode(&(0_u32, head), &mut bytes).unwrap();
    let segment = folder.join("events-00000000000000000000.log");
    std::fs::write(&segment, &bytes).unwrap();
    run_once(&home, DAEMONS[1]).with_code(1).notes(&[
        "own/sensor/journal cannot be read: events-00000000000000000000.log has version 9 of its content, expected 1",
        "own/sensor/journal.unreadable`, which loses its events from number 0 on, written from 20",
        "start the version of visperf that wrote it",
    ]);
    assert_eq!(std::fs::read(&segment).unwrap(), bytes, "nothing was changed");
    std::fs::rename(&folder, folder.with_extension("unreadable")).unwrap();
    run_once(&home, DAEMONS[1]).ok();
}
