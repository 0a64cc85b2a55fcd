//! Live view of `visperf up`: where to query, each event as it arrives, each call when it ends, and, on a
//! terminal, the hosts below them.

use super::screen::Screen;
use super::text;
use crate::demo::player::Player;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::as_answered;
use crate::serve::grid::Grid;
use compact_str::CompactString;
use log_filters::join::Joiner;
use sensor::journal::reader::Reader;
use sensor::run::Status;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::{calls, events};
use wire::call::{Call, State};
use wire::event::{Event, Kind, Outcome};
use wire::shown::{bytes, count, share};

/// Events read in one batch.
const PAGE: usize = 500;
/// Refresh interval of the hosts.
const REDRAW: Duration = Duration::from_secs(1);
/// A recording whose lines were all written is over after this many seconds without events, however many
/// lines were read.
const QUIET_TICKS: u32 = 10;

#[derive(Clone)]
struct Recorded {
    /// Cancelled when everything is written.
    written: CancellationToken,
    /// Total of lines that the sensor will have read by then.
    lines: u64,
    /// The recorded clusters.
    clusters: String,
}

/// The live view and its sources.
pub(super) struct Live {
    reader: Reader,
    joiner: Arc<Mutex<Joiner>>,
    status: Status,
    host: String,
    domain: String,
    header: Vec<String>,
    started: serde_json::Value,
    /// The demo's recording, if there is one.
    recording: Option<Recorded>,
    /// Options that a `visperf COMMAND` needs to query this daemon.
    connect: String,
    /// What a user of commands is to know: that they query another daemon by default, how they are identified.
    beside: Vec<String>,
    json: bool,
}

impl Live {
    /// `is_found`: whether commands find the daemon, or the user chose its listening address. `folder`: the
    /// state folder, if it is not the usual one.
    pub(super) fn new(
        grid: &Grid,
        player: Option<&Player>,
        (is_found, folder): (bool, Option<&Path>),
        json: bool,
    ) -> Result<Live, Failure> {
        let sensor =
            grid.sensor().ok_or_else(|| Failure::Failed("there is no sensor to watch".to_owned()))?;
        let config = sensor.config();
        let address = grid.address();
        let mut beside = text::beside(is_found, address);
        beside.extend(folder.into_iter().flat_map(text::identified));
        Ok(Live {
            reader: sensor.events(),
            joiner: sensor.calls(),
            status: sensor.status(),
            host: config.host.to_string(),
            domain: config.domain.to_string(),
            header: text::header(grid, player, &beside),
            started: serde_json::json!({
                "type": "started", "listen": address.to_string(), "domain": config.domain.as_str(),
                "xmlrpc": format!("http://{address}/RPC2"), "json": format!("http://{address}/api/v1"),
            }),
            recording: player.map(|player| Recorded {
                written: player.over(),
                lines: lines_read(&sensor.status()) + player.lines(),
                clusters: player.clusters().join(", "),
            }),
            connect: text::connect(address),
            beside,
            json,
        })
    }

    pub(super) async fn run(self, shutdown: CancellationToken) -> Result<(), anyhow::Error> {
        match self.show(&shutdown).await {
            Ok(()) => {}
            // The reader of the output closed it: end as on Ctrl-C.
            Err(Failure::Closed) => shutdown.cancel(),
            Err(failure) => anyhow::bail!(failure.message().unwrap_or_default()),
        }
        shutdown.cancelled().await;
        Ok(())
    }

