//! A long absence of the representative while logs continue (scaled down: events count, not minutes).

use crate::report::rig::Rig;
use crate::simulated::Simulated;
use sensor::journal;
use sensor::representative::domain::Config;

fn rig(budget_bytes: u64) -> Rig {
    let mut rig = Rig::new(1, Config::default());
    let config = journal::Config { segment_len_bytes: 20_000, budget_bytes };
    rig.members = vec![crate::report::rig::Member::new(0, config)];
    rig.members[0].filler = 100;
    rig
}

#[test]
fn within_the_budget_nothing_is_lost() {
    let mut rig = rig(10 << 20);
    rig.members[0].read(50);
    rig.settle();
    rig.members[0].disconnect(&mut rig.domain);
    for _ in 0..200 {
        rig.members[0].read(50);
    }
    assert!(rig.members[0].disk.names().len() > 20, "segments have changed many times");
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
    assert_eq!(rig.domain.counts().lost_total, 0);
}

#[test]
fn beyond_the_budget_the_loss_is_counted_exactly() {
    let mut rig = rig(200_000);
    rig.members[0].read(50);
    rig.settle();
    rig.members[0].disconnect(&mut rig.domain);
    for _ in 0..200 {
        rig.members[0].read(50);
    }
    rig.settle();
    let (lost, twice) = rig.faults();
    assert!(lost > 1000 && twice == 0, "{lost} lost, {twice} twice");
    assert_eq!(rig.domain.counts().lost_total, lost as u64);
    assert_eq!(rig.members[0].sender.counts().lost_total, lost as u64);
    // The journal also counts events that were read from a deleted segment that was still open.
    let counted = rig.members[0].journal.state().head.lost;
    assert!((lost as u64..lost as u64 + 150).contains(&counted), "{lost}, the journal says {counted}");
    assert_eq!(rig.domain.hosts(rig.now.moment)[0].events_lost, lost as u64);
    assert_eq!(rig.domain.summary(rig.now.moment).events_lost, lost as u64);
}

/// Everything that was not acknowledged is deleted: only the loss is reported.
#[test]
fn a_loss_with_nothing_after_it_is_reported() {
    let mut rig = rig(40_000);
    rig.members[0].read(50);
    rig.settle();
    rig.members[0].disconnect(&mut rig.domain);
    for _ in 0..40 {
        rig.members[0].read(50);
    }
    rig.settle();
    let lost = rig.faults().0 as u64;
    assert_eq!(rig.domain.counts().lost_total, lost);
    assert_eq!(rig.domain.counts().events_total + lost, rig.members[0].lines());
}

/// A new representative receives a bounded part of the past, but everything that no other has received.
#[test]
fn the_past_that_others_had_is_asked_for_within_bounds() {
    let mut rig = rig(10 << 20);
    rig.config.backfill = 100;
    rig.members[0].read(1000);
    rig.settle();
    rig.members[0].disconnect(&mut rig.domain);
    rig.members[0].read(300);
    rig.fail_over(Simulated::default(), 5);
    rig.settle();
    assert_eq!(rig.domain.counts().events_total, 300);
    rig.fail_over(Simulated::default(), 6);
    rig.settle();
    assert_eq!(rig.domain.counts().events_total, 100);
}
