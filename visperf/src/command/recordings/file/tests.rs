//! Tests of the damage report, and that no file is replaced without `--force`.

use super::*;
use clap::{Args as _, FromArgMatches as _};
use wire::id::{DomainName, HostName, SensorKey};
use wire::recording::segment::Segment;
use wire::recording::{Block, Cause, Header, begin, put};
use wire::time::Time;

const SECOND: u64 = 1_000_000_000;

/// A header, and five blocks of one second with two sweeps each, for a window of five seconds.
fn blocks() -> Vec<Vec<u8>> {
    let header = Header {
        id: "20261121T100000Z".into(),
        domain: DomainName::try_from("UT-ICL").expect("a name"),
        host: HostName::try_from("wn01").expect("a name"),
        sensor: SensorKey(7),
        cause: Cause::default(),
        at_ns: 3 * SECOND,
        from_ns: 0,
        to_ns: 5 * SECOND,
        booted: Time::from_micros(0),
        hz: 2.0,
        source: "procfs".into(),
    };
    let mut first = Vec::new();
    begin(header, &mut first).expect("written");
    let seconds = (0..5).map(|second| {
        let (mut segment, mut block) = (Segment::default(), Vec::new());
        segment.push_sweep(second * SECOND, 1, |out| out.push(0));
        segment.push_sweep(second * SECOND + SECOND / 2, 1, |out| out.push(0));
        put(&Block::Segment(segment), &mut block).expect("written");
        block
    });
    std::iter::once(first).chain(seconds).collect()
}

fn damage_of(blocks: &[Vec<u8>]) -> Option<String> {
    damage(&Recording::read(&blocks.concat()).expect("its header is whole"), &TimeZone::UTC)
}

#[test]
fn damage_is_reported_with_when_samples_are_missing() {
    let whole = blocks();
    assert_eq!(damage_of(&whole), None);
    let damaged = |at: &[usize]| {
        let mut blocks = whole.clone();
        for at in at {
            *blocks[*at].last_mut().expect("no block is empty") ^= 1;
        }
        damage_of(&blocks).expect("it is damaged")
    };
    let text = damaged(&[3]);
    let expected = "1 damaged block was left out; there are no samples from 1970-01-01T00:00:01.500Z to \
                    1970-01-01T00:00:03.000Z";
    assert_eq!(text, expected);
    let text = damaged(&[1, 2, 4]);
    assert!(text.starts_with("3 damaged blocks were left out"), "{text}");
    assert!(
        text.contains("samples from 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:02.000Z, from "),
        "{text}"
    );
    let mut torn = whole.clone();
    torn[5].truncate(7);
    let text = damage_of(&torn).expect("it is torn");
    assert!(text.starts_with("the last 7 bytes are no whole block; there are no samples from "), "{text}");
    assert!(text.ends_with("00:03.500Z to 1970-01-01T00:00:05.000Z"), "{text}");
}

#[test]
fn a_file_that_is_there_is_replaced_only_with_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("slow.vpr"), folder.path().join("short.vpr"));
    std::fs::write(&from, blocks().concat()).expect("written");
    std::fs::write(&to, "mine").expect("written");
    let cut = |more: &[&str]| {
        let given = [&["cut", from.to_str().expect("text"), "-o", to.to_str().expect("text")], more].concat();
        let command = super::super::cut::Args::augment_args(clap::Command::new("cut"));
        let read = command.try_get_matches_from(given).expect("as the command line has it");
        super::super::cut::run(&super::super::cut::Args::from_arg_matches(&read).expect("its arguments"))
    };
    let failure = cut(&[]).expect_err("it is there").message().expect("a message");
    assert!(failure.contains("short.vpr exists already") && failure.contains("--force"), "{failure}");
    assert!(refuse_existing(&to, true).is_ok() && refuse_existing(&to, false).is_err());
    // The file was created while the recording was fetched.
    let failure = write_bytes(&to, b"theirs", false).expect_err("it is there").message();
    assert!(failure.is_some_and(|failure| failure.contains("exists already")));
    assert_eq!(std::fs::read(&to).expect("read"), b"mine");
    assert_eq!(cut(&["--force"]), Ok(()));
    assert!(Recording::read(&std::fs::read(&to).expect("read")).is_ok());
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 2, "nothing else is left");
}
