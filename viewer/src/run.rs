//! Composition of the program: a data source, and a window or a picture of it.
//!
//! Not here: any of the parts.

use crate::app::App;
use crate::app::settings::{self, Look, Settings};
use crate::feed::{self, Status, Update};
use crate::graphs::metric::Metric;
use crate::live::ask::Client;
use crate::live::via::Where;
use crate::model::{Change, GraphsChange, JobsChange, Source, TimeChange};
use crate::options::{Options, What};
use crate::picture::headless::Headless;
use crate::replay::{self, Plan, Reader};
use crate::timeline::Mode;
use crate::{clock, export, live, picture, window};
use std::path::Path;
use std::time::Duration;
use wire::time::Time;

/// Timeout for a daemon's answers where a picture or a file is made.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long the data of a daemon is collected before a picture is made, and how often it is processed
/// meanwhile.
const COLLECT_FOR: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(50);
/// Timeout for the answers about jobs, of many hosts one after the other: the picture is written once they are there.
const JOBS_WAIT: Duration = Duration::from_secs(60);
/// Time after which the requests for the history in a picture have been sent.
const REQUESTS_WAIT: Duration = Duration::from_secs(1);

/// Errors that end the viewer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Replay(#[from] replay::Error),
    #[error(transparent)]
    Window(#[from] window::Error),
    #[error(transparent)]
    Picture(#[from] picture::Error),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    /// A saved file cannot be read or written.
    #[error(transparent)]
    Export(#[from] export::Error),
    /// The daemon cannot be queried.
    #[error("{0}")]
    Daemon(String),
    /// A thread cannot be started.
    #[error("cannot begin a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Error {
    /// Whether the command line is wrong.
    #[must_use]
    pub fn is_of_usage(&self) -> bool {
        matches!(self, Error::Usage(_) | Error::Replay(replay::Error::NoFilter(_)))
    }
}

/// Run the program with these options.
///
/// # Errors
/// See [`Error`].
pub fn run(options: &Options) -> Result<(), Error> {
    let at = options.at().map_err(Error::Usage)?;
    if options.screenshot.is_some() || options.tell || options.export.is_some() {
        return once(options, at);
    }
    let file = settings::default_file();
    let (mut kept, notes) = file.as_deref().map_or_else(Default::default, Settings::load);
    let before = kept.clone();
    notes.iter().for_each(|text| crate::report(text));
    set_look(&mut kept, options);
    let mut app = followed(options, kept)?;
    app.update(clock::now(), 0.0);
    set_up(&mut app, options, at)?;
    Ok(window::run(app, file, before)?)
}

/// Create the app with a source that keeps sending updates.
fn followed(options: &Options, settings: Settings) -> Result<App, Error> {
    let now = clock::now();
    let app = |source, inbox| App::new(source, inbox, settings, options.zone(), now);
    Ok(match options.what() {
        What::File(_) => {
            let (source, update, ..) = still(options, None)?;
            let mut app = app(source, None);
            app.take(now, update);
            app
        }
        What::Daemon(plan) => {
            let plan = plan.map_err(Error::Usage)?;
            let (feed, inbox) = feed::feed();
            let (flock_feed, flock) = feed::feed();
            live::follow(plan.clone(), feed)?;
            live::flock::follow(plan.address.clone(), flock_feed)?;
            let mut app = app(Source::Daemon(plan.address.to_string()), Some(inbox));
            app.feed_flock(flock);
            app
        }
        What::Logs => {
            let (feed, inbox) = feed::feed();
            let mut reader = Reader::open(&plan(options), now)?;
            reader.read(false, now)?;
            feed.send(Update::grid(reader.grid()));
            replay::follow(reader, feed)?;
            app(log_source(options), Some(inbox))
        }
    })
}

/// Source of the details of a call.
enum CallDetails {
    Unavailable,
    Daemon(Where),
    Logs(Box<Reader>),
}

/// Request the data once, for a picture or a file, with the source of the details of a call.
fn still(options: &Options, at: Option<Time>) -> Result<(Source, Update, Status, CallDetails), Error> {
    let now = clock::now();
    Ok(match options.what() {
        What::File(file) => {
            let grid = export::grid_file::open(&file, now)?;
            (Source::File(name_of(&file)), Update::grid(grid), Status::Beginning, CallDetails::Unavailable)
        }
        What::Daemon(plan) => {
            let plan = plan.map_err(Error::Usage)?;
            let (grid, troubles) = live::once(&plan, at, ANSWER_WAIT).map_err(Error::Daemon)?;
            troubles.iter().for_each(|trouble| crate::report(trouble));
            let address = plan.address.to_string();
            let status = Status::Connected { address: address.clone(), took_secs: 0.0, troubles };
            (Source::Daemon(address), Update::grid(grid), status, CallDetails::Daemon(plan.address))
        }
        What::Logs => {
            let mut reader = Reader::open(&plan(options), now)?;
            reader.read(true, now)?;
            let status = Status::Reading { lines: reader.lines() };
            (log_source(options), Update::grid(reader.grid()), status, CallDetails::Logs(Box::new(reader)))
        }
    })
}

/// Write a picture, a data file, or what is shown as JSON, without a window.
fn once(options: &Options, at: Option<Time>) -> Result<(), Error> {
    let now = clock::now();
    let mut settings = Settings::default();
    set_look(&mut settings, options);
    let (source, update, status, details) = still(options, at)?;
    let mut app = App::new(source, None, settings, options.zone(), now);
    app.take(now, update);
    app.take(now, Update::Status(status));
    let (now, end) = match options.what() {
        What::Daemon(plan) => see(&mut app, options, &plan.map_err(Error::Usage)?, at)?,
        What::File(_) | What::Logs => (now, app.model().timeline().span().1),
    };
    app.apply(TimeChange::StopAt(at.unwrap_or(end)));
    report_time(&app, at, options);
    set_up(&mut app, options, None)?;
    absent_metrics(&app, options).iter().for_each(|text| crate::report(text));
    if let Some(question) = app.model().request_for_selected() {
        match details {
            CallDetails::Logs(reader) => app.show_served(reader.answer(&question.call, now)),
            CallDetails::Daemon(address) => {
                let mut client = Client::within(address, ANSWER_WAIT);
                app.show_served(live::served::ask(&mut client, &question));
            }
            CallDetails::Unavailable => {}
        }
    }
    if let Some(file) = &options.screenshot {
        picture::draw(&mut Headless::new(options.picture_size(), now), &mut app, file)?;
    }
    if let Some(file) = &options.export {
        app.update(now, 0.0);
        export::write(&app.table(), app.model().grid(), file)?;
    }
    if options.tell {
        app.update(now, 0.0);
        crate::print(&app.to_json().to_string()).map_err(Error::Output)?;
    }
    Ok(())
}

/// Report that another time is shown than the requested one.
fn report_time(app: &App, at: Option<Time>, options: &Options) {
    let Some(at) = at else { return };
    let shown = app.model().timeline().time();
    if shown != at {
        let side = if at < shown { "before the first" } else { "after the last" };
        let shown = crate::app::text::moment(shown, &options.zone(), true);
        crate::report(&format!("--at is {side} moment that is known; shown is that, {shown}"));
    }
}

/// Notes on the requested metrics that no host has in the span of the graphs.
fn absent_metrics(app: &App, options: &Options) -> Vec<String> {
    if !(options.shows_graphs() && app.model().source().is_daemon()) {
        return Vec::new();
    }
    let drawn = app.model().drawn_values();
    let is_drawn =
        |metric: &&Metric| drawn.iter().any(|line| !line.values.is_empty() && metric.has(&line.name));
    let absent = options.metric.iter().filter(|metric| !is_drawn(metric));
    let note = |metric: &Metric| {
        format!(
            "--metric {}: the hosts have no value of it in this span; `visperf metrics` lists the metrics",
            metric.word()
        )
    };
    absent.map(note).collect()
}

/// Collect data of a daemon for a while, if the selected tab needs more than the grid. Returns the current
/// time, and the time up to which the data is complete.
fn see(app: &mut App, options: &Options, plan: &live::Plan, at: Option<Time>) -> Result<(Time, Time), Error> {
    let (feed, inbox) = feed::feed();
    let watch: fn(&mut App) = match options.tab.as_deref() {
        Some("flock") => {
            live::flock::follow(plan.address.clone(), feed)?;
            app.feed_flock(inbox);
            set_up(app, options, None)?;
            App::watch_flock
        }
        _ if options.shows_graphs() => {
            live::follow(plan.clone(), feed)?;
            app.feed(inbox);
            set_up(app, options, None)?;
            if let Some(at) = at {
                app.apply(TimeChange::StopAt(at));
            }
            App::watch_graphs
        }
        _ if options.shows_sensors() => {
            live::follow(plan.clone(), feed)?;
            app.feed(inbox);
            set_up(app, options, None)?;
            App::watch_sensors
        }
        _ if options.shows_jobs() => {
            live::flock::follow(plan.address.clone(), feed)?;
            app.feed_flock(inbox);
            set_up(app, options, None)?;
            // The table says what is visible when it is drawn.
            let mut table = Headless::new(options.picture_size(), clock::now());
            look_on(app, App::watch_jobs, JOBS_WAIT, |app| {
                table.set_time(clock::now());
                table.frames(app, 1);
                app.model().jobs().is_awaited()
            });
            if app.model().jobs().is_awaited() {
                crate::report(&format!(
                    "the hosts of jobs did not all answer within {} s",
                    JOBS_WAIT.as_secs()
                ));
            }
            return Ok((clock::now(), app.model().timeline().span().1));
        }
        _ => return Ok((clock::now(), app.model().timeline().span().1)),
    };
    look_on(app, watch, COLLECT_FOR, |_| true);
    if options.shows_graphs() {
        look_on(app, watch, ANSWER_WAIT, |app| app.model().graphs().awaits_tiles());
    }
    let is_flock = !options.shows_graphs() && !options.shows_sensors();
    // A selected call that has ended sets the shown time.
    let of_choice = (app.model().timeline().mode() != Mode::Live).then(|| app.model().timeline().time());
    if let (true, Some(at)) = (is_flock, at.or(of_choice)) {
        app.apply(TimeChange::StopAt(at));
        look_on(app, watch, REQUESTS_WAIT, |_| true);
        look_on(app, watch, ANSWER_WAIT, |app| app.model().flock().awaits_past());
        if let Some(why) = app.why_no_flock() {
            crate::report(&why);
        }
    }
    let now = clock::now();
    app.update(now, 0.0);
    let delay = if is_flock { app.model().flock().delay() } else { Duration::ZERO };
    Ok((now, of_choice.unwrap_or(now.minus(delay))))
}

/// Process updates for a while, as long as more are expected.
fn look_on(app: &mut App, watch: fn(&mut App), most: Duration, mut goes_on: impl FnMut(&mut App) -> bool) {
    let started = clock::instant();
    while started.elapsed() < most && goes_on(app) {
        app.update(clock::now(), 0.0);
        watch(app);
        std::thread::sleep(LOOK);
    }
}

fn plan(options: &Options) -> Plan {
    Plan { logs: options.replay.clone(), filter: options.filter.clone(), zone: options.zone() }
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn log_source(options: &Options) -> Source {
    let name = options.replay.first().map_or_else(String::new, |path| name_of(path));
    Source::Log(match options.replay.len() {
        0 | 1 => name,
        many => format!("{name} and {} more", many - 1),
    })
}

fn set_look(settings: &mut Settings, options: &Options) {
    if options.light || options.dark {
        settings.look = if options.light { Look::Light } else { Look::Dark };
    }
}

/// Apply the options about the contents.
fn set_up(app: &mut App, options: &Options, at: Option<Time>) -> Result<(), Error> {
    if let Some(at) = at {
        app.apply(TimeChange::StopAt(at));
    }
    if let Some(words) = options.search.as_ref().filter(|_| options.shows_jobs()) {
        app.apply(JobsChange::Search(words.clone()));
        if let Some(wrong) = app.model().jobs().text_error() {
            return Err(Error::Usage(format!("--search: {wrong}")));
        }
    } else if let Some(words) = &options.search {
        app.apply(Change::Search(words.clone()));
        if let Some(wrong) = app.model().filter().error() {
            return Err(Error::Usage(format!("--search: {wrong}")));
        }
    }
    if let Some(tab) = &options.tab {
        app.open_tab(tab);
    }
    if let Some(span) = options.span {
        app.apply(GraphsChange::SetSpan(span.as_secs_f64()));
    }
    if !options.metric.is_empty() {
        app.apply(GraphsChange::SetMetrics(options.metric.clone()));
    }
    if let Some(name) = &options.select
        && !app.model().is_selected(name)
        && !app.select_named(name)
    {
        return Err(Error::Usage(format!(
            "expected --select with a call, host, client or domain, found {name:?}"
        )));
    }
    Ok(())
}
