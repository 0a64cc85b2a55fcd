//! Columns of join keys: mostly the product and the job, which cost nothing.
//!
//! Pure. Not here: what keys mean (`wire::call`).

use super::numbers::{Cursor, put};
use super::texts::{self, TextId};
use compact_str::CompactString;
use wire::call::{Authority, Keys, Naming};

/// Streams of the keys: their shapes, and three columns of texts.
pub(super) const STREAMS: usize = 1 + 3 * texts::STREAMS;

/// The first name is the job.
const FIRST_IS_JOB: u64 = 1;
/// There is a parent.
const HAS_PARENT: u64 = 2;

/// The call that events with these keys mostly have.
pub(super) fn call(keys: Option<&Keys>) -> Option<CompactString> {
    let keys = keys?;
    Some(call_of(&keys.scope, keys.names.first()?))
}

fn call_of(scope: &str, name: &str) -> CompactString {
    let mut call = CompactString::with_capacity(scope.len() + 1 + name.len());
    call.push_str(scope);
    call.push(':');
    call.push_str(name);
    call
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
    row: Option<Row>,
    /// The names of the event that was read last, without its job.
    other: Vec<TextId>,
}

/// The keys of an event.
#[derive(Clone, Copy, Debug)]
struct Row {
    is_first_job: bool,
    scope: TextId,
    parent: Option<TextId>,
    naming: Naming,
    authority: Authority,
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (shapes, rest) = streams.split_first()?;
        *streams = rest;
        let (scope, names, parent) =
            (texts::Reader::new(streams)?, texts::Reader::new(streams)?, texts::Reader::new(streams)?);
        Some(Reader { shapes: Cursor(shapes), scope, names, parent, row: None, other: Vec::new() })
    }

    /// Reads the keys of the next event; `None` if they are damaged.
    pub(super) fn advance(&mut self) -> Option<()> {
        self.other.clear();
        let Some(shape) = self.shapes.number()?.checked_sub(1) else {
            self.row = None;
            return Some(());
        };
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
        let (is_first_job, scope) = (shape & FIRST_IS_JOB != 0, self.scope.next()?);
        for _ in u64::from(is_first_job)..shape >> 6 {
            self.other.push(self.names.next()?);
        }
        let parent = if shape & HAS_PARENT != 0 { Some(self.parent.next()?) } else { None };
        self.row = Some(Row { is_first_job, scope, parent, naming, authority });
        Some(())
    }

    /// Returns the keys that were read last, of an event of this job.
    pub(super) fn keys(&self, job: &CompactString) -> Option<Keys> {
        let Row { is_first_job, scope, parent, naming, authority } = self.row?;
        let other = self.other.iter().map(|name| self.names.text(*name));
        Some(Keys {
            scope: self.scope.text(scope).clone(),
            names: is_first_job.then_some(job).into_iter().chain(other).cloned().collect(),
            parent: parent.map(|parent| self.parent.text(parent).clone()),
            naming,
            authority,
        })
    }

    /// Returns the call that events with the keys that were read last mostly have.
    pub(super) fn call(&self, job: &str) -> Option<CompactString> {
        let row = self.row?;
        let name = match row.is_first_job {
            true => job,
            false => self.names.text(*self.other.first()?),
        };
        Some(call_of(self.scope.text(row.scope), name))
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
