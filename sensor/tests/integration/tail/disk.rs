//! Errors of the state directory's disk while logs change, and batches that do not fit.

use crate::simulated::{Random, Simulated};
use crate::tail::rig::Rig;
use std::sync::Arc;
use std::time::Duration;

fn rig(disk: &Simulated) -> Rig {
    let mut rig = Rig::new("log");
    rig.disk = Some(Arc::new(disk.clone()));
    rig
}

#[test]
fn a_full_disk_stops_the_reading_and_nothing_is_lost_or_repeated() {
    for crash in [false, true] {
        let disk = Simulated::default();
        let mut rig = rig(&disk);
        rig.append("log", "one\n");
        rig.start();
        disk.refuse_writes(u32::MAX);
        rig.append("log", "two\n");
        rig.look();
        rig.append("log", "three\n");
        rig.pass(Duration::from_secs(60));
        assert_eq!(rig.lines(), ["one"], "what is not written is not shown");
        let health = rig.ingest.as_ref().unwrap().status().tail().health;
        assert!(health.iter().any(|why| why.contains("check the space")), "{health:?}");
        // Rotation continues meanwhile.
        rig.rename("log", "log.1");
        rig.append("log", "four\n");
        rig.pass(Duration::from_secs(2));
        rig.remove("log.1");
        if crash {
            rig.kill();
            disk.refuse_writes(0);
            rig.start();
            rig.pass(Duration::from_secs(2));
            assert_eq!(rig.lines(), ["one", "four"]);
            rig.check_gaps("log", &[("missing", None)]);
        } else {
            disk.refuse_writes(0);
            rig.pass(Duration::from_secs(2));
            rig.look();
            assert_eq!(rig.lines(), ["one", "two", "three", "four"]);
            rig.check_gaps("log", &[]);
            let health = rig.ingest.as_ref().unwrap().status().tail().health;
            assert_eq!(health, [""; 0]);
        }
    }
}

#[test]
fn a_start_on_a_full_disk_reads_once_there_is_space_and_nothing_is_lost_or_repeated() {
    let disk = Simulated::default();
    disk.refuse_writes(u32::MAX);
    let mut rig = rig(&disk);
    rig.append("log", "one\n");
    rig.start();
    rig.append("log", "two\n");
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.lines(), [""; 0]);
    let health = rig.ingest.as_ref().unwrap().status().tail().health;
    assert!(health.iter().any(|why| why.contains("check the space")), "{health:?}");
    disk.refuse_writes(0);
    rig.pass(Duration::from_secs(2));
    rig.look();
    assert_eq!(rig.lines(), ["one", "two"]);
    assert_eq!(rig.ingest.as_ref().unwrap().status().tail().health, [""; 0]);
    rig.kill();
    rig.start();
    rig.append("log", "three\n");
    rig.look();
    assert_eq!(rig.lines(), ["one", "two", "three"]);
    rig.check_gaps("log", &[]);
}

#[test]
fn beyond_the_budget_for_deleted_files_the_loss_is_counted_to_the_byte() {
    let disk = Simulated::default();
    let mut rig = rig(&disk);
    rig.config.held_bytes = 1000;
    rig.append("log", "one\n");
    rig.start();
    disk.refuse_writes(u32::MAX);
    rig.append("log", "held back\n");
    rig.look();
    rig.append("log", "x".repeat(799) + "\n");
    rig.remove("log");
    rig.append("log", "y".repeat(699) + "\n");
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.file("log").lag_bytes, 1500, "one is deleted, the other is not");
    rig.remove("log");
    rig.append("log", "last\n");
    rig.pass(Duration::from_secs(2));
    disk.refuse_writes(0);
    rig.pass(Duration::from_secs(2));
    rig.look();
    assert_eq!(rig.lines(), ["one", "held back", "y".repeat(699).as_str(), "last"]);
    rig.check_gaps("log", &[("budget", Some(800))]);
}

#[test]
fn a_notice_within_an_open_record_is_reported_once_across_a_crash() {
    for known_events in [true, false] {
        let mut rig = Rig::new("log").with_means(|means| means.known_events = known_events);
        rig.append("log", format!("+record\n {}\n", "h".repeat(2 << 20)));
        rig.start();
        rig.kill();
        rig.start();
        rig.pass(Duration::from_secs(6));
        let count = rig.notices("oversize").len();
        assert_eq!(count, if known_events { 1 } else { 2 }, "the control reports it twice");
        assert_eq!(rig.file("log").oversize, 1);
        assert_eq!(rig.file("log").lines, 2);
    }
}

#[test]
fn losses_of_power_lose_no_line_and_repeat_none() {
    let asked = std::env::var("VISPERF_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds = asked.unwrap_or(60);
    for seed in 0..seeds {
        let (disk, mut random) = (Simulated::default(), Random::new(seed));
        let mut rig = rig(&disk);
        rig.config.journal.segment_len_bytes = 5000;
        let mut written = Vec::new();
        for _ in 0..5 {
            rig.start();
            for _ in 0..random.below(8) {
                let line =
                    format!("{} {}", written.len(), "x".repeat(usize::try_from(random.below(300)).unwrap()));
                rig.append("log", line.clone() + "\n");
                written.push(line);
                if random.one_in(3) {
                    rig.look();
                }
                if random.one_in(8) {
                    rig.look();
                    rig.rename("log", &format!("log.{}", written.len()));
                    rig.look();
                }
                if random.one_in(4) {
                    rig.pass(Duration::from_millis(250));
                }
            }
            rig.kill();
            disk.lose_power(&mut random);
        }
        rig.start();
        rig.pass(Duration::from_secs(3));
        assert_eq!(rig.lines(), written, "seed {seed}");
        assert_eq!(rig.notices("gap"), [], "seed {seed}");
    }
}
