//! An unreadable journal in a real folder: its error message, and that nothing in it is changed.

use crate::journal::log::{Writer, stored};
use sensor::journal::Config;
use sensor::journal::frame::{Body, Head};
use sensor::segments::disk::Directory;
use sensor::segments::segment::name;
use sensor::segments::{Error, chain};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::at_end::AtEnd;
use wire::id::SensorKey;
use wire::version::{JOURNAL, Trailing};

fn open(folder: &Path) -> Result<Writer, Error> {
    Writer::on(Arc::new(Directory::new(folder.to_owned()).unwrap()), Config::default())
}

/// Creates a journal of two segments; the representative has received the first 4 of its 8 events.
fn journal() -> (tempfile::TempDir, PathBuf) {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("journal");
    let mut writer = open(&folder).unwrap();
    writer.read(5).unwrap();
    writer.journal.acknowledge(stored(4)).unwrap();
    writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    writer.read(3).unwrap();
    writer.journal.sync().unwrap();
    (state, folder)
}

/// Returns the content of the folder.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap_or_default()))
        .collect();
    files.sort();
    files
}

/// Returns the error of opening the journal; checks that everything is unchanged.
fn refused(folder: &Path) -> String {
    let before = content(folder);
    let text = open(folder).err().expect("cannot be read").to_string();
    assert_eq!(content(folder), before, "nothing is changed: {text}");
    text
}

fn check(text: &str, folder: &Path, parts: &[&str]) {
    let shown = folder.display();
    let command = format!("type `mv {shown} {shown}.unreadable`");
    for part in [&format!("the journal in {shown} cannot be read: "), &command, "as at its first start"] {
        assert!(text.contains(part), "expected {part:?}, found {text}");
    }
    for part in parts {
        assert!(text.contains(part), "expected {part:?}, found {text}");
    }
}

#[test]
fn frames_of_another_version_are_named_with_what_is_lost() {
    let (_state, folder) = journal();
    let path = folder.join(name(5));
    let mut bytes = fs::read(&path).unwrap();
    let len = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    bytes[8] = 99;
    let sum = crc32fast::hash(&bytes[8..8 + len]);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let text = refused(&folder);
    let version = format!("{} has version 99 of its frames, expected {}", name(5), wire::version::FRAME);
    let received = "its representative has received those before number 4";
    check(&text, &folder, &[&version, "start the version of visperf that wrote it", received]);
    check(
        &text,
        &folder,
        &["its events from number 0 on (at least to 4)", ", written from 1970-01-01T00:00:00Z to 20"],
    );
}

#[test]
fn content_of_another_version_is_named_with_both_versions() {
    let (_state, folder) = journal();
    let head = |version| {
        let (next_generation, next, acknowledged, lost) = (2, 8, Some(4), 0);
        Head {
            sensor: SensorKey(1),
            next_generation,
            next,
            acknowledged,
            lost,
            version: Trailing(version),
            marks: AtEnd(None),
        }
    };
    let unknown = JOURNAL.newest + 1;
    let mut bytes = Vec::new();
    chain::encode(0, Body::Head(head(unknown)), &mut bytes).unwrap();
    fs::write(folder.join(name(8)), bytes).unwrap();
    let version =
        format!("{} has version {unknown} of its content, expected {}", name(8), JOURNAL.expected());
    check(&refused(&folder), &folder, &[&version, "its events from number 0 on (at least to 7)"]);
}

#[test]
fn a_head_without_a_version_is_of_version_1() {
    // The structure before it had a version.
    let head = (SensorKey(9), 1_u32, 0_u64, None::<u64>, 0_u64);
    let mut bytes = Vec::new();
    let sum = chain::encode(0, (1_u8, head), &mut bytes).unwrap();
    chain::encode(sum, Body::HeadEnd, &mut bytes).unwrap();
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("journal");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.join(name(0)), bytes).unwrap();
    let mut writer = open(&folder).unwrap();
    assert_eq!((writer.journal.state().head.sensor, &writer.notes), (SensorKey(9), &Vec::new()));
    writer.read(2).unwrap();
    assert_eq!(writer.check(), 2);
}

#[test]
fn a_link_in_the_place_of_a_segment_is_named() {
    let (state, folder) = journal();
    let target = state.path().join("elsewhere");
    fs::rename(folder.join(name(5)), &target).unwrap();
    std::os::unix::fs::symlink(&target, folder.join(name(5))).unwrap();
    let path = folder.join(name(5)).display().to_string();
    check(&refused(&folder), &folder, &[&format!("cannot open {path}: "), "expected a regular file"]);
}

#[test]
fn a_segment_without_permission_is_named_with_what_to_type() {
    let (_state, folder) = journal();
    let path = folder.join(name(5));
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        // Permissions do not bind this process (root): the test runs in a process that they bind.
        return as_bound("journal::unreadable::a_segment_without_permission_is_named_with_what_to_type");
    }
    let (text, path) = (refused(&folder), path.display().to_string());
    let hint = format!("expected a file of mode 0600, found mode 0000: type `chmod 600 {path}`");
    check(&text, &folder, &[&format!("cannot open {path}: Permission denied"), &hint]);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open(&folder).unwrap().check(), 8, "what was typed is enough");
}

/// Runs a test of this program in a process without capabilities.
#[allow(clippy::disallowed_methods)] // The test is about the privileges of a process.
fn as_bound(test: &str) {
    let own = std::env::current_exe().unwrap();
    let rights = ["--bounding-set=-all", "--inh-caps=-all"];
    let output =
        std::process::Command::new("setpriv").args(rights).arg(own).args(["--exact", test]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_damaged_head_is_noted_with_its_folder_and_what_is_lost() {
    let (_state, folder) = journal();
    let path = folder.join(name(5));
    let mut bytes = fs::read(&path).unwrap();
    bytes[12] ^= 1;
    fs::write(&path, bytes).unwrap();
    let writer = open(&folder).unwrap();
    assert_eq!(writer.check(), 5);
    let notes = writer.notes.join("; ");
    let expected = format!("the head of {} in {} is damaged", name(5), folder.display());
    for part in [&expected, "checksum", "from number 5 on, the last at 20", &format!("{}.damaged", name(5))] {
        assert!(notes.contains(part), "expected {part:?}, found {notes}");
    }
}
