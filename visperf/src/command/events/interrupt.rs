//! Ctrl-C while events are followed: prints the cursor to go on from, and ends the program.
//!
//! Rule: the printed cursor lies behind every event that was printed whole; only where the reader of
//! our output takes nothing any more may the page it is stuck in come again.

use crate::command::interrupt::Interrupt;
use crate::exit::Failure;
use crate::output::note;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often, and how far apart, a page that is being printed is waited for.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Where the next page begins.
pub(super) struct Place {
    cursor: Mutex<String>,
    printing: Mutex<()>,
}

impl Place {
    /// Begin with this cursor.
    pub(super) fn new(cursor: String) -> Place {
        Place { cursor: Mutex::new(cursor), printing: Mutex::new(()) }
    }

    /// The cursor behind the last page.
    pub(super) fn cursor(&self) -> String {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A page is printed until this is dropped.
    pub(super) fn begin(&self) -> MutexGuard<'_, ()> {
        self.printing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page that ends there is printed.
    pub(super) fn go_on_from(&self, cursor: &str) {
        cursor.clone_into(&mut self.cursor.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The cursor behind what was printed, once no page is under way or none moves on.
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

/// From now on Ctrl-C prints where to go on and ends the program.
///
/// # Errors
/// If the system refuses.
pub(super) fn catch(place: &Arc<Place>) -> Result<Interrupt, Failure> {
    let place = Arc::clone(place);
    Interrupt::catch(move || tell(&place.settled()))
}

fn tell(cursor: &str) {
    // Behind the ^C that the terminal shows.
    let fresh_line = if std::io::stderr().is_terminal() { "\n" } else { "" };
    match cursor {
        "" | super::NEWEST => note(&format!("{fresh_line}no daemon answered yet, so there is no cursor")),
        cursor => note(&format!("{fresh_line}go on with: --cursor {cursor}")),
    }
}
