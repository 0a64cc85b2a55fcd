//! A reader of the domain's events continues across restarts and changes of the representative.

use crate::report::rig::{Member, Nothing, Rig, myself};
use crate::simulated::{Random, Simulated};
use sensor::journal;
use sensor::report::sender::Sender;
use sensor::representative::cursor::Cursor;
use sensor::representative::domain::{Config, Now};
use sensor::representative::hosts::{ElectionEntry, Liveness, Role};
use sensor::representative::store;
use sensor::representative::watermarks::Watermarks;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::event::Id;
use wire::id::HostName;
use wire::report::marks::MarkList;
use wire::time::Time;

/// Reads with the cursor as text, as programs store it; counts how often each event was seen.
struct Follower {
    cursor: String,
    seen: BTreeMap<Id, u32>,
    missed: u64,
}

impl Follower {
    fn new(rig: &Rig) -> Follower {
        let cursor = rig.domain.feed().oldest().to_string();
        Follower { cursor, seen: BTreeMap::new(), missed: 0 }
    }

    fn read(&mut self, rig: &Rig, limit: usize) -> usize {
        let cursor: Cursor = self.cursor.parse().unwrap();
        let page = rig.domain.feed().read(&cursor, limit, |_| true).unwrap();
        for stored in &page.events {
            *self.seen.entry(stored.event.id).or_default() += 1;
        }
        self.cursor = page.cursor.to_string();
        self.missed += page.missed;
        page.events.len()
    }

    fn read_all(&mut self, rig: &Rig) {
        while self.read(rig, 37) > 0 {}
    }
}

#[test]
fn a_cursor_survives_a_restart() {
    let mut rig = Rig::new(2, Config::default());
    rig.members[0].read(100);
    rig.members[1].read(100);
    rig.settle();
    let mut follower = Follower::new(&rig);
    follower.read(&rig, 61);
    rig.restart();
    rig.members[0].read(50);
    rig.settle();
    follower.read_all(&rig);
    assert_eq!(follower.seen, rig.stored());
    assert_eq!((follower.seen.len(), follower.missed), (250, 0));
}

#[test]
fn across_representatives_nothing_is_missed_and_little_is_seen_twice() {
    let (mut doubled, mut events) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut rig = Rig::new(3, Config::default());
        let mut follower = Follower::new(&rig);
        let mut disks = [Simulated::default(), Simulated::default()];
        for change in 0..5u64 {
            for _ in 0..60 {
                let nth = random.below(3) as usize;
                let (domain, now) = (&mut rig.domain, rig.now);
                let member = &mut rig.members[nth];
                match random.below(12) {
                    0..3 => member.read(random.below(20)),
                    3..5 => member.sync(),
                    5 if member.link.is_none() => member.connect(domain),
                    6..8 => member.report(2, 50),
                    8..10 => member.move_bytes(domain, 3000, now),
                    10 => {
                        rig.commit();
                        rig.deliver();
                    }
                    _ => {
                        follower.read(&rig, 1 + random.below(60) as usize);
                    }
                }
            }
            let (old, new) = (rig.disk.clone(), random.below(2) as usize);
            let disk = std::mem::replace(&mut disks[new], old);
            rig.fail_over(disk, 300 + change);
        }
        rig.settle();
        follower.read_all(&rig);
        let stored = rig.stored();
        assert_eq!(rig.faults(), (0, 0));
        let unseen: Vec<_> = stored.keys().filter(|id| !follower.seen.contains_key(id)).collect();
        assert!(unseen.is_empty(), "seed {seed}: {} of {} never seen", unseen.len(), stored.len());
        doubled += follower.seen.values().filter(|times| **times > 1).count();
        events += stored.len();
    }
    assert!(events > 3000, "{events}");
    assert!(doubled * 2 < events, "{doubled} of {events} seen more than once: marks are of no use");
}

/// Makes this member a standby.
fn stand_by(rig: &mut Rig, nth: usize) {
    let place = ElectionEntry { role: Role::Standby, gone: None };
    rig.domain.apply_election(&[(rig.members[nth].host.clone(), place)].into(), rig.now);
}

