//! Health and statistics of a running sensor.
//!
//! Not here: the parts that they are read from (`run`).

use super::Status;
use crate::archive::Archive;
use crate::call_history::CallHistory;
use crate::history;
use crate::job_usage;
use crate::module;
use crate::process_history;
use crate::recorder::worker;
use crate::sample::figures::Figures;
use crate::tail;

impl Status {
    /// Returns the present failures, as sentences.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        // Failures of the daemon come first: that it cannot join its domain matters more than a log that
        // cannot be read.
        let mut health = self.daemon_health.get().map(|ask| ask()).unwrap_or_default();
        health.extend(self.filtering.refused().iter().cloned());
        health.extend(self.tail.status().health);
        let files = self.tail.files();
        let troubled = files.iter().filter(|file| file.is_unhealthy());
        health.extend(troubled.map(|file| format!("{}: {}", file.path.display(), file.status)));
        health.extend(self.serving.health());
        health.extend(self.channels.health());
        let pasts = &self.pasts;
        let histories = pasts.own.iter().chain(&pasts.copies);
        health.extend(histories.clone().filter_map(history::handle::Handle::trouble));
        health.extend(histories.filter_map(history::handle::Handle::unexported));
        health.extend(pasts.processes.as_ref().and_then(process_history::worker::Handle::trouble));
        health.extend(pasts.usage.as_ref().and_then(job_usage::worker::Handle::trouble));
        health.extend(pasts.calls.iter().chain(&pasts.domain_calls).filter_map(CallHistory::trouble));
        health.extend(pasts.archive.as_ref().and_then(Archive::trouble));
        health.extend(self.recorder.as_ref().and_then(worker::Handle::trouble));
        health.extend(self.modules.iter().flat_map(module::worker::Handle::health));
        if let Some((reporting, service)) = &self.report {
            health.extend(reporting.figures().trouble);
            health.extend(service.figures().trouble);
        }
        health
    }

    /// Returns the bytes of logs that are not read yet.
    #[must_use]
    pub fn lag_bytes(&self) -> u64 {
        self.tail.files().iter().map(|file| file.lag_bytes).sum()
    }

    /// Returns the number that the next event gets.
    #[must_use]
    pub fn events_next(&self) -> u64 {
        *self.tail.subscribe().borrow()
    }

    /// Statistics of process sampling: name and value.
    #[must_use]
    pub fn processes(&self) -> Vec<(&'static str, u64)> {
        let status = self.processes.status();
        let reach = self.recorder.as_ref().map(|recorder| recorder.ring().reach()).unwrap_or_default();
        vec![
            ("sweeps_total", status.sweeps_total),
            ("slipped_total", status.slipped_total),
            ("lost_total", status.lost_total),
            ("taps_ns_total", status.taps_ns_total),
            ("recorder_bytes", reach.bytes as u64),
            ("recorder_sweeps", reach.sweeps),
            ("live", self.processes.read(|view| view.table.len() as u64)),
        ]
    }

    /// Statistics of all subscriptions: name and value.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<(&'static str, u64)> {
        self.channels.statistics()
    }

    /// Statistics of the report and of the representative: name and value.
    #[must_use]
    pub fn reporting(&self) -> Vec<(&'static str, u64)> {
        let Some((link, service)) = &self.report else { return Vec::new() };
        let (link, service) = (link.figures(), service.figures());
        vec![
            ("is_taken", link.is_open.into()),
            ("streams_total", link.streams_total),
            ("events_sent_total", link.counts.events_total),
            ("events_resent_total", link.counts.resent_total),
            ("events_lost_total", link.counts.lost_total),
            ("samples_sent_total", link.counts.samples_total),
            ("samples_thinned_total", link.counts.thinned_total),
            ("sent_bytes", link.counts.len_bytes_total),
            ("members", service.links as u64),
            ("events_stored_total", service.counts.events_total),
            ("events_duplicate_total", service.counts.duplicates_total),
            ("events_refused_total", service.counts.refused_total),
            ("samples_taken_total", service.counts.samples_total),
            ("commits_total", service.counts.commits_total),
            ("members_refused_total", service.counts.closed_total),
        ]
    }

    /// Statistics of the sensor itself: name and value.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        let files = self.tail.files();
        let sum = |of: fn(&tail::status::FileStatus) -> u64| files.iter().map(of).sum();
        let counts = self.sampler.counts();
        vec![
            ("files", files.len() as u64),
            ("events_total", *self.tail.subscribe().borrow()),
            ("lines_total", sum(|file| file.lines)),
            ("lag_bytes", sum(|file| file.lag_bytes)),
            ("gaps_total", sum(|file| file.gaps)),
            ("gap_bytes_total", sum(|file| file.gap_bytes)),
            ("events_lost_total", self.tail.status().lost),
            ("sweeps_total", counts.sweeps_total),
            ("sweeps_slipped_total", counts.slipped_total),
        ]
    }

    /// Statistics of the history on disk: name and value.
    #[must_use]
    pub fn history(&self) -> Vec<(&'static str, u64)> {
        self.pasts.own.as_ref().map(stored).unwrap_or_default()
    }

    /// Statistics of the copies of the domain's minutes: name and value; all zero unless it has them.
    #[must_use]
    pub fn copies(&self) -> Vec<(&'static str, u64)> {
        self.pasts.copies.as_ref().map(stored).unwrap_or_default()
    }

    /// Statistics of the call history: name and value.
    #[must_use]
    pub fn call_history(&self) -> Vec<(&'static str, u64)> {
        self.pasts.calls.as_ref().map(CallHistory::figures).unwrap_or_default()
    }

    /// Statistics of the call history of its domain: name and value.
    #[must_use]
    pub fn domain_calls(&self) -> Vec<(&'static str, u64)> {
        self.pasts.domain_calls.as_ref().map(CallHistory::figures).unwrap_or_default()
    }

    /// Statistics of the process history: name and value.
    #[must_use]
    pub fn process_history(&self) -> Vec<(&'static str, u64)> {
        self.pasts.processes.as_ref().map(process_history::worker::Handle::figures).unwrap_or_default()
    }

    /// Statistics of the usage of jobs: name and value.
    #[must_use]
    pub fn job_usage(&self) -> Vec<(&'static str, u64)> {
        self.pasts.usage.as_ref().map(job_usage::worker::Handle::figures).unwrap_or_default()
    }

    /// Statistics of the archive: name and value; none if this sensor is none.
    #[must_use]
    pub fn archive(&self) -> Vec<(&'static str, u64)> {
        self.pasts.archive.as_ref().map(Archive::figures).unwrap_or_default()
    }

    /// Returns the host's newest figures.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        self.sampler.figures()
    }
}

