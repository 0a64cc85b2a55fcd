//! Copies of minutes: through restarts, lost copies, other sources, and a clock that is set back.

use crate::made::{Dice, Maker, SHORT_SEGMENTS, host, open, push};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use store::bucket::Bucket;
use store::copied_names::Sent;
use store::query::{By, Subject};
use store::reader::{Reader, Selection};
use store::writer::Writer;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::minutes::{Fetch, Minutes, Numbered};
use wire::report::samples::{HostSamples, SampleBlock, Samples};
use wire::time::Time;

/// A connection between two stores.
#[derive(Default)]
struct Connection {
    sent: Sent,
    numbered: Numbered,
    of_samples: (Sent, Numbered),
}

impl Connection {
    /// Fetches once; returns the number of rows, and whether nothing follows.
    fn fetch(
        &mut self,
        from: &Reader,
        to: &mut Writer,
        is_wanted: impl Fn(&HostName) -> bool,
        len_bytes: u32,
    ) -> (usize, bool) {
        let held = to.reader().held().into_iter().filter(|held| is_wanted(&held.host)).collect();
        let fetch = Fetch { held, since: Time::from_micros(0), len_bytes, connected: AtEnd(None) };
        let answer = from.minutes(&fetch, is_wanted, &mut self.sent);
        let sent = postcard::to_stdvec(&answer).expect("in memory");
        let Minutes { hosts, is_end } = postcard::from_bytes(&sent).expect("just encoded");
        let mut rows = 0;
        for mut minutes in hosts {
            let metrics = self.numbered.learn(std::mem::take(&mut minutes.names)).expect("few");
            // Twice: an answer that was in a queue while its end was not known yet is fetched again.
            for row in minutes.rows.iter().chain(&minutes.rows) {
                to.copy(&minutes.host, &metrics, row).expect("a row");
            }
            rows += minutes.rows.len();
        }
        (rows, is_end)
    }

    /// Fetches samples once; returns whether nothing follows.
    fn fetch_samples(&mut self, from: &Reader, to: &mut Writer, len_bytes: u32) -> bool {
        let (held, since) = (to.reader().held_samples(), Time::from_micros(0));
        let fetch = Fetch { held, since, len_bytes, connected: AtEnd(None) };
        let answer = from.samples_after(&fetch, &mut self.of_samples.0);
        let sent = postcard::to_stdvec(&answer).expect("in memory");
        let Samples { hosts, is_end } = postcard::from_bytes(&sent).expect("just encoded");
        for HostSamples { host, names, blocks } in hosts {
            let metrics = self.of_samples.1.learn(names).expect("few");
            for block in blocks.iter().chain(&blocks) {
                to.copy_samples(&host, &metrics, block).expect("a block");
            }
        }
        is_end
    }

    fn fetch_all(&mut self, from: &Reader, to: &mut Writer, is_wanted: impl Fn(&HostName) -> bool + Copy) {
        while !self.fetch(from, to, is_wanted, 20_000).1 {}
    }
}

fn open_copies(folder: &Path) -> Writer {
    Writer::open_copies(folder, SHORT_SEGMENTS).expect("opened")
}

type Buckets = BTreeMap<(Subject, Time), Bucket>;

fn buckets(reader: &Reader, step: Duration, until: Time) -> Buckets {
    let selection = Selection { host: &|_| true, metric: &|_| true, since: Time::from_micros(0), until };
    let answer = reader.steps(&selection, step, &By::Series, false, usize::MAX).expect("any size");
    assert_eq!(answer.damaged, 0);
    let of = |(subject, points): (Subject, Vec<store::query::Point>)| {
        points.into_iter().map(move |point| ((subject.clone(), point.time), point.bucket))
    };
    answer.series.into_iter().flat_map(of).collect()
}

type AllSamples = Vec<(Subject, Vec<(Time, String)>)>;

/// All samples.
fn samples(reader: &Reader) -> AllSamples {
    let (since, until) = (Time::from_micros(0), Time::from_micros(i64::MAX));
    let selection = Selection { host: &|_| true, metric: &|_| true, since, until };
    let answer = reader.values(&selection, usize::MAX).expect("any size");
    assert_eq!((answer.damaged, answer.parts.len()), (0, 1), "samples alone are read");
    let shown = |(time, value)| (time, format!("{value:?}"));
    let of = |(subject, values): (Subject, Vec<_>)| (subject, values.into_iter().map(shown).collect());
    let mut all: AllSamples = answer.series.into_iter().map(of).collect();
    all.sort();
    all
}

fn assert_same(found: &AllSamples, expected: &AllSamples) {
    assert_eq!(found.len(), expected.len());
    for ((subject, found), (other, expected)) in found.iter().zip(expected) {
        let first = found.iter().zip(expected).position(|(found, expected)| found != expected);
        let first = first.map(|at| (at, &found[at], &expected[at]));
        assert_eq!((subject, found.len(), first), (other, expected.len(), None));
    }
}

