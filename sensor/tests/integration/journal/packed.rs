//! Compression of closed segments: nothing is lost, whatever happens, and every reader reads on.

use crate::journal::dying::Dying;
use crate::journal::log::{LINE_LEN_BYTES, Writer};
use crate::simulated::{Random, Simulated};
use sensor::journal::Config;
use sensor::journal::frame::Body;
use sensor::journal::packer::Step;
use sensor::journal::packing::Packing;
use sensor::journal::reader::Choose;
use sensor::report::outbox::Outbox;
use sensor::segments::chain;
use sensor::segments::packed::directory::MAGIC;
use sensor::segments::packed::summary::Summary;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::event::Fields;
use wire::text_regex::TextRegex;
use wire::time::Time;
use wire::version::Trailing;

const CONFIG: Config = Config { segment_len_bytes: 40_000, budget_bytes: u64::MAX };

/// Reads lines in small batches, and starts segments when it is time.
fn read(writer: &mut Writer, lines: u64) {
    for _ in 0..lines.div_ceil(5) {
        writer.read(5).unwrap();
        if writer.journal.wants_new_segment() {
            writer.journal.begin_segment(&writer.mind.clone()).unwrap();
        }
    }
}

fn pack(writer: &Writer) {
    let mut packer = writer.journal.packer();
    while packer.step(&|| true).unwrap() == Step::Done {}
}

fn packed(disk: &Simulated) -> Vec<String> {
    disk.names().into_iter().filter(|name| disk.content(name).starts_with(&MAGIC)).collect()
}

fn used(disk: &Simulated) -> usize {
    disk.names().iter().map(|name| disk.content(name).len()).sum()
}

#[test]
fn compressed_old_and_open_segments_are_read_as_one_journal() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, CONFIG);
    read(&mut writer, 2000);
    let events = writer.events();
    let before = used(&disk);
    let mut packer = writer.journal.packer();
    let mut steps = 0;
    loop {
        assert_eq!(writer.events(), events, "after {steps} steps");
        for cursor in (0..2000).step_by(77) {
            let page = writer.journal.reader().read(cursor, 10, |_| true).unwrap();
            let lines: Vec<_> = page.events.iter().map(|event| event.id.offset / LINE_LEN_BYTES).collect();
            assert_eq!(lines, (cursor..(cursor + 10).min(2000)).collect::<Vec<_>>());
            assert_eq!((page.cursor, page.missed), ((cursor + 10).min(2000), 0));
        }
        if packer.step(&|| true).unwrap() == Step::Idle {
            break;
        }
        steps += 1;
        assert_eq!(packed(&disk).len(), steps);
    }
    assert_eq!(steps + 1, disk.names().len(), "all but the open one");
    assert!(used(&disk) * 5 < before * 2, "{} of {before} bytes", used(&disk));
    drop(writer);
    let mut writer = Writer::open(&disk, CONFIG);
    assert_eq!(writer.events(), events);
    read(&mut writer, 500);
    writer.check();
}

