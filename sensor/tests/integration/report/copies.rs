//! Minutes and samples that the representative fetches from members, and that a standby fetches from it.

use crate::report::hostile::{hello, send};
use crate::report::rig::{Rig, host, now_at};
use sensor::history::copied::{Answer, Copied, Kind, OfKind, Rows};
use sensor::representative::domain::{Config, Link, Output};
use sensor::representative::hosts::{ElectionEntry, Role};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::credential::Serial;
use wire::id::PeerKey;
use wire::report::calls::{CallPosition, Calls, FetchCalls, POSITIONS_MAX};
use wire::report::minutes::{Fetch, Held, HostMinutes, MinuteRow, Minutes, NewNames};
use wire::report::samples::{HostSamples, SampleBlock, Samples};
use wire::report::{
    Frames, FromMember, FromRepresentative, Hello, Offer, OfferMore, Packed, StoreKey, Stores,
};
use wire::sample::{Metric, Semantics};
use wire::time::Time;

/// What the representative wants to do.
#[derive(Default)]
struct Wanted {
    fetches: Vec<(Link, Fetch)>,
    copies: Vec<Copied>,
    sample_fetches: Vec<(Link, Fetch)>,
    of_standbys: Vec<(Link, Kind, Fetch)>,
    answers: Vec<(Link, Answer)>,
    fetches_of_calls: Vec<(Link, FetchCalls)>,
    calls: Vec<(Link, Calls)>,
    closed: Vec<String>,
}

fn drain(rig: &mut Rig) -> Wanted {
    let mut wanted = Wanted::default();
    while let Some(output) = rig.domain.poll_output() {
        match output {
            Output::Send(link, bytes) => {
                rig.domain.handle_written(link);
                let mut frames = Frames::default();
                frames.push(&bytes);
                match frames.take().unwrap().unwrap().0 {
                    FromRepresentative::Fetch(fetch) => wanted.fetches.push((link, fetch)),
                    FromRepresentative::FetchSamples(fetch) => wanted.sample_fetches.push((link, fetch)),
                    FromRepresentative::Minutes(minutes) => {
                        wanted.answers.push((link, Answer::Minutes(minutes)));
                    }
                    FromRepresentative::Samples(samples) => {
                        wanted.answers.push((link, Answer::Samples(samples)));
                    }
                    FromRepresentative::Calls(calls) => wanted.calls.push((link, calls)),
                    FromRepresentative::Resume(resume) => {
                        let more = OfferMore { has_calls: true, has_samples: AtEnd(Some(true)) };
                        let offer = Offer { has_minutes: true, more: AtEnd(Some(more)) };
                        assert_eq!(resume.offer.0, Some(offer));
                    }
                    FromRepresentative::Durable(_)
                    | FromRepresentative::Allow(_)
                    | FromRepresentative::Refused(_)
                    | FromRepresentative::Marks(_) => {}
                }
            }
            Output::Close(_, why) => wanted.closed.push(why.to_string()),
            Output::Copy(copied) => wanted.copies.push(copied),
            Output::Fetch(link, kind, fetch) => wanted.of_standbys.push((link, kind, fetch)),
            Output::FetchCalls(link, fetch) => wanted.fetches_of_calls.push((link, fetch)),
        }
    }
    wanted
}

fn rig() -> Rig {
    let mut rig = Rig::new(0, Config::default());
    rig.domain.set_copies(&OfKind([86_400, 7200].map(|secs| Some(Duration::from_secs(secs)))));
    assert!(rig.domain.wants_held());
    rig.domain.set_held(OfKind::default());
    rig.domain.collect_call_changes();
    rig
}

fn join(rig: &mut Rig, number: u8, has_minutes: bool) -> Link {
    let own = format!("wn{number}");
    let peer = (PeerKey([number; 32]), Serial(0));
    let link = rig.domain.connect(peer, host(&own), rig.now.moment).unwrap();
    let stores = AtEnd(has_minutes.then_some(Stores { minutes: true, ..Stores::default() }));
    join_with(rig, link, Hello { stores, ..hello(&own, number.into()) });
    link
}

/// A member that has samples too.
fn join_with_samples(rig: &mut Rig, number: u8) -> Link {
    let own = format!("wn{number}");
    let link = rig.domain.connect((PeerKey([number; 32]), Serial(0)), host(&own), rig.now.moment).unwrap();
    let stores = AtEnd(Some(Stores { minutes: true, samples: AtEnd(Some(true)), archive: AtEnd(None) }));
    join_with(rig, link, Hello { stores, ..hello(&own, number.into()) });
    link
}

