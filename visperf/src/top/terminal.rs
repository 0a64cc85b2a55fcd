//! The terminal of the screen: taken, drawn on, and given back as it was, however the program ends.
//!
//! Shell. Rules: what restores the terminal runs at the end, at a panic and when a signal ends the program; keys are looked for at
//! least ten times a second, so that what comes from the daemons is seen as soon; a terminal that is gone ends the program, be it notified
//! by a signal or not.
//! Not here: what is drawn (`draw`), what keys mean (`state`).

use super::asker::{Ask, Running};
use super::draw;
use super::state::{State, Update, Wish};
use super::theme::Theme;
use crate::exit::Failure;
use overlay::clock;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a key is waited for before it is looked what the daemons said.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// A screen that nothing changes is drawn again so often: it shows how old it is.
const DRAWN_EVERY: Duration = Duration::from_millis(500);
/// How long the program has to end by itself once its terminal is gone.
const GONE_GRACE: Duration = Duration::from_secs(1);

/// What poll(2) reports of a terminal that is gone.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// The terminal, taken; given back when this is dropped.
struct Taken(Terminal<CrosstermBackend<Stdout>>);

impl Taken {
    fn take() -> Result<Taken, Failure> {
        let fail = |error| Failure::of("cannot use the terminal", error);
        // A panic is printed on the terminal as it was.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enable_raw_mode().map_err(fail)?;
        // From here on a failure gives back what was taken.
        let taken = Terminal::new(CrosstermBackend::new(io::stdout())).map(Taken).map_err(|error| {
            give_back();
            fail(error)
        })?;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide).map_err(fail)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// There is no one to notify that it cannot be given back.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Show `state` until the user ends it.
///
/// # Errors
/// If the terminal cannot be used, or the thread that asks has ended.
pub(crate) fn show(mut state: State, asking: &Running, has_colors: bool) -> Result<(), Failure> {
    let ending = Ending::catch()?;
    end_with_terminal()?;
    let mut terminal = Taken::take()?;
    let theme = Theme::new(has_colors);
    let (mut drawn, mut is_new) = (clock::now(), true);
    while !ending.is_wanted() {
        let now = clock::now();
        if is_new || now.since(drawn) >= DRAWN_EVERY {
            let draw = |frame: &mut ratatui::Frame<'_>| draw::draw(frame, &mut state, theme, now);
            terminal.0.draw(draw).map_err(|error| Failure::of("cannot draw on the terminal", error))?;
            (drawn, is_new) = (now, false);
        }
        if let Some(wish) = key(&mut state, &mut is_new)? {
            match wish {
                Wish::Quit => return Ok(()),
                Wish::Show(scope) => hand(&mut state, asking, Ask::Show(scope)),
                Wish::Give(id, signal) => hand(&mut state, asking, Ask::Give(id, signal)),
            }
        }
        while let Ok(update) = asking.updates.try_recv() {
            state.handle_update(update, clock::now());
            is_new = true;
        }
        if !asking.is_running() {
            return Err(Failure::Failed("asking the daemons ended by a defect".to_owned()));
        }
    }
    Ok(())
}

/// What the next key wants, if one comes within a moment.
fn key(state: &mut State, is_new: &mut bool) -> Result<Option<Wish>, Failure> {
    let fail = |error| Failure::of("cannot read keys", error);
    // Keys that came together were read together, and are in the queue of crossterm: waiting for the terminal comes second.
    for wait in [Duration::ZERO, KEY_WAIT] {
        if is_gone(wait).map_err(fail)? {
            return Ok(Some(Wish::Quit));
        }
        if event::poll(Duration::ZERO).map_err(fail)? {
            break;
        }
        if wait == KEY_WAIT {
            return Ok(None);
        }
    }
    match event::read().map_err(fail)? {
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            *is_new = true;
            Ok(state.handle_key(key))
        }
        Event::Resize(..) => {
            *is_new = true;
            Ok(None)
        }
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => Ok(None),
    }
}

/// Wait until something can be read of the terminal, no longer than `wait`; whether it is gone. Asked before keys are: who reads them
/// would read the end of a terminal that is gone, for ever.
fn is_gone(wait: Duration) -> io::Result<bool> {
    let keys = io::stdin();
    let mut keys = [PollFd::new(&keys, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match rustix::event::poll(&mut keys, Some(&wait)) {
        // A signal: it is looked at by who catches it.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(keys[0].revents().intersects(GONE))
}

/// End the program a moment after its terminal is gone, where it has not ended by itself: a terminal that goes between the look at it and the
/// reading of keys would be read for ever, at the cost of a core.
fn end_with_terminal() -> Result<(), Failure> {
    let wait = || {
        let keys = io::stdin();
        // Of events of no kind the end of the terminal is reported all the same (poll(2)).
        let mut keys = [PollFd::new(&keys, PollFlags::empty())];
        while let Ok(_) | Err(rustix::io::Errno::INTR) = rustix::event::poll(&mut keys, None) {
            if keys[0].revents().intersects(GONE) {
                std::thread::sleep(GONE_GRACE);
                std::process::exit(0);
            }
        }
    };
    let thread = std::thread::Builder::new().name("terminal".to_owned()).spawn(wait);
    thread.map(drop).map_err(|error| Failure::of("cannot watch the terminal", error))
}

/// Hand it to the thread that asks; where that waits for a daemon and much was asked already, say so.
fn hand(state: &mut State, asking: &Running, ask: Ask) {
    if asking.asks.try_send(ask).is_err() {
        let busy = "the daemons are slow to answer; try again".to_owned();
        state.handle_update(Update::Given(Err(busy)), clock::now());
    }
}

/// Notes the signals that end programs, so that the terminal is given back first.
struct Ending {
    wanted: Arc<AtomicBool>,
    _thread: JoinHandle<()>,
}

impl Ending {
    fn catch() -> Result<Ending, Failure> {
        let fail = |error| Failure::of("cannot catch signals", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(fail)?;
        drop(entered);
        let wanted = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&wanted);
        let waiting = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            });
            told.store(true, Ordering::SeqCst);
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(waiting).map_err(fail)?;
        Ok(Ending { wanted, _thread: thread })
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }
}