/// Compares whole hours and minutes before `until`.
fn assert_equal(copy: &Reader, origins: &[&Reader], until: Time) {
    for step in [60, 3600].map(Duration::from_secs) {
        let until = store::tier::floor(until, step);
        let expected: Buckets = origins.iter().flat_map(|origin| buckets(origin, step, until)).collect();
        let found = buckets(copy, step, until);
        assert_eq!(found.len(), expected.len(), "{step:?}");
        for (key, expected) in &expected {
            let found = &found[key];
            let context = format!("{step:?} {key:?}: {found:?}, expected {expected:?}");
            assert_eq!(
                (found.count, found.last.as_f64()),
                (expected.count, expected.last.as_f64()),
                "{context}"
            );
            assert_eq!(found.increase, expected.increase, "{context}");
            let difference = (found.sum.as_f64() - expected.sum.as_f64()).abs();
            assert!(difference <= 1e-9 * expected.sum.as_f64().abs(), "{context}");
        }
    }
}

/// A copy of a copy, which was compacted as far as possible.
fn copied_from_long_blocks(copy: &mut Writer) -> Reader {
    (0..9).for_each(|_| copy.compact());
    let folder = tempfile::tempdir().expect("a folder");
    let mut third = open_copies(folder.path());
    Connection::default().fetch_all(&copy.reader(), &mut third, |_| true);
    // Its open files can be read on.
    third.reader()
}

/// Compares copies with their origins, and copies of the copies.
fn assert_copied(copies: [&mut Writer; 2], origins: &[Reader; 2], until: Time) {
    let origins = [&origins[0], &origins[1]];
    let mut expected: AllSamples = origins.iter().flat_map(|origin| samples(origin)).collect();
    expected.sort();
    let mut compacted = 0;
    for copy in copies {
        assert_equal(&copy.reader(), &origins, until);
        assert_same(&samples(&copy.reader()), &expected);
        assert_eq!(copy.reader().state().error(), None);
        compacted += copy.reader().state().tiers[1].files.compacted_segments;
        assert_equal(&copied_from_long_blocks(copy), &origins, until);
    }
    assert!(compacted > 0, "some were compacted");
}

#[test]
fn copies_equal_their_origin_whatever_happens() {
    for seed in [3, 50] {
        let names = ["wn01", "wn02"];
        let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().expect("a folder")).collect();
        let mut origins = [open(folders[0].path()), open(folders[1].path())];
        let mut makers = names.map(|name| Maker::new(name, seed));
        makers.iter_mut().for_each(|maker| maker.period_micros = 20_000_000);
        let mut homes = [2, 3];
        let (mut copy, mut standby) =
            (open_copies(folders[homes[0]].path()), open_copies(folders[homes[1]].path()));
        let mut connections: [Connection; 3] = Default::default();
        let mut dice = Dice(seed + 9);
        for _ in 0..6000 {
            let at = dice.below(2) as usize;
            push(&mut origins[at], &makers[at].next());
            let wanted = host(names[at]);
            match dice.below(300) {
                0..50 => {
                    connections[at].fetch_samples(&origins[at].reader(), &mut copy, 3000);
                }
                50..70 => {
                    connections[2].fetch_samples(&copy.reader(), &mut standby, 3000);
                }
                70..100 => {
                    connections[at].fetch(&origins[at].reader(), &mut copy, |host| *host == wanted, 3000);
                }
                100..150 => {
                    connections[2].fetch(&copy.reader(), &mut standby, |_| true, 3000);
                }
                // Restarts; what was not flushed is lost, and copied again.
                150 => {
                    drop(copy);
                    copy = open_copies(folders[homes[0]].path());
                    connections = Default::default();
                }
                151..160 => copy.flush(),
                170..180 => [&mut copy, &mut standby].into_iter().for_each(Writer::compact),
                180..190 => origins.iter_mut().for_each(Writer::compact),
                160 => {
                    standby.flush();
                    drop(standby);
                    standby = open_copies(folders[homes[1]].path());
                    connections[2] = Connection::default();
                }
                161 => {
                    origins.iter_mut().for_each(Writer::flush);
                    let [first, second] = origins;
                    drop((first, second));
                    origins = [open(folders[0].path()), open(folders[1].path())];
                    connections = Default::default();
                }
                // The standby succeeds: what it lacks comes from the members.
                162 => {
                    std::mem::swap(&mut copy, &mut standby);
                    homes.swap(0, 1);
                    connections = Default::default();
                }
                _ => {}
            }
        }
        for (at, origin) in origins.iter().enumerate() {
            let wanted = host(names[at]);
            connections[at].fetch_all(&origin.reader(), &mut copy, |host| *host == wanted);
            while !connections[at].fetch_samples(&origin.reader(), &mut copy, 20_000) {}
        }
        connections[2].fetch_all(&copy.reader(), &mut standby, |_| true);
        while !connections[2].fetch_samples(&copy.reader(), &mut standby, 20_000) {}
        let until = Time::from_micros(makers[0].time.min(makers[1].time));
        assert_copied([&mut copy, &mut standby], &origins.each_ref().map(Writer::reader), until);
    }
}

