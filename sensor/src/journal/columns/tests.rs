//! Tests of the block codec: every frame comes back byte for byte, and damage does no harm.
//!
//! Not here: bytes per event of real logs (`benches/journal_past.rs`).

use super::*;
use crate::journal::frame::{Batch, Birth, Identity, Print, Record};
use log_filters::found::{Change, Found};
use proptest::prelude::*;
use wire::call::{Authority, Keys, Naming};
use wire::event::{Content, Event, Id, Kind, Outcome, Source, Value};
use wire::id::SensorKey;

fn text() -> impl Strategy<Value = compact_str::CompactString> {
    "|[a-c]{1,2}|(slurm:)?(wn)?[0-9]{1,4}|.{0,8}".prop_map(Into::into)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::Text),
        1 => prop::collection::vec(text(), 0..3).prop_map(Value::List),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(Value::Bytes),
    ]
}

fn keys() -> impl Strategy<Value = Option<Keys>> {
    let naming = prop::sample::select(&[Naming::Unique, Naming::Shared, Naming::Part]);
    let authority = prop::sample::select(&[Authority::Message, Authority::Scheduler, Authority::Accounting]);
    let names = prop::collection::vec(text(), 0..3);
    prop::option::of((text(), names, prop::option::of(text()), naming, authority).prop_map(
        |(scope, names, parent, naming, authority)| Keys { scope, names, parent, naming, authority },
    ))
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![any::<i64>(), (0..100_i64).prop_map(|secs| secs * 1_000_000)].prop_map(Time::from_micros)
}

