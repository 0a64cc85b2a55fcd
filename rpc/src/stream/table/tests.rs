//! The table by examples, and by random operations in random order.

use super::*;
use crate::dispatch::source::SourceKey;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;
use wire::time::Time;

const EVERY: Duration = Duration::from_millis(500);

fn at(ms: u64) -> Moment {
    Moment(Duration::from_millis(ms))
}

fn key(params: &str) -> Key {
    Key {
        method: "test.echo",
        params: params.to_owned(),
        every: EVERY,
        position: 0,
        viewer: Viewer::Anonymous,
    }
}

fn asker() -> Asker {
    Asker { source: SourceKey::User(0), account: None }
}

fn event(number: u64, len_bytes: usize) -> Event {
    Event::answer(number, Time::default(), &format!("\"{}\"", "x".repeat(len_bytes)))
}

/// Counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn begin(table: &mut Table<()>, params: &str, ms: u64) -> (Place, bool) {
    table.begin(key(params), asker(), (), at(ms)).unwrap()
}

fn poll(table: &mut Table<()>, place: Place, is_clear: bool, ms: u64) -> Option<(u64, u64)> {
    match table.poll(place, is_clear, Waker::noop(), at(ms)) {
        Next::Event(event, skipped) => Some((event.number(), skipped)),
        Next::Comment | Next::Nothing => None,
        Next::End(_) => panic!("the end"),
    }
}

#[test]
fn the_same_question_of_two_is_one_and_ends_with_the_last() {
    let mut table = Table::new(StreamLimits::default());
    let (one, is_new) = begin(&mut table, "a", 0);
    let (two, is_new_too) = begin(&mut table, "a", 0);
    let (other, is_other) = begin(&mut table, "b", 0);
    assert_eq!((is_new, is_new_too, is_other, table.len()), (true, false, true, 3));
    assert!(one.question == two.question && one.question != other.question);
    assert!(!table.leave(one));
    assert!(!table.leave(one), "it has left");
    assert!(table.leave(two));
    assert_eq!(table.ask_at(two.question, at(500)), None);
    assert!(begin(&mut table, "a", 0).1, "asked again");
}

#[test]
fn a_slow_client_gets_the_latest_and_the_number_that_it_missed() {
    let mut table = Table::new(StreamLimits::default());
    let (slow, _) = begin(&mut table, "a", 0);
    table.put(slow.question, event(1, 9), at(0));
    assert_eq!(poll(&mut table, slow, true, 0), Some((1, 0)));
    for number in 2..=5 {
        table.put(slow.question, event(number, 9), at(number * 500));
        assert_eq!(poll(&mut table, slow, false, number * 500), None, "it has the first in hand");
    }
    assert_eq!(poll(&mut table, slow, true, 2_600), Some((5, 3)));
    assert_eq!(poll(&mut table, slow, true, 2_600), None);
    table.put(slow.question, event(6, 9), at(3_000));
    assert_eq!(poll(&mut table, slow, true, 3_000), Some((6, 0)), "sent once");
}

#[test]
fn a_later_client_gets_the_present_state_only() {
    let mut table = Table::new(StreamLimits::default());
    let (first, _) = begin(&mut table, "a", 0);
    table.put(first.question, event(7, 9), at(0));
    let (soon, _) = begin(&mut table, "a", 999);
    assert_eq!(poll(&mut table, soon, true, 999), Some((7, 0)));
    let (late, _) = begin(&mut table, "a", 1_001);
    assert_eq!(poll(&mut table, late, true, 1_001), None, "the daemon that was to answer may be gone");
    table.put(first.question, event(8, 9), at(9_000));
    assert_eq!(poll(&mut table, late, true, 9_000), Some((8, 0)));
}

#[test]
fn a_question_is_asked_on_the_beat_and_late_answers_leave_beats_out() {
    let mut table = Table::new(StreamLimits::default());
    let (place, _) = begin(&mut table, "a", 100);
    let mut asked = |ms| table.ask_at(place.question, at(ms)).unwrap();
    assert_eq!(asked(100), at(100));
    assert_eq!(asked(120), at(600));
    assert_eq!(asked(620), at(1_100));
    assert_eq!(asked(2_650), at(2_650), "at once, for it is late");
    assert_eq!(asked(2_660), at(3_100), "on the beat again");
}

