//! The live picture of `visperf up`: where to query, each event as it comes, each call as it ends, and
//! below them, on a terminal, the hosts.

use crate::demo::player::Player;
use crate::exit::Failure;
use crate::output::event_lines::{EventLines, outcome_color};
use crate::output::figures::{bytes, count, share};
use crate::output::{Color, Output, clean};
use crate::serve::grid::Grid;
use compact_str::CompactString;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use log_filters::join::Joiner;
use sensor::journal::reader::Reader;
use sensor::query::shape;
use sensor::run::Status;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::call::{Call, State};

/// Events read in one go.
const PAGE: usize = 500;
/// Ends of calls that are remembered, so that none is shown twice.
const ENDED_KEPT_MAX: usize = 10_000;
/// How often the hosts are drawn anew.
const REDRAW: Duration = Duration::from_secs(1);
/// How often standard output that is no terminal gets a line on the hosts.
const STATUS_LINE_EVERY: u32 = 10;

/// What is shown, and from where.
pub(super) struct Live {
    reader: Reader,
    joiner: Arc<Mutex<Joiner>>,
    status: Status,
    host: String,
    domain: String,
    header: Vec<String>,
    started: serde_json::Value,
    /// Fires when the demo has written everything.
    recording_over: Option<CancellationToken>,
    /// What follows `visperf COMMAND` to ask this one.
    connect: String,
    json: bool,
}

impl Live {
    pub(super) fn new(grid: &Grid, player: Option<&Player>, json: bool) -> Result<Live, Failure> {
        let sensor =
            grid.sensor().ok_or_else(|| Failure::Failed("there is no sensor to watch".to_owned()))?;
        let config = sensor.config();
        let address = grid.address();
        Ok(Live {
            reader: sensor.events(),
            joiner: sensor.calls(),
            status: sensor.status(),
            host: config.host.to_string(),
            domain: config.domain.to_string(),
            header: header(grid, player),
            started: serde_json::json!({
                "type": "started", "listen": address.to_string(), "domain": config.domain.as_str(),
                "xmlrpc": format!("http://{address}/RPC2"), "json": format!("http://{address}/api/v1"),
            }),
            recording_over: player.map(Player::over),
            connect: connect(address),
            json,
        })
    }

