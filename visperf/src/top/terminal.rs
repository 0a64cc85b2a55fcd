//! Terminal of the screen: set up, drawn on, and restored, however the program ends.
//!
//! Shell. Rules: the terminal is restored at the end, at a panic and when a signal ends the program; keys are
//! read at least ten times a second, and updates of the daemons shown as often; a closed terminal ends the
//! program, whether a signal reports it or not.
//! Not here: drawing (`draw`), meaning of keys (`state`).

use super::draw;
use super::querier::{Ask, Running};
use super::state::{Action, State, Update};
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

/// Longest wait for a key before updates of the daemons are processed.
const KEY_WAIT: Duration = Duration::from_millis(100);
/// Interval of redrawing without any change, since the age of the data is shown.
const DRAWN_EVERY: Duration = Duration::from_millis(500);
/// Time for the program to end by itself after its terminal was closed.
const GONE_GRACE: Duration = Duration::from_secs(1);

/// Events of poll(2) for a closed terminal.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// The terminal in raw mode; restored when this is dropped.
struct RawTerminal(Terminal<CrosstermBackend<Stdout>>);

impl RawTerminal {
    fn take() -> Result<RawTerminal, Failure> {
        let fail = |error| Failure::of("cannot use the terminal", error);
        // Restore the terminal before a panic is printed.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enable_raw_mode().map_err(fail)?;
        // From here on a failure restores the terminal.
        let raw = Terminal::new(CrosstermBackend::new(io::stdout())).map(RawTerminal).map_err(|error| {
            give_back();
            fail(error)
        })?;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide).map_err(fail)?;
        Ok(raw)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restore the terminal. Errors are ignored, since they could not be shown.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// Show `state` until the user quits.
///
/// # Errors
/// If the terminal cannot be used, or the querier thread has ended.
pub(crate) fn show(mut state: State, asking: &Running, has_colors: bool) -> Result<(), Failure> {
    let ending = Ending::catch()?;
    end_with_terminal()?;
    let mut terminal = RawTerminal::take()?;
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
                Action::Quit => return Ok(()),
                Action::Show(scope) => hand(&mut state, asking, Ask::Show(scope)),
                Action::Give(id, signal) => hand(&mut state, asking, Ask::Give(id, signal)),
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

/// Process the next key, if one comes within a moment; returns the resulting action.
fn key(state: &mut State, is_new: &mut bool) -> Result<Option<Action>, Failure> {
    let fail = |error| Failure::of("cannot read keys", error);
    // Keys that arrived together were read together and are in crossterm's queue, so it is checked before
    // waiting for the terminal.
    for wait in [Duration::ZERO, KEY_WAIT] {
        if is_gone(wait).map_err(fail)? {
            return Ok(Some(Action::Quit));
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

/// Wait until the terminal is readable, at most for `wait`. Returns whether it was closed. Checked before
/// keys are read: reading from a closed terminal would return its end forever.
fn is_gone(wait: Duration) -> io::Result<bool> {
    let keys = io::stdin();
    let mut keys = [PollFd::new(&keys, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match rustix::event::poll(&mut keys, Some(&wait)) {
        // A signal; its handler deals with it.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(keys[0].revents().intersects(GONE))
}

/// Exit shortly after the terminal was closed, if the program has not ended by itself: if it is closed
/// between the check and the reading of keys, reading would loop forever and use a whole core.
fn end_with_terminal() -> Result<(), Failure> {
    let wait = || {
        let keys = io::stdin();
        // Even without requested events poll(2) reports the end of the terminal.
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

/// Pass a request to the querier thread; if its queue is full because a daemon is slow, show that.
fn hand(state: &mut State, asking: &Running, ask: Ask) {
    if asking.asks.try_send(ask).is_err() {
        let busy = "the daemons are slow to answer; try again".to_owned();
        state.handle_update(Update::Given(Err(busy)), clock::now());
    }
}

/// Records the signals that end programs, so that the terminal is restored first.
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
        let flag = Arc::clone(&wanted);
        let waiting = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            });
            flag.store(true, Ordering::SeqCst);
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(waiting).map_err(fail)?;
        Ok(Ending { wanted, _thread: thread })
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }
}
