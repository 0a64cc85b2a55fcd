//! Requests to sensors, daemons and readers of logs: what each tab needs and has not requested yet.
//!
//! Pure. Rule: each request is returned until the caller confirms that it was sent. Not here: sending
//! (`app::feeds`).

use super::{Model, Source};
use crate::feed::{Figures, JobsRequest, Past, Sensors, Served, Watch};
use crate::flock::past::MissingSpan;
use crate::grid::call::Call;
use crate::grid::place::DomainId;
use crate::timeline::Mode;
use std::time::Duration;
use wire::time::Time;

/// Calls around a time are requested again after so much of the user's time.
const CALLS_EVERY: Duration = Duration::from_secs(1);

impl Model {
    /// The graphs are drawn.
    pub fn mark_graphs_seen(&mut self) {
        self.graphs.mark_seen(self.clock.now());
        self.find_graph_hosts();
    }

    /// The flock is drawn.
    pub fn mark_flock_seen(&mut self) {
        self.flock.mark_seen(self.clock.now());
    }

    /// The table of sensors is drawn.
    pub fn mark_sensors_seen(&mut self) {
        self.sensors.mark_seen(self.clock.now());
        self.flock.mark_channels_seen(self.clock.now());
    }

    /// Find the hosts of the graphs.
    pub(super) fn find_graph_hosts(&mut self) {
        self.graphs.find_hosts(&self.grid);
    }

    #[must_use]
    pub fn figures_request(&self) -> Option<Figures> {
        self.graphs.request(self.time(), self.now())
    }

    pub fn figures_requested(&mut self, figures: Figures) {
        self.graphs.requested(figures);
    }

    /// The hosts to sweep; `has_feed` is whether they can be requested.
    pub fn flock_request(&mut self, has_feed: bool) -> Option<Watch> {
        let is_live = self.source().is_daemon();
        self.flock.request(&self.grid, self.clock.now(), is_live, has_feed)
    }

    pub fn flock_requested(&mut self, watch: Watch) {
        self.flock.requested(watch, &self.grid, self.clock.now());
    }

    /// Another thread sends sweeps from now on.
    pub fn forget_flock_request(&mut self) {
        self.flock.forget_request();
    }

    #[must_use]
    pub fn past_requests(&self) -> Vec<Past> {
        match self.source() {
            Source::Daemon(_) => self.flock.past_requests(self.timeline(), self.flock_time(), self.now()),
            Source::Log(_) | Source::File(_) => Vec::new(),
        }
    }

    pub fn past_requested(&mut self, missing: MissingSpan) {
        self.flock.past_requested(missing, self.clock.now());
    }

    /// The time around which calls are requested, if another one than last; `None` for the present.
    #[must_use]
    pub fn calls_request(&self) -> Option<Option<Time>> {
        let timeline = self.timeline();
        let at = match timeline.mode() {
            Mode::Live => None,
            Mode::Paused => Some(rounded(timeline.time(), CALLS_EVERY)),
            Mode::Playing => Some(rounded(timeline.time(), CALLS_EVERY.mul_f64(timeline.speed().max(1.0)))),
        };
        (self.source().is_daemon() && at != self.calls_at).then_some(at)
    }

    pub fn calls_requested(&mut self, at: Option<Time>) {
        self.calls_at = at;
    }

    #[must_use]
    pub fn sensors_request(&self) -> Option<Sensors> {
        self.sensors.request(self.source(), self.now())
    }

    pub fn sensors_requested(&mut self, sensors: Sensors) {
        self.sensors.requested(sensors, self.clock.now());
    }

    /// The table of jobs, or the page of one, is drawn.
    pub fn mark_jobs_seen(&mut self) {
        self.jobs.mark_seen(self.clock.now());
    }

    /// The domains whose jobs can be searched, by their names in queries.
    pub fn job_domains(&self) -> impl Iterator<Item = &str> {
        let count = if self.source().is_daemon() { self.grid().domains.len() } else { 0 };
        (0..).take(count).map(|number| self.grid.domain_name(DomainId(number)))
    }

    /// The queries about jobs that are due.
    pub fn jobs_requests(&mut self) -> Vec<JobsRequest> {
        let domain = self.job_domains().next().map(str::to_owned);
        self.jobs.requests(domain.as_deref(), self.clock.timeline(), self.clock.now())
    }

    pub fn jobs_requested(&mut self, request: &JobsRequest) {
        self.jobs.requested(request, self.clock.now());
    }

    /// Whether there are sensors that know processes of calls.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        self.source().is_daemon()
    }

    /// The events and processes of the selected call, if they are due.
    #[must_use]
    pub fn served_request(&self) -> Option<Served> {
        let is_known = match self.source() {
            Source::Daemon(_) | Source::Log(_) => true,
            Source::File(_) => false,
        };
        let call = self.selected_call().filter(|_| is_known)?;
        let is_due = self.served.is_due(call, self.now(), self.has_processes());
        is_due.then(|| self.served_request_for(call, self.served.missing_events(call)))
    }

    pub fn served_requested(&mut self, request: &Served) {
        self.served.requested(request, self.clock.now());
    }

    /// The request for everything that is known of the selected call.
    #[must_use]
    pub fn request_for_selected(&self) -> Option<Served> {
        self.selected_call().map(|call| self.served_request_for(call, Some(call.events)))
    }

    fn served_request_for(&self, call: &Call, events: Option<u32>) -> Served {
        let hosts = call.hosts.iter().map(|&host| self.grid.host_name(host)).collect();
        let domain = self.grid.domain_name(call.domain).to_owned();
        Served { call: call.id.clone(), domain, events, hosts }
    }
}

/// A time rounded down to whole steps.
fn rounded(time: Time, step: Duration) -> Time {
    let step = i64::try_from(step.as_micros()).unwrap_or(i64::MAX).max(1);
    Time::from_micros(time.micros().div_euclid(step).saturating_mul(step))
}