#[test]
fn a_copy_that_is_opened_again_at_any_time_lacks_no_minute() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let (mut origin, mut copy) = (open(folders[0].path()), open_copies(folders[1].path()));
    let mut maker = Maker::new("wn01", 4);
    let mut connection = Connection::default();
    // 37 minutes after a whole hour, so that the 24th hour does not end with the 60th minute of a block.
    maker.time = 1_795_002_000_000_000 - 180_000_000;
    for minute in 0..1440 + 200 {
        let mut next = maker.next();
        next.time = Time::from_micros(1_795_001_820_000_000).plus(Duration::from_secs(60) * minute);
        push(&mut origin, &next);
        connection.fetch_all(&origin.reader(), &mut copy, |_| true);
        if minute % 1440 > 1380 || minute % 97 == 0 {
            copy.flush();
            drop(copy);
            copy = open_copies(folders[1].path());
            assert_equal(&copy.reader(), &[&origin.reader()], next.time);
            connection = Connection::default();
        }
    }
}

/// A store with a minute of samples each second, and what a fetch of it answers.
fn a_minute(folder: &Path) -> (Writer, Maker, HostSamples) {
    let (mut origin, mut maker) = (open(folder), Maker::new("wn01", 5));
    maker.period_micros = 1_000_000;
    (0..60).for_each(|_| push(&mut origin, &maker.next()));
    let fetch =
        Fetch { held: Vec::new(), since: Time::from_micros(0), len_bytes: 1 << 20, connected: AtEnd(None) };
    let mut answer = origin.reader().samples_after(&fetch, &mut Sent::default());
    (origin, maker, answer.hosts.remove(0))
}

#[test]
fn a_block_that_is_not_what_it_is_said_to_be_is_refused() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let (_, _, HostSamples { host, names, blocks }) = a_minute(folders[0].path());
    let metrics = Numbered::default().learn(names).expect("few");
    let mut copy = open_copies(folders[1].path());
    let changed = |change: &dyn Fn(&mut SampleBlock)| {
        let mut block = blocks[0].clone();
        change(&mut block);
        block
    };
    let later = blocks[0].last.plus(Duration::from_secs(1));
    for (what, block) in [
        ("another end", changed(&|block| block.next += 1)),
        ("another last time", changed(&|block| block.last = later)),
        ("another latest time", changed(&|block| block.latest = later)),
        ("a head that is cut", changed(&|block| block.head.0.truncate(20))),
        ("a body that is cut", changed(&|block| block.body.0.truncate(20))),
        ("a flipped bit", changed(&|block| block.body.0[7] ^= 1)),
        ("nothing", changed(&|block| block.head.0.clear())),
    ] {
        assert!(copy.copy_samples(&host, &metrics, &block).is_err(), "{what}");
    }
    assert!(copy.reader().held_samples().is_empty());
    copy.copy_samples(&host, &metrics, &blocks[0]).expect("unchanged");
    assert_eq!(copy.reader().held_samples()[0].next, 60);
}

#[test]
fn hosts_whose_samples_were_not_copied_are_answered_by_minutes() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let (mut origin, mut maker, _) = a_minute(folders[0].path());
    let (mut other, mut of_other) = (open(folders[1].path()), Maker::new("wn02", 6));
    for _ in 0..600 {
        push(&mut origin, &maker.next());
        push(&mut other, &of_other.next());
    }
    let mut copy = open_copies(folders[2].path());
    for origin in [&origin, &other] {
        Connection::default().fetch_all(&origin.reader(), &mut copy, |_| true);
    }
    while !Connection::default().fetch_samples(&origin.reader(), &mut copy, 1 << 20) {}
    let all = samples(&copy.reader());
    let of = |name: &str| {
        let of_host = |(subject, _): &&(Subject, Vec<_>)| {
            subject.host == Some(host(name)) && subject.metric.name == "load"
        };
        all.iter().find(of_host).map_or(0, |(_, values)| values.len())
    };
    assert_eq!(of("wn01"), 660);
    assert!((20..600).contains(&of("wn02")), "minutes: {}", of("wn02"));
    let (since, until) = (Time::from_micros(0), Time::from_micros(i64::MAX / 2));
    let selection = Selection { host: &|_| true, metric: &|metric| metric.name == "load", since, until };
    let steps = copy
        .reader()
        .steps(&selection, Duration::from_secs(10), &By::Host, false, usize::MAX)
        .expect("any size");
    let counts: Vec<usize> = steps.series.iter().map(|(_, points)| points.len()).collect();
    assert_eq!(counts[1], of("wn02"), "at the starts of minutes");
    assert!(counts[0] > counts[1], "{counts:?}");
}