fn watermarks_sent_to(rig: &mut Rig, nth: usize) -> Watermarks {
    let mut watermarks = Watermarks::default();
    rig.members[nth].sender.take_watermarks().into_iter().for_each(|marks| watermarks.take(marks));
    watermarks
}

/// Restarts the member without its marks, as if an old version of the program had written its journal.
fn restart(rig: &mut Rig, nth: usize) {
    let member = &mut rig.members[nth];
    member.sender = Sender::new(myself(member.key, &member.host), MarkList::default());
}

fn given_again(follower: &Follower) -> usize {
    follower.seen.values().filter(|times| **times > 1).count()
}

/// Runs a second representative; returns the disk of the first, with 20 events of each member.
fn second_reign(members: u8) -> (Rig, Simulated) {
    let mut rig = Rig::new(members, Config::default());
    rig.members.iter_mut().for_each(|member| member.read(20));
    rig.settle();
    let of_first = rig.disk.clone();
    rig.fail_over(Simulated::default(), 300);
    (rig, of_first)
}

/// The next representative was a standby, and has events of an earlier term.
#[test]
fn events_of_a_host_that_is_gone_or_restarted_are_not_given_again() {
    let (mut rig, of_next) = second_reign(3);
    rig.settle();
    stand_by(&mut rig, 0);
    rig.members.iter_mut().for_each(|member| member.read(5));
    rig.settle();
    let mut follower = Follower::new(&rig);
    follower.read_all(&rig);
    assert_eq!(follower.seen.len(), 75);
    let watermarks = watermarks_sent_to(&mut rig, 0);
    rig.fail_over(of_next, 0);
    rig.domain.set_watermarks(watermarks);
    let gone = rig.members.remove(1);
    restart(&mut rig, 1);
    rig.settle();
    follower.read_all(&rig);
    rig.members.push(gone);
    restart(&mut rig, 2);
    rig.members[2].read(1);
    rig.settle();
    follower.read_all(&rig);
    assert_eq!((follower.seen.len(), follower.missed), (76, 0));
    assert_eq!(given_again(&follower), 0, "of {} events", follower.seen.len());
}

/// The reader was behind the last marks that the standby received.
#[test]
fn a_reader_behind_the_last_word_of_the_dead_is_given_little_again() {
    let (mut rig, of_next) = second_reign(2);
    rig.settle();
    stand_by(&mut rig, 0);
    let mut follower = Follower::new(&rig);
    for _ in 0..10 {
        rig.members.iter_mut().for_each(|member| member.read(2));
        rig.settle();
    }
    follower.read(&rig, 70);
    let watermarks = watermarks_sent_to(&mut rig, 0);
    rig.fail_over(of_next, 0);
    rig.domain.set_watermarks(watermarks);
    restart(&mut rig, 1);
    rig.settle();
    follower.read_all(&rig);
    assert_eq!((follower.seen.len(), follower.missed), (80, 0));
    assert!(given_again(&follower) <= 4, "{} given again: one commit's at most", given_again(&follower));
}

/// The next representative was no standby, and has events of an earlier term.
#[test]
fn who_starts_again_knows_by_its_journal_what_was_stored() {
    let (mut rig, of_next) = second_reign(2);
    rig.members.iter_mut().for_each(|member| member.read(30));
    rig.settle();
    rig.members[1].journal.begin_segment(&Nothing).unwrap();
    rig.members[1].read(1);
    rig.settle();
    let mut follower = Follower::new(&rig);
    follower.read_all(&rig);
    assert_eq!(follower.seen.len(), 101);
    rig.fail_over(of_next, 0);
    for member in &mut rig.members {
        member.reopen();
        member.start_again();
    }
    rig.settle();
    follower.read_all(&rig);
    assert_eq!((follower.seen.len(), follower.missed, given_again(&follower)), (101, 0, 0));
}

