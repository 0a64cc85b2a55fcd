//! Ctrl-C handler of `visperf events --follow`: prints the cursor to resume from, and ends the program.
//!
//! Rule: the printed cursor is behind every event that was printed completely. Only if the reader of the
//! output is stuck may the page being printed come again.

use crate::command::interrupt::Interrupt;
use crate::exit::Failure;
use crate::output::note;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often, and at what interval, a page that is being printed is waited for.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Cursor of the next page.
pub(super) struct Place {
    cursor: Mutex<String>,
    printing: Mutex<()>,
}

impl Place {
    /// Start at this cursor.
    pub(super) fn new(cursor: String) -> Place {
        Place { cursor: Mutex::new(cursor), printing: Mutex::new(()) }
    }

    /// The cursor behind the last printed page.
    pub(super) fn cursor(&self) -> String {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Mark a page as being printed until the guard is dropped.
    pub(super) fn begin(&self) -> MutexGuard<'_, ()> {
        self.printing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record that the page that ends at `cursor` was printed.
    pub(super) fn go_on_from(&self, cursor: &str) {
        cursor.clone_into(&mut self.cursor.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The cursor behind what was printed, after waiting a limited time for the page being printed.
    fn settled(&self) -> String {
        for _ in 0..LOOKS {
            if self.printing.try_lock().is_ok() {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.cursor()
    }
}

/// Install the handler: Ctrl-C prints the cursor to resume from, and ends the program.
///
/// # Errors
/// If the system refuses the handler.
pub(super) fn catch(place: &Arc<Place>) -> Result<Interrupt, Failure> {
    let place = Arc::clone(place);
    Interrupt::catch(move || print_cursor(&place.settled()))
}

fn print_cursor(cursor: &str) {
    // Start a new line after the ^C that the terminal shows.
    let fresh_line = if std::io::stderr().is_terminal() { "\n" } else { "" };
    match cursor {
        "" | super::NEWEST => note(&format!("{fresh_line}no daemon answered yet, so there is no cursor")),
        cursor => note(&format!("{fresh_line}go on with: --cursor {cursor}")),
    }
}