#[test]
fn a_kill_or_a_loss_of_power_in_any_phase_loses_nothing() {
    for power in [false, true] {
        let mut deaths = 0;
        for after in 0.. {
            let (disk, mut random) = (Simulated::default(), Random::new(after));
            let dying = Dying::new(disk.clone());
            let mut writer = Writer::on(Arc::new(dying.clone()), CONFIG).unwrap();
            read(&mut writer, 1600);
            writer.journal.sync().unwrap();
            let closed = disk.names().len() - 1;
            assert!(closed > 1);
            dying.die_after(after);
            let mut packer = writer.journal.packer();
            while matches!(packer.step(&|| true), Ok(Step::Done)) {}
            let is_dead = dying.is_dead();
            drop((writer, packer));
            if power {
                disk.lose_power(&mut random);
            }
            let writer = Writer::open(&disk, CONFIG);
            assert_eq!(writer.check(), 1600, "after {after} operations");
            assert!(disk.names().iter().all(|name| !name.ends_with(".new")), "{:?}", disk.names());
            pack(&writer);
            assert_eq!((packed(&disk).len(), writer.check()), (closed, 1600));
            if !is_dead {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 10, "{deaths}");
    }
}

#[test]
fn a_damaged_block_or_directory_is_counted_and_the_rest_is_read() {
    let disk = Simulated::default();
    let config = Config { segment_len_bytes: 600_000, ..CONFIG };
    let mut writer = Writer::open(&disk, config);
    read(&mut writer, 8000);
    pack(&writer);
    drop(writer);
    let names = packed(&disk);
    let whole = disk.content(&names[0]);
    let mut lost = BTreeSet::new();
    for at in (0..whole.len()).step_by(whole.len() / 30) {
        let mut content = whole.clone();
        content[at] ^= 0x55;
        disk.set_content(&names[0], content);
        let writer = Writer::open(&disk, config);
        let page = writer.journal.reader().read(0, usize::MAX, |_| true).unwrap();
        assert_eq!((page.events.len() as u64 + page.missed, page.cursor), (8000, 8000), "byte {at}");
        let mut last = None;
        for event in &page.events {
            assert!(last < Some(event.id.offset), "byte {at}");
            last = Some(event.id.offset);
        }
        lost.insert(page.missed);
        let mut outbox = Outbox::new(Arc::new(disk.clone()), writer.journal.reader());
        let (mut from, mut sent) = (0, 0);
        while let Some(events) = outbox.read(from, usize::MAX).unwrap() {
            sent += events.len();
            from = events.first + events.len();
        }
        assert_eq!(sent, page.events.len() as u64, "byte {at}");
    }
    assert!(lost.contains(&0), "a damaged directory costs nothing: {lost:?}");
    assert!(lost.len() > 2 && lost.iter().all(|lost| *lost < 2500), "a block at most: {lost:?}");
}

#[test]
fn a_full_disk_postpones_compression_and_nothing_else() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, CONFIG);
    read(&mut writer, 1000);
    let names = disk.names();
    disk.set_capacity(Some(used(&disk) + 600));
    let mut packer = writer.journal.packer();
    for _ in 0..3 {
        packer.step(&|| true).unwrap_err();
        assert_eq!(disk.names(), names);
    }
    writer.read(1).unwrap();
    writer.check();
    disk.set_capacity(None);
    pack(&writer);
    assert_eq!(packed(&disk).len(), names.len() - 1);
    writer.check();
}

#[test]
fn an_interrupted_compression_is_started_again() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config { segment_len_bytes: 600_000, ..CONFIG });
    read(&mut writer, 8000);
    let names = disk.names();
    let mut packer = writer.journal.packer();
    assert_eq!(packer.step(&|| false).unwrap(), Step::Done);
    assert_eq!((disk.names(), packed(&disk).len()), (names, 0));
    pack(&writer);
    assert!(!packed(&disk).is_empty());
    writer.check();
}

#[test]
fn the_budget_counts_compressed_bytes_and_a_deleted_segment_does_not_come_back() {
    let disk = Simulated::default();
    let config = Config { segment_len_bytes: 600_000, budget_bytes: 900_000 };
    let mut writer = Writer::open(&disk, config);
    for _ in 0..10 {
        read(&mut writer, 4000);
        pack(&writer);
    }
    assert_eq!(writer.check(), 40_000, "uncompressed, they would be beyond the budget");
    drop(writer);
    let config = Config { budget_bytes: 1, ..config };
    let mut writer = Writer::open(&disk, config);
    read(&mut writer, 3000);
    // The segment that is compressed is closed now; the next one deletes it in the middle of the work.
    writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    let mut packer = writer.journal.packer();
    let writer = RefCell::new(writer);
    let deleting = || {
        let mut writer = writer.borrow_mut();
        writer.read(5).unwrap();
        let mind = writer.mind.clone();
        writer.journal.begin_segment(&mind).unwrap();
        true
    };
    packer.step(&deleting).unwrap();
    let reader = writer.borrow().journal.reader();
    // The open one, and the one before it.
    assert_eq!(disk.names().len(), 2, "{:?}", disk.names());
    assert!(disk.names()[0].contains(&reader.oldest().to_string()));
}

