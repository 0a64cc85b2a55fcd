//! The first start and a second one: where reading starts, and which sensor owns the state.

use crate::tail::rig::Rig;

#[test]
fn where_to_begin_with_a_file_that_is_there_at_the_first_start() {
    use sensor::tail::{FirstStart, Start};
    let cases = [
        (Start::Beginning, FirstStart::End, &["old", "new"][..]),
        (Start::End, FirstStart::Beginning, &["new"]),
        (Start::Checkpoint, FirstStart::Beginning, &["old", "new"]),
        (Start::Checkpoint, FirstStart::End, &["new"]),
    ];
    for (start, first_start, expected) in cases {
        let mut rig = Rig::new("log");
        (rig.config.files[0].start, rig.config.first_start) = (start, first_start);
        rig.append("log", "old\npart");
        rig.start();
        rig.kill();
        rig.append("log", "ial\nnew\n");
        rig.start();
        let lines: Vec<_> = rig.lines().into_iter().filter(|line| line != "partial").collect();
        assert_eq!(lines, expected, "{start:?} {first_start:?}");
        rig.kill();
        rig.start();
        assert_eq!(rig.lines().len(), rig.events().len(), "a second start goes on from the checkpoint");
    }
}

#[test]
fn a_second_start_says_who_holds_the_state() {
    let rig = Rig::started();
    let refused = crate::tail::rig::second_start(&rig).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
}

#[test]
fn the_state_is_for_the_owner_only() {
    use std::os::unix::fs::MetadataExt;
    let rig = Rig::started();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&rig.state()), 0o700);
    assert_eq!(mode(&rig.state().join("journal")), 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(rig.state().join("journal")).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
        files += 1;
    }
    assert_eq!(files, 1);
}
