//! Any bytes, pushed in any pieces: the same lines at the same offsets as pushed at once, none of them with
//! an end in it, and a place to begin again that is never past what was pushed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sensor::tail::lines::Splitter;

fn split<'a>(pushes: impl Iterator<Item = &'a [u8]>) -> (Vec<(u64, Vec<u8>)>, u64, u64) {
    let (mut splitter, mut lines) = (Splitter::new(0, 0, false), Vec::new());
    for bytes in pushes {
        splitter.push(bytes, |line| {
            assert!(!line.bytes.contains(&b'\n'));
            lines.push((line.offset, line.bytes.to_vec()));
        });
        assert!(splitter.start() <= splitter.position());
    }
    let nuls = splitter.take_nul_bytes();
    (lines, splitter.start(), nuls)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = (usize::from(input.0) + 1, input.1);
    let whole = split(std::iter::once(bytes));
    assert_eq!(split(bytes.chunks(step)), whole);
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(whole.0.len(), ends);
});