    async fn show(&self, shutdown: &CancellationToken) -> Result<(), Failure> {
        let mut screen = Screen::new(self.json);
        if self.json {
            screen.output.json(&self.started)?;
        } else {
            self.header.iter().try_for_each(|line| screen.line(line))?;
        }
        screen.output.flush()?;
        let mut next = self.reader.next();
        // Events of earlier runs are not shown; the view starts with new ones.
        let mut cursor = *next.borrow_and_update();
        let mut redraw = tokio::time::interval(REDRAW);
        let mut ticks = 0;
        let mut recording = self.recording.clone();
        let (mut shown_at_last_tick, mut quiet) = (cursor, 0);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = next.changed() => if changed.is_err() { break },
                _ = redraw.tick() => {
                    ticks += 1;
                    let settled = screen.ended.tick();
                    self.show_calls(&mut screen, settled)?;
                    // The end of a recording stays the last line while nothing else is printed.
                    if screen.is_redrawn() || recording.is_some() || self.recording.is_none() || quiet == 0 {
                        self.draw_status(&mut screen, ticks)?;
                    }
                    quiet = if cursor == shown_at_last_tick { quiet + 1 } else { 0 };
                    shown_at_last_tick = cursor;
                    if let Some(recorded) = recording.take_if(|recorded| self.is_over(recorded, quiet)) {
                        self.report_recording_end(&mut screen, &recorded)?;
                    }
                }
            }
            let newest = *next.borrow_and_update();
            while cursor < newest {
                let page = self.reader.read(cursor, PAGE, |_| true);
                let page = page.map_err(|error| Failure::of("cannot read the events", error))?;
                if page.cursor == cursor {
                    break;
                }
                cursor = page.cursor;
                self.show_events(&mut screen, &page.events)?;
            }
            screen.output.flush()?;
        }
        let last = screen.ended.all();
        self.show_calls(&mut screen, last)?;
        if !self.json {
            self.beside.iter().try_for_each(|line| screen.line(line))?;
        }
        screen.output.flush()
    }

    fn show_events(&self, screen: &mut Screen, events: &[Event]) -> Result<(), Failure> {
        for event in events {
            if self.json {
                let mut json = as_answered(&events::Event::from(event.clone()))?;
                json["type"] = "event".into();
                screen.output.json(&json)?;
            } else {
                let line = screen.lines.line(&event.clone().into(), &screen.output);
                screen.line(&line)?;
            }
            if !event.call.is_empty() {
                screen.ended.take(&event.call, may_end_a_call(event.content.kind));
            }
        }
        let early = if screen.ended.is_full() { screen.ended.all() } else { Vec::new() };
        self.show_calls(screen, early)
    }

    /// Print those of the calls that have ended and were not printed.
    fn show_calls(&self, screen: &mut Screen, calls: Vec<CompactString>) -> Result<(), Failure> {
        for id in calls {
            // The call may have been given a better id meanwhile.
            let call = self.joiner.lock().unwrap_or_else(PoisonError::into_inner).get(&id);
            if let Some(call) = call.filter(|call| call.state == State::Ended)
                && screen.ended.is_new(&call.id)
            {
                self.show_call(screen, &call)?;
            }
        }
        Ok(())
    }

    fn show_call(&self, screen: &mut Screen, call: &Call) -> Result<(), Failure> {
        // A call with a single event shows no more than that event.
        if call.events < 2 {
            return Ok(());
        }
        if self.json {
            let mut json = as_answered(&calls::Call::from(call))?;
            json["type"] = "call".into();
            return screen.output.json(&json);
        }
        let line = text::call_line(call, &screen.output);
        screen.line(&line)
    }

    /// The last lines written are read, and their events shown, a moment later.
    fn is_over(&self, recorded: &Recorded, quiet: u32) -> bool {
        let is_read = lines_read(&self.status) >= recorded.lines && quiet > 0;
        recorded.written.is_cancelled() && (is_read || quiet >= QUIET_TICKS)
    }

    fn report_recording_end(&self, screen: &mut Screen, recorded: &Recorded) -> Result<(), Failure> {
        let (waiting, running, ended) = self.calls();
        let outcomes = self.outcomes();
        if self.json {
            let outcomes: serde_json::Map<_, _> =
                outcomes.into_iter().map(|(outcome, calls)| (outcome.to_owned(), calls.into())).collect();
            return screen.output.json(&serde_json::json!({
                "type": "recording_over", "waiting": waiting, "running": running, "ended": ended,
                "outcomes": outcomes,
            }));
        }
        let over = text::Over { clusters: &recorded.clusters, waiting, running, ended, outcomes };
        text::recording_over(&over, &self.connect, &self.beside).iter().try_for_each(|line| screen.line(line))
    }

    /// Ended calls by outcome, without zeros.
    fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<_> = joiner.calls().filter_map(|call| call.outcome).collect();
        let count = |outcome: &Outcome| ended.iter().filter(|one| *one == outcome).count() as u64;
        let all = Outcome::ALL.iter().map(|outcome| (outcome.as_str(), count(outcome)));
        all.filter(|(_, calls)| *calls > 0).collect()
    }

    /// Numbers of waiting, running and ended calls.
    fn calls(&self) -> (u64, u64, u64) {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        joiner.calls().fold((0, 0, 0), |(w, r, e), call| match call.state {
            State::Waiting => (w + 1, r, e),
            State::Running => (w, r + 1, e),
            State::Ended => (w, r, e + 1),
        })
    }

    fn draw_status(&self, screen: &mut Screen, ticks: u32) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let (waiting, running, ended) = self.calls();
        let events = *self.reader.next().borrow();
        // The host's figures come last: a narrow terminal shows only the start of the line.
        let mut status = format!(
            "{}/{}  {}  calls {waiting} waiting, {running} running, {ended} ended",
            self.domain,
            self.host,
            count(events, "event")
        );
        if let Some(first) = self.status.health().first() {
            let _ = write!(status, "  ! {}", clean(first));
        }
        if let Some(figures) = self.status.figures() {
            if let Some([one, five, fifteen]) = figures.load {
                let _ = write!(status, "  load {one:.2} {five:.2} {fifteen:.2}");
            }
            if let Some(used) = figures.cpu_used {
                let _ = write!(status, "  cpu {} of {}", share(used), count(figures.cpus, "core"));
            }
            if let (Some(used), Some(total)) = (figures.memory_used, figures.memory_total) {
                #[allow(clippy::cast_precision_loss)] // shown with three digits
                let _ = write!(status, "  memory {} of {}", bytes(used as f64), bytes(total as f64));
            }
        }
        screen.status(&status, ticks)
    }
}

const fn may_end_a_call(kind: Kind) -> bool {
    matches!(kind, Kind::JobEnd | Kind::JobCancel | Kind::JobReject | Kind::TransferEnd)
}

/// Number of lines that the sensor has read so far.
fn lines_read(status: &Status) -> u64 {
    status.statistics().iter().find(|(name, _)| *name == "lines_total").map_or(0, |(_, lines)| *lines)
}
