//! Sources by generation: the host, file and filter that the events of each generation carry.
//!
//! Pure.

use super::columns::Columns;
use super::frame::{Birth, Body};
use crate::segments::packed::Codec;
use crate::segments::segment::Legend;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::event::Source;
use wire::id::Generation;

/// The sources of the generations whose events are in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    of: BTreeMap<Generation, Arc<Source>>,
    /// The version in the head of the segment; 0 where that was not read.
    version: u16,
}

impl Sources {
    /// The source of a generation.
    #[must_use]
    pub fn get(&self, generation: Generation) -> Option<&Arc<Source>> {
        self.of.get(&generation)
    }

    /// The sources of a segment whose head has this version.
    #[must_use]
    pub fn of_version(version: u16) -> Sources {
        Sources { version, ..Sources::default() }
    }

    /// The version in the head of the segment; 0 where that was not read.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Adds the source of a new generation. Bytes of a path that are not UTF-8 become replacement characters.
    pub fn add(&mut self, birth: &Birth) {
        let source = Source {
            host: birth.host.clone(),
            file: String::from_utf8_lossy(&birth.path).into(),
            filter: birth.filter.clone(),
        };
        self.of.insert(birth.generation, Arc::new(source));
    }
}

impl Legend for Sources {
    type Body = Body;
    const CODEC: Option<&'static dyn Codec> = Some(&Columns);

    fn note(&mut self, body: &Body) {
        match body {
            Body::Generation(checkpoint) => self.add(&checkpoint.birth),
            Body::Born(birth) => self.add(birth),
            Body::Head(head) => self.version = head.version.0,
            Body::Batch(_)
            | Body::File(_)
            | Body::Memory(..)
            | Body::Calls(_)
            | Body::HeadEnd
            | Body::Acknowledged { .. } => {}
        }
    }
}