fn stored(history: &history::handle::Handle) -> Vec<(&'static str, u64)> {
    let state = history.state();
    let [raw, minute, hour] = &state.tiers;
    let files = || state.tiers.iter().map(|tier| tier.files);
    vec![
        ("raw_bytes", raw.used_bytes),
        ("minute_bytes", minute.used_bytes),
        ("hour_bytes", hour.used_bytes),
        ("raw_limit_bytes", raw.limit.bytes),
        ("minute_limit_bytes", minute.limit.bytes),
        ("hour_limit_bytes", hour.limit.bytes),
        ("raw_limit_seconds", raw.limit.age.as_secs()),
        ("minute_limit_seconds", minute.limit.age.as_secs()),
        ("hour_limit_seconds", hour.limit.age.as_secs()),
        ("damaged_bytes_total", files().map(|files| files.damaged_bytes).sum()),
        ("unreadable_files", files().map(|files| files.unreadable_files).sum()),
        ("segments_deleted_total", files().map(|files| files.deleted_segments).sum()),
        ("segments_deleted_unexported_total", files().map(|files| files.unexported_segments).sum()),
        ("segments_compacted_total", files().map(|files| files.compacted_segments).sum()),
        ("sweeps_lost_total", state.lost_rows + history.dropped_total()),
    ]
}
