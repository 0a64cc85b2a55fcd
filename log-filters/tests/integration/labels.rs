//! Events labelled by hand in the collection of real logs: all are found, and no others.
//!
//! Rule: every label counts, and the filter is chosen by the file's name and first lines as the program does.
//! Values are compared as printed; the few documented equivalences are in `same`. All differences are
//! reported together.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{HOST_OF_LOG, Read};
use log_filters::found::Found;
use log_filters::test_lines::shown;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use wire::event::{Kind, Outcome, Value};
use wire::time::Time;

/// Keys of a label that describe the label, not the event.
const ABOUT: &[&str] = &[
    "file",
    "line",
    "last_line",
    "event",
    "time",
    "clock",
    "derived",
    "note",
    "also_accept",
    "also_outcome",
    "sha256_16",
    "begins",
];

struct Label {
    place: String,
    log: PathBuf,
    lines: std::ops::RangeInclusive<usize>,
    json: Json,
}

impl Label {
    fn text(&self, key: &str) -> Option<&str> {
        self.json.get(key).and_then(Json::as_str)
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        self.json.get(key).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        let mut kinds = vec![self.text("event").expect("every label has an event")];
        kinds.extend(self.texts("also_accept"));
        kinds
    }
}

#[test]
fn every_label_is_met() {
    let registry = collection::registry();
    let labels = all_labels();
    let mut logs: BTreeMap<PathBuf, Option<Read>> = BTreeMap::new();
    let mut problems = Vec::new();
    for label in &labels {
        let log = logs.entry(label.log.clone()).or_insert_with(|| collection::read(registry, &label.log));
        match log {
            None => problems.push(format!("{}: no filter claims {}", label.place, label.log.display())),
            Some(log) => problems.extend(check(label, log)),
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {} labels are not met:\n{}",
        problems.len(),
        labels.len(),
        problems.join("\n")
    );
}

/// All labels; their number is checked against the collection's own counts.
fn all_labels() -> Vec<Label> {
    let root = collection::folder();
    let counts = counts(&root);
    assert!(counts.len() >= 11, "README.md of the collection lists only {} folders", counts.len());
    let mut labels = Vec::new();
    for (folder, count) in counts {
        let before = labels.len();
        read_labels(&root.join(&folder), &mut labels);
        let read = labels.len() - before;
        assert_eq!(read, count, "{folder}: labels read, and labels that README.md of the collection lists");
        let descriptor = root.join(&folder).join("descriptor.json");
        if let Ok(text) = fs::read_to_string(&descriptor) {
            let descriptor: Json = serde_json::from_str(&text).expect("descriptor.json is JSON");
            if let Some(labelled) = descriptor.get("labelled").and_then(Json::as_u64) {
                assert_eq!(read as u64, labelled, "{folder}: labels read, and `labelled` of descriptor.json");
            }
        }
    }
    let everywhere = label_files(&root).len();
    let listed: std::collections::BTreeSet<_> = labels.iter().map(|label| folder_of(&label.place)).collect();
    assert_eq!(everywhere, listed.len(), "files of labels, and folders in README.md of the collection");
    labels
}

fn folder_of(place: &str) -> String {
    place.rsplit_once("expected.jsonl").map_or(String::new(), |(folder, _)| folder.to_owned())
}

/// Folder and number of labels of each row of the collection's table.
fn counts(root: &Path) -> Vec<(String, usize)> {
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md of the collection");
    readme
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let folder = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            Some((folder.to_owned(), cells.get(5)?.parse().ok()?))
        })
        .collect()
}

fn label_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(label_files(&path));
        } else if path.file_name().is_some_and(|name| name == "expected.jsonl") {
            files.push(path);
        }
    }
    files
}

fn read_labels(folder: &Path, into: &mut Vec<Label>) {
    let path = folder.join("expected.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (number, line) in text.lines().enumerate() {
        let json: Json = serde_json::from_str(line).expect("a label is JSON");
        let at = |key: &str| json.get(key).and_then(Json::as_u64).map(|line| usize::try_from(line).unwrap());
        let first = at("line").expect("a label has a line");
        let file = json.get("file").and_then(Json::as_str).expect("a label has a file");
        into.push(Label {
            place: format!("{}:{}", path.display(), number + 1),
            log: folder.join(file),
            lines: first..=at("last_line").unwrap_or(first),
            json,
        });
    }
}

/// Description of the mismatch of a label, if any.
fn check(label: &Label, log: &Read) -> Option<String> {
    let here: Vec<&Found> = log.found.iter().filter(|found| label.lines.contains(&log.line(found))).collect();
    let kinds = label.kinds();
    let complain = |what: &str| {
        let events: Vec<String> = here.iter().map(|found| shown(found, log.line(found))).collect();
        let (first, last) = (label.lines.start(), label.lines.end());
        Some(format!(
            "{} ({}:{first}-{last}, filter {}): {what}; label {}; found {events:#?}",
            label.place,
            label.log.file_name().unwrap().to_string_lossy(),
            log.filter,
            label.json
        ))
    };
    if here.is_empty() {
        let fine = kinds.contains(&"none") || within_list(label, log);
        return if fine { None } else { complain("no event") };
    }
    if kinds == ["none"] {
        return complain("events where there are none");
    }
    let mut nearest: Option<Vec<String>> = None;
    for found in here.iter().filter(|found| kinds.contains(&found.content.kind.as_str())) {
        let differences = differences(label, found);
        if nearest.as_ref().is_none_or(|known| differences.len() < known.len()) {
            nearest = Some(differences);
        }
    }
    match nearest {
        None => complain("no event of this kind"),
        Some(differences) if differences.is_empty() => None,
        Some(differences) => complain(&differences.join(", ")),
    }
}

