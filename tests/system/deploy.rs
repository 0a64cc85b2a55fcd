//! Installed files: the example configurations are valid, and the systemd units start existing commands.
//!
//! Rule: the files are found by listing the folder, and each test first asserts that there are some.
//! Not here: running under systemd, which a test machine may not have.

use std::path::{Path, PathBuf};
use system_tests::program;

fn deployed(ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(program::workspace().join("deploy")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Whether `visperf` succeeds with these arguments, and its output.
fn visperf(arguments: &[&str]) -> (bool, String) {
    let output = program::command(program::visperf().unwrap()).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), text.concat())
}

fn config_check(path: &Path) -> (bool, String) {
    visperf(&["config", "check", path.to_str().unwrap()])
}

#[test]
fn every_example_configuration_is_good() {
    let examples = deployed(".toml");
    assert!(!examples.is_empty(), "there is no example");
    for example in examples {
        let (good, text) = config_check(&example);
        assert!(good, "{}: {text}", example.display());
    }
}

#[test]
fn an_unknown_key_is_reported_with_its_line() {
    let text = std::fs::read_to_string(program::workspace().join("deploy/sensor.toml")).unwrap();
    let broken = text.replace("\nsample_hz", "\nsample_hertz");
    assert_ne!(text, broken);
    let line = broken.lines().position(|line| line.starts_with("sample_hertz")).unwrap() + 1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("visperf.toml");
    std::fs::write(&path, broken).unwrap();
    let (good, text) = config_check(&path);
    assert!(!good, "{text}");
    assert!(text.contains("sample_hertz") && text.contains(&format!("visperf.toml:{line}:")), "{text}");
}

#[test]
fn every_unit_starts_a_command_that_there_is_with_flags_it_has() {
    let units = deployed(".service");
    assert!(units.len() >= 3, "found {units:?}");
    for unit in units {
        let text = std::fs::read_to_string(&unit).unwrap();
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/visperf ")).unwrap();
        let words: Vec<_> = start.split(' ').collect();
        let (good, help) = visperf(&[words[0], "--help"]);
        assert!(good, "{}: {help}", unit.display());
        let flags: Vec<_> = words.iter().filter(|word| word.starts_with("--")).collect();
        assert!(!flags.is_empty(), "{start}");
        for flag in flags {
            assert!(help.contains(*flag), "{}: visperf {} has no {flag}", unit.display(), words[0]);
        }
        let state = text.lines().find_map(|line| line.strip_prefix("StateDirectory=")).unwrap();
        assert!(start.contains(&format!("--state /var/lib/{state} ")), "{start}: the state is in {state}");
        let config = start.split(' ').skip_while(|word| *word != "--config").nth(1).unwrap();
        let example = program::workspace().join("deploy").join(config.strip_prefix("/etc/visperf/").unwrap());
        assert!(example.exists(), "{}: {config} is not among the examples", unit.display());
        assert!(text.lines().any(|line| line == "User=visperf"), "{}: it has no user", unit.display());
    }
}

/// Compares every address of one machine: the installed daemons run next to each other.
#[test]
fn no_two_daemons_listen_at_one_address() {
    let mut found = Vec::new();
    for path in deployed(".service").into_iter().chain(deployed(".toml")) {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let flag = line.split_once("--listen ").map(|(_, address)| address.to_owned());
            let key = line.strip_prefix("# ").unwrap_or(line).strip_prefix("listen = ");
            let key = key.map(|address| address.trim_matches('"').to_owned());
            found.extend(flag.or(key).map(|address| address.rsplit_once(':').unwrap().1.to_owned()));
        }
    }
    assert!(found.len() >= 6, "{found:?}");
    let mut distinct = found.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), found.len(), "{found:?}");
}