#[test]
fn a_client_that_received_nothing_for_a_while_is_woken_for_a_comment() {
    let mut table = Table::new(StreamLimits::default());
    let (place, _) = begin(&mut table, "a", 0);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(matches!(table.poll(place, true, &waker, at(0)), Next::Nothing));
    assert!(table.silent(at(14_999)).is_empty());
    table.silent(at(15_000)).into_iter().for_each(Waker::wake);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(matches!(table.poll(place, false, &waker, at(15_000)), Next::Nothing), "it takes nothing");
    assert!(matches!(table.poll(place, true, &waker, at(15_001)), Next::Comment));
    assert!(matches!(table.poll(place, true, &waker, at(15_002)), Next::Nothing));
}

#[test]
fn who_was_let_go_gets_its_last_words_and_no_answer() {
    let mut table = Table::new(StreamLimits::default());
    let (gone, _) = begin(&mut table, "a", 0);
    let (stays, _) = begin(&mut table, "a", 0);
    assert_eq!(table.all().len(), 2);
    assert!(table.let_go(gone, Bytes::from_static(b"bye")).is_none(), "no task waits");
    table.put(gone.question, event(1, 9), at(0));
    let last = table.poll(gone, true, Waker::noop(), at(0));
    assert!(matches!(&last, Next::End(Some(bytes)) if bytes == "bye"), "{last:?}");
    assert_eq!(poll(&mut table, stays, true, 0), Some((1, 0)));
    assert_eq!(table.all().len(), 1);
    table.end();
    assert!(matches!(table.poll(stays, true, Waker::noop(), at(0)), Next::End(None)));
    let (late, _) = begin(&mut table, "a", 0);
    assert!(matches!(table.poll(late, true, Waker::noop(), at(0)), Next::End(None)), "it is over");
}

#[test]
fn those_who_are_behind_go_before_too_much_is_held() {
    let mut table = Table::new(StreamLimits { held_bytes: 2_500, ..StreamLimits::default() });
    let (quick, _) = begin(&mut table, "a", 0);
    let mut in_hand = Vec::new();
    let mut let_go = Vec::new();
    for number in 1..=8 {
        let (slow, _) = begin(&mut table, "a", 0);
        let (has_room, _) = table.make_room(quick.question, 1_000, &Bytes::from_static(b"slow"));
        if has_room {
            table.put(quick.question, event(number, 900), at(0));
        }
        // Each slow one holds the event that it got first.
        for place in [quick, slow] {
            match table.poll(place, true, Waker::noop(), at(0)) {
                Next::Event(event, _) if place == slow => in_hand.push((slow, event)),
                Next::End(_) => panic!("it has just come"),
                Next::Event(..) | Next::Comment | Next::Nothing => {}
            }
        }
        let gone = |(place, _): &(Place, Arc<Event>)| {
            matches!(table.poll(*place, false, Waker::noop(), at(0)), Next::End(_))
        };
        let (gone, stay): (Vec<_>, Vec<_>) = in_hand.into_iter().partition(gone);
        in_hand = stay;
        for (place, _) in gone {
            table.leave(place);
            let_go.push(place);
        }
        assert!(table.held_bytes() <= 2_500, "{}", table.held_bytes());
    }
    assert!(!let_go.is_empty() && !let_go.contains(&quick), "{let_go:?}");
}

/// A random operation.
#[derive(Clone, Debug)]
enum Step {
    Begin(u8),
    Leave(usize),
    Answer(u8),
    /// Poll a stream; its client has read everything before or not.
    Poll(usize, bool),
    LetGo(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..3u8).prop_map(Step::Begin),
        1 => (0..20usize).prop_map(Step::Leave),
        4 => (0..3u8).prop_map(Step::Answer),
        8 => ((0..20usize), any::<bool>()).prop_map(|(which, is_clear)| Step::Poll(which, is_clear)),
        1 => (0..20usize).prop_map(Step::LetGo),
        2 => (0..20_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..200)
}