fn join_with(rig: &mut Rig, link: Link, hello: Hello) {
    send(rig, link, &FromMember::Hello(Box::new(hello)));
}

fn minutes(of: &str, starts: &[i64]) -> HostMinutes {
    let (labels, unit) = (Vec::new(), "".into());
    let metric = Metric { name: "node_load1".into(), labels, unit, semantics: Semantics::Gauge };
    let row = |(number, start): (usize, &i64)| MinuteRow {
        number: number as u64,
        start: Time::from_micros(start * 1_000_000),
        packed: Packed(vec![0; 3]),
    };
    let rows = starts.iter().enumerate().map(row).collect();
    let names = NewNames { is_fresh: false, metrics: vec![(0, metric)] };
    HostMinutes { host: host(of), names, rows }
}

/// Blocks that end before these rows, with these times in seconds.
fn samples(of: &str, ends: &[(u64, i64)]) -> Samples {
    let block = |(next, last): &(u64, i64)| {
        let last = Time::from_micros(last * 1_000_000);
        SampleBlock { next: *next, last, latest: last, head: Packed(vec![0; 9]), body: Packed(vec![0; 20]) }
    };
    let (names, blocks) = (NewNames::default(), ends.iter().map(block).collect());
    Samples { hosts: vec![HostSamples { host: host(of), names, blocks }], is_end: true }
}

/// Number of rows, or of blocks of them.
fn rows(copied: &Copied) -> usize {
    match &copied.rows {
        Rows::Minutes(rows) => rows.len(),
        Rows::Samples(blocks) => blocks.len(),
    }
}

fn answer(rig: &mut Rig, link: Link, hosts: Vec<HostMinutes>, is_end: bool) {
    send(rig, link, &FromMember::Minutes(Minutes { hosts, is_end }));
}

fn pass(rig: &mut Rig, secs: u64) {
    let moment = rig.now.moment.0.as_secs() + secs;
    rig.now = now_at(moment);
    let now = rig.now;
    rig.domain.fetch_copies(now);
}

#[test]
fn a_member_is_asked_until_nothing_follows_and_then_again_later() {
    let mut rig = rig();
    let (link, old) = (join(&mut rig, 1, true), join(&mut rig, 2, false));
    pass(&mut rig, 0);
    let first = drain(&mut rig).fetches;
    assert_eq!(first.len(), 1, "the older version is not asked");
    assert_eq!((first[0].0, &first[0].1.held), (link, &Vec::new()));
    assert_ne!(first[0].0, old);
    answer(&mut rig, link, vec![minutes("wn1", &[600, 660])], false);
    pass(&mut rig, 0);
    let next = drain(&mut rig);
    assert_eq!(next.copies.len(), 1);
    assert_eq!((rows(&next.copies[0]), next.copies[0].metrics.len()), (2, 1));
    pass(&mut rig, 1);
    let held = Held { host: host("wn1"), next: 2, latest: Time::from_micros(660_000_000) };
    let more: Vec<Fetch> =
        next.fetches.into_iter().chain(drain(&mut rig).fetches).map(|(_, fetch)| fetch).collect();
    assert_eq!(more.len(), 1, "one answer at a time");
    assert_eq!(more[0].held, [held]);
    answer(&mut rig, link, Vec::new(), true);
    pass(&mut rig, 5);
    assert!(drain(&mut rig).fetches.is_empty(), "nothing new is expected yet");
    pass(&mut rig, 20);
    assert_eq!(drain(&mut rig).fetches.len(), 1);
    // No answer: it is asked again, later.
    pass(&mut rig, 61);
    pass(&mut rig, 0);
    assert_eq!(drain(&mut rig).fetches.len(), 1);
}

#[test]
fn minutes_of_others_of_the_future_and_unasked_ones_are_not_stored() {
    let mut rig = rig();
    let link = join(&mut rig, 1, true);
    answer(&mut rig, link, vec![minutes("wn1", &[600])], true);
    assert!(drain(&mut rig).copies.is_empty(), "it was not asked");
    pass(&mut rig, 0);
    answer(&mut rig, link, vec![minutes("wn2", &[600]), minutes("wn1", &[600, 1_000_000])], true);
    let wanted = drain(&mut rig);
    let stored: Vec<_> = wanted.copies.iter().map(|copied| (copied.host.as_str(), rows(copied))).collect();
    assert_eq!(stored, [("wn1", 1)], "not another host, and not a time far ahead");
    pass(&mut rig, 30);
    let metric = minutes("wn1", &[]).names.metrics[0].1.clone();
    let metrics = (0..20_000).map(|number| (number, metric.clone())).collect();
    let many = HostMinutes { names: NewNames { is_fresh: false, metrics }, ..minutes("wn1", &[700]) };
    answer(&mut rig, link, vec![many], true);
    assert!(drain(&mut rig).closed[0].contains("more than 16384 metrics"));
}

