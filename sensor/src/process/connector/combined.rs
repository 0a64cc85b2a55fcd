//! Source that adds the starts and ends of processes from the connector to a source that sees only its
//! sweeps.
//!
//! Not here: receiving them (`listener`).

use super::super::source::{Error, Kind, Source, View};
use super::listener::Listener;
use super::tracker::LifeEvent;

/// A source of sweeps and a listener.
pub struct CombinedSource {
    source: Box<dyn Source>,
    lives: Listener,
}

impl CombinedSource {
    /// Combines the source with the listener.
    #[must_use]
    pub fn new(source: Box<dyn Source>, lives: Listener) -> CombinedSource {
        CombinedSource { source, lives }
    }
}

impl Source for CombinedSource {
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
        for event in self.lives.take() {
            match event {
                LifeEvent::Fork(key, parent) => view.lives.fork(key, parent),
                LifeEvent::Exec(key, command) => view.lives.exec(key, command),
                LifeEvent::Exit(life) => {
                    let key = life.key;
                    view.lives.exit(life);
                    view.lives.forget(key);
                }
            }
        }
    }

    fn lost_total(&self) -> u64 {
        self.source.lost_total() + self.lives.lost_total()
    }
}
