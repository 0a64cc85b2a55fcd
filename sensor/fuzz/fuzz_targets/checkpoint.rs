//! Anything at all as a journal: recovery must come to an end without a panic, and must not depend on how
//! the bytes arrive. Checksums are put right first, so that the fuzzer gets behind them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use log_filters::found::Change;
use sensor::journal::fold::{Fold, Replay};
use sensor::journal::frame::Record;
use sensor::segments::chain::checksum;
use sensor::segments::recovery::Folding;
use wire::codec::HEADER_LEN_BYTES;
use wire::event::Id;

#[derive(Default)]
struct Count {
    records: usize,
}

impl Replay for Count {
    fn calls(&mut self, _: &[u8]) {}

    fn memory(&mut self, _: &[u8], _: &str, _: Vec<Change>) {}

    fn record(&mut self, _: Id, _: &Record) {
        self.records += 1;
    }
}

/// Make the frames' lengths, checksums, version and chain right as far as the bytes go.
fn mend(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut rest, mut chain) = (Vec::new(), bytes, 0_u32);
    while let Some((len, body)) = rest.split_first() {
        let take = usize::from(*len).min(body.len());
        let (body, after) = body.split_at(take);
        let mut framed = vec![wire::version::FRAME];
        framed.extend(varint(chain));
        framed.extend_from_slice(body);
        let at = out.len();
        out.extend_from_slice(&u32::try_from(framed.len()).expect("short").to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&framed).to_le_bytes());
        out.extend_from_slice(&framed);
        chain = checksum(&out[at..]);
        rest = after;
    }
    out
}

/// As postcard writes a number.
fn varint(mut number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
    out
}

fn recover(bytes: &[u8]) {
    let (mut folding, mut count, mut rest) = (Folding::<Fold>::default(), Count::default(), bytes);
    while let Ok(Some(len)) = folding.step(rest, &mut count, |_| {}) {
        assert!(len > HEADER_LEN_BYTES && len <= rest.len());
        rest = &rest[len..];
    }
}

fuzz_target!(|bytes: &[u8]| {
    recover(bytes);
    recover(&mend(bytes));
});