#[test]
fn a_member_that_was_a_standby_is_asked_for_its_copies_of_hosts_that_are_down() {
    let mut rig = rig();
    let (gone, there) = (join(&mut rig, 1, true), join(&mut rig, 2, true));
    let also = join(&mut rig, 4, false);
    rig.domain.disconnect(gone);
    let now = rig.now;
    rig.domain.apply_election(&BTreeMap::new(), now);
    pass(&mut rig, 0);
    assert_eq!(drain(&mut rig).fetches[0].1.connected, AtEnd(None), "others are about to connect");
    answer(&mut rig, there, vec![minutes("wn3", &[600])], true);
    assert_eq!(drain(&mut rig).copies.len(), 0, "it was not asked for others");
    pass(&mut rig, 20);
    let asked = drain(&mut rig).fetches;
    let connected = AtEnd(Some(vec![host("wn2"), host("wn4")]));
    assert_eq!((asked.len(), asked[0].0, &asked[0].1.connected), (1, there, &connected));
    let of_three = [minutes("wn3", &[600, 660]), minutes("wn2", &[600]), minutes("wn4", &[600])];
    answer(&mut rig, there, of_three.into(), true);
    let copied = |wanted: &Wanted| -> Vec<(String, usize)> {
        wanted.copies.iter().map(|copied| (copied.host.to_string(), rows(copied))).collect()
    };
    assert_eq!(copied(&drain(&mut rig)), [("wn3".into(), 2), ("wn2".into(), 1)], "wn4 answers for itself");
    // It answers again with what was copied meanwhile.
    pass(&mut rig, 20);
    let held = Held { host: host("wn3"), next: 2, latest: Time::from_micros(660_000_000) };
    assert!(drain(&mut rig).fetches[0].1.held.contains(&held));
    answer(&mut rig, there, vec![minutes("wn3", &[600, 660, 720])], true);
    assert_eq!(copied(&drain(&mut rig)), [("wn3".into(), 1)]);
    // It has nothing more for some time.
    (0..20).for_each(|_| {
        pass(&mut rig, 20);
        drain(&mut rig);
        answer(&mut rig, there, Vec::new(), true);
    });
    pass(&mut rig, 20);
    assert_eq!(drain(&mut rig).fetches[0].1.connected, AtEnd(None));
    rig.domain.disconnect(also);
    answer(&mut rig, there, vec![minutes("wn3", &[600, 660, 720, 780])], true);
    assert_eq!(copied(&drain(&mut rig)), []);
}

#[test]
fn few_are_asked_at_once() {
    let mut rig = rig();
    let links: Vec<Link> = (1..100).map(|number| join(&mut rig, number, true)).collect();
    pass(&mut rig, 0);
    pass(&mut rig, 1);
    let asked: Vec<Link> = drain(&mut rig).fetches.into_iter().map(|(link, _)| link).collect();
    assert_eq!(asked, links[..16]);
    answer(&mut rig, links[3], Vec::new(), true);
    pass(&mut rig, 1);
    assert_eq!(drain(&mut rig).fetches[0].0, links[16]);
}

#[test]
fn only_a_standby_may_fetch_the_calls_of_all() {
    let mut rig = rig();
    let (standby, member) = (join(&mut rig, 1, false), join(&mut rig, 2, false));
    let place = ElectionEntry { role: Role::Standby, gone: None };
    let now = rig.now;
    rig.domain.apply_election(&[(host("wn1"), place)].into(), now);
    let position = CallPosition { store: StoreKey(7), key: 5 };
    let fetch = FetchCalls { held: vec![position], len_bytes: 1000 };
    for link in [standby, member] {
        send(&mut rig, link, &FromMember::FetchCalls(fetch.clone()));
    }
    let wanted = drain(&mut rig);
    assert_eq!(wanted.fetches_of_calls, [(standby, fetch)]);
    assert_eq!(wanted.calls, [(member, Calls::nothing())], "so that it asks again");
    let found = Calls { position, calls: Vec::new(), is_end: true };
    rig.domain.send_calls(standby, found.clone());
    assert_eq!(drain(&mut rig).calls, [(standby, found)]);
    let held = vec![position; POSITIONS_MAX + 1];
    send(&mut rig, standby, &FromMember::FetchCalls(FetchCalls { held, len_bytes: 1000 }));
    assert_eq!(drain(&mut rig).closed, ["65 stores of a fetch; at most 64 are allowed"]);
}