    pub(super) async fn run(self, shutdown: CancellationToken) -> Result<(), anyhow::Error> {
        match self.show(&shutdown).await {
            Ok(()) => {}
            // Whoever read our output has enough: end as on Ctrl-C.
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
        let mut recording = self.recording_over.clone();
        let mut shown_at_last_tick = cursor;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                changed = next.changed() => if changed.is_err() { return Ok(()) },
                _ = redraw.tick() => {
                    ticks += 1;
                    self.draw_status(&mut screen, ticks)?;
                    // What was written last is read a moment later: the end is told when nothing comes any more.
                    let quiet = std::mem::replace(&mut shown_at_last_tick, cursor) == cursor;
                    if quiet && recording.take_if(|over| over.is_cancelled()).is_some() {
                        self.tell_recording_over(&mut screen)?;
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
    }

    fn show_events(&self, screen: &mut Screen, events: &[wire::event::Event]) -> Result<(), Failure> {
        for event in events {
            let mut json = json_of(&shape::event(event))?;
            if self.json {
                json["type"] = "event".into();
                screen.output.json(&json)?;
            } else {
                let line = screen.lines.line(&json, &screen.output);
                screen.line(&line)?;
            }
            let ends =
                matches!(event.content.kind, wire::event::Kind::JobEnd | wire::event::Kind::TransferEnd);
            if ends && !event.call.is_empty() && screen.ended.is_new(&event.call) {
                let call = self.joiner.lock().unwrap_or_else(PoisonError::into_inner).get(&event.call);
                self.show_call(screen, call.as_ref())?;
            }
        }
        Ok(())
    }

    fn show_call(&self, screen: &mut Screen, call: Option<&Call>) -> Result<(), Failure> {
        // A call of one event has nothing to tell that its event did not.
        let Some(call) = call.filter(|call| call.state == State::Ended && call.events > 1) else {
            return Ok(());
        };
        if self.json {
            let mut json = json_of(&shape::call(call))?;
            json["type"] = "call".into();
            return screen.output.json(&json);
        }
        let line = call_line(call, &screen.output);
        screen.line(&line)
    }

    fn tell_recording_over(&self, screen: &mut Screen) -> Result<(), Failure> {
        let (waiting, running, ended) = self.calls();
        if self.json {
            return screen.output.json(&serde_json::json!({
                "type": "recording_over", "waiting": waiting, "running": running, "ended": ended,
            }));
        }
        let connect = &self.connect;
        let lines = [
            String::new(),
            format!(
                "The recording is over: {}, {ended} of them ended.",
                count(waiting + running + ended, "call")
            ),
            "This machine is still watched and every question still answered; in another terminal try:".to_owned(),
            format!("  visperf summary{connect}"),
            format!("  visperf calls{connect} --outcome failed --limit 10"),
            format!("  visperf events{connect} --kind node_down --kind node_drain"),
            format!("  visperf metrics{connect} 'node_memory_Mem*'"),
            "Ctrl-C ends it. `visperf up` watches your own logs; `visperf up --demo --speed 1` plays this as it was."
                .to_owned(),
        ];
        lines.iter().try_for_each(|line| screen.line(line))
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
        let mut text = format!("{}/{}", self.domain, self.host);
        if let Some(figures) = self.status.figures() {
            if let Some([one, five, fifteen]) = figures.load {
                let _ = write!(text, "  load {one:.2} {five:.2} {fifteen:.2}");
            }
            if let Some(used) = figures.cpu_used {
                let _ = write!(text, "  cpu {} of {}", share(used), count(figures.cpus, "core"));
            }
            if let (Some(used), Some(total)) = (figures.memory_used, figures.memory_total) {
                #[allow(clippy::cast_precision_loss)] // shown with three digits
                let _ = write!(text, "  memory {} of {}", bytes(used as f64), bytes(total as f64));
            }
        }
        let events = *self.reader.next().borrow();
        let _ = write!(
            text,
            "  {}  calls {waiting} waiting, {running} running, {ended} ended",
            count(events, "event")
        );
        let health = self.status.health();
        if let Some(first) = health.first() {
            let _ = write!(text, "  ! {}", clean(first));
        }
        screen.status(&text, ticks)
    }
}

fn header(grid: &Grid, player: Option<&Player>) -> Vec<String> {
    let address = grid.address();
    let mut lines = Vec::new();
    if let Some(player) = player {
        let secs = player.length().as_secs();
        lines.push(format!(
            "recorded logs of {}, written again as if it were now, for {} min {} s",
            player.clusters().join(", "),
            secs / 60,
            secs % 60
        ));
    }
    lines.push(format!("XML-RPC  http://{address}/RPC2"));
    lines.push(format!("JSON     curl http://{address}/api/v1/sensor.calls"));
    let connect = connect(address);
    lines.push(format!("or       visperf calls{connect}   visperf hosts{connect}   visperf help"));
    let files = grid.sensor().map(|sensor| sensor.config().tails.len()).unwrap_or_default();
    if files == 0 {
        lines.push(
            "no log of known middleware is on this machine; --tail FILE adds one, --demo shows recorded clusters".to_owned(),
        );
    }
    lines.push(String::new());
    lines
}

/// Nothing where commands find this one by themselves.
fn connect(address: std::net::SocketAddr) -> String {
    match address == crate::serve::grid::LISTEN_DEFAULT {
        true => String::new(),
        false => format!(" --connect {address}"),
    }
}

fn call_line(call: &Call, output: &Output) -> String {
    let span = |from: Option<wire::time::Time>, to: Option<wire::time::Time>| {
        from.zip(to).filter(|(from, to)| to >= from).map(|(from, to)| to.since(from).as_secs_f64())
    };
    let mut text = format!("    call {}", call.id);
    for (name, value) in [("", &call.name), ("by ", &call.user), ("from ", &call.from)] {
        if !value.is_empty() {
            let _ = write!(text, "  {name}{}", clean(value));
        }
    }
    if !call.hosts.is_empty() {
        let _ = write!(text, "  on {}", clean(&call.hosts.join(",")));
    }
    if let Some(secs) = span(call.submitted, call.started) {
        let _ = write!(text, "  waited {secs:.1} s");
    }
    if let Some(secs) = span(call.started, call.ended) {
        let _ = write!(text, "  ran {secs:.1} s");
    }
    let outcome = call.outcome.map_or("", |outcome| outcome.as_str());
    let code = if call.code.is_empty() { String::new() } else { format!(" ({})", clean(&call.code)) };
    format!("{}  {}{}", output.paint(Color::Dim, &text), output.paint(outcome_color(outcome), outcome), code)
}

fn json_of(value: &rpc::value::Value) -> Result<serde_json::Value, Failure> {
    let mut text = String::new();
    rpc::json::write_value(&mut text, value);
    serde_json::from_str(&text).map_err(|error| Failure::of("an event cannot be shown", error))
}

/// Lines that scroll, and a status below them where there is a terminal.
struct Screen {
    output: Output,
    lines: EventLines,
    bar: Option<(MultiProgress, ProgressBar)>,
    ended: Ended,
}

/// The calls whose end was shown: several logs tell of one end, and it is shown once.
#[derive(Default)]
struct Ended {
    shown: BTreeSet<CompactString>,
    order: VecDeque<CompactString>,
}

impl Ended {
    /// Whether this call's end was not shown yet, of the last [`ENDED_KEPT_MAX`].
    fn is_new(&mut self, call: &CompactString) -> bool {
        if !self.shown.insert(call.clone()) {
            return false;
        }
        self.order.push_back(call.clone());
        if self.order.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.shown.remove(&oldest);
        }
        true
    }
}

impl Screen {
    fn new(json: bool) -> Screen {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let bar = (terminal && !json).then(|| {
            let several = MultiProgress::new();
            let bar = several.add(ProgressBar::new_spinner());
            bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a constant template"));
            (several, bar)
        });
        Screen {
            output: Output::stdout(),
            lines: EventLines::new(TimeZone::system()),
            bar,
            ended: Ended::default(),
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        match &self.bar {
            Some((several, _)) => {
                several.println(text).map_err(|error| Failure::of("cannot write to the terminal", error))
            }
            None => self.output.line(text),
        }
    }

    fn status(&mut self, text: &str, ticks: u32) -> Result<(), Failure> {
        match &self.bar {
            Some((_, bar)) => {
                bar.set_message(text.to_owned());
                Ok(())
            }
            None if ticks == 2 || ticks.is_multiple_of(STATUS_LINE_EVERY) => {
                self.output.line(&format!("-- {text}"))
            }
            None => Ok(()),
        }
    }
}
