//! The channels to the threads behind the window: updates come in, requests go out.
//!
//! Rule: sending never waits; a request that has no room is not sent, and may be sent again. Not here:
//! channels themselves (`feed`), what is requested (`model`).

use crate::feed::{Inbox, Request, Update};
use crate::model::{Model, Source};
use std::sync::Arc;
use wire::time::Time;

/// Both channels.
#[derive(Default)]
pub(super) struct Feeds {
    /// Grids, figures and sensors.
    pub(super) grid: Option<Inbox>,
    /// Sweeps, orders, processes of calls, and jobs.
    pub(super) flock: Option<Inbox>,
}

impl Feeds {
    /// The updates that arrived, and when.
    pub(super) fn take(&self) -> Vec<(Time, Update)> {
        self.grid.iter().chain(&self.flock).flat_map(Inbox::take).collect()
    }

    /// Call `waker` when an update arrives.
    pub(super) fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        let waker = Arc::new(waker);
        for inbox in self.grid.iter().chain(&self.flock) {
            let waker = Arc::clone(&waker);
            inbox.wake_by(move || waker());
        }
    }

    /// Send the requests of the model that are due.
    pub(super) fn send_requests(&self, model: &mut Model) {
        if let Some(watch) = model.flock_request(self.flock.is_some())
            && self.send(Request::Flock(watch.clone()), model.source())
        {
            model.flock_requested(watch);
        }
        for past in model.past_requests() {
            if !self.send(Request::Past(past.clone()), model.source()) {
                break;
            }
            model.past_requested(past.missing);
        }
        if let Some(figures) = model.figures_request()
            && self.send(Request::Figures(figures.clone()), model.source())
        {
            model.figures_requested(figures);
        }
        if let Some(tiles) = model.tiles_request()
            && self.send(Request::Tiles(tiles.clone()), model.source())
        {
            model.tiles_requested(tiles);
        }
        if let Some(at) = model.calls_request()
            && self.send(Request::CallsAt(at), model.source())
        {
            model.calls_requested(at);
        }
        if let Some(sensors) = model.sensors_request()
            && self.send(Request::Sensors(sensors.clone()), model.source())
        {
            model.sensors_requested(sensors);
        }
        if let Some(served) = model.served_request()
            && self.send(Request::Served(served.clone()), model.source())
        {
            model.served_requested(&served);
        }
        for request in model.jobs_requests() {
            if self.send(Request::Jobs(request.clone()), model.source()) {
                model.jobs_requested(&request);
            }
        }
    }

    /// Send a request to the thread that answers it; returns whether it was sent.
    pub(super) fn send(&self, request: Request, source: &Source) -> bool {
        let inbox = match &request {
            Request::Figures(_)
            | Request::Tiles(_)
            | Request::CallsAt(_)
            | Request::Look
            | Request::Add(_)
            | Request::Drop(_)
            | Request::Sensors(_) => &self.grid,
            Request::Flock(_)
            | Request::Past(_)
            | Request::Order(_)
            | Request::Kill(_)
            | Request::Jobs(_) => &self.flock,
            // The reader of logs answers for their calls.
            Request::Served(_) if matches!(source, Source::Log(_)) => &self.grid,
            Request::Served(_) => &self.flock,
        };
        inbox.as_ref().is_some_and(|inbox| inbox.request(request))
    }
}
