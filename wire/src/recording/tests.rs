//! A recording is decoded as it was encoded, even if a part of it is damaged.

use super::segment::{Item, Player};
use super::*;
use crate::process::delta::{Encoder, Sweep};
use crate::process::{Life, Process};

const SECOND: u64 = 1_000_000_000;

fn made_up_header() -> Header {
    Header {
        id: "20261121T100000Z".into(),
        domain: DomainName::try_from("UT-ICL").expect("a name"),
        host: HostName::try_from("wn01").expect("a name"),
        sensor: SensorKey(7),
        cause: Cause { trigger: "failed".into(), ..Cause::default() },
        at_ns: 3 * SECOND,
        from_ns: SECOND,
        to_ns: 5 * SECOND,
        booted: Time::from_micros(1_000_000),
        hz: 2.0,
        source: "procfs".into(),
    }
}

fn process(pid: u32, cpu_ns: u64) -> Process {
    let mut process = Process {
        key: ProcessKey { pid, start_ns: u64::from(pid) },
        name: "work".into(),
        ..Process::default()
    };
    process.usage.cpu_ns = cpu_ns;
    process
}

fn life(pid: u32, end_ns: u64) -> Life {
    Life {
        key: ProcessKey { pid, start_ns: u64::from(pid) },
        parent: 1,
        uid: 0,
        cgroup: None,
        name: "true".into(),
        command: "true -x".into(),
        end_ns,
        code: 0,
        usage: None,
    }
}

/// Seconds of two sweeps each; process 1 uses half of a core, 2 exists from the third second on, 9 ends in
/// each.
fn made_up(seconds: std::ops::Range<u64>) -> Recording {
    let mut recording = Recording::new(made_up_header());
    for second in seconds {
        let (mut segment, mut encoder) = (Segment::default(), Encoder::default());
        for half in 0..2 {
            let at_ns = second * SECOND + half * SECOND / 2;
            let mut rows = vec![Some(process(1, at_ns / 2))];
            rows.extend((second >= 3).then(|| Some(process(2, 0))));
            let sweep = Sweep { number: 2 * second + half, begin_ns: at_ns, took_ns: 5 };
            segment.push_sweep(at_ns, rows.len(), |out| {
                encoder.changes(sweep, &rows, 0..rows.len(), out);
            });
            segment.push_life(&life(9, at_ns + 1));
        }
        recording.segments.push(segment);
    }
    recording.serving =
        vec![Serving { key: process(2, 0).key, job: "slurm:17".into(), known_by: "cgroup".into() }];
    recording.end = Some(End::Whole);
    recording
}

/// Time, number of processes and the share of the first; for lives only the time.
fn played(recording: &Recording) -> Vec<(u64, usize, Option<f64>)> {
    let (mut player, mut played_items) = (Player::default(), Vec::new());
    for segment in &recording.segments {
        let read = player.play(segment, |item| {
            played_items.push(match item {
                Item::Swept(swept) => {
                    (swept.sweep.begin_ns, swept.rows.iter().flatten().count(), swept.share(0))
                }
                Item::Ended(life) => (life.end_ns, 0, None),
            });
            true
        });
        read.expect("it can be read");
    }
    played_items
}

#[test]
fn it_is_read_as_it_was_written() {
    let recording = made_up(1..5);
    let bytes = recording.write().expect("short");
    assert_eq!(Recording::read(&bytes).expect("whole"), recording);
    let played_items = played(&recording);
    assert_eq!(played_items.len(), 16);
    assert_eq!(played_items[0], (SECOND, 1, None), "before the first sweep nothing is known");
    assert_eq!(played_items[2], (SECOND + SECOND / 2, 1, Some(0.5)));
    assert_eq!(played_items[4], (2 * SECOND, 1, Some(0.5)), "from one segment to the next too");
    assert_eq!(played_items[5], (2 * SECOND + 1, 0, None));
    assert_eq!(recording.span_ns(), Some((SECOND, 4 * SECOND + SECOND / 2 + 1)));
}

#[test]
fn wherever_it_is_torn_only_the_last_block_is_lost() {
    let recording = made_up(1..5);
    let bytes = recording.write().expect("short");
    let (_, begin) = header(&bytes).expect("whole");
    let mut ends = vec![begin];
    while let Some(len) = codec::frame_len(&bytes[ends[ends.len() - 1]..]) {
        ends.push(ends[ends.len() - 1] + len);
    }
    assert_eq!(*ends.last().expect("just made"), bytes.len());
    for len in begin..bytes.len() {
        let read = Recording::read(&bytes[..len]).expect("the header is whole");
        let whole = ends.iter().filter(|end| **end <= len).count() - 1;
        assert_eq!(read.segments.len(), whole.min(4), "{len} bytes");
        assert_eq!((read.end, read.damage.blocks), (None, 0));
        assert_eq!(read.damage.torn_bytes > 0, !ends.contains(&len));
    }
}

#[test]
fn a_damaged_block_costs_itself() {
    let recording = made_up(1..5);
    let bytes = recording.write().expect("short");
    let (_, begin) = header(&bytes).expect("whole");
    let second = begin + codec::frame_len(&bytes[begin..]).expect("a segment");
    let mut damaged = bytes.clone();
    damaged[second + 20] ^= 1;
    let read = Recording::read(&damaged).expect("the header is whole");
    assert_eq!((read.segments.len(), read.damage), (3, Damage { blocks: 1, torn_bytes: 0 }));
    assert_eq!((read.end, &read.segments[1]), (Some(End::Whole), &recording.segments[2]));
    damaged[MAGIC.len() + 12] ^= 1;
    assert_eq!(Recording::read(&damaged), Err(Error::Header));
    assert_eq!(Recording::read(b"ELF"), Err(Error::NotARecording));
}

#[test]
fn a_part_holds_what_was_within_and_nothing_else() {
    let recording = made_up(1..5);
    let (from_ns, to_ns) = (2 * SECOND + 1, 3 * SECOND + 1);
    let part = recording.cut(from_ns, to_ns);
    let moments: Vec<u64> = played(&part).iter().map(|(at_ns, ..)| *at_ns).collect();
    let half = SECOND / 2;
    assert_eq!(
        moments,
        [2 * SECOND + 1, 2 * SECOND + half, 2 * SECOND + half + 1, 3 * SECOND, 3 * SECOND + 1]
    );
    assert_eq!((part.header.from_ns, part.header.to_ns, part.serving.len()), (from_ns, to_ns, 1));
    assert_eq!(played(&part)[3].1, 2, "whole, with the process that began");
    let none = recording.cut(9 * SECOND, 10 * SECOND);
    assert_eq!((none.segments.len(), none.serving.len()), (0, 0));
    let again = Recording::read(&part.write().expect("short")).expect("whole");
    assert_eq!(again, part);
}

#[test]
fn bytes_that_are_no_sweep_end_their_segment() {
    let mut recording = made_up(1..2);
    recording.segments[0].push_sweep(9 * SECOND, 1, |out| out.extend_from_slice(&[2, 0xff]));
    let (mut player, mut items) = (Player::default(), 0);
    let read = player.play(&recording.segments[0], |_| {
        items += 1;
        true
    });
    assert_eq!((items, read), (4, Err(crate::process::delta::Error::Length)));
}