/// Until the members have reported, the representative does not know what readers have seen.
#[test]
fn readers_from_another_store_wait_for_the_members_that_are_there() {
    let mut rig = Rig::new(3, Config::default());
    rig.settle();
    let elsewhere = rig.domain.feed().end();
    rig.fail_over(Simulated::default(), 300);
    let heard = ElectionEntry { role: Role::Member, gone: None };
    let gone = ElectionEntry { gone: Some((Liveness::Silent, Time::default())), ..heard };
    let hosts: Vec<HostName> = rig.members.iter().map(|member| member.host.clone()).collect();
    let settled = |rig: &mut Rig, third: ElectionEntry| {
        let places = hosts.iter().cloned().zip([heard, heard, third]).collect();
        rig.domain.apply_election(&places, rig.now);
        rig.domain.feed().is_settled()
    };
    let _dead = rig.members.pop();
    let late = rig.members.pop().expect("three");
    rig.settle();
    assert!(!settled(&mut rig, gone), "one that is there has not come");
    rig.members.push(late);
    rig.settle();
    let lately = ElectionEntry { gone: Some((Liveness::Silent, rig.now.wall)), ..heard };
    assert!(!settled(&mut rig, lately), "one that was there lately may be there still");
    assert!(settled(&mut rig, gone), "the dead are not waited for");
    let feed = rig.domain.feed();
    assert!(feed.is_from_elsewhere(&elsewhere) && !feed.is_from_elsewhere(&feed.end()));
}

#[test]
fn no_host_is_waited_for_longer_than_three_seconds() {
    let mut rig = Rig::new(1, Config::default());
    let places = [(HostName::try_from("absent").expect("a name"), ElectionEntry::default())].into();
    for (secs, is_settled) in [(0, false), (2, false), (3, true)] {
        let now = Now { moment: rig.now.moment.plus(Duration::from_secs(secs)), ..rig.now };
        rig.domain.apply_election(&places, now);
        assert_eq!(rig.domain.feed().is_settled(), is_settled, "after {secs} s");
    }
}

/// A standby drops marks of a journal that went back meanwhile.
#[test]
fn a_standby_receives_no_numbers_that_mean_other_events_now() {
    let mut rig = Rig::new(2, Config::default());
    rig.settle();
    stand_by(&mut rig, 0);
    rig.members[1].read(20);
    rig.settle();
    let mut watermarks = watermarks_sent_to(&mut rig, 0);
    rig.members[1].disconnect(&mut rig.domain);
    let mut member = Member::new(1, journal::Config::default());
    let records = (100..112).map(|line| member.record(line)).collect();
    member.append(records, 112);
    member.sync();
    rig.members[1] = member;
    rig.settle();
    let records = (112..130).map(|line| rig.members[1].record(line)).collect();
    rig.members[1].append(records, 130);
    rig.settle();
    assert_eq!(rig.members[1].journal.state().head.next, 30);
    rig.members[0].sender.take_watermarks().into_iter().for_each(|marks| watermarks.take(marks));
    let known: Vec<u64> = watermarks.of(rig.members[1].key).map(|mark| mark.next).collect();
    assert!(known.iter().all(|next| *next <= 12), "{known:?}");
}

/// A standby that is up to date gets the marks of all members; a reader that starts with the next event gets
/// no older one.
#[test]
fn what_a_new_representative_received_before_is_not_next() {
    let mut rig = Rig::new(2, Config::default());
    stand_by(&mut rig, 0);
    rig.members.iter_mut().for_each(|member| member.read(50));
    rig.settle();
    stand_by(&mut rig, 0);
    rig.settle();
    let watermarks = watermarks_sent_to(&mut rig, 0);
    rig.fail_over(Simulated::default(), 300);
    rig.domain.set_watermarks(watermarks);
    let end = rig.domain.feed().end().to_string();
    let mut follower = Follower { cursor: end, seen: BTreeMap::new(), missed: 0 };
    restart(&mut rig, 1);
    rig.settle();
    follower.read_all(&rig);
    assert_eq!((rig.stored().len(), follower.seen.len()), (100, 0));
    rig.members.iter_mut().for_each(|member| member.read(2));
    rig.settle();
    follower.read_all(&rig);
    assert_eq!(follower.seen.len(), 4);
}

