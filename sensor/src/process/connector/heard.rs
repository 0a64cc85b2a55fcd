//! A way of reading processes that knows nothing of lives between two sweeps, with what the connector tells of them.
//!
//! Not here: listening (`listener`).

use super::super::source::{Error, Kind, Source, View};
use super::listener::Listener;
use super::stories::Told;

/// The way and the ear.
pub struct Heard {
    source: Box<dyn Source>,
    lives: Listener,
}

impl Heard {
    /// This way, and what is heard beside it.
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
