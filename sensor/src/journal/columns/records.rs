//! Columns of records: every field of the events of a block in a stream of its own.
//!
//! Pure. Fields that follow from others cost a bit: the user and the hosts of a job are mostly those of its
//! last event, the call is mostly the product and the job. This is a format on disk: the order of streams
//! and of flags is part of it.
//! Not here: attributes (`attributes`), frames and compression (the module above).

use super::attributes;
use super::keys;
use super::numbers::{Cursor, put, put_signed};
use super::texts::{self, TextId};
use super::times;
use crate::journal::frame::Record;
use compact_str::CompactString;
use log_filters::found::Found;
use std::cell::OnceCell;
use std::collections::HashMap;
use wire::event::{Content, Fields, Kind, Outcome};
use wire::time::Time;

/// Streams before those of the times.
const OWN_STREAMS: usize = 5;

/// The user is that of the job's last event.
const SAME_USER: u8 = 1;
/// The acting party is that of the job's last event.
const SAME_FROM: u8 = 2;
/// The party acted on is that of the job's last event.
const SAME_TO: u8 = 4;
/// The call is the scope of the keys and their first name.
const CALL_OF_KEYS: u8 = 8;

/// User and parties of each job's last event in the block.
#[derive(Debug, Default)]
struct Parties(HashMap<CompactString, [CompactString; 3]>);

impl Parties {
    fn of(&self, job: &str) -> [CompactString; 3] {
        self.0.get(job).cloned().unwrap_or_default()
    }

    fn set(&mut self, content: &Content) {
        let parties = [content.user.clone(), content.from.clone(), content.to.clone()];
        self.0.insert(content.job.clone(), parties);
    }
}

/// Records that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    offsets: Vec<u8>,
    numbers: Vec<u8>,
    kinds: Vec<u8>,
    outcomes: Vec<u8>,
    flags: Vec<u8>,
    times: times::Writer,
    job: texts::Writer,
    user: texts::Writer,
    from: texts::Writer,
    to: texts::Writer,
    call: texts::Writer,
    keys: keys::Writer,
    attributes: attributes::Writer,
    offset: u64,
    parties: Parties,
}

impl Writer {
    /// Sets where offsets are counted from: the previous position in the file of the next records.
    pub(super) fn start_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    pub(super) fn push(&mut self, record: &Record) {
        let Record { found: Found { offset, number, content, keys }, call } = record;
        put_signed(&mut self.offsets, offset.wrapping_sub(self.offset).cast_signed());
        self.offset = *offset;
        put(&mut self.numbers, u64::from(*number));
        self.kinds.push(index(Kind::ALL, content.kind));
        self.outcomes.push(content.outcome.map_or(0, |outcome| 1 + index(Outcome::ALL, outcome)));
        self.times.push(content);
        self.job.push(&content.job);
        let known = self.parties.of(&content.job);
        let mut flags = 0;
        let own = [
            (&mut self.user, &content.user, SAME_USER),
            (&mut self.from, &content.from, SAME_FROM),
            (&mut self.to, &content.to, SAME_TO),
        ];
        for ((column, text, flag), known) in own.into_iter().zip(&known) {
            if text == known { flags |= flag } else { column.push(text) }
        }
        self.parties.set(content);
        if keys::call(keys.as_ref()).as_ref() == Some(call) {
            flags |= CALL_OF_KEYS;
        } else {
            self.call.push(call);
        }
        self.keys.push(keys.as_ref(), &content.job);
        self.flags.push(flags);
        self.attributes.push(&content.attributes);
    }

    pub(super) fn finish(self) -> Vec<Vec<u8>> {
        let mut streams = vec![self.offsets, self.numbers, self.kinds, self.outcomes, self.flags];
        self.times.finish(&mut streams);
        for texts in [self.job, self.user, self.from, self.to, self.call] {
            texts.finish(&mut streams);
        }
        self.keys.finish(&mut streams);
        self.attributes.finish(&mut streams);
        streams
    }
}

/// Records that are read. The texts of a record are made when they are asked for.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    offsets: Cursor<'a>,
    numbers: Cursor<'a>,
    kinds: Cursor<'a>,
    outcomes: Cursor<'a>,
    flags: Cursor<'a>,
    times: times::Reader<'a>,
    job: texts::Reader<'a>,
    user: texts::Reader<'a>,
    from: texts::Reader<'a>,
    to: texts::Reader<'a>,
    call: texts::Reader<'a>,
    keys: keys::Reader<'a>,
    attributes: attributes::Reader<'a>,
    offset: u64,
    /// User and parties of each job's last event, by the number of the job.
    parties: Vec<[Option<TextId>; 3]>,
}

