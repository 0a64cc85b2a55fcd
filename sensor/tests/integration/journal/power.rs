//! Power losses: whatever the disk lost, the journal opens without help, events and progress agree, and
//! nothing that was reported as durable is missing.

use crate::journal::log::Writer;
use crate::simulated::{Random, Simulated};
use sensor::journal::Config;

/// Small, so that segments change often.
const CONFIG: Config = Config { segment_len_bytes: 3000, budget_bytes: u64::MAX };

/// Runs several lives with a power loss after each. Everything that was durable must be there.
fn lives(seed: u64, sync: impl Fn(&mut Writer) -> bool) -> Result<(), String> {
    let (disk, mut random) = (Simulated::default(), Random::new(seed));
    let mut durable = 0;
    for life in 0..4 {
        let mut writer = Writer::open(&disk, CONFIG);
        let next = writer.check();
        if next < durable {
            return Err(format!("seed {seed}, life {life}: {durable} lines were durable, {next} are left"));
        }
        for _ in 0..random.below(25) {
            writer.read(random.below(6)).unwrap();
            if random.one_in(5) {
                disk.refuse_syncs(u32::from(random.one_in(4)));
                let done = sync(&mut writer);
                disk.refuse_syncs(0);
                if done {
                    durable = writer.journal.state().head.next;
                }
            }
            if writer.journal.wants_new_segment()
                && writer.journal.begin_segment(&writer.mind.clone()).is_ok()
            {
                durable = writer.journal.state().head.next;
            }
        }
        drop(writer);
        disk.lose_power(&mut random);
    }
    Ok(())
}

#[test]
fn no_loss_of_power_loses_what_was_durable_or_repeats_anything() {
    let asked = std::env::var("VISPERF_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds = asked.unwrap_or(500);
    for seed in 0..seeds {
        lives(seed, |writer| writer.journal.sync().is_ok()).unwrap();
    }
}

#[test]
fn a_writer_that_takes_unsynced_for_durable_is_caught() {
    let caught = (0..50).any(|seed| lives(seed, |_| true).is_err());
    assert!(caught, "the model of the disk is too kind");
}

#[test]
fn a_refused_sync_is_answered_by_writing_again() {
    let (disk, mut random) = (Simulated::default(), Random::new(3));
    let mut writer = Writer::open(&disk, CONFIG);
    writer.read(5).unwrap();
    disk.refuse_syncs(1);
    assert!(writer.journal.sync().is_err());
    writer.read(5).unwrap();
    writer.journal.sync().unwrap();
    drop(writer);
    disk.lose_power(&mut random);
    assert_eq!(Writer::open(&disk, CONFIG).check(), 10);
}
