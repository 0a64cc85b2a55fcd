//! Retention: when segments change, which are deleted, and what readers notice.

use crate::journal::log::{LINE_LEN_BYTES, Writer, stored};
use crate::simulated::Simulated;
use sensor::journal::Config;

/// Reads lines in small batches, and changes segments when it is time.
fn read(writer: &mut Writer, lines: u64) {
    for _ in 0..lines {
        writer.read(1).unwrap();
        if writer.journal.wants_new_segment() {
            writer.journal.begin_segment(&writer.mind.clone()).unwrap();
        }
    }
}

fn small(budget_bytes: u64) -> Config {
    Config { segment_len_bytes: 4000, budget_bytes }
}

#[test]
fn events_are_read_across_segments_from_any_cursor_and_after_a_restart() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(u64::MAX));
    read(&mut writer, 300);
    assert!(disk.names().len() > 5);
    for restart in [false, true] {
        if restart {
            writer = Writer::open(&disk, small(u64::MAX));
        }
        writer.check();
        let reader = writer.journal.reader();
        for cursor in (0..300).step_by(7) {
            let page = reader.read(cursor, 10, |_| true).unwrap();
            let lines: Vec<_> = page.events.iter().map(|event| event.id.offset / LINE_LEN_BYTES).collect();
            assert_eq!(lines, (cursor..(cursor + 10).min(300)).collect::<Vec<_>>());
            assert_eq!((page.cursor, page.missed), ((cursor + 10).min(300), 0));
            assert_eq!(
                (page.events[0].source.file.as_str(), page.events[0].source.filter.as_str()),
                ("/log", "filter")
            );
        }
    }
}

#[test]
fn a_selective_reader_gets_its_cursor_past_what_it_did_not_want() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(u64::MAX));
    read(&mut writer, 100);
    let reader = writer.journal.reader();
    let page = reader.read(0, 3, |event| event.id.offset % 1000 == 0).unwrap();
    assert_eq!((page.events.len(), page.cursor), (3, 21));
    let page = reader.read(page.cursor, 100, |event| event.id.offset % 1000 == 0).unwrap();
    assert_eq!((page.events.len(), page.cursor), (7, 100));
    assert_eq!(
        reader.read(5000, 1, |_| true).unwrap().cursor,
        100,
        "a cursor from an undone future comes back"
    );
}

#[test]
fn the_oldest_are_deleted_beyond_the_budget_and_counted_as_missed() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(15_000));
    read(&mut writer, 500);
    let used: usize = disk.names().iter().map(|name| disk.content(name).len()).sum();
    assert!(used <= 15_000 + 4_500, "{used}");
    let reader = writer.journal.reader();
    let oldest = reader.oldest();
    assert!(oldest > 100);
    let page = reader.read(40, usize::MAX, |_| true).unwrap();
    assert_eq!((page.missed, page.events[0].id.offset), (oldest - 40, oldest * LINE_LEN_BYTES));
    assert_eq!(page.events.len() as u64, 500 - oldest);
    assert_eq!(writer.journal.state().head.lost, 0, "without a receiver there is no loss");
}

#[test]
fn what_the_receiver_did_not_get_is_counted_exactly_when_it_is_deleted() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(15_000));
    read(&mut writer, 30);
    writer.journal.acknowledge(stored(25)).unwrap();
    writer.journal.acknowledge(stored(20)).unwrap();
    read(&mut writer, 470);
    let truth = writer.journal.reader().oldest() - 25;
    assert_eq!(writer.journal.state().head.lost, truth);
    drop(writer);
    let writer = Writer::open(&disk, small(15_000));
    assert_eq!(
        (writer.journal.state().head.lost, writer.journal.state().head.acknowledged),
        (truth, Some(25))
    );
}

#[test]
fn a_segment_without_events_is_replaced_and_not_doubled() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(u64::MAX));
    read(&mut writer, 5);
    writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    for _ in 0..3 {
        writer.read(0).unwrap();
        writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    }
    assert_eq!(disk.names().len(), 2);
    read(&mut writer, 5);
    writer.check();
    drop(writer);
    assert_eq!(Writer::open(&disk, small(u64::MAX)).check(), 10);
}

#[test]
fn a_new_segment_that_finds_no_room_leaves_the_old_one_at_work() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(u64::MAX));
    read(&mut writer, 10);
    let used: usize = disk.names().iter().map(|name| disk.content(name).len()).sum();
    disk.set_capacity(Some(used + 20));
    assert!(writer.journal.begin_segment(&writer.mind.clone()).is_err());
    disk.set_capacity(None);
    read(&mut writer, 10);
    writer.check();
    drop(writer);
    assert_eq!(Writer::open(&disk, small(u64::MAX)).check(), 20);
}

#[test]
fn damage_in_an_old_segment_is_counted_and_read_past() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, small(u64::MAX));
    read(&mut writer, 300);
    drop(writer);
    let old = disk.names()[1].clone();
    let mut content = disk.content(&old);
    let middle = content.len() / 2;
    content[middle] ^= 1;
    disk.set_content(&old, content);
    let writer = Writer::open(&disk, small(u64::MAX));
    let page = writer.journal.reader().read(0, usize::MAX, |_| true).unwrap();
    assert!(page.missed > 0 && page.missed < 100);
    assert_eq!((page.events.len() as u64 + page.missed, page.cursor), (300, 300));
}

/// Memories so long that a start reads mostly the head.
struct Long;

impl sensor::journal::writer::Memories for Long {
    fn calls(&self) -> Vec<u8> {
        vec![1; 3 << 20]
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<log_filters::found::Change>)> {
        Vec::new()
    }
}

#[test]
fn a_long_head_is_no_reason_for_another() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    writer.journal.begin_segment(&Long).unwrap();
    for restart in [false, true] {
        if restart {
            drop(writer);
            writer = Writer::open(&disk, Config::default());
        }
        assert!(!writer.journal.is_long_to_replay(), "after a restart: {restart}");
    }
    while !writer.journal.is_long_to_replay() {
        writer.read(1000).unwrap();
        assert!(writer.next_line() < 1_000_000, "events are no reason either");
    }
}
