//! Processes of the jobs: how they join, change and end.
//!
//! Pure. Not here: the jobs themselves ([`super`]).

use super::{ENDED_KNOWN_NS, ENDED_MAX, Ended, Job, Member, Meter, Now, Running, extent_of, key_of};
use crate::job_usage::failures::failure_of;
use crate::job_usage::measurement::{Counters, Extent, Reading};
use crate::process::source::View;
use crate::serving::job_table::ServedJob;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::call::failed_process::FailedProcess;
use wire::process::delta::PROCESSES_MAX;
use wire::process::{ProcessKey, State};

impl Meter {
    /// Takes in the processes that ended since the last sweep.
    pub(super) fn take_ended(&mut self, view: &View, now: Now) {
        let next = view.lives.next();
        let (lives, _) = view.lives.since(self.running.lives_next.replace(next).unwrap_or(next));
        for life in lives {
            let (reading, end_ns) = (Reading::of_life(life), life.end_ns.min(now.boot_ns));
            if let Some(member) = self.members.get(&life.key) {
                self.running.urge(member.job, extent_of(life));
            }
            if !self.end(life.key, reading, end_ns, now) {
                self.note_end(life.key, reading, end_ns, now);
            }
            if let Some(failure) = failure_of(life, now.time_of(end_ns)) {
                self.take_failure(life.key, failure);
            }
        }
    }

    /// Notes the end of a process that is no member: its job may become known, or was known before its end.
    fn note_end(&mut self, process: ProcessKey, reading: Option<Reading>, end_ns: u64, now: Now) {
        self.running.early.remove(&process);
        let Some(known) = self.running.ended.get_mut(&process) else {
            let ended = Ended { end_ns, reading, job: None, has_parent: false, failure: None };
            self.running.remember(process, ended, now);
            return;
        };
        if let (None, Some(number), Some(reading)) = (known.reading, known.job, reading) {
            (known.reading, known.end_ns) = (Some(reading), end_ns);
            self.count_used(number, process, now);
        }
    }

    /// Takes in how a process failed: for its job, once that is known.
    fn take_failure(&mut self, process: ProcessKey, failure: FailedProcess) {
        let Some(ended) = self.running.ended.get_mut(&process) else { return };
        match ended.job {
            Some(number) => {
                if let Some(job) = self.job_of(number) {
                    job.measured.failures.add(failure);
                }
            }
            None => ended.failure = Some(failure),
        }
    }

    /// Takes in what processes that ended had used at the very end.
    pub(super) fn take_freed(&mut self, view: &View) {
        let next = view.lives.next_freed();
        let from = self.running.freed_next.replace(next).unwrap_or(next);
        for freed in view.lives.freed_since(from) {
            let Some(ended) = self.running.ended.get_mut(&freed.key) else { continue };
            let (before, was_missed) = (ended.reading.unwrap_or_default(), ended.reading.is_none());
            let counters = before.counters.newest(Counters::from(&freed.usage));
            let peak_bytes = freed.peak_rss_kib.saturating_mul(1024);
            ended.reading = Some(Reading { counters, rss_bytes: peak_bytes, ..before });
            let (more, end_ns) = (counters.since(before.counters), ended.end_ns);
            let more = if ended.has_parent { more.without_io() } else { more };
            if let Some(job) = ended.job.and_then(|number| self.job_of(number)) {
                job.measured.missed -= u64::from(was_missed && job.measured.missed > 0);
                job.measured.ended = job.measured.ended.plus(more);
                job.measured.process_peak(end_ns, peak_bytes);
            }
        }
    }

    /// Takes in what the sweep changed.
    pub(super) fn take_changed(&mut self, view: &View, now: Now) {
        if self.members.is_empty() && self.running.early.is_empty() {
            return;
        }
        for place in view.table.changed().iter().map(|place| *place as usize) {
            let row = view.table.rows().get(place).and_then(Option::as_ref);
            // A process that has ended uses nothing more, even before its parent has reaped it.
            let lives = row.filter(|row| !matches!(row.state, State::Zombie | State::Dead));
            if let Some(known) = self.running.at(place)
                && lives.is_none_or(|row| row.key != known)
            {
                let last = row.filter(|row| row.key == known).map(Reading::from);
                self.end(known, last, now.boot_ns, now);
                self.running.places[place] = None;
            }
            let Some(row) = lives else { continue };
            if self.update(row.key, Reading::from(row)) || self.join_early(row.key, Reading::from(row), now) {
                self.running.set(place, row.key);
            }
        }
    }