/// Expected state of a stream.
struct Own {
    place: Place,
    question: u8,
    last: Option<u64>,
    in_hand: Option<Arc<Event>>,
    is_let_go: bool,
    woken: Arc<Woken>,
    waits: bool,
}

proptest! {
    #[test]
    fn whatever_happens_events_are_in_order_complete_or_reported_as_missed(steps in steps()) {
        let mut table: Table<()> = Table::new(StreamLimits { followers: 12, questions: 3, ..StreamLimits::default() });
        let mut own: Vec<Own> = Vec::new();
        let (mut now, mut numbers) = (0, BTreeMap::<u64, u64>::new());
        for step in steps {
            match step {
                Step::Wait(ms) => now += ms,
                Step::Begin(question) => {
                    let started = table.begin(key(&question.to_string()), asker(), (), at(now));
                    prop_assert_eq!(started.is_ok(), own.len() < 12);
                    let Ok((place, is_new)) = started else { continue };
                    prop_assert_eq!(is_new, own.iter().all(|one| one.question != question));
                    numbers.entry(place.question).or_insert(0);
                    let woken = Arc::default();
                    own.push(Own { place, question, last: None, in_hand: None, is_let_go: false, woken, waits: false });
                }
                Step::Leave(which) if !own.is_empty() => {
                    let gone = own.swap_remove(which % own.len());
                    let is_last = own.iter().all(|one| one.question != gone.question);
                    prop_assert_eq!(table.leave(gone.place), is_last);
                }
                Step::Answer(question) => {
                    let Some(first) = own.iter().find(|one| one.question == question) else { continue };
                    let number = numbers.get_mut(&first.place.question).unwrap();
                    *number += 1;
                    let waits: Vec<_> = own.iter().filter(|one| one.question == question && one.waits).collect();
                    let before: Vec<u64> = waits.iter().map(|one| one.woken.0.load(Ordering::Relaxed)).collect();
                    let woken = table.put(first.place.question, event(*number, 9), at(now));
                    woken.into_iter().for_each(Waker::wake);
                    for (one, before) in waits.iter().zip(before) {
                        prop_assert_eq!(one.woken.0.load(Ordering::Relaxed), before + 1, "the waiting task is woken");
                    }
                    own.iter_mut().filter(|one| one.question == question).for_each(|one| one.waits = false);
                }
                Step::Poll(which, takes) if !own.is_empty() => {
                    let count = own.len();
                    let one = &mut own[which % count];
                    if takes {
                        one.in_hand = None;
                    }
                    let waker = Waker::from(Arc::clone(&one.woken));
                    let next = table.poll(one.place, one.in_hand.is_none(), &waker, at(now));
                    one.waits = matches!(next, Next::Nothing);
                    prop_assert_eq!(matches!(next, Next::End(_)), one.is_let_go);
                    if let Next::Event(event, skipped) = next {
                        prop_assert!(one.in_hand.is_none(), "two in hand");
                        if let Some(last) = one.last {
                            prop_assert_eq!(event.number(), last + skipped + 1);
                        }
                        prop_assert_eq!(event.number(), numbers[&one.place.question], "the latest");
                        one.last = Some(event.number());
                        one.in_hand = Some(event);
                    }
                }
                Step::LetGo(which) if !own.is_empty() => {
                    let count = own.len();
                    let one = &mut own[which % count];
                    one.is_let_go = true;
                    one.waits = false;
                    table.let_go(one.place, Bytes::new());
                }
                Step::Leave(_) | Step::Poll(..) | Step::LetGo(_) => {}
            }
            prop_assert_eq!(table.len(), own.len());
            // Older events are retained while they are being sent, and no longer.
            let in_hand = own.iter().filter_map(|one| one.in_hand.as_ref()).map(Arc::as_ptr);
            let in_hand: std::collections::BTreeSet<_> = in_hand.collect();
            prop_assert!(table.held_bytes() <= in_hand.len() * 200);
        }
    }
}
