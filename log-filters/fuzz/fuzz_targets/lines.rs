//! Any bytes as a log of any product: no panic, and an engine made again from what another remembered goes on
//! as that one would have.

#![no_main]

use libfuzzer_sys::fuzz_target;
use log_filters::engine::{Engine, Source};
use log_filters::found::Found;
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use std::sync::{Arc, LazyLock};
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::time::Time;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::shipped);
const SEEN: Time = Time::from_micros(1_795_219_200_000_000);

fn engine(number: u8) -> Engine {
    let filters: Vec<_> = REGISTRY.iter().collect();
    let filter = filters[usize::from(number) % filters.len()];
    let source = Source {
        file_name: "fuzz.log".into(),
        host: "h".into(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    Engine::new(Arc::clone(filter), &source)
}

fn feed(engine: &mut Engine, lines: &[(u64, &[u8])], found: &mut Vec<Found>) {
    for (offset, line) in lines {
        engine.line(line, *offset, SEEN, found);
    }
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (number, stop, bytes) = input;
    let mut offset = 0;
    let mut lines = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        lines.push((offset, line));
        offset += line.len() as u64 + 1;
    }
    let (mut whole, mut joiner) = (Vec::new(), Joiner::new(100));
    let mut one = engine(number);
    feed(&mut one, &lines, &mut whole);
    one.idle(SEEN, &mut whole);
    for found in &whole {
        let (generation, offset) = (Generation(1), found.offset);
        joiner.join(found, Id { sensor: SensorKey(1), generation, offset, number: found.number });
    }
    let stop = usize::from(stop) % (lines.len() + 1);
    let (mut parts, mut before, mut after) = (Vec::new(), engine(number), engine(number));
    feed(&mut before, &lines[..stop], &mut parts);
    before.snapshot().into_iter().for_each(|change| after.apply(change));
    let resume = before.resume_offset().or(lines.get(stop).map(|(offset, _)| *offset)).unwrap_or(offset);
    let rest = lines.partition_point(|(offset, _)| *offset < resume);
    feed(&mut after, &lines[rest..], &mut parts);
    after.idle(SEEN, &mut parts);
    assert_eq!(parts, whole);
});
