//! Columns of times: differences from the event before, in the coarsest unit that all times of a block have.
//!
//! Pure. Not here: when an event was read, which is a property of its batch.

use super::numbers::{Cursor, put, put_signed};
use wire::event::Content;
use wire::time::Time;

/// Units of times, in microseconds: most logs print seconds or milliseconds.
const UNITS: [i64; 3] = [1_000_000, 1_000, 1];

/// Streams of the times.
pub(super) const STREAMS: usize = 3;

const SUBMITTED: u8 = 1;
const STARTED: u8 = 2;
const ENDED: u8 = 4;

/// The times of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) time: Time,
    pub(super) submitted: Option<Time>,
    pub(super) started: Option<Time>,
    pub(super) ended: Option<Time>,
}

/// Times that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    shapes: Vec<u8>,
    micros: Vec<i64>,
    rest: Vec<i64>,
}

impl Writer {
    pub(super) fn push(&mut self, content: &Content) {
        let time = content.time.micros();
        self.micros.push(time);
        let mut shape = 0;
        let rest = [(content.submitted, SUBMITTED), (content.started, STARTED), (content.ended, ENDED)];
        for (other, flag) in rest {
            if let Some(other) = other {
                shape |= flag;
                self.rest.push(other.micros().wrapping_sub(time));
            }
        }
        self.shapes.push(shape);
    }

    pub(super) fn finish(self, streams: &mut Vec<Vec<u8>>) {
        let unit = UNITS
            .into_iter()
            .find(|unit| self.micros.iter().chain(&self.rest).all(|micros| micros % unit == 0));
        let unit = unit.expect("every number has the unit 1");
        let (mut times, mut rest, mut last) = (Vec::new(), Vec::new(), 0);
        put(&mut times, unit.cast_unsigned());
        for micros in self.micros {
            let now = micros / unit;
            put_signed(&mut times, now.wrapping_sub(last));
            last = now;
        }
        for micros in self.rest {
            put_signed(&mut rest, micros / unit);
        }
        streams.extend([self.shapes, times, rest]);
    }
}

/// Times that are read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    shapes: Cursor<'a>,
    times: Cursor<'a>,
    rest: Cursor<'a>,
    unit: i64,
    last: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, rest) = streams.split_at_checked(STREAMS)?;
        *streams = rest;
        let [shapes, times, rest] = own else { return None };
        let mut times = Cursor(times);
        let unit = i64::try_from(times.number()?).ok()?;
        Some(Reader { shapes: Cursor(shapes), times, rest: Cursor(rest), unit, last: 0 })
    }

    pub(super) fn next(&mut self) -> Option<Times> {
        let shape = self.shapes.byte()?;
        self.last = self.last.wrapping_add(self.times.signed()?);
        let time = self.last.wrapping_mul(self.unit);
        let mut other = |flag| {
            if shape & flag == 0 {
                return Some(None);
            }
            let since = self.rest.signed()?.wrapping_mul(self.unit);
            Some(Some(Time::from_micros(time.wrapping_add(since))))
        };
        let (submitted, started, ended) = (other(SUBMITTED)?, other(STARTED)?, other(ENDED)?);
        Some(Times { time: Time::from_micros(time), submitted, started, ended })
    }
}
