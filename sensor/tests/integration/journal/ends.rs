//! Damaged ends of files: cut and flipped everywhere, left over from an older end, refused by the disk.

use crate::journal::log::Writer;
use crate::simulated::Simulated;
use sensor::journal::Config;
use sensor::segments::Error;
use sensor::segments::segment::name;
use sensor::segments::unreadable::Reason;

fn written() -> (Simulated, Vec<u8>) {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    for lines in [3, 0, 2, 4] {
        writer.read(lines).unwrap();
    }
    assert_eq!(writer.check(), 9);
    let content = disk.content(&name(0));
    (disk, content)
}

/// Returns the end of each frame.
fn ends(content: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at < content.len() {
        at += 8 + u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
        ends.push(at);
    }
    ends
}

#[test]
fn a_tail_torn_at_any_byte_goes_back_to_the_frame_before() {
    let (disk, content) = written();
    let ends = ends(&content);
    // The frames are the head, its end and the birth; then the batches of 3, 0, 2 and 4 lines.
    let lines_by_frames = [0, 3, 3, 5, 9];
    for cut in ends[2]..=content.len() {
        disk.set_content(&name(0), content[..cut].to_vec());
        let mut writer = Writer::open(&disk, Config::default());
        let frames = ends[3..].iter().filter(|end| **end <= cut).count();
        assert_eq!(writer.check(), lines_by_frames[frames], "cut at {cut}");
        assert_eq!(writer.notes.is_empty(), ends.contains(&cut), "cut at {cut}: {:?}", writer.notes);
        // What is appended after the cut is durable.
        writer.read(9 - writer.next_line()).unwrap();
        drop(writer);
        assert_eq!(Writer::open(&disk, Config::default()).check(), 9, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_in_any_byte_goes_back_to_the_frame_before() {
    let (disk, content) = written();
    let ends = ends(&content);
    for at in ends[2]..content.len() {
        let mut flipped = content.clone();
        flipped[at] ^= 1 << (at % 8);
        disk.set_content(&name(0), flipped);
        match Writer::try_open(&disk, Config::default()) {
            Ok(writer) => assert!(writer.check() < 9, "byte {at}"),
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn a_frame_left_over_from_an_older_end_is_not_taken_for_new() {
    // Two ends of the same length: the second batch of one after the first batch of the other.
    let (one, other) = (Simulated::default(), Simulated::default());
    let mut writer = Writer::open(&one, Config::default());
    writer.read(2).unwrap();
    let first = one.content(&name(0)).len();
    writer.read(1).unwrap();
    let left_over = one.content(&name(0))[first..].to_vec();
    let mut writer = Writer::open(&other, Config::default());
    writer.read(1).unwrap();
    writer.read(1).unwrap();
    drop(writer);
    let mut content = other.content(&name(0));
    content.extend_from_slice(&left_over);
    other.set_content(&name(0), content);
    assert_eq!(Writer::open(&other, Config::default()).check(), 2);
}

#[test]
fn a_journal_with_a_damaged_head_is_set_aside_and_the_one_before_goes_on() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    writer.read(5).unwrap();
    writer.journal.begin_segment(&writer.mind.clone()).unwrap();
    writer.read(5).unwrap();
    drop(writer);
    let mut content = disk.content(&name(5));
    content[12] ^= 1;
    disk.set_content(&name(5), content);
    let writer = Writer::open(&disk, Config::default());
    assert_eq!(writer.check(), 5);
    assert!(writer.notes[0].contains("damaged"), "{:?}", writer.notes);
    assert!(disk.names().contains(&format!("{}.damaged", name(5))));
}

#[test]
fn a_journal_of_another_version_is_refused_and_left_alone() {
    let (disk, mut content) = written();
    content[8] = 99;
    let sum = crc32fast::hash(&content[8..ends(&content)[0]]);
    content[4..8].copy_from_slice(&sum.to_le_bytes());
    disk.set_content(&name(0), content.clone());
    let refused = Writer::try_open(&disk, Config::default()).err().unwrap();
    let Error::Unreadable(refused) = refused else { panic!("{refused}") };
    assert!(matches!(refused.reason(), Reason::Version { found: 99, .. }), "{refused}");
    assert_eq!(disk.content(&name(0)), content);
}

#[test]
fn a_full_disk_holds_the_batch_and_cuts_its_half_off_again() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    writer.read(3).unwrap();
    let good = disk.content(&name(0));
    disk.refuse_writes(3);
    assert!(writer.read(4).is_err());
    assert!(writer.journal.is_held());
    assert_eq!(disk.content(&name(0)), good, "the half that was written is cut off");
    assert_eq!(writer.events().len(), 3, "what is held is not published");
    assert!(writer.journal.flush().is_err());
    assert!(writer.journal.sync().is_err());
    writer.journal.flush().unwrap();
    assert_eq!(writer.check(), 7);
    drop(writer);
    assert_eq!(Writer::open(&disk, Config::default()).check(), 7);
}

#[test]
fn a_crash_on_a_full_disk_goes_back_to_the_last_good_checkpoint() {
    let disk = Simulated::default();
    let mut writer = Writer::open(&disk, Config::default());
    writer.read(3).unwrap();
    disk.refuse_writes(1);
    assert!(writer.read(4).is_err());
    drop(writer);
    assert_eq!(Writer::open(&disk, Config::default()).check(), 3);
}
