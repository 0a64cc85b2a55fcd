//! The live picture of `visperf up`: where to query, each event as it comes, each call as it ends, and
//! below them, on a terminal, the hosts.

use super::screen::Screen;
use super::text;
use crate::demo::player::Player;
use crate::exit::Failure;
use crate::output::figures::{bytes, count, share};
use crate::output::{as_answered, clean};
use crate::serve::grid::Grid;
use compact_str::CompactString;
use log_filters::join::Joiner;
use sensor::journal::reader::Reader;
use sensor::run::Status;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::{calls, events};
use wire::call::{Call, State};
use wire::event::{Event, Kind, Outcome};

/// Events read in one go.
const PAGE: usize = 500;
/// How often the hosts are drawn again.
const REDRAW: Duration = Duration::from_secs(1);
/// After so many seconds in which nothing came, a recording that is written is over, whatever was read of it.
const QUIET_TICKS: u32 = 10;

/// A recording that is being written.
#[derive(Clone)]
struct Recorded {
    /// Fires when all is written.
    written: CancellationToken,
    /// The lines that the sensor will have read then.
    lines: u64,
    /// Whose logs it has.
    clusters: String,
}

/// What is shown, and from where.
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
    /// What follows `visperf COMMAND` to ask this one.
    connect: String,
    /// That commands find another daemon; empty where they find this one.
    beside: Vec<String>,
    json: bool,
}

impl Live {
    /// `is_found`: whether commands find the daemon, or the user chose where it listens.
    pub(super) fn new(
        grid: &Grid,
        player: Option<&Player>,
        is_found: bool,
        json: bool,
    ) -> Result<Live, Failure> {
        let sensor =
            grid.sensor().ok_or_else(|| Failure::Failed("there is no sensor to watch".to_owned()))?;
        let config = sensor.config();
        let address = grid.address();
        let beside = text::beside(is_found, address);
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
            // The reader of the output has gone: end as on Ctrl-C.
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
        // What earlier runs found is history; the picture shows what comes.
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
                    // The end of a recording stays the last line where nothing more comes.
                    if screen.is_redrawn() || recording.is_some() || self.recording.is_none() || quiet == 0 {
                        self.draw_status(&mut screen, ticks)?;
                    }
                    quiet = if cursor == shown_at_last_tick { quiet + 1 } else { 0 };
                    shown_at_last_tick = cursor;
                    if let Some(recorded) = recording.take_if(|recorded| self.is_over(recorded, quiet)) {
                        self.tell_recording_over(&mut screen, &recorded)?;
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
        let told_early = if screen.ended.is_full() { screen.ended.all() } else { Vec::new() };
        self.show_calls(screen, told_early)
    }

    /// Those of them that have ended and were not shown.
    fn show_calls(&self, screen: &mut Screen, calls: Vec<CompactString>) -> Result<(), Failure> {
        for id in calls {
            // It may have got a better id since.
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
        // A call of one event shows nothing that its event did not.
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

    /// What was written last is read, and its events shown, a moment later.
    fn is_over(&self, recorded: &Recorded, quiet: u32) -> bool {
        let is_read = lines_read(&self.status) >= recorded.lines && quiet > 0;
        recorded.written.is_cancelled() && (is_read || quiet >= QUIET_TICKS)
    }

    fn tell_recording_over(&self, screen: &mut Screen, recorded: &Recorded) -> Result<(), Failure> {
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

    /// How many calls ended in each way, those in which some did.
    fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<_> = joiner.calls().filter_map(|call| call.outcome).collect();
        let count = |outcome: &Outcome| ended.iter().filter(|one| *one == outcome).count() as u64;
        let all = Outcome::ALL.iter().map(|outcome| (outcome.as_str(), count(outcome)));
        all.filter(|(_, calls)| *calls > 0).collect()
    }

    /// How many calls wait, run and have ended.
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
        // The figures of the host come last: a narrow terminal shows the beginning.
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

/// The lines that the sensor has read so far.
fn lines_read(status: &Status) -> u64 {
    status.statistics().iter().find(|(name, _)| *name == "lines_total").map_or(0, |(_, lines)| *lines)
}