#[test]
fn a_reader_that_chooses_blocks_reads_only_those() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config { segment_len_bytes: 600_000, ..CONFIG });
    read(&mut writer, 20_000);
    pack(&writer);
    let reader = writer.journal.reader();
    let at = |line: i64| Some(Time::from_micros(line));
    let is_wanted = |event: &wire::event::Event| (9000..9100).contains(&event.content.time.micros());
    let expected = reader.read(0, usize::MAX, is_wanted).unwrap();
    assert_eq!((expected.events.len(), expected.cursor), (100, 20_000));
    let choosing = reader.choosing(Within(at(9000), at(9099)));
    let mut looked_at = 0;
    let count = |event: &wire::event::Event| {
        looked_at += 1;
        is_wanted(event)
    };
    let found = choosing.read(0, usize::MAX, count).unwrap();
    assert_eq!(found, expected);
    assert_eq!(looked_at, 100, "no other event is made");
    let of_second_block = reader.choosing(Within(at(3000), at(3009))).read(0, 10, |_| true).unwrap();
    assert_eq!(of_second_block.events.len(), 10);
    let all = reader.read(0, 5000, |_| true).unwrap();
    assert_eq!(
        (all.events.len(), all.cursor),
        (5000, 5000),
        "a choice of events is not cached as a whole block"
    );
    let before = disk.reads();
    let none = reader.choosing(Within(at(30_000), None)).read(0, usize::MAX, |_| true).unwrap();
    assert!(disk.reads() - before < 10 && none.cursor == 20_000 && none.missed == 0);
}

/// Chooses events of these times.
struct Within(Option<Time>, Option<Time>);

impl Choose for Within {
    fn chooses(&self, summary: &Summary) -> bool {
        summary.may_have_time(self.0, self.1)
    }

    fn regex(&self) -> Option<&TextRegex> {
        None
    }

    fn fits(&self, event: &dyn Fields) -> bool {
        self.0.is_none_or(|since| event.time() >= since) && self.1.is_none_or(|until| event.time() <= until)
    }
}

#[test]
fn recovery_goes_back_to_a_compressed_segment() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, CONFIG);
    read(&mut writer, 600);
    pack(&writer);
    drop(writer);
    let live = disk.names().pop().unwrap();
    let first: u64 = live.trim_matches(|char: char| !char.is_ascii_digit()).parse().unwrap();
    let mut content = disk.content(&live);
    content[20] ^= 1;
    disk.set_content(&live, content);
    let mut writer = Writer::open(&disk, CONFIG);
    assert!(writer.notes[0].contains("is damaged"), "{:?}", writer.notes);
    assert_eq!(writer.check(), first);
    read(&mut writer, 600);
    pack(&writer);
    assert_eq!(writer.check(), first + 600);
}

#[test]
fn nothing_is_compressed_before_an_older_program_would_refuse_the_journal() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, CONFIG);
    read(&mut writer, 600);
    drop(writer);
    write_version(&disk, &disk.names().pop().unwrap(), 1);
    let mut writer = Writer::open(&disk, CONFIG);
    pack(&writer);
    assert!(packed(&disk).is_empty());
    writer.read(5).unwrap();
    writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    pack(&writer);
    assert_eq!(packed(&disk).len(), disk.names().len() - 1);
    writer.check();
}

#[test]
fn the_thread_compresses_what_is_closed_while_events_are_written_and_ends_when_it_is_dropped() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, CONFIG);
    read(&mut writer, 2000);
    // Counted before: a segment that is being compressed is there twice.
    let closed = disk.names().len() - 1;
    let packing = Packing::start(writer.journal.packer()).unwrap();
    while packed(&disk).len() < closed {
        writer.read(1).unwrap();
        std::thread::yield_now();
    }
    drop(packing);
    writer.check();
    drop(writer);
    Writer::open(&disk, CONFIG).check();
}

/// Writes a segment again with another version in its head.
fn write_version(disk: &Simulated, name: &str, version: u16) {
    let (content, mut out, mut before) = (disk.content(name), Vec::new(), 0);
    let mut rest = content.as_slice();
    while let Some(((_, mut body), len)) = wire::codec::decode::<(u32, Body)>(rest).unwrap() {
        if let Body::Head(head) = &mut body {
            head.version = Trailing(version);
        }
        before = chain::encode(before, body, &mut out).unwrap();
        rest = &rest[len..];
    }
    disk.set_content(name, out);
}