    /// Takes in the job of a process.
    pub(super) fn take_served(&mut self, view: &View, process: ProcessKey, served: &ServedJob, now: Now) {
        let Some(key) = key_of(served) else { return };
        let row = view.table.get(process.pid).filter(|row| row.key == process);
        let row = row.filter(|row| !matches!(row.state, State::Zombie | State::Dead));
        let member = self.members.get(&process).map(|member| member.job);
        if let Some(job) = member.and_then(|number| self.jobs.get_mut(&number)).filter(|job| job.key == key) {
            // The groups are not stored: after a restart they become known again.
            if job.groups.paths.is_empty()
                && let Some(number) = member
            {
                self.running.urge(number, Extent::Whole);
            }
            job.groups = Arc::clone(&served.groups);
            return;
        }
        // It served another job until now.
        let has_moved = self.end(process, None, now.boot_ns, now);
        let Some(number) = self.open(key, served, process, now) else { return };
        let Some(row) = row else {
            if !has_moved {
                self.count_ended(number, process, now);
            }
            return;
        };
        let reading = Reading::from(row);
        // What it used until it was counted as ended, or served another job, counts there.
        let counted = self.running.ended.get(&process).filter(|ended| ended.job.is_some());
        let base = counted.and_then(|ended| ended.reading).map_or(Counters::default(), |last| last.counters);
        self.join(process, Member { job: number, base, last: reading }, now);
        if let Some(place) = view.table.place(process) {
            self.running.set(place as usize, process);
        }
    }

    /// Ends the members that a sweep over all processes did not see: they ended while nothing was measured.
    pub(super) fn end_missing(&mut self, now: Now) {
        let seen: BTreeSet<ProcessKey> = self.running.places.iter().flatten().copied().collect();
        let missing: Vec<ProcessKey> =
            self.members.keys().filter(|key| !seen.contains(*key)).copied().collect();
        for key in missing {
            self.end(key, None, now.boot_ns, now);
        }
    }

    fn join(&mut self, process: ProcessKey, member: Member, now: Now) {
        if self.members.len() >= PROCESSES_MAX {
            return;
        }
        self.members.insert(process, member);
        let (started, reading) = (now.time_of(process.start_ns), member.last);
        let Some(job) = self.jobs.get_mut(&member.job) else { return };
        if job.measured.processes == 0 {
            self.running.urge(member.job, Extent::Whole);
        }
        job.idle_since_ns = None;
        let measured = &mut job.measured;
        measured.live += 1;
        measured.processes += 1;
        measured.started = measured.started.min(started);
        measured.rss_bytes += reading.rss_bytes;
        measured.threads += u64::from(reading.threads);
        measured.lacks_io |= !reading.has_io;
    }

    /// Joins a process whose job was known before a sweep had it; returns whether it is one.
    fn join_early(&mut self, process: ProcessKey, reading: Reading, now: Now) -> bool {
        if !self.running.early.remove(&process) {
            return false;
        }
        let Some(number) = self.running.ended.remove(&process).and_then(|ended| ended.job) else {
            return false;
        };
        if let Some(job) = self.job_of(number) {
            job.measured.processes = job.measured.processes.saturating_sub(1);
            job.measured.missed = job.measured.missed.saturating_sub(1);
        }
        self.join(process, Member { job: number, base: Counters::default(), last: reading }, now);
        true
    }

    /// Takes in what was read of a member; returns whether it is one.
    fn update(&mut self, process: ProcessKey, reading: Reading) -> bool {
        let Some(member) = self.members.get_mut(&process) else { return false };
        let before = member.last;
        member.last = Reading { counters: before.counters.newest(reading.counters), ..reading };
        let number = member.job;
        if let Some(job) = self.job_of(number) {
            job.replace(before, reading);
        }
        true
    }

    /// Ends a member; returns whether it is one.
    fn end(&mut self, process: ProcessKey, reading: Option<Reading>, end_ns: u64, now: Now) -> bool {
        let Some(member) = self.members.remove(&process) else { return false };
        let last = member.last.counters.newest(reading.map(|reading| reading.counters).unwrap_or_default());
        let parent = reading.map_or(member.last.parent, |reading| reading.parent);
        let has_parent = self.has_parent(process, parent, member.job);
        let ended = Reading { counters: last, ..member.last };
        let ended = Ended { end_ns, reading: Some(ended), job: Some(member.job), has_parent, failure: None };
        self.running.remember(process, ended, now);
        let used = last.since(member.base);
        let used = if has_parent { used.without_io() } else { used };
        if let Some(job) = self.jobs.get_mut(&member.job) {
            self.running.urge(member.job, Extent::Job);
            job.replace(member.last, Reading::default());
            job.measured.ended = job.measured.ended.plus(used);
            job.measured.until = job.measured.until.max(now.time_of(end_ns));
            job.measured.live = job.measured.live.saturating_sub(1);
            if job.measured.live == 0 {
                job.idle_since_ns = Some(end_ns);
            }
        }
        true
    }

