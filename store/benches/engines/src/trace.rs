//! What the store writes, as a list.
//!
//! Blocks, and the newest samples every ten seconds.

use crate::files;
use crate::recording::Recording;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Length of the prefix of a frame of the store: magic, kind, two lengths, checksum.
const PREFIX_LEN: usize = 17;
const NAMES: u8 = 2;
const BLOCK: u8 = 3;
const SHAPE: u8 = 5;
const SWEEPS: u8 = 6;

/// Something to store.
#[derive(Clone, PartialEq)]
pub(crate) enum Event {
    /// Names of metrics.
    Names(Vec<u8>),
    /// A block of a tier; one of the raw tier replaces the newest samples.
    Block { tier: u8, start: u64, bytes: Vec<u8> },
    /// The newest samples.
    Newest(Vec<u8>),
}

/// How much there is to store.
#[derive(Default)]
pub(crate) struct Totals {
    sweeps: usize,
    values: usize,
    /// Bytes of the blocks of each tier.
    pub(crate) blocks: [u64; 3],
    /// Values in the blocks of samples.
    sealed: usize,
    /// Bytes of the newest samples.
    newest: u64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Totals { sweeps, values, blocks: [raw, minute, hour], sealed, newest } = self;
        let each = *raw as f64 / (*sealed).max(1) as f64;
        write!(
            out,
            "{sweeps} sweeps, {values} values; blocks of samples {raw} bytes, {each:.3} a value in them; "
        )?;
        write!(out, "of minutes {minute}, of hours {hour}; newest samples {newest}")
    }
}

/// Writes the trace of a recording.
pub(crate) fn write(recording: &Recording, to: &Path) -> Totals {
    let folder = tempfile::tempdir_in(to.parent().expect("a folder")).expect("a folder");
    let mut out = BufWriter::new(File::create(to).expect("a file"));
    let mut seen: [u64; 3] = [0; 3];
    let mut head: (PathBuf, u64) = Default::default();
    let mut totals = Totals { sweeps: recording.len, ..Totals::default() };
    let mut writer = files::open(folder.path(), files::UNLIMITED);
    for number in 0..recording.len {
        let sweep = recording.sweep(number);
        files::push(&mut writer, &sweep);
        totals.values += sweep.values.len();
        for (tier, name) in ["raw", "1m", "1h"].into_iter().enumerate() {
            let Some(path) = newest(&folder.path().join(name), ".seg") else { continue };
            for (kind, frame) in frames(&appended(&path, &mut seen[tier])) {
                let start = sweep.time.micros().cast_unsigned();
                match kind {
                    NAMES if tier == 0 => put(&mut out, NAMES, 0, start, frame),
                    BLOCK => {
                        totals.blocks[tier] += frame.len() as u64;
                        if tier == 0 {
                            totals.sealed = totals.values;
                        }
                        put(&mut out, BLOCK, tier as u8, start, frame);
                    }
                    _ => {}
                }
            }
        }
        if number % files::FLUSH_EVERY == files::FLUSH_EVERY - 1 {
            writer.flush();
            let path = newest(folder.path(), ".head").expect("a log");
            if head.0 != path {
                head = (path, 0);
            }
            let bytes = appended(&head.0, &mut head.1);
            let frames = frames(&bytes).into_iter().filter(|(kind, _)| [SHAPE, SWEEPS].contains(kind));
            let bytes: Vec<u8> = frames.flat_map(|(_, frame)| frame.to_vec()).collect();
            totals.newest += bytes.len() as u64;
            put(&mut out, SWEEPS, 0, number as u64, &bytes);
        }
    }
    out.flush().expect("written");
    totals
}

fn put(out: &mut impl std::io::Write, kind: u8, tier: u8, start: u64, bytes: &[u8]) {
    let mut head = vec![kind, tier];
    head.extend_from_slice(&start.to_be_bytes());
    head.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.write_all(&head).and_then(|()| out.write_all(bytes)).expect("written");
}

/// Reads a trace.
pub(crate) fn read(path: &Path) -> impl Iterator<Item = Event> {
    let mut from = BufReader::new(File::open(path).expect("a trace"));
    std::iter::from_fn(move || {
        let mut head = [0; 14];
        from.read_exact(&mut head).ok()?;
        let start = u64::from_be_bytes(head[2..10].try_into().expect("eight bytes"));
        let len = u32::from_be_bytes(head[10..].try_into().expect("four bytes"));
        let mut bytes = vec![0; len as usize];
        from.read_exact(&mut bytes).ok()?;
        Some(match head[0] {
            NAMES => Event::Names(bytes),
            BLOCK => Event::Block { tier: head[1], start, bytes },
            _ => Event::Newest(bytes),
        })
    })
}

fn newest(folder: &Path, end: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.to_string_lossy().ends_with(end)).max()
}

fn appended(path: &Path, seen: &mut u64) -> Vec<u8> {
    let file = File::open(path).expect("a file");
    let len = file.metadata().expect("its length").len();
    let mut bytes = vec![0; (len - *seen) as usize];
    file.read_exact_at(&mut bytes, *seen).expect("read");
    *seen = len;
    bytes
}

/// Kinds and bytes of frames.
fn frames(bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while at + PREFIX_LEN <= bytes.len() {
        let number = |from: usize| u32::from_le_bytes(bytes[from..from + 4].try_into().expect("four bytes"));
        let len = PREFIX_LEN + number(at + 5) as usize + number(at + 9) as usize;
        frames.push((bytes[at + 4], &bytes[at..at + len]));
        at += len;
    }
    frames
}