/// Whether a labelled choice is only the first of a list of servers: its event is part of the list's record,
/// and the call has the client.
fn within_list(label: &Label, log: &Read) -> bool {
    if !label.text("note").is_some_and(|note| note.contains("accept it inside the server_list event")) {
        return false;
    }
    let before = |found: &&Found| log.line(found) <= *label.lines.start();
    let chosen = log.found.iter().filter(before).rfind(|found| found.content.kind == Kind::JobSelect);
    let host = chosen.and_then(|found| found.content.attribute("host")).and_then(Value::as_text);
    let calls = collection::join([log]);
    let call = calls.iter().find(|call| Some(call.name.as_str()) == label.text("name"));
    host == label.text("host")
        && call.is_some_and(|call| {
            Some(call.user.as_str()) == label.text("user") && Some(call.from.as_str()) == label.text("client")
        })
}

fn differences(label: &Label, found: &Found) -> Vec<String> {
    let content = &found.content;
    let mut differences = Vec::new();
    if let Some(time) = label.text("time")
        && !same_time(time, content.time)
    {
        differences.push(format!("time is {}, labelled {time}", printed(content.time)));
    }
    for (key, want) in label.json.as_object().expect("a label is an object") {
        if ABOUT.contains(&key.as_str()) {
            continue;
        }
        let has = match key.as_str() {
            "job" => Some(Value::Text(content.job.clone())),
            "user" => Some(Value::Text(content.user.clone())),
            "outcome" => content.outcome.map(|outcome| Value::Text(outcome.as_str().into())),
            attribute => content.attribute(attribute).cloned(),
        };
        if key == "outcome" && accepted_outcome(label, content.outcome, content.kind) {
            continue;
        }
        if !same(label, key, want, has.as_ref()) {
            differences.push(format!("{key} is {has:?}, labelled {want}"));
        }
    }
    differences
}

/// Whether another outcome, or none for another kind, is equivalent.
fn accepted_outcome(label: &Label, has: Option<Outcome>, kind: Kind) -> bool {
    match has {
        Some(outcome) => label.texts("also_outcome").contains(&outcome.as_str()),
        None => label.text("event") != Some(kind.as_str()),
    }
}

/// Whether a labelled value equals the one found: exactly, or by one of these documented equivalences.
fn same(label: &Label, key: &str, want: &Json, has: Option<&Value>) -> bool {
    let derived = label.texts("derived").contains(&key);
    match (want, has) {
        // The log does not name its own host; the label has it from another source.
        (Json::String(_), Some(Value::Text(has))) if key == "host" && derived && has == HOST_OF_LOG => true,
        // The same user with and without the account's domain.
        (Json::String(want), Some(Value::Text(has))) if key == "user" => {
            want == has || want.split_once('@').is_some_and(|(name, _)| name == has)
        }
        (Json::String(want), Some(Value::Text(has))) => want == has,
        (Json::Bool(want), Some(Value::Text(has))) => *has == want.to_string(),
        (Json::Array(want), Some(Value::List(has))) => {
            want.len() == has.len() && want.iter().zip(has).all(|(want, has)| want.as_str() == Some(has))
        }
        // A list with one element.
        (Json::String(want), Some(Value::List(has))) => has.len() == 1 && has[0] == want,
        _ => false,
    }
}

/// Whether a time equals the labelled one. Some labels have no year, or only a day.
fn same_time(want: &str, has: Time) -> bool {
    if let Some(secs) = want.strip_prefix("epoch:") {
        return printed_parts(secs).is_some_and(|micros| micros == has.micros());
    }
    if let Some(micros) = want.strip_prefix("epoch_us:") {
        return micros.parse() == Ok(has.micros());
    }
    let has_text = printed(has);
    if let Some(without_year) = want.strip_prefix("--") {
        return has_text[5..].starts_with(without_year);
    }
    if let Some((day, _)) = want.split_once(" (") {
        return has_text.starts_with(day);
    }
    let want = want.trim_end_matches('Z');
    want.parse::<jiff::civil::DateTime>().is_ok() && collection::moment(want) == has
}

/// Parse seconds with or without a fraction to microseconds.
fn printed_parts(secs: &str) -> Option<i64> {
    let (whole, fraction) = secs.split_once('.').unwrap_or((secs, ""));
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some(whole.parse::<i64>().ok()? * 1_000_000 + fraction)
}

fn printed(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros())
        .map_or_else(|error| error.to_string(), |stamp| stamp.to_string())
}