    /// Whether the parent of a process serves the same job, or did until it ended.
    fn has_parent(&self, process: ProcessKey, parent: u32, number: u64) -> bool {
        let all =
            ProcessKey { pid: parent, start_ns: 0 }..=ProcessKey { pid: parent, start_ns: process.start_ns };
        self.members.range(all.clone()).any(|(_, member)| member.job == number)
            || self.running.ended.range(all).any(|(_, ended)| ended.job == Some(number))
    }

    /// Counts a process that had ended before its job was known.
    fn count_ended(&mut self, number: u64, process: ProcessKey, now: Now) {
        if !self.running.ended.contains_key(&process) {
            // Its end is read next, or else it is in the next sweep.
            self.running.early.insert(process);
            let (end_ns, has_parent) = (now.boot_ns, false);
            let ended = Ended { end_ns, reading: None, job: None, has_parent, failure: None };
            self.running.remember(process, ended, now);
        }
        let Some(ended) = self.running.ended.get_mut(&process) else { return };
        ended.job = Some(number);
        let (failure, is_known) = (ended.failure.take(), ended.reading.is_some());
        let Some(job) = self.job_of(number) else { return };
        failure.into_iter().for_each(|failure| job.measured.failures.add(failure));
        job.measured.processes += 1;
        job.measured.started = job.measured.started.min(now.time_of(process.start_ns));
        // It was there at no sweep: unless its end says so, nothing says what it used.
        job.measured.missed += 1;
        if job.measured.live == 0 {
            job.idle_since_ns = Some(now.boot_ns);
        }
        if is_known {
            self.count_used(number, process, now);
        }
    }

    /// Counts what a process had used at its end, once that is known.
    fn count_used(&mut self, number: u64, process: ProcessKey, now: Now) {
        let ended = self.running.ended.get(&process).and_then(|ended| Some((ended.reading?, ended.end_ns)));
        let Some((reading, end_ns)) = ended else { return };
        let has_parent = self.has_parent(process, reading.parent, number);
        if let Some(ended) = self.running.ended.get_mut(&process) {
            ended.has_parent = has_parent;
        }
        let Some(job) = self.job_of(number) else { return };
        let used = if has_parent { reading.counters.without_io() } else { reading.counters };
        let measured = &mut job.measured;
        measured.missed = measured.missed.saturating_sub(1);
        measured.ended = measured.ended.plus(used);
        measured.lacks_io |= !reading.has_io;
        measured.peak_rss_bytes = measured.peak_rss_bytes.max(reading.rss_bytes);
        measured.until = measured.until.max(now.time_of(end_ns));
    }
}

impl Running {
    /// The groups of a job are to be read at once.
    pub(super) fn urge(&mut self, job: u64, extent: Extent) {
        let known = self.urgent.entry(job).or_default();
        *known = extent.max(*known);
    }

    /// The member at a position of the table of processes.
    fn at(&self, place: usize) -> Option<ProcessKey> {
        self.places.get(place).copied().flatten()
    }

    fn set(&mut self, place: usize, process: ProcessKey) {
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        self.places[place] = Some(process);
    }

    /// Remembers a process that ended, for some seconds.
    fn remember(&mut self, process: ProcessKey, ended: Ended, now: Now) {
        self.ended_order.push_back((ended.end_ns, process));
        self.ended.insert(process, ended);
        let is_old = |(end_ns, _): &(u64, ProcessKey)| *end_ns + ENDED_KNOWN_NS < now.boot_ns;
        while self.ended_order.len() > ENDED_MAX || self.ended_order.front().is_some_and(is_old) {
            if let Some((_, oldest)) = self.ended_order.pop_front() {
                self.ended.remove(&oldest);
                self.early.remove(&oldest);
            }
        }
    }
}

impl Job {
    /// Replaces the memory and threads of a process.
    fn replace(&mut self, before: Reading, reading: Reading) {
        let measured = &mut self.measured;
        let changed = |total: u64, before: u64, now: u64| total.saturating_sub(before).saturating_add(now);
        measured.rss_bytes = changed(measured.rss_bytes, before.rss_bytes, reading.rss_bytes);
        measured.threads = changed(measured.threads, before.threads.into(), reading.threads.into());
    }
}
