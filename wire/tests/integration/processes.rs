//! Sweeps of processes are decoded as they were encoded, whatever happens to the processes, and bytes that
//! are not a sweep are refused.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::process::delta::{Decoder, Encoder, Error, Sweep};
use wire::process::{Io, Process, ProcessKey, State, Switches, Usage};

/// What happens to one place of the table between two sweeps.
#[derive(Clone, Debug)]
enum Step {
    Stays,
    Ends,
    Changes(Process),
    IsAnother(Process),
}

/// A counter of any size; the largest number represents an unknown value.
fn counter() -> impl Strategy<Value = u64> {
    prop_oneof![0..300_u64, any::<u64>().prop_map(|number| number.min(u64::MAX - 1))]
}

fn usage() -> impl Strategy<Value = Usage> {
    let switches = option::of((counter(), counter()));
    let io = option::of((counter(), counter(), counter(), counter()));
    (counter(), counter(), counter(), counter(), counter(), switches, io).prop_map(
        |(cpu_ns, user_ns, system_ns, minor_faults, major_faults, switches, io)| Usage {
            cpu_ns,
            user_ns,
            system_ns,
            minor_faults,
            major_faults,
            switches: switches.map(|(voluntary, involuntary)| Switches { voluntary, involuntary }),
            io: io.map(|(read_bytes, written_bytes, read_chars, written_chars)| Io {
                read_bytes,
                written_bytes,
                read_chars,
                written_chars,
            }),
        },
    )
}

fn process() -> impl Strategy<Value = Process> {
    let key = (any::<u32>(), any::<u64>()).prop_map(|(pid, start_ns)| ProcessKey { pid, start_ns });
    let about = (any::<u32>(), any::<u32>(), any::<u32>(), 0..State::ALL.len(), option::of(counter()));
    (key, about, counter(), usage(), "\\PC{0,15}").prop_map(|(key, about, rss_kib, usage, name)| {
        let (parent, uid, threads, state, cgroup) = about;
        let state = State::ALL[state];
        Process { key, parent, uid, threads, state, cgroup, rss_kib, usage, name: name.into() }
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Stays),
        1 => Just(Step::Ends),
        3 => process().prop_map(Step::Changes),
        1 => process().prop_map(Step::IsAnother),
    ]
}

fn apply(rows: &mut [Option<Process>], steps: Vec<Step>) {
    for (row, step) in rows.iter_mut().zip(steps) {
        *row = match (step, row.take()) {
            (Step::Stays, row) => row,
            (Step::Ends, _) => None,
            (Step::Changes(process), Some(row)) => Some(Process { key: row.key, ..process }),
            (Step::Changes(process) | Step::IsAnother(process), _) => Some(process),
        };
    }
}

/// The occupied places, without the free ones at the end.
fn occupied(rows: &[Option<Process>]) -> Vec<(usize, &Process)> {
    rows.iter().enumerate().filter_map(|(place, row)| Some((place, row.as_ref()?))).collect()
}

proptest! {
    #[test]
    fn every_sweep_arrives_as_it_was(
        sweeps in vec((vec(step(), 8), any::<(bool, bool)>(), any::<[u64; 3]>()), 1..12),
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        // A later reader starts with the last whole sweep.
        let mut late = None;
        let mut rows = vec![None; 8];
        for (steps, (is_whole, knows_which), [number, begin_ns, took_ns]) in sweeps {
            let before = rows.clone();
            apply(&mut rows, steps);
            let sweep = Sweep { number, begin_ns, took_ns };
            let mut frame = Vec::new();
            if is_whole {
                encoder.whole(sweep, &rows, &mut frame);
            } else {
                let changed = (0..8).filter(|place| !knows_which || before[*place] != rows[*place]);
                encoder.changes(sweep, &rows, changed, &mut frame);
            }
            prop_assert_eq!(decoder.read(&frame), Ok(sweep));
            prop_assert_eq!(occupied(decoder.rows()), occupied(&rows));
            if is_whole {
                late = Some(Decoder::default());
            }
            if let Some(late) = &mut late {
                prop_assert_eq!(late.read(&frame), Ok(sweep));
                prop_assert_eq!(occupied(late.rows()), occupied(&rows));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_sweep_are_refused_or_read_but_never_a_panic(
        frames in vec(vec(any::<u8>(), 0..64), 1..4),
        form in 0..4_u8,
    ) {
        let mut decoder = Decoder::default();
        let mut whole = Vec::new();
        Encoder::default().whole(Sweep::default(), &[Some(Process::default())], &mut whole);
        decoder.read(&whole).expect("a whole sweep");
        for mut frame in frames {
            if let Some(first) = frame.first_mut() {
                *first = form;
            }
            if decoder.read(&frame).is_err() {
                prop_assert!(decoder.rows().is_empty(), "nothing is kept of what cannot be trusted");
            }
        }
    }

    #[test]
    fn a_sweep_that_is_cut_is_refused(row in process(), cut in any::<prop::sample::Index>()) {
        let mut frame = Vec::new();
        Encoder::default().whole(Sweep::default(), &[None, Some(row)], &mut frame);
        let cut = cut.index(frame.len());
        // A cut at the boundary of a process cannot be detected; 5 is the one before the only process.
        prop_assume!(cut != 5);
        prop_assert!(Decoder::default().read(&frame[..cut]).is_err());
    }
}

#[test]
fn changes_need_a_whole_sweep_first() {
    let rows = [Some(Process::default())];
    let mut encoder = Encoder::default();
    let (mut whole, mut changes) = (Vec::new(), Vec::new());
    encoder.whole(Sweep::default(), &rows, &mut whole);
    encoder.changes(Sweep { number: 1, ..Sweep::default() }, &rows, 0..1, &mut changes);
    assert_eq!(Decoder::default().read(&changes), Err(Error::Unfounded));
}

#[test]
fn a_quiet_host_costs_some_bytes_a_sweep() {
    let rows: Vec<_> = (0..300)
        .map(|pid| {
            let key = ProcessKey { pid, start_ns: u64::from(pid) << 30 };
            Some(Process { key, ..Process::default() })
        })
        .collect();
    let mut encoder = Encoder::default();
    encoder.whole(Sweep::default(), &rows, &mut Vec::new());
    let mut frame = Vec::new();
    for number in 1..100 {
        frame.clear();
        let sweep = Sweep { number, begin_ns: number * 15_625_000, took_ns: 40_000 };
        encoder.changes(sweep, &rows, 0..300, &mut frame);
    }
    assert!(frame.len() <= 9, "{} bytes for 300 unchanged processes", frame.len());
}
