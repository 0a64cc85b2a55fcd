//! What a source keeps of a file while it is read and journalled.

use super::*;
use crate::journal::frame::Birth;
use crate::journal::state::State;
use crate::tail::follow::Content;
use std::io::Write;
use wire::id::SensorKey;

const GENERATION: Generation = Generation(1);

/// A file with this text, and a source at its beginning.
fn source(text: &[u8]) -> (tempfile::NamedTempFile, Source) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    let stat = probe::stat(file.path()).unwrap();
    let mut state = State::new(SensorKey(1));
    let birth = Birth {
        generation: GENERATION,
        path: b"log".to_vec(),
        filter: "filter".into(),
        host: "host".into(),
        identity: stat.identity,
        directory: stat.identity.device,
        offset: 0,
        before: Print::default(),
        within_line: false,
    };
    state.apply_birth(birth).unwrap();
    let mut source =
        Source::new(&state.generations[&GENERATION], RecognitionMeans::default(), Duration::ZERO);
    source.attach(File::open(file.path()).unwrap(), &stat).unwrap();
    (file, source)
}

/// Read and split what there is; the lines.
fn read(source: &mut Source) -> Vec<(u64, Vec<u8>, bool)> {
    let (mut buffer, mut lines) = (buffer(), Vec::new());
    let chunk = source.read_chunk(&mut buffer, RecognitionMeans::default(), Duration::ZERO).unwrap();
    assert_eq!(chunk.content, Content::More);
    source.split(&buffer[..chunk.end], chunk.old, |line, is_new| {
        lines.push((line.offset, line.bytes.to_vec(), is_new));
    });
    lines
}

fn commit(source: &mut Source, record: Option<u64>) {
    let progress = source.progress(source.resume_offset(record), Status::Live, &[]);
    source.committed(&progress);
}

#[test]
fn a_restart_continues_at_the_incomplete_line_or_the_waiting_record() {
    let (mut file, mut source) = source(b"one\ntwo");
    assert_eq!(source.lag_bytes(), 7);
    assert_eq!(read(&mut source), [(0, b"one".to_vec(), true)]);
    assert!(source.is_at_end() && source.is_news(source.resume_offset(None), Status::Live));
    assert_eq!((source.resume_offset(None), source.resume_offset(Some(0))), (4, 0));
    commit(&mut source, Some(0));
    assert_eq!((source.fingerprint().offset, source.fingerprint_here().offset), (0, 7));
    commit(&mut source, None);
    assert_eq!(source.fingerprint().offset, 4);
    assert!(!source.is_news(4, Status::Live) && source.is_news(4, Status::Over));
    file.write_all(b"\nthree\n").unwrap();
    assert_eq!(read(&mut source), [(4, b"two".to_vec(), true), (8, b"three".to_vec(), true)]);
    assert!(probe::content_fits(source.file.as_ref().unwrap(), &source.fingerprint()).unwrap());
}

#[test]
fn an_incomplete_line_is_taken_once() {
    let (mut file, mut source) = source(b"one\ntwo");
    read(&mut source);
    assert_eq!((source.take_incomplete_line(), source.incomplete_line()), (Some((4, 3)), None));
    file.write_all(b"\nx").unwrap();
    read(&mut source);
    assert_eq!(source.take_incomplete_line(), Some((8, 1)));
}

#[test]
fn what_was_seen_and_not_read_is_lost_with_the_file() {
    let (file, mut source) = source(b"one\ntwo\n");
    read(&mut source);
    std::fs::OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"more").unwrap();
    source.measure(Duration::from_secs(1));
    assert_eq!((source.lost_bytes(), source.lag_bytes(), source.grown_at()), (4, 4, Duration::from_secs(1)));
    std::fs::write(file.path(), b"quite another content").unwrap();
    source.measure(Duration::from_secs(2));
    assert_eq!(source.lost_bytes(), 4, "other content is no part of this generation");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a restart would skip")]
fn a_position_beyond_the_incomplete_line_is_not_journalled() {
    let (_file, mut source) = source(b"one\ntwo");
    read(&mut source);
    let progress = Progress { offset: 5, ..source.progress(4, Status::Live, &[]) };
    source.committed(&progress);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "the journalled offset decreased")]
fn the_journalled_position_never_goes_back() {
    let (_file, mut source) = source(b"one\ntwo");
    read(&mut source);
    commit(&mut source, None);
    commit(&mut source, Some(0));
}

#[test]
fn a_copy_that_cannot_be_read_leaves_no_gap() {
    let (copy, _) = source(b"one\ntwo\n");
    let (_file, mut source) = source(b"one\n");
    read(&mut source);
    let stat = probe::stat(copy.path()).unwrap();
    let unreadable = File::options().write(true).open(copy.path()).unwrap();
    let attached = source.attach_copy(unreadable, &stat, Some(Reason::Truncated));
    assert!(attached.is_err() && source.gap_at_end().is_none() && !source.is_file(&stat.identity));
    source.attach_copy(File::open(copy.path()).unwrap(), &stat, Some(Reason::Truncated)).unwrap();
    assert_eq!((source.gap_at_end(), source.lag_bytes()), (Some(Reason::Truncated), 4));
}