fn content() -> impl Strategy<Value = Content> {
    let texts = (text(), text(), text(), text());
    let rest = (prop::option::of(time()), prop::option::of(time()), prop::option::of(time()));
    let outcome = prop::option::of(prop::sample::select(Outcome::ALL));
    let attributes = prop::collection::vec(("[a-c]".prop_map(Into::into), value()), 0..3);
    (prop::sample::select(Kind::ALL), time(), texts, outcome, attributes, rest).prop_map(
        |(kind, time, (job, user, from, to), outcome, attributes, (submitted, started, ended))| Content {
            kind,
            time,
            job,
            user,
            from,
            to,
            outcome,
            attributes,
            submitted,
            started,
            ended,
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    (any::<u64>(), any::<u16>(), content(), keys(), text()).prop_map(
        |(offset, number, content, keys, call)| {
            let call = if offset % 2 == 0 { keys::call(keys.as_ref()).unwrap_or(call) } else { call };
            Record { found: Found { offset, number, content, keys }, call }
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let batch = (any::<u64>(), 0..3_u32, time(), any::<[u64; 3]>(), prop::collection::vec(record(), 0..5));
    let batch = batch.prop_map(|(first, generation, seen, [offset, counted_to, hash], records)| Batch {
        first,
        seen,
        offset,
        counted_to,
        before: Print { len: 7, hash },
        changes: vec![Change::Forget { key: "key".into() }],
        records,
        ..Batch::empty(Generation(generation))
    });
    let birth = Birth {
        generation: Generation(1),
        path: b"/log".to_vec(),
        filter: "filter".into(),
        host: "host".into(),
        identity: Identity::default(),
        directory: 0,
        offset: 0,
        before: Print::default(),
        within_line: false,
    };
    prop_oneof![5 => batch.prop_map(Body::Batch), 1 => Just(Body::Born(birth)), 1 => Just(Body::HeadEnd)]
}

fn decompressor() -> Decompressor<'static> {
    Decompressor::new().expect("memory")
}

fn whole(record: &Record) -> Event {
    let id = Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 };
    let source = Source { host: "".into(), file: "".into(), filter: "".into() };
    let (call, content) = (record.call.clone(), record.found.content.clone());
    Event { id, seen: Time::default(), call, content, source }
}

/// The texts of an event that a query may look for.
fn texts_of(content: &Content) -> Vec<String> {
    let Content { job, user, from, to, .. } = content;
    let mut texts: Vec<String> = [job, user, from, to].map(ToString::to_string).into();
    for (_, value) in &content.attributes {
        match value {
            Value::Text(text) => texts.push(text.to_string()),
            Value::List(all) => texts.extend(all.iter().map(ToString::to_string)),
            Value::Bytes(_) => {}
        }
    }
    texts
}

fn frames(before: u32, bodies: &[Body]) -> Vec<u8> {
    let (mut out, mut before) = (Vec::new(), before);
    for body in bodies {
        before = chain::encode(before, body, &mut out).expect("short");
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_block_comes_back_byte_for_byte(before: u32, bodies in prop::collection::vec(body(), 1..8)) {
        let frames = frames(before, &bodies);
        let packed = pack(&frames).expect("it is what this program writes");
        prop_assert_eq!(unpack(&packed), Some(frames));
    }

    #[test]
    fn events_that_are_requested_are_those_of_the_whole_block(
        bodies in prop::collection::vec(body(), 1..8),
        sought in text(),
        shift in 0..3_u64,
    ) {
        let packed = pack(&frames(0, &bodies)).expect("it is what this program writes");
        let block = EncodedBlock::parse(&packed).expect("it is whole");
        let batches = bodies.iter().filter_map(|body| {
            let Body::Batch(batch) = body else { return None };
            Some(batch)
        });
        let events = batches.flat_map(|batch| batch.records.iter().zip(0..).map(move |(record, nth)| Taken {
            number: batch.first.wrapping_add(nth),
            generation: batch.generation,
            seen: batch.seen,
            record: record.clone(),
        }));
        let events: Vec<Taken> = events.collect();
        let all = block.take(&mut decompressor(), &|_| true, events.len() as u64);
        prop_assert_eq!(all.as_ref(), Some(&events));
        prop_assert_eq!(block.take(&mut decompressor(), &|_| true, events.len() as u64 + 1 + shift), None, "a wrong count is damage");
        // Each field, as an event that is made has it.
        let event = |taken: &Taken| whole(&taken.record);
        let accepts = |event: &dyn Fields| {
            [event.job(), event.user(), event.from(), event.to(), event.call()].contains(&sought.as_str())
                || event.has_text(&|text| text.contains(sought.as_str()))
                || event.time().micros() % 3 == 0
                || event.kind() == Kind::Message
        };
        let some: Vec<_> = events.iter().filter(|taken| accepts(&event(taken))).cloned().collect();
        prop_assert_eq!(block.take(&mut decompressor(), &accepts, events.len() as u64), Some(some));
        for text in events.iter().flat_map(|taken| texts_of(&taken.record.found.content)).chain([sought.to_string()]) {
            let has = |event: &dyn Fields| event.has_text(&|one| one == text);
            let is_there = events.iter().any(|taken| has(&event(taken)));
            let may_be_there = is_there || text.is_empty();
            let regex = format!("^{}$", regex::escape(&text)).parse().expect("it is an expression");
            prop_assert_eq!(block.may_have_text(&mut decompressor(), &regex), Some(may_be_there), "{}", text);
        }
    }

    #[test]
    fn damaged_bytes_do_no_harm(
        bodies in prop::collection::vec(body(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packed = pack(&frames(7, &bodies)).expect("it is what this program writes");
        let _cut = unpack(&packed[..cut.index(packed.len())]);
        for (at, byte) in damage {
            let at = at.index(packed.len());
            packed[at] = byte;
        }
        let _damaged = unpack(&packed);
        if let Some(block) = EncodedBlock::parse(&packed) {
            let never = "[a&&b]".parse().expect("it is an expression");
            let _damaged = (block.may_have_text(&mut decompressor(), &never), block.take(&mut decompressor(), &|event| !event.call().is_empty(), 3));
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _nothing = (pack(&bytes), unpack(&bytes));
    }
}

#[test]
fn frames_that_are_damaged_or_not_of_this_program_are_refused() {
    let mut frames = frames(7, &[Body::HeadEnd, Body::HeadEnd]);
    assert!(pack(&frames).is_some());
    assert_eq!(pack(&frames[1..]), None);
    assert_eq!(pack(&frames[..frames.len() - 1]), None);
    assert_eq!(pack(&[]), None);
    *frames.last_mut().expect("long") ^= 1;
    assert_eq!(pack(&frames), None);
    let mut longer = Vec::new();
    wire::codec::encode(&(0_u32, Body::HeadEnd, "of a later version"), &mut longer).expect("short");
    assert_eq!(pack(&longer), None, "it would not come back");
}
