//! Outbox: reads durable events from the journal in order, and counts exactly those that are gone.
//!
//! It follows the segments by itself: an event from a query ([`crate::journal::reader`]) has no join keys any
//! more, and a member that reports for months should not search for its place each time.
//! Rule: nothing at or after [`Reader::durable`] is read, so every number it returns is final.
//! A segment that is deleted while it is read stays readable until its end.

use crate::journal::frame::{self, Body};
use crate::journal::reader::Reader;
use crate::journal::sources::Sources;
use crate::segments::disk::Disk;
use crate::segments::segment::{Legend, firsts, name, open};
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use compact_str::CompactString;
use log_filters::found::Found;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::event::Source;
use wire::id::Generation;
use wire::report::{Events, Record, Run};

/// Approximate encoded length after which further events are left for the next read, in bytes.
pub const STRETCH_LEN_BYTES: usize = 64 << 10;

pub struct Outbox {
    disk: Arc<dyn Disk>,
    reader: Reader,
    place: Option<Place>,
}

/// Where reading continues.
struct Place {
    segment: u64,
    window: Window,
    sources: Sources,
    /// Number of the first event that was not returned yet.
    next: u64,
    /// The rest of a batch that was returned in part.
    held: VecDeque<frame::Record>,
    of: (Generation, wire::time::Time),
}

impl Outbox {
    /// Reads the journal on this disk, which `reader` reads too.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, reader: Reader) -> Outbox {
        Outbox { disk, reader, place: None }
    }

    /// Creates another outbox on the same journal, without a place yet.
    #[must_use]
    pub fn another(&self) -> Outbox {
        Outbox::new(Arc::clone(&self.disk), self.reader.clone())
    }

    /// Returns the number of the oldest stored event, and the number that the next durable event gets.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let next = self.reader.durable();
        (self.reader.oldest().min(next), next)
    }

    /// Reads durable events starting at `from`: at most `limit`, and not many more bytes than
    /// [`STRETCH_LEN_BYTES`]. Returns `None` if there are none and no events are known to be gone.
    ///
    /// # Errors
    /// If the disk cannot be read. Damage is no error: its events are lost, and are counted once later ones
    /// are read.
    pub fn read(&mut self, from: u64, limit: usize) -> Result<Option<Events>, Error> {
        let durable = self.reader.durable();
        if from >= durable || limit == 0 {
            return Ok(None);
        }
        if self.place.as_ref().is_none_or(|place| place.next != from) {
            self.place = self.seek(from)?;
        }
        let mut stretch =
            Stretch { events: Events { first: from, lost: 0, runs: Vec::new() }, len: 0, limit };
        while let Some(place) = self.place.as_mut().filter(|place| place.next < durable) {
            if stretch.is_full() {
                break;
            }
            if place.held.is_empty() && !place.fill(durable)? {
                // The end of this segment, or damage: what follows is in the next segment.
                let (segment, next) = (place.segment, place.next);
                self.place = self.open_after(segment, next, durable)?;
                continue;
            }
            if !stretch.begin(from, place.next) {
                break;
            }
            place.give(&mut stretch);
        }
        if stretch.events.runs.is_empty() {
            let oldest = self.range().0;
            let gone = oldest.saturating_sub(from);
            return Ok((gone > 0).then_some(Events { first: oldest, lost: gone, runs: Vec::new() }));
        }
        Ok(Some(stretch.events))
    }

    fn seek(&self, from: u64) -> Result<Option<Place>, Error> {
        let firsts = self.firsts()?;
        let at = firsts.partition_point(|first| *first <= from).saturating_sub(1);
        firsts.get(at).map_or(Ok(None), |first| self.open(*first, from))
    }

    /// Opens the next segment after this one; `None` if there is none yet, or if it was deleted meanwhile.
    fn open_after(&self, segment: u64, next: u64, durable: u64) -> Result<Option<Place>, Error> {
        let after = self.firsts()?.into_iter().find(|first| *first > segment && *first < durable);
        after.map_or(Ok(None), |first| self.open(first, next))
    }

    fn firsts(&self) -> Result<Vec<u64>, Error> {
        let names = self.disk.names().map_err(Error::disk("list the journal"))?;
        Ok(firsts(&names))
    }

    fn open(&self, first: u64, next: u64) -> Result<Option<Place>, Error> {
        let file = match open(&self.disk, first, Sources::CODEC) {
            Ok(file) => file,
            // Deleted since the directory was listed: the events are counted as gone when a later segment is
            // read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::disk(format!("open {}", name(first)))(error)),
        };
        Ok(Some(Place {
            segment: first,
            window: Window::new(file, 0, u64::MAX),
            sources: Sources::default(),
            next,
            held: VecDeque::new(),
            of: (Generation::default(), wire::time::Time::default()),
        }))
    }
}

