//! The tail as it runs in a sensor: in its own thread, notified of changes by the kernel.

use crate::tail::rig::{EachLineFilter, Rig, text};
use sensor::tail::handle::Handle;
use sensor::tail::{Config, Spec};
use std::io::Write;
use std::time::Duration;
use wire::report::{Mark, StoreKey};

#[tokio::test]
async fn a_line_is_an_event_within_a_moment_and_is_there_after_a_stop() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let state = directory.path().join("state");
    // The next rescan comes after an hour: only a notification is fast enough.
    let mut config = Config::new("host", vec![Spec::new(path.to_str().unwrap())]);
    config.rescan = Duration::from_secs(3600);
    let start = || {
        let filters = EachLineFilter::boxed();
        Handle::start(config.clone(), &state, filters, EachLineFilter::join()).unwrap()
    };
    let handle = start();
    let mut next = handle.subscribe();
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    for round in 1..=20 {
        writeln!(log, "line {round}").unwrap();
        let heard = next.wait_for(|next| *next == round);
        tokio::time::timeout(Duration::from_secs(30), heard).await.expect("no event came").unwrap();
    }
    let mark = Mark { store: StoreKey(1), at: 9, next: 5 };
    handle.acknowledge(mark);
    assert!(handle.is_running());
    assert_eq!(handle.files()[0].path, path);
    handle.stop();
    writeln!(log, "line 21").unwrap();
    let handle = start();
    let mut next = handle.subscribe();
    let heard = next.wait_for(|next| *next == 21);
    tokio::time::timeout(Duration::from_secs(30), heard).await.expect("no event came").unwrap();
    let page = handle.reader().read(0, 100, |_| true).unwrap();
    let lines: Vec<_> = page.events.iter().map(|event| text(event, "line")).collect();
    assert_eq!(lines, (1..=21).map(|n| format!("line {n}")).collect::<Vec<_>>());
    assert_eq!(handle.status().acknowledged, Some(5));
    assert_eq!(handle.marks().iter().collect::<Vec<_>>(), [mark], "for the next representative");
}

#[test]
fn an_orderly_end_leaves_little_to_replay_and_a_crash_no_more_than_a_segment() {
    let mut rig = Rig::new("log");
    rig.append("log", ("a line that is sent as it is ".repeat(10) + "\n").repeat(8000));
    rig.start();
    rig.kill();
    let segments = || std::fs::read_dir(rig.state().join("journal")).unwrap().count();
    assert_eq!(segments(), 1, "nothing was done at the crash");
    rig.start();
    assert_eq!(rig.events().len(), 8000);
    rig.stop();
    let segments = || std::fs::read_dir(rig.state().join("journal")).unwrap().count();
    assert_eq!(segments(), 2, "the end begins a segment with nothing but its head");
    rig.start();
    rig.append("log", "one more\n");
    rig.look();
    rig.stop();
    assert_eq!(std::fs::read_dir(rig.state().join("journal")).unwrap().count(), 2, "once is enough");
    rig.start();
    assert_eq!(rig.lines().len(), 8001);
}
