//! Many readers of the same events: a batch decoded for one serves the next, and is always what the disk has.

use crate::journal::log::{LINE_LEN_BYTES, Writer};
use crate::simulated::{Random, Simulated};
use sensor::journal::Config;
use sensor::journal::reader::Reader;

fn lines(reader: &Reader, cursor: u64, limit: usize) -> Vec<u64> {
    let page = reader.read(cursor, limit, |_| true).unwrap();
    page.events.iter().map(|event| event.id.offset / LINE_LEN_BYTES).collect()
}

#[test]
fn a_page_that_was_read_is_not_read_from_the_disk_again() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    for batch in [700, 1, 1, 1, 300, 1, 1] {
        writer.read(batch).unwrap();
    }
    let reader = writer.journal.reader();
    let page = || lines(&reader, 500, 505);
    assert_eq!(page(), (500..1005).collect::<Vec<_>>());
    let before = disk.reads();
    assert_eq!(page(), (500..1005).collect::<Vec<_>>());
    assert_eq!(disk.reads(), before, "it was decoded before");
    // Only the added batch is read.
    writer.read(5).unwrap();
    assert_eq!(lines(&reader, 600, 1000), (600..1010).collect::<Vec<_>>());
    assert_eq!(disk.reads(), before + 1);
}

#[test]
fn any_page_at_any_time_is_what_the_journal_holds() {
    for seed in 0..10 {
        let (disk, mut random) = (Simulated::default(), Random::new(seed));
        let config = Config { segment_len_bytes: 20_000, budget_bytes: u64::MAX };
        let mut writer = Writer::open(&disk, config);
        let mut reader = writer.journal.reader();
        for _ in 0..120 {
            match random.below(10) {
                0..3 => {
                    let count = if random.one_in(40) { 3000 } else { 1 + random.below(30) };
                    writer.read(count).unwrap();
                }
                // This also makes segments without events, which their successors replace.
                3 => writer.journal.begin_segment(&writer.mind.clone()).unwrap(),
                4 if random.one_in(5) => {
                    writer.journal.sync().unwrap();
                    drop(writer);
                    writer = Writer::open(&disk, config);
                    reader = writer.journal.reader();
                }
                _ => {
                    let held = writer.next_line();
                    let (cursor, limit) = (random.below(held + 2), random.below(300));
                    let end = (cursor + limit).min(held);
                    let expected: Vec<_> = (cursor.min(end)..end).collect();
                    assert_eq!(
                        lines(&reader, cursor, usize::try_from(limit).unwrap()),
                        expected,
                        "seed {seed}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_reading_of_which_little_is_wanted_ends_and_goes_on() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    for _ in 0..100 {
        writer.read(10).unwrap();
    }
    let reader = writer.journal.reader();
    let (mut cursor, mut found, mut readings) = (0, Vec::new(), 0);
    while cursor < 1000 {
        let page = reader
            .read_some(cursor, 50, 200, |event| (event.id.offset % 30_000 == 0).then(|| event.clone()))
            .unwrap();
        assert!(page.cursor > cursor && page.cursor <= cursor + 210, "from {cursor} to {}", page.cursor);
        cursor = page.cursor;
        found.extend(page.events.iter().map(|event| event.id.offset / LINE_LEN_BYTES));
        readings += 1;
    }
    assert_eq!((found, readings), (vec![0, 300, 600, 900], 5));
}
