//! Places: what was stored is there whole, damage is found, mistakes are named.

use crate::made::{DATE, call, file, minute};
use history_files::calls;
use history_files::day::{Day, DayFile};
use history_files::destination::Destination;
use history_files::table::Table;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use wire::event::Outcome;

fn open(folder: &Path) -> Destination {
    Destination::open(&folder.display().to_string(), true).expect("a folder")
}

fn put(destination: &Destination) -> DayFile {
    destination.put(file(Table::Calls, &calls::rows(&[call(7, Outcome::Failed)]))).expect("room")
}

fn days(destination: &Destination) -> (Vec<Day>, Vec<history_files::Error>) {
    destination.days(&destination.dates().expect("readable"))
}

fn error<T>(result: Result<T, history_files::Error>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_day_is_there_once_its_record_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let destination = open(&folder.path().join("new/place"));
    let mut day = Day::new("physics.example", DATE, minute(0));
    assert_eq!(destination.day(&day.domain, DATE).expect("readable"), None);
    day.files.push(put(&destination));
    let stored = folder.path().join("new/place/calls/domain=physics.example/date=2026-11-26/calls.parquet");
    assert_eq!(fs::metadata(&stored).expect("stored").len(), day.files[0].len_bytes);
    assert_eq!(days(&destination).0, []);
    destination.record(&day).expect("room");
    assert_eq!(destination.day(&day.domain, DATE).expect("readable").as_ref(), Some(&day));
    assert_eq!(days(&destination).0, [day.clone()]);
    // The same again replaces it.
    assert_eq!(put(&destination), day.files[0]);
    destination.record(&Day { unfinished: true, ..day.clone() }).expect("room");
    assert!(days(&destination).0[0].unfinished);
}

#[test]
fn damage_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let destination = open(folder.path());
    let entry = put(&destination);
    destination.verify(&entry).expect("as it was written");
    let path = folder.path().join(&entry.path);
    let whole = fs::read(&path).expect("stored");
    for wrong in
        [[&whole[..whole.len() / 2], b"x", &whole[whole.len() / 2 + 1..]].concat(), whole[1..].to_vec()]
    {
        fs::write(&path, wrong).expect("room");
        let found = error(destination.verify(&entry));
        assert!(found.contains(&format!("expected {}", entry.sha256)), "{found}");
    }
    fs::remove_file(&path).expect("there");
    assert!(error(destination.verify(&entry)).contains("calls.parquet: "));
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let destination = open(folder.path());
    let day = Day::new("physics.example", DATE, minute(0));
    destination.record(&day).expect("room");
    let later = Day::new("other.example", DATE, minute(0));
    destination.record(&Day { version: 9, ..later }).expect("room");
    let (days, problems) = days(&destination);
    assert_eq!(days, [day]);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(
        problem.contains("domain=other.example/date=2026-11-26.json: a record of version 9"),
        "{problem}"
    );
    assert!(error(destination.day("other.example", DATE)).contains("delete the file"));
}

#[test]
fn a_place_that_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing").display().to_string();
    assert!(error(Destination::open(&missing, false)).contains("No such file or directory"));
    let plain = folder.path().join("plain");
    fs::write(&plain, "").expect("room");
    assert!(error(Destination::open(&plain.display().to_string(), true)).contains("found \"a file, "));
    for wrong in
        ["", "s3://", "s3:///prefix", "s3://a b/c", "gs://bucket", "s3:/bucket", "https://example.org/x"]
    {
        let found = error(Destination::open(wrong, true));
        assert!(found.starts_with("expected a folder, or s3://BUCKET/PREFIX, found"), "{wrong}: {found}");
    }
}

fn refused(folder: &Path) -> String {
    error(open(folder).put(file(Table::Calls, &calls::rows(&[call(7, Outcome::Failed)]))))
}

#[test]
fn what_others_could_lead_elsewhere_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("an owner");
    mode(folder.path(), 0o1777);
    assert!(refused(folder.path()).contains("every user may write to it"));
    let below = folder.path().join("below");
    assert_eq!(refused(&below), "", "others cannot rename what is in a sticky folder");
    mode(folder.path(), 0o777);
    assert!(refused(&below).contains("every user may write to it"), "nor what is above it");
    mode(folder.path(), 0o755);
    assert_eq!(refused(&below), "");
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("room");
    let table = below.join("calls");
    fs::rename(&table, folder.path().join("before")).expect("there");
    std::os::unix::fs::symlink(&elsewhere, &table).expect("room");
    assert!(refused(&below).contains("it is no folder, but a link"));
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}

#[test]
fn root_does_not_write_where_another_user_is_the_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("below");
    fs::create_dir(&below).expect("room");
    let give = |user, group| std::os::unix::fs::chown(folder.path(), Some(user), Some(group));
    if give(65_534, 0).is_err() {
        // Root without the right to, as where the tests are run without capabilities.
        return;
    }
    for place in [folder.path(), &below] {
        assert!(refused(place).contains("it belongs to uid 65534"));
    }
    give(0, 65_534).expect("root");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o775)).expect("root");
    assert!(refused(&below).contains("group 65534 may write to it"));
    give(0, 0).expect("root");
    assert_eq!(refused(&below), "");
}
