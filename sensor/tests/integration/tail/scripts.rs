//! Random histories of a log and its sensor, compared with the truth: every line once, unless a gap accounts
//! for it, and exactly as many gaps as losses.

use crate::simulated::{Random, Simulated};
use crate::tail::rig::Rig;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The true state of one file.
struct Truth {
    file: File,
    /// Lines in it that the sensor has certainly not read.
    unread: BTreeSet<u64>,
    /// Whether the sensor has read a whole line of the current content.
    is_known: bool,
    /// Whether it was truncated since the sensor last looked.
    is_cut: bool,
}

struct Script {
    rig: Rig,
    random: Random,
    runs: bool,
    live: Truth,
    rotated: Vec<Truth>,
    next_line: u64,
    next_name: u64,
    written: BTreeSet<u64>,
    /// Lines that may be missing, because their file was truncated or deleted before they were read.
    endangered: BTreeSet<u64>,
    gaps: u64,
}

impl Script {
    fn new(seed: u64) -> Script {
        let mut rig = Rig::new("log");
        rig.disk = Some(Arc::new(Simulated::default()));
        rig.config.journal.segment_len_bytes = 20_000;
        let live = open(&rig);
        let mut script = Script {
            rig,
            random: Random::new(seed),
            runs: true,
            live,
            rotated: Vec::new(),
            next_line: 0,
            next_name: 0,
            written: BTreeSet::new(),
            endangered: BTreeSet::new(),
            gaps: 0,
        };
        script.rig.start();
        script
    }

    fn line(&mut self) -> (u64, String) {
        let number = self.next_line;
        self.next_line += 1;
        self.written.insert(number);
        let filler = "abcdefgh".repeat(usize::try_from(self.random.below(40)).unwrap() + 9);
        (number, format!("{number} {filler}\n"))
    }

    fn write(&mut self) {
        let lines = self.random.below(12);
        self.write_lines(lines);
    }

    fn write_lines(&mut self, lines: u64) {
        for _ in 0..lines {
            let (number, line) = self.line();
            self.live.file.write_all(line.as_bytes()).unwrap();
            self.live.unread.insert(number);
        }
    }

    /// Writes a line in two parts; between them the sensor may do anything.
    fn write_in_parts(&mut self) {
        let (number, line) = self.line();
        let (one, other) = line.as_bytes().split_at(line.len() / 2);
        self.live.file.write_all(one).unwrap();
        match self.random.below(3) {
            0 => self.look(),
            1 => self.switch(),
            _ => {}
        }
        self.live.file.write_all(other).unwrap();
        self.live.unread.insert(number);
    }

    /// Writes by a writer that has not noticed the rotation.
    fn write_late(&mut self) {
        if self.rotated.len() < 3 && !self.rotated.is_empty() {
            let (number, line) = self.line();
            let late = self.rotated.last_mut().unwrap();
            late.file.write_all(line.as_bytes()).unwrap();
            late.unread.insert(number);
        }
    }

    fn rotate(&mut self) {
        self.next_name += 1;
        let name = format!("log.{}", self.next_name);
        self.rig.rename("log", &name);
        let live = open(&self.rig);
        self.rotated.push(std::mem::replace(&mut self.live, live));
        self.write();
    }

    fn copy_truncate(&mut self) {
        if !self.live.is_known || self.live.is_cut {
            return;
        }
        self.next_name += 1;
        let copy = self.rig.path(&format!("log.{}", self.next_name));
        std::fs::copy(self.rig.path("log"), copy).unwrap();
        self.rig.truncate("log");
        // The copy has these lines, so they are not lost.
        self.live.unread.clear();
        self.live.is_cut = true;
        self.write();
    }

    fn truncate(&mut self) {
        if !self.live.is_known || self.live.is_cut {
            return;
        }
        self.rig.truncate("log");
        self.endangered.append(&mut self.live.unread);
        self.live.is_cut = true;
        self.write();
    }

    fn delete(&mut self) {
        if !self.live.is_known || self.live.is_cut {
            return;
        }
        if !self.runs {
            self.endangered.append(&mut self.live.unread);
            self.gaps += 1;
        }
        self.rig.remove("log");
        self.live = open(&self.rig);
        // Only a successor with lines shows that the writer has closed the deleted file.
        self.write_lines(1);
        // If killed before it looks again, the sensor would never know what was written before the deletion.
        self.look();
    }

    fn look(&mut self) {
        if self.runs {
            self.rig.look();
            for file in self.rotated.iter_mut().chain([&mut self.live]) {
                self.gaps += u64::from(file.is_cut);
                file.is_known = (file.is_known && !file.is_cut) || !file.unread.is_empty();
                file.is_cut = false;
                file.unread.clear();
            }
        }
    }

    /// Stops the sensor, by a stop or by a kill, or starts it again.
    fn switch(&mut self) {
        if !self.runs {
            self.rig.start();
            self.runs = true;
            self.look();
        } else {
            self.runs = false;
            if self.random.one_in(2) {
                self.rig.kill();
            } else {
                self.look();
                self.rig.stop();
            }
        }
    }

    fn run(mut self, seed: u64) {
        for _ in 0..40 {
            match self.random.below(16) {
                0..5 => self.write(),
                5 => self.write_in_parts(),
                6 => self.write_late(),
                7 => self.rotate(),
                8 => self.copy_truncate(),
                9 => self.truncate(),
                10 => self.delete(),
                11..14 => self.look(),
                _ => self.switch(),
            }
        }
        if !self.runs {
            self.switch();
        }
        self.look();
        self.rig.pass(Duration::from_secs(3));
        self.check(seed);
    }

    fn check(&self, seed: u64) {
        let number = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
        let lines = self.rig.lines();
        let mut sent = BTreeMap::new();
        for line in &lines {
            *sent.entry(number(line)).or_insert(0) += 1;
        }
        let twice: Vec<_> = sent.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "seed {seed}: sent more than once: {twice:?}");
        let missing: Vec<_> = self.written.iter().filter(|line| !sent.contains_key(line)).collect();
        let silent: Vec<_> = missing.iter().filter(|line| !self.endangered.contains(line)).collect();
        assert!(silent.is_empty(), "seed {seed}: missing without a gap: {silent:?}");
        assert!(sent.len() + missing.len() == self.written.len(), "seed {seed}: sent what was never written");
        assert_eq!(self.rig.notices("gap").len() as u64, self.gaps, "seed {seed}: gaps");
        assert_eq!(self.rig.file("log").gaps, self.gaps, "seed {seed}: totals");
    }
}

fn open(rig: &Rig) -> Truth {
    Truth { file: rig.open("log"), unread: BTreeSet::new(), is_known: false, is_cut: false }
}

#[test]
fn random_lives_of_a_log_lose_nothing_silently() {
    // A nightly run sets more seeds.
    let asked = std::env::var("VISPERF_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds = asked.unwrap_or(150);
    for seed in 0..seeds {
        Script::new(seed).run(seed);
    }
}
