//! Windows on synthetic grids: a source that is not queried, and the processes and metrics of its hosts.
//!
//! Rule: all data is in the window from the start, so nothing is requested.

use super::{figures, flock, time_f};
use crate::app::App;
use crate::feed::Update;
use crate::flock::sweep::HostName;
use crate::grid::place::HostState;
use crate::model::Source;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Hosts with processes: as many as the flock shows of them.
const HOSTS: usize = 16;
/// Processes of a host, and the part of the synthetic hour that sweeps cover, one a second.
const PROCESSES: u32 = 48;
const FROM_SECS: f64 = 1_740.0;
const SWEEPS: u32 = 240;
const STEP: Duration = Duration::from_secs(1);

/// A log: its calls, reports and processes are shown at all times, but no metrics.
#[must_use]
pub fn log() -> Source {
    Source::Log("synthetic grid".to_owned())
}

/// A daemon: metrics of its hosts are shown.
#[must_use]
pub fn daemon() -> Source {
    Source::Daemon("127.0.0.1:7317".to_owned())
}

/// Show the processes of the first live hosts, in the middle of the synthetic hour.
pub fn show_processes(app: &mut App) {
    let grid = app.model().placed();
    let live = grid.servers().filter(|(_, place)| place.state == HostState::Live).take(HOSTS);
    let hosts: Vec<HostName> = live.map(|(id, _)| grid.host_name(id)).collect();
    app.show_flock(flock::flock(&hosts, PROCESSES, time_f(FROM_SECS), SWEEPS, STEP));
}

/// Show the metrics of these hosts, received at `now`.
pub fn show_figures(app: &mut App, hosts: &[HostName], now: Time) {
    for host in hosts {
        let series = Arc::new(figures::host(host));
        app.take(now, Update::Series { host: host.clone(), series, trouble: None });
    }
}
