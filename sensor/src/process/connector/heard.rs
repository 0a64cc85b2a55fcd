//! Source that adds the starts and ends of processes from the connector to a source that sees only its
//! sweeps.
//!
//! Not here: receiving them (`listener`).

use super::super::source::{Error, Kind, Source, View};
use super::listener::Listener;
use super::stories::Told;

/// A source of sweeps and a listener.
pub struct Heard {
    source: Box<dyn Source>,
    lives: Listener,
}

impl Heard {
    /// Combines the source with the listener.
    #[must_use]
    pub fn new(source: Box<dyn Source>, lives: Listener) -> Heard {
        Heard { source, lives }
    }
}

impl Source for Heard {
    fn kind(&self) -> Kind {
        self.source.kind()
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        let swept = self.source.sweep(number, view);
        self.drain(view);
        swept
    }

    fn drain(&mut self, view: &mut View) {
        self.source.drain(view);
        for told in self.lives.take() {
            match told {
                Told::Fork(key, parent) => view.lives.fork(key, parent),
                Told::Exec(key, command) => view.lives.exec(key, command),
                Told::Exit(life) => {
                    let key = life.key;
                    view.lives.exit(life);
                    view.lives.gone(key);
                }
            }
        }
    }

    fn lost_total(&self) -> u64 {
        self.source.lost_total() + self.lives.lost_total()
    }
}
