//! Columns of attributes: a shape for each event, and a column of texts for each name.
//!
//! Pure. A shape is the list of an event's names and of the types of their values; events of one rule share
//! it. Not here: the other fields (`records`).

use super::numbers::{Cursor, put, put_bytes};
use super::texts::{self, TextId};
use compact_str::CompactString;
use std::collections::HashMap;
use wire::event::{Attributes, Value};

/// Limit on the columns of a block; the names of a block of real logs are some dozens.
const NAMES_MAX: usize = 4096;

/// Streams before those of the names.
pub(super) const OWN_STREAMS: usize = 5;

const TEXT: u8 = 0;
const LIST: u8 = 1;
const BYTES: u8 = 2;

/// Attributes that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    codes: Vec<u8>,
    shapes: Vec<u8>,
    names: Vec<u8>,
    counts: Vec<u8>,
    bytes: Vec<u8>,
    known: HashMap<Vec<(CompactString, u8)>, u64>,
    columns: HashMap<CompactString, usize>,
    texts: Vec<texts::Writer>,
}

impl Writer {
    pub(super) fn push(&mut self, attributes: &Attributes) {
        let shape: Vec<_> = attributes.iter().map(|(name, value)| (name.clone(), tag(value))).collect();
        let count = self.known.len() as u64;
        match self.known.get(&shape) {
            Some(at) => put(&mut self.codes, at + 1),
            None => {
                put(&mut self.codes, 0);
                put(&mut self.shapes, shape.len() as u64);
                for (name, tag) in &shape {
                    let column = self.column(name);
                    put(&mut self.shapes, column as u64);
                    self.shapes.push(*tag);
                }
                self.known.insert(shape, count);
            }
        }
        for (name, value) in attributes {
            let column = self.column(name);
            match value {
                Value::Text(text) => self.texts[column].push(text),
                Value::List(all) => {
                    put(&mut self.counts, all.len() as u64);
                    all.iter().for_each(|text| self.texts[column].push(text));
                }
                Value::Bytes(bytes) => put_bytes(&mut self.bytes, bytes),
            }
        }
    }

    fn column(&mut self, name: &CompactString) -> usize {
        if let Some(at) = self.columns.get(name) {
            return *at;
        }
        put_bytes(&mut self.names, name.as_bytes());
        self.columns.insert(name.clone(), self.texts.len());
        self.texts.push(texts::Writer::default());
        self.texts.len() - 1
    }

    pub(super) fn finish(self, streams: &mut Vec<Vec<u8>>) {
        streams.extend([self.codes, self.shapes, self.names, self.counts, self.bytes]);
        for texts in self.texts {
            texts.finish(streams);
        }
    }
}

/// Attributes that are read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    codes: Cursor<'a>,
    shapes: Cursor<'a>,
    counts: Cursor<'a>,
    bytes: Cursor<'a>,
    known: Vec<Vec<(usize, u8)>>,
    columns: Vec<(CompactString, texts::Reader<'a>)>,
    /// The values of the event that was read last, with their columns; and the texts of its lists.
    row: Vec<(usize, Cell<'a>)>,
    lists: Vec<TextId>,
}

/// A value that was read.
#[derive(Clone, Copy, Debug)]
enum Cell<'a> {
    Text(TextId),
    /// Where its texts start, and how many they are.
    List(usize, usize),
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &mut &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, rest) = streams.split_at_checked(OWN_STREAMS)?;
        *streams = rest;
        let [codes, shapes, names, counts, bytes] = own else { return None };
        let (mut names, mut columns) = (Cursor(names), Vec::new());
        while !names.0.is_empty() {
            let name = std::str::from_utf8(names.bytes()?).ok()?;
            columns.push((name.into(), texts::Reader::new(streams)?));
            if columns.len() > NAMES_MAX {
                return None;
            }
        }
        Some(Reader {
            codes: Cursor(codes),
            shapes: Cursor(shapes),
            counts: Cursor(counts),
            bytes: Cursor(bytes),
            known: Vec::new(),
            columns,
            row: Vec::new(),
            lists: Vec::new(),
        })
    }

    /// Reads the attributes of the next event; `None` if they are damaged.
    pub(super) fn advance(&mut self) -> Option<()> {
        let at = match self.codes.length()?.checked_sub(1) {
            Some(at) => at,
            None => self.shape()?,
        };
        self.row.clear();
        self.lists.clear();
        for (column, tag) in self.known.get(at)? {
            let (_, texts) = self.columns.get_mut(*column)?;
            let cell = match *tag {
                TEXT => Cell::Text(texts.next()?),
                LIST => {
                    let (start, count) = (self.lists.len(), self.counts.length()?);
                    for _ in 0..count {
                        self.lists.push(texts.next()?);
                    }
                    Cell::List(start, count)
                }
                BYTES => Cell::Bytes(self.bytes.bytes()?),
                _ => return None,
            };
            self.row.push((*column, cell));
        }
        Some(())
    }

    /// Returns the attributes that were read last.
    pub(super) fn attributes(&self) -> Attributes {
        let attribute = |(column, cell): &(usize, Cell<'_>)| {
            let (name, texts) = &self.columns[*column];
            let value = match *cell {
                Cell::Text(id) => Value::Text(texts.text(id).clone()),
                Cell::List(start, count) => {
                    let ids = self.lists[start..start + count].iter();
                    Value::List(ids.map(|id| texts.text(*id).clone()).collect())
                }
                Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            };
            (name.clone(), value)
        };
        self.row.iter().map(attribute).collect()
    }

    /// Whether a text of the attributes that were read last is accepted.
    pub(super) fn has_text(&self, accepts: &dyn Fn(&str) -> bool) -> bool {
        self.row.iter().any(|(column, cell)| {
            let (_, texts) = &self.columns[*column];
            match *cell {
                Cell::Text(id) => accepts(texts.text(id)),
                Cell::List(start, count) => {
                    self.lists[start..start + count].iter().any(|id| accepts(texts.text(*id)))
                }
                Cell::Bytes(_) => false,
            }
        })
    }

    fn shape(&mut self) -> Option<usize> {
        let mut shape = Vec::new();
        for _ in 0..self.shapes.number()? {
            shape.push((self.shapes.length()?, self.shapes.byte()?));
        }
        self.known.push(shape);
        Some(self.known.len() - 1)
    }
}

fn tag(value: &Value) -> u8 {
    match value {
        Value::Text(_) => TEXT,
        Value::List(_) => LIST,
        Value::Bytes(_) => BYTES,
    }
}
