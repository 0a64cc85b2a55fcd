//! Stored samples of every versioned format: each is read by its reader, and its content checked.
//!
//! `tests/samples` has state folders that a real program wrote, and `messages`, the bytes of messages. Rule:
//! there is a sample of every version that is read; so a version is raised only together with a sample of the
//! previous one, and with a reader for it. The samples `issuer` and `alone` are of a program that wrote no
//! version into journal, store and election. Not here: two running versions (`lab_upgrade`).

mod messages;
mod states;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use system_tests::program;
use wire::version::{FORMATS, Format};

/// A sample: its folder in `tests/samples`, the formats and versions in it, and its check.
type Sample = (&'static str, &'static [(Format, u16)], fn(&Path));

fn folder() -> PathBuf {
    program::workspace().join("tests/samples")
}

/// Readable formats and versions without a sample.
fn missing(formats: &[Format], sampled: &BTreeSet<(&str, u16)>) -> Vec<String> {
    let versions = |format: &Format| {
        let name = format.name;
        (format.oldest()..=format.newest).map(move |version| (name, version))
    };
    let all = formats.iter().flat_map(versions);
    all.filter(|one| !sampled.contains(one)).map(|(name, version)| format!("{name} {version}")).collect()
}

fn sampled() -> BTreeSet<(&'static str, u16)> {
    let states = states::SAMPLES.iter().flat_map(|(_, formats, _)| formats.iter());
    let states = states.map(|(format, version)| (format.name, *version));
    states.chain(messages::SAMPLES.iter().map(|(format, version, ..)| (format.name, *version))).collect()
}

/// Copy a sample with the permissions of a state folder, which a checkout does not preserve.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[test]
fn there_is_a_sample_of_every_version_that_is_read() {
    assert_eq!(missing(&FORMATS, &sampled()), Vec::<String>::new());
    // The control: a version that was raised without a sample is detected.
    let risen =
        FORMATS.map(|format| Format { written: format.written + 1, newest: format.newest + 1, ..format });
    assert_eq!(missing(&risen, &sampled()).len(), FORMATS.len());
}

#[test]
fn every_sample_is_read() {
    let listed: BTreeSet<&str> = states::SAMPLES.iter().map(|(name, ..)| *name).collect();
    let found = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let found = found.filter(|entry| entry.file_type().unwrap().is_dir());
    let found: BTreeSet<String> = found.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(found, listed.iter().map(|name| (*name).to_owned()).collect());
    for (name, _, check) in states::SAMPLES {
        println!("{name}");
        let state = tempfile::tempdir().unwrap();
        let state = state.path().join("state");
        copy(&folder().join(name), &state);
        check(&state);
    }
}

#[test]
fn every_message_is_read_and_written_as_before() {
    messages::check(&folder().join("messages"));
}

/// Compares the table of `docs/upgrading.md` with the program's.
#[test]
fn the_table_of_formats_is_that_of_the_program() {
    let text = fs::read_to_string(program::workspace().join("docs/upgrading.md")).unwrap();
    for Format { name, written, .. } in FORMATS {
        let row = format!("| {name} | {written} |");
        assert!(text.contains(&row), "expected a row {row:?} in docs/upgrading.md");
    }
    for protocol in overlay::net::protocol::Protocol::ALL {
        assert!(text.contains(&format!("`{protocol}`")), "expected {protocol} in docs/upgrading.md");
    }
}
