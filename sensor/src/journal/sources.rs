//! Sources by generation: the host, file and filter that the events of each generation carry.
//!
//! Pure.

use super::frame::{Birth, Body};
use crate::segments::segment::Legend;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::event::Source;
use wire::id::Generation;

/// The sources of the generations whose events are in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(BTreeMap<Generation, Arc<Source>>);

impl Sources {
    /// The source of a generation.
    #[must_use]
    pub fn get(&self, generation: Generation) -> Option<&Arc<Source>> {
        self.0.get(&generation)
    }

    /// Adds the source of a new generation. Bytes of a path that are not UTF-8 become replacement characters.
    pub fn add(&mut self, birth: &Birth) {
        let source = Source {
            host: birth.host.clone(),
            file: String::from_utf8_lossy(&birth.path).into(),
            filter: birth.filter.clone(),
        };
        self.0.insert(birth.generation, Arc::new(source));
    }
}

impl Legend for Sources {
    type Body = Body;

    fn note(&mut self, body: &Body) {
        match body {
            Body::Generation(checkpoint) => self.add(&checkpoint.birth),
            Body::Born(birth) => self.add(birth),
            Body::Batch(_)
            | Body::Head(_)
            | Body::File(_)
            | Body::Memory(..)
            | Body::Calls(_)
            | Body::HeadEnd
            | Body::Acknowledged { .. } => {}
        }
    }
}
