//! Filters that are too slow, missing, or replaced.

use crate::tail::rig::{EachLineFilter, Rig, text};
use compact_str::CompactString;
use sensor::tail::interpret::{Filters, Interpret};
use sensor::tail::path_status::PathStatus;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Creates a log whose filter was quarantined after a thousand lines.
fn slow() -> Rig {
    let mut rig = Rig::new("*");
    rig.work_micros_per_line = 1000;
    rig.append("log", "short\n".repeat(1000));
    rig.start();
    rig
}

#[test]
fn a_filter_that_is_too_slow_is_stopped_and_nothing_else_is() {
    let mut rig = slow();
    rig.append("log", "never read\nnor sent as incompl");
    rig.pass(Duration::from_secs(30));
    assert_eq!(rig.notices("quarantine").len(), 1);
    assert!(rig.file("log").status.to_string().contains("quarantine"), "{:?}", rig.file("log"));
    assert!(!rig.lines().contains(&"never read".to_owned()));
    rig.kill();
    rig.work_micros_per_line = 0;
    rig.start();
    assert_eq!(rig.lines().last().unwrap(), "never read", "the next run tries again, from where it stopped");
}

#[test]
fn a_filter_that_was_too_slow_is_tried_again_and_goes_on_where_it_stopped() {
    let mut rig = slow();
    rig.append("log", "after the rest\n");
    rig.pass(Duration::from_secs(30));
    assert!(!rig.lines().contains(&"after the rest".to_owned()));
    rig.pass(Duration::from_secs(31));
    assert_eq!(rig.lines().last().unwrap(), "after the rest");
    assert_eq!((rig.lines().len(), rig.notices("quarantine").len()), (1001, 1));
    assert_eq!(rig.file("log").status, PathStatus::Following);
}

#[test]
fn a_file_no_filter_knows_is_reported_and_not_read() {
    let mut rig = Rig::new("*");
    rig.append("unknown", "one\n");
    rig.start();
    assert!(rig.file("unknown").status.to_string().contains("no filter"));
    assert!(!rig.file("unknown").is_unhealthy(), "found by a glob: a note");
    assert_eq!(rig.events().len(), 0);

    let mut named = Rig::new("unknown");
    named.append("unknown", "one\n");
    named.start();
    assert!(named.file("unknown").is_unhealthy(), "given by its name: something is wrong");
}

#[test]
fn a_named_file_that_is_not_there_is_awaited_with_its_filter() {
    let mut rig = Rig::new("folder/log");
    rig.start();
    let file = rig.file("folder/log");
    assert!(file.status == PathStatus::Awaited && !file.is_unhealthy(), "{file:?}");
    assert_ne!(file.filter, "", "its name shows which");
    assert!(file.status.to_string().contains("as soon as it comes"), "{file:?}");

    let mut come = Rig::new("log");
    come.start();
    assert_eq!(come.file("log").status, PathStatus::Awaited);
    come.append("log", "one\n");
    come.look();
    assert_eq!(come.file("log").status, PathStatus::Following);
}

/// One filter for every log but `busy`, which has the filter of the rig.
struct Named(Option<&'static str>);

impl Named {
    fn exists(&self, filter: &str, path: &Path) -> bool {
        if path.ends_with("busy") { filter == "each-line" } else { Some(filter) == self.0 }
    }
}

impl Filters for Named {
    fn choose(&self, _: Option<&str>, path: &Path, _: &[u8]) -> Option<CompactString> {
        ["each-line", "other-line"].into_iter().find(|filter| self.exists(filter, path)).map(Into::into)
    }

    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>> {
        self.exists(filter, path).then(|| EachLineFilter::boxed().interpreter("each-line", path, cluster))?
    }
}

fn no_filter() -> Box<dyn Filters> {
    Box::new(Named(None))
}

fn other_filter() -> Box<dyn Filters> {
    Box::new(Named(Some("other-line")))
}

/// Creates a rig with two lines of `log` read, stopped.
fn stopped() -> Rig {
    let mut rig = Rig::new("*");
    rig.config.journal.segment_len_bytes = 5000;
    rig.append("log", "one\ntwo\n");
    rig.start();
    rig.stop();
    rig
}

/// Has the journal start new segments.
fn fill(rig: &mut Rig) {
    let segments = |rig: &Rig| std::fs::read_dir(rig.state().join("journal")).unwrap().count();
    let before = segments(rig);
    for _ in 0..3 {
        rig.append("busy", "x\n".repeat(100));
        rig.look();
    }
    assert!(segments(rig) >= before + 2);
}

#[test]
fn what_a_filter_remembers_outlives_its_absence() {
    let mut rig = stopped();
    rig.filters = Some(no_filter);
    rig.start();
    assert!(rig.file("log").status.to_string().contains("there is no filter each-line any more"));
    fill(&mut rig);
    rig.kill();
    rig.filters = None;
    rig.append("log", "three\n");
    rig.start();
    assert!(rig.lines().contains(&"three".to_owned()), "with the number of lines before it");
}

/// Returns the lines of `log` since the filter was replaced, each with the number of lines before it.
fn numbered(rig: &Rig) -> Vec<String> {
    let events = rig.events();
    let of_log = events.iter().filter(|event| event.source.file.ends_with("/log"));
    let lines = of_log.filter(|event| !text(event, "line").is_empty());
    lines.skip(2).map(|event| format!("{} {}", text(event, "n"), text(event, "line"))).collect()
}

#[test]
fn a_filter_that_replaces_another_keeps_what_it_remembers_itself() {
    for is_filled in [false, true] {
        let mut rig = stopped();
        rig.filters = Some(other_filter);
        rig.start();
        let mut late = rig.open("log");
        rig.rename("log", "log.1");
        rig.append("log", "three\n");
        rig.look();
        late.write_all(b"four, late\n").unwrap();
        rig.look();
        if is_filled {
            fill(&mut rig);
        }
        rig.kill();
        rig.append("log", "five\n");
        rig.start();
        assert_eq!(numbered(&rig), ["0 three", "1 four, late", "2 five"], "{is_filled}");
    }
}