impl Place {
    /// Loads the next batch with an event at or after `next`. Returns `false` at the end of what can be read.
    fn fill(&mut self, durable: u64) -> Result<bool, Error> {
        let goes_on = self.window.goes_on_after_damage();
        while let Some((_, frame)) = self.window.frame()? {
            match chain::batch_first(frame) {
                Ok(Some(first)) if first >= durable => return Ok(false),
                Ok(_) => {}
                Err(_) if goes_on => continue,
                Err(_) => return Ok(false),
            }
            let Some(body) = chain::body(frame) else { return Ok(false) };
            self.sources.note(&body);
            if let Body::Batch(batch) = body
                && batch.first + batch.records.len() as u64 > self.next
            {
                let skip = usize::try_from(self.next.saturating_sub(batch.first)).unwrap_or(usize::MAX);
                self.next = self.next.max(batch.first);
                self.of = (batch.generation, batch.seen);
                self.held = batch.records.into_iter().skip(skip).collect();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves events of the loaded batch to the stretch while there is room.
    fn give(&mut self, stretch: &mut Stretch) {
        let (generation, seen) = self.of;
        // A batch follows its generation; one that does not is sent without a source, not dropped.
        let empty = || Source { host: "".into(), file: "".into(), filter: "".into() };
        let source = self.sources.get(generation).map_or_else(empty, |source| Source::clone(source));
        let mut run = Run { generation, source, seen, records: Vec::new() };
        while !stretch.is_full() {
            let Some(record) = self.held.pop_front() else { break };
            self.next += 1;
            stretch.limit -= 1;
            stretch.len += about_len_bytes(&record);
            run.records.push(to_wire(record));
        }
        stretch.events.runs.push(run);
    }
}

struct Stretch {
    events: Events,
    len: usize,
    limit: usize,
}

impl Stretch {
    fn is_full(&self) -> bool {
        self.limit == 0 || self.len >= STRETCH_LEN_BYTES
    }

    /// Returns whether events from `next` on belong to this stretch. They do not if some are gone in between;
    /// those are reported with the stretch that starts after them.
    fn begin(&mut self, from: u64, next: u64) -> bool {
        if self.events.runs.is_empty() {
            (self.events.first, self.events.lost) = (next, next - from);
        }
        self.events.first + self.events.len() == next
    }
}

/// A record as it is sent: the representative joins it to a call of its own.
fn to_wire(record: frame::Record) -> Record {
    let Found { offset, number, content, keys } = record.found;
    Record { offset, number, call: CompactString::default(), content, keys }
}

/// About how long a record is on the way, in bytes.
fn about_len_bytes(record: &frame::Record) -> usize {
    use wire::event::Value;
    let content = &record.found.content;
    let text = |text: &CompactString| text.len() + 1;
    let value = |value: &Value| match value {
        Value::Text(one) => text(one),
        Value::List(all) => all.iter().map(text).sum(),
        Value::Bytes(bytes) => bytes.len(),
    };
    let attributes: usize = content.attributes.iter().map(|(name, of)| text(name) + value(of)).sum();
    40 + content.job.len() + content.user.len() + content.from.len() + content.to.len() + attributes
}