/// The journal of a member went back meanwhile: its new events reuse the numbers of other events.
#[test]
fn what_was_sent_of_a_journal_that_went_back_hides_nothing() {
    let mut rig = Rig::new(2, Config::default());
    rig.settle();
    stand_by(&mut rig, 0);
    rig.members[1].read(20);
    rig.settle();
    let mut follower = Follower::new(&rig);
    follower.read_all(&rig);
    let watermarks = watermarks_sent_to(&mut rig, 0);
    assert!(watermarks.of(rig.members[1].key).any(|mark| mark.next == 20));
    let mut later = Rig::new(2, Config::default());
    later.fail_over(Simulated::default(), 300);
    later.domain.set_watermarks(watermarks);
    let member = &mut later.members[1];
    let records = (100..112).map(|line| member.record(line)).collect();
    member.append(records, 112);
    later.settle();
    follower.read_all(&later);
    assert_eq!(later.stored().len(), 12);
    assert!(later.stored().keys().all(|id| follower.seen.contains_key(id)), "numbers 0 to 11 are others now");
}

/// Events that the new representative never had are counted as missed.
#[test]
fn what_the_new_representative_does_not_hold_is_counted() {
    let mut rig = Rig::new(1, Config { backfill: 100, ..Config::default() });
    rig.members[0].read(1000);
    rig.settle();
    let mut follower = Follower::new(&rig);
    follower.read(&rig, 10);
    rig.fail_over(Simulated::default(), 5);
    rig.settle();
    follower.read_all(&rig);
    assert!(follower.missed >= 890, "{} counted as missed; 890 are", follower.missed);
    assert_eq!(follower.seen.len(), 110);
}

#[test]
fn what_the_budget_deleted_is_counted_exactly() {
    let store = store::Config { segment_len_bytes: 10_000, budget_bytes: 60_000 };
    let mut rig = Rig::new(1, Config { store, ..Config::default() });
    let mut follower = Follower::new(&rig);
    rig.members[0].filler = 50;
    for _ in 0..60 {
        rig.members[0].read(50);
        rig.settle();
    }
    follower.read_all(&rig);
    assert!(follower.missed > 500, "{}", follower.missed);
    assert_eq!(follower.missed + follower.seen.len() as u64, 3000);
    rig.restart();
    let mut again = Follower { cursor: "000000000000004d.0".into(), seen: BTreeMap::new(), missed: 0 };
    again.read_all(&rig);
    assert_eq!((again.missed, again.seen.len()), (follower.missed, follower.seen.len()));
}

/// The count is exact also for a store that must first read its oldest segment.
#[test]
fn what_the_new_representative_deleted_is_counted_exactly() {
    let store = store::Config { segment_len_bytes: 10_000, budget_bytes: 60_000 };
    let mut rig = Rig::new(1, Config { store, ..Config::default() });
    let mut follower = Follower::new(&rig);
    rig.members[0].filler = 50;
    rig.members[0].read(50);
    rig.settle();
    follower.read_all(&rig);
    rig.fail_over(Simulated::default(), 5);
    for _ in 0..60 {
        rig.members[0].read(50);
        rig.settle();
    }
    for is_restarted in [false, true] {
        if is_restarted {
            rig.restart();
        }
        let mut again = Follower { cursor: follower.cursor.clone(), seen: follower.seen.clone(), missed: 0 };
        again.read_all(&rig);
        assert!(again.missed > 500, "{}", again.missed);
        assert_eq!(again.missed + again.seen.len() as u64, 3050, "restarted: {is_restarted}");
    }
}

/// Reads to the end of one store and continues at the same event in the next: marks show what was seen.
#[test]
fn a_reader_that_kept_up_sees_nothing_twice() {
    let mut rig = Rig::new(3, Config::default());
    let mut follower = Follower::new(&rig);
    for round in 0..100 {
        rig.members[round % 3].read(10);
        rig.settle();
        follower.read_all(&rig);
    }
    rig.fail_over(Simulated::default(), 5);
    rig.members[1].read(25);
    rig.settle();
    follower.read_all(&rig);
    assert_eq!(follower.seen, rig.stored(), "each event of the new store, once");
    assert_eq!((follower.seen.len(), follower.missed), (1025, 0));
}
