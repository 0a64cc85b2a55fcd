//! Sweeps and frames of `/visperf/report/1`: everything encoded is decoded exactly, and anything else is
//! refused.

use proptest::prelude::*;
use wire::report::sweep::{Decoder, Encoder, Error, Form};
use wire::report::{Frames, FromMember, Packed, Sweep, encode};
use wire::sample::Number;
use wire::time::Time;

fn bits(number: Number) -> (bool, u64) {
    match number {
        Number::Whole(whole) => (true, whole),
        Number::Real(real) => (false, real.to_bits()),
    }
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<u64>().prop_map(Number::Whole),
        (0..1000u64).prop_map(Number::Whole),
        any::<u64>().prop_map(|bits| Number::Real(f64::from_bits(bits))),
        any::<i32>().prop_map(|ticks| Number::Real(f64::from(ticks) / 100.0)),
        (0..2_000_000u32).prop_map(|micros| Number::Real(f64::from(micros) / 1e6)),
        Just(Number::Real(-0.0)),
        Just(Number::Real(0.0)),
        Just(Number::Real(f64::NAN)),
        Just(Number::Real(f64::INFINITY)),
    ]
}

/// Sweeps in which many values stay, some change by even steps and some are arbitrary.
fn sweeps() -> impl Strategy<Value = Vec<(i64, Vec<Number>)>> {
    (1..40usize).prop_flat_map(|columns| {
        let change = prop_oneof![
            6 => Just(None),
            3 => (0..200u64).prop_map(|step| Some(Err(step))),
            2 => number().prop_map(|number| Some(Ok(number))),
        ];
        let sweep = (any::<i64>(), proptest::collection::vec(change, columns));
        (proptest::collection::vec(number(), columns), proptest::collection::vec(sweep, 1..300)).prop_map(
            |(mut values, changes)| {
                let mut all = Vec::new();
                for (time, changes) in changes {
                    for (value, change) in values.iter_mut().zip(changes) {
                        *value = match (change, *value) {
                            (None, old) => old,
                            (Some(Ok(new)), _) => new,
                            (Some(Err(step)), Number::Whole(old)) => Number::Whole(old.wrapping_add(step)),
                            (Some(Err(step)), Number::Real(old)) => Number::Real(old + step as f64 / 100.0),
                        };
                    }
                    all.push((time, values.clone()));
                }
                all
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_sweep_decodes_to_what_was_sampled(sweeps in sweeps()) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (time, values) in &sweeps {
            let mut packed = Vec::new();
            encoder.encode(Time::from_micros(*time), values, &mut packed);
            let (decoded, _) = decoder.decode(&packed, values.len()).expect("what was encoded");
            prop_assert_eq!(decoded.micros(), *time);
            let found: Vec<_> = decoder.values().map(bits).collect();
            let wanted: Vec<_> = values.iter().copied().map(bits).collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn damaged_sweeps_cost_an_error_or_a_value_and_no_panic(
        sweeps in sweeps(), at in any::<prop::sample::Index>(), flip in 1..=255u8, cut in any::<prop::sample::Index>()
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (time, values) in &sweeps {
            let mut packed = Vec::new();
            encoder.encode(Time::from_micros(*time), values, &mut packed);
            let at = at.index(packed.len());
            packed[at] ^= flip;
            packed.truncate(cut.index(packed.len()) + 1);
            let _either = decoder.decode(&packed, values.len());
        }
    }

    #[test]
    fn frames_come_whole_however_the_bytes_are_cut(
        lens in proptest::collection::vec(0..3000usize, 0..20), piece in 1..5000usize
    ) {
        let frame = |len: usize| FromMember::Sweep(Sweep { thinned: 7, packed: Packed(vec![3; len]) });
        let mut stream = Vec::new();
        for &len in &lens {
            encode(&frame(len), &mut stream).expect("short");
        }
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            frames.push(bytes);
            while let Some((value, _)) = frames.take::<FromMember>().expect("whole frames") {
                found.push(value);
            }
        }
        prop_assert_eq!(found, lens.into_iter().map(frame).collect::<Vec<_>>());
        prop_assert_eq!(frames.len_bytes(), 0);
    }
}

#[test]
fn changes_need_a_whole_sweep_and_the_same_columns() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let (mut whole, mut changes) = (Vec::new(), Vec::new());
    let values = [Number::Whole(1), Number::Real(0.5)];
    encoder.encode(Time::from_micros(5), &values, &mut whole);
    encoder.encode(Time::from_micros(6), &values, &mut changes);
    assert_eq!(decoder.decode(&changes, 2), Err(Error::Unfounded));
    assert_eq!(decoder.decode(&whole, 3), Err(Error::Columns { found: 2, expected: 3 }));
    assert_eq!(decoder.decode(&whole, 2), Ok((Time::from_micros(5), Form::Whole)));
    assert_eq!(decoder.decode(&changes, 2), Ok((Time::from_micros(6), Form::Changes)));
    assert_eq!(decoder.decode(&[9], 2), Err(Error::Form { found: 9 }));
    assert_eq!(decoder.decode(&changes, 2), Err(Error::Unfounded), "after an error only a whole sweep");
}

#[test]
fn quiet_and_steady_columns_take_a_bit_or_less() {
    let (mut encoder, mut len) = (Encoder::default(), 0);
    for second in 0..1200u64 {
        let values: Vec<_> =
            (0..1000).map(|at| Number::Whole(if at % 10 == 0 { second * at } else { at })).collect();
        let mut packed = Vec::new();
        encoder.encode(Time::from_micros(second as i64 * 1_000_000), &values, &mut packed);
        len += packed.len();
    }
    assert!(len < 1_200_000 / 12, "{len} bytes for 1,200,000 samples");
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_it_is_read() {
    let mut frames = Frames::default();
    frames.push(&(8u32 << 20).to_le_bytes());
    assert!(matches!(frames.take::<FromMember>(), Err(wire::report::Error::TooLong { .. })));
}
