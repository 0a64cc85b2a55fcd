//! Columns of join keys: mostly the product and the job, which cost nothing.
//!
//! Pure. Not here: what keys mean (`wire::call`).

use super::numbers::{Cursor, put};
use super::texts;
use compact_str::CompactString;
use wire::call::{Authority, Keys, Naming};

/// The first name is the job.
const FIRST_IS_JOB: u64 = 1;
/// There is a parent.
const HAS_PARENT: u64 = 2;

/// The call that events with these keys mostly have.
pub(super) fn call(keys: Option<&Keys>) -> Option<CompactString> {
    let keys = keys?;
    let name = keys.names.first()?;
    Some(compact_str::format_compact!("{}:{name}", keys.scope))
}

/// Keys that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    shapes: Vec<u8>,
    scope: texts::Writer,
    names: texts::Writer,
    parent: texts::Writer,
}

impl Writer {
    pub(super) fn push(&mut self, keys: Option<&Keys>, job: &str) {
        let Some(Keys { scope, names, parent, naming, authority }) = keys else {
            put(&mut self.shapes, 0);
            return;
        };
        let first_is_job = names.first().is_some_and(|first| first == job);
        let mut shape = if first_is_job { FIRST_IS_JOB } else { 0 };
        if parent.is_some() {
            shape |= HAS_PARENT;
        }
        shape |= u64::from(naming_number(*naming)) << 2 | u64::from(authority_number(*authority)) << 4;
        put(&mut self.shapes, 1 + (shape | (names.len() as u64) << 6));
        self.scope.push(scope);
        for name in names.iter().skip(usize::from(first_is_job)) {
            self.names.push(name);
        }
        if let Some(parent) = parent {
            self.parent.push(parent);
        }
    }

    pub(super) fn finish(self, streams: &mut Vec<Vec<u8>>) {
        streams.push(self.shapes);
        for texts in [self.scope, self.names, self.parent] {
            texts.finish(streams);
        }
    }
}

/// Keys that are read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    shapes: Cursor<'a>,
    scope: texts::Reader<'a>,
    names: texts::Reader<'a>,
    parent: texts::Reader<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (shapes, rest) = streams.split_first()?;
        *streams = rest;
        let shapes = Cursor(shapes);
        let (scope, names, parent) =
            (texts::Reader::new(streams)?, texts::Reader::new(streams)?, texts::Reader::new(streams)?);
        Some(Reader { shapes, scope, names, parent })
    }

    /// Reads the keys of an event of this job; the outer `None` is damage.
    #[allow(clippy::option_option)] // No keys are a value, and no damage.
    pub(super) fn next(&mut self, job: &CompactString) -> Option<Option<Keys>> {
        let Some(shape) = self.shapes.number()?.checked_sub(1) else { return Some(None) };
        let naming = match shape >> 2 & 3 {
            0 => Naming::Unique,
            1 => Naming::Shared,
            2 => Naming::Part,
            _ => return None,
        };
        let authority = match shape >> 4 & 3 {
            0 => Authority::Message,
            1 => Authority::Scheduler,
            2 => Authority::Accounting,
            _ => return None,
        };
        let scope = self.scope.next()?;
        let mut names = Vec::new();
        if shape & FIRST_IS_JOB != 0 {
            names.push(job.clone());
        }
        for _ in names.len() as u64..shape >> 6 {
            names.push(self.names.next()?);
        }
        let parent = if shape & HAS_PARENT != 0 { Some(self.parent.next()?) } else { None };
        Some(Some(Keys { scope, names, parent, naming, authority }))
    }
}

fn naming_number(naming: Naming) -> u8 {
    match naming {
        Naming::Unique => 0,
        Naming::Shared => 1,
        Naming::Part => 2,
    }
}

fn authority_number(authority: Authority) -> u8 {
    match authority {
        Authority::Message => 0,
        Authority::Scheduler => 1,
        Authority::Accounting => 2,
    }
}