/// A record that was read, as long as it is the last one.
#[derive(Debug)]
pub(super) struct Row<'a, 'b> {
    reader: &'b Reader<'a>,
    number: u16,
    kind: Kind,
    outcome: Option<Outcome>,
    times: times::Times,
    job: TextId,
    /// User and parties; `None` for an empty text.
    parties: [Option<TextId>; 3],
    own_call: Option<TextId>,
    call: OnceCell<CompactString>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, mut rest) = streams.split_at_checked(OWN_STREAMS)?;
        let [offsets, numbers, kinds, outcomes, flags] = own else { return None };
        let rest = &mut rest;
        Some(Reader {
            offsets: Cursor(offsets),
            numbers: Cursor(numbers),
            kinds: Cursor(kinds),
            outcomes: Cursor(outcomes),
            flags: Cursor(flags),
            times: times::Reader::new(rest)?,
            job: texts::Reader::new(rest)?,
            user: texts::Reader::new(rest)?,
            from: texts::Reader::new(rest)?,
            to: texts::Reader::new(rest)?,
            call: texts::Reader::new(rest)?,
            keys: keys::Reader::new(rest)?,
            attributes: attributes::Reader::new(rest)?,
            offset: 0,
            parties: Vec::new(),
        })
    }

    pub(super) fn start_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Reads the next record; `None` if it is damaged.
    pub(super) fn next(&mut self) -> Option<Row<'a, '_>> {
        self.offset = self.offset.wrapping_add(self.offsets.signed()?.cast_unsigned());
        let number = u16::try_from(self.numbers.number()?).ok()?;
        let kind = *Kind::ALL.get(usize::from(self.kinds.byte()?))?;
        let outcome = match self.outcomes.byte()?.checked_sub(1) {
            Some(at) => Some(*Outcome::ALL.get(usize::from(at))?),
            None => None,
        };
        let flags = self.flags.byte()?;
        let times = self.times.next()?;
        let job = self.job.next()?;
        if self.parties.len() <= job.index() {
            self.parties.resize(job.index() + 1, [None; 3]);
        }
        let parties = &mut self.parties[job.index()];
        let own = [(&mut self.user, SAME_USER), (&mut self.from, SAME_FROM), (&mut self.to, SAME_TO)];
        for ((column, flag), party) in own.into_iter().zip(&mut *parties) {
            if flags & flag == 0 {
                *party = Some(column.next()?);
            }
        }
        let parties = *parties;
        self.keys.advance()?;
        let own_call = if flags & CALL_OF_KEYS == 0 { Some(self.call.next()?) } else { None };
        self.attributes.advance()?;
        let (reader, call) = (&*self, OnceCell::new());
        Some(Row { reader, number, kind, outcome, times, job, parties, own_call, call })
    }
}

impl Row<'_, '_> {
    /// Returns the record.
    pub(super) fn record(&self) -> Record {
        let job = self.reader.job.text(self.job);
        let times::Times { time, submitted, started, ended } = self.times;
        let [user, from, to] = [self.user(), self.from(), self.to()].map(CompactString::from);
        let content = Content {
            kind: self.kind,
            time,
            job: job.clone(),
            user,
            from,
            to,
            outcome: self.outcome,
            attributes: self.reader.attributes.attributes(),
            submitted,
            started,
            ended,
        };
        let found = Found {
            offset: self.reader.offset,
            number: self.number,
            content,
            keys: self.reader.keys.keys(job),
        };
        Record { found, call: self.call().into() }
    }
}

impl Fields for Row<'_, '_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn time(&self) -> Time {
        self.times.time
    }

    fn job(&self) -> &str {
        self.reader.job.text(self.job)
    }

    fn user(&self) -> &str {
        self.parties[0].map_or("", |id| self.reader.user.text(id))
    }

    fn from(&self) -> &str {
        self.parties[1].map_or("", |id| self.reader.from.text(id))
    }

    fn to(&self) -> &str {
        self.parties[2].map_or("", |id| self.reader.to.text(id))
    }

    fn call(&self) -> &str {
        match self.own_call {
            Some(id) => self.reader.call.text(id),
            None => self.call.get_or_init(|| self.reader.keys.call(self.job()).unwrap_or_default()),
        }
    }

    fn has_text(&self, accepts: &dyn Fn(&str) -> bool) -> bool {
        [self.job(), self.user(), self.from(), self.to()].into_iter().any(accepts)
            || self.reader.attributes.has_text(accepts)
    }
}

/// Positions of the streams that hold the patterns of all texts that [`Fields::has_text`] looks at; the numbers
/// in them are the next stream. `count` is the number of all streams.
pub(super) fn patterns(count: usize) -> impl Iterator<Item = usize> {
    let texts = OWN_STREAMS + times::STREAMS;
    let attributes = texts + 5 * texts::STREAMS + keys::STREAMS + attributes::OWN_STREAMS;
    let own = (texts..).step_by(texts::STREAMS).take(4);
    own.chain((attributes..count).step_by(texts::STREAMS)).map(|column| column + 1)
}

fn index<T: PartialEq>(all: &[T], one: T) -> u8 {
    let at = all.iter().position(|known| *known == one).expect("it is one of all");
    u8::try_from(at).expect("there are few")
}