#[test]
fn only_a_standby_may_fetch_what_is_copied_of_all() {
    for kind in Kind::ALL {
        only_a_standby_may_fetch(kind);
    }
}

fn only_a_standby_may_fetch(kind: Kind) {
    let mut rig = rig();
    let (standby, member) = (join(&mut rig, 1, true), join(&mut rig, 2, true));
    let place = ElectionEntry { role: Role::Standby, gone: None };
    let now = rig.now;
    rig.domain.apply_election(&[(host("wn1"), place)].into(), now);
    let fetch = Fetch { held: Vec::new(), since: Time::default(), len_bytes: 1000, connected: AtEnd(None) };
    for link in [standby, member] {
        send(&mut rig, link, &kind.of_standby(fetch.clone()));
    }
    let wanted = drain(&mut rig);
    assert_eq!(wanted.of_standbys, [(standby, kind, fetch)]);
    assert_eq!(wanted.answers, [(member, Answer::nothing(kind))], "so that it asks again");
    let found = match kind {
        Kind::Minutes => Answer::Minutes(Minutes { hosts: vec![minutes("wn2", &[600])], is_end: true }),
        Kind::Samples => Answer::Samples(samples("wn2", &[(60, 600)])),
    };
    rig.domain.send_answer(standby, found.clone());
    assert_eq!(drain(&mut rig).answers, [(standby, found)]);
}

#[test]
fn what_could_not_be_stored_is_asked_again() {
    let mut rig = rig();
    let link = join(&mut rig, 1, true);
    pass(&mut rig, 0);
    answer(&mut rig, link, vec![minutes("wn1", &[600, 660])], true);
    assert_eq!(rig.domain.copied_until(&host("wn1")), Some(Time::from_micros(660_000_000)));
    rig.domain.handle_not_copied();
    assert!(rig.domain.wants_held());
    let held = Held { host: host("wn1"), next: 1, latest: Time::from_micros(600_000_000) };
    rig.domain.set_held(OfKind([vec![held.clone()], Vec::new()]));
    drain(&mut rig);
    pass(&mut rig, 30);
    assert_eq!(drain(&mut rig).fetches[0].1.held, [held]);
}

#[test]
fn samples_are_asked_for_each_minute_of_those_that_know_the_frames() {
    let mut rig = rig();
    let (link, old) = (join_with_samples(&mut rig, 1), join(&mut rig, 2, true));
    pass(&mut rig, 0);
    let asked = drain(&mut rig);
    assert_eq!(asked.sample_fetches.iter().map(|(link, _)| *link).collect::<Vec<_>>(), [link]);
    assert!(asked.fetches.iter().chain(&drain(&mut rig).fetches).any(|(link, _)| *link == old));
    let since = rig.now.wall.minus(Duration::from_secs(7200));
    assert_eq!(asked.sample_fetches[0].1, Kind::fetch(Vec::new(), since));
    // What is another's, and what is far ahead, is not stored.
    let mut answered = samples("wn1", &[(60, 600), (120, 660), (180, 1_000_000)]);
    answered.hosts.extend(samples("wn2", &[(60, 600)]).hosts);
    send(&mut rig, link, &FromMember::Samples(answered));
    let copied = drain(&mut rig).copies;
    assert_eq!(
        copied.iter().map(|copied| (copied.host.as_str(), rows(copied))).collect::<Vec<_>>(),
        [("wn1", 2)]
    );
    pass(&mut rig, 30);
    assert!(drain(&mut rig).sample_fetches.is_empty(), "minutes alone are due");
    pass(&mut rig, 31);
    let held = Held { host: host("wn1"), next: 180, latest: Time::from_micros(1_000_000_000_000) };
    assert_eq!(drain(&mut rig).sample_fetches[0].1.held, [held]);
    send(&mut rig, link, &FromMember::Samples(samples("wn1", &[(120, 660), (200, 1_000_001)])));
    assert_eq!(drain(&mut rig).copies.len(), 1);
}
