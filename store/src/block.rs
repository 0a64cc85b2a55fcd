//! Block: consecutive rows of one host, by columns.
//!
//! Pure. A row is a time with a value for each series, or none.
//! ```text
//! head: host, numbers of its rows, times, marks, directory of its chunks (series, length, checksum)
//! body: chunk | chunk | …
//! ```
//! A query reads the head, then only the chunks of the series it selects; each is checked by its own checksum.

use crate::bytes::{Cursor, Damaged, put};
use crate::chunk::{self, Cell, ROWS_MAX};
use crate::column::{Decoder, Encoder, Type};
use crate::mark::Mark;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use wire::time::Time;

/// Number of a host within a store.
pub(crate) type HostNo = u32;
/// Number of a metric within a store.
pub(crate) type SeriesNo = u32;

/// What a block holds, as far as it is known without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    /// Host of the rows.
    pub(crate) host: HostNo,
    /// Number of the first row, counted from the first row of this host in this tier.
    pub(crate) first_row: u64,
    /// Number of rows.
    pub(crate) rows: u32,
    /// Rows of the finer tier that are summarized in this block and those before it.
    pub(crate) finer_rows: u64,
    /// Earliest and latest time of a row.
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
}

impl Extent {
    /// Number of the row after the last one.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_row + u64::from(self.rows)
    }
}

/// Head of a block, as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Head<'a> {
    extent: Extent,
    marks: Vec<Mark>,
    codec: &'a [u8],
    times: &'a [u8],
    directory: &'a [u8],
}

impl Head<'_> {
    fn parse(bytes: &[u8]) -> Result<Head<'_>, Damaged> {
        postcard::from_bytes(bytes).map_err(|_| Damaged("a head that cannot be read"))
    }

    /// Its times, and the places of the series for which `wanted` returns true.
    fn open(&self, wanted: impl Fn(SeriesNo) -> bool) -> Result<Opened, Damaged> {
        let rows = self.extent.rows as usize;
        if rows == 0 || rows > ROWS_MAX {
            return Err(Damaged("a block without rows or with too many"));
        }
        let decoder = Decoder::new(self.codec)?;
        let times = decoder.decode(Type::Signed, rows, &mut Cursor(self.times))?;
        let times = times.into_iter().map(|micros| Time::from_micros(micros.cast_signed())).collect();
        let (places, body_len) = places(self.directory, wanted)?;
        let (extent, marks) = (self.extent.clone(), self.marks.clone());
        Ok(Opened { extent, marks, times, places, body_len, decoder })
    }
}

/// Place of a chunk in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) series: SeriesNo,
    pub(crate) bytes: Range<usize>,
    checksum: u32,
}

impl Place {
    /// Checks the bytes of the chunk.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), Damaged> {
        match crc32fast::hash(bytes) == self.checksum {
            true => Ok(()),
            false => Err(Damaged("a chunk whose checksum does not match")),
        }
    }
}

/// Encodes a block, series by series.
pub(crate) struct BlockEncoder {
    encoder: Encoder,
    body: Vec<u8>,
    directory: Vec<u8>,
    before: SeriesNo,
}

impl BlockEncoder {
    pub(crate) fn new() -> BlockEncoder {
        BlockEncoder { encoder: Encoder::new(), body: Vec::new(), directory: Vec::new(), before: 0 }
    }

    /// Adds a series, one value for each row; series must ascend. One without any value is left out.
    pub(crate) fn add<C: Cell>(&mut self, series: SeriesNo, rows: &[Option<C>]) {
        if rows.iter().all(Option::is_none) {
            return;
        }
        let start = self.body.len();
        chunk::encode(rows, &self.encoder, &mut self.body);
        let checksum = crc32fast::hash(&self.body[start..]);
        self.note(series, self.body.len() - start, checksum);
    }

    /// Adds the next chunk of the body to the directory.
    fn note(&mut self, series: SeriesNo, len: usize, checksum: u32) {
        put(u64::from(series - self.before), &mut self.directory);
        put(len as u64, &mut self.directory);
        self.directory.extend_from_slice(&checksum.to_le_bytes());
        self.before = series;
    }

    /// The block, given the times of its rows and what `extent` says beside them.
    pub(crate) fn finish(self, times: &[Time], marks: Vec<Mark>, of: RowNumbers) -> Encoded {
        let micros: Vec<u64> = times.iter().map(|time| time.micros().cast_unsigned()).collect();
        let mut packed_times = Vec::new();
        self.encoder.encode(Type::Signed, &micros, &mut packed_times);
        let (earliest, latest) = span(times);
        let extent = Extent {
            host: of.host,
            first_row: of.first_row,
            rows: u32::try_from(times.len()).expect("bounded by ROWS_MAX"),
            finer_rows: of.finer_rows,
            earliest,
            latest,
        };
        let codec = self.encoder.head();
        let (codec, times, directory) = (&codec[..], &packed_times[..], &self.directory[..]);
        let head = Head { extent: extent.clone(), marks, codec, times, directory };
        let head = postcard::to_stdvec(&head).expect("writing to memory does not fail");
        Encoded { extent, head, body: self.body }
    }
}

impl Encoded {
    /// Copies a block from another store, with the numbers that its host and metrics have in this one; a metric without
    /// a number is left out.
    ///
    /// # Errors
    /// If it is not a block, or one of its chunks is damaged.
    pub(crate) fn renumbered(
        head: &[u8],
        body: &[u8],
        host: HostNo,
        number: impl Fn(SeriesNo) -> Option<SeriesNo>,
    ) -> Result<(Encoded, Vec<SeriesNo>), Damaged> {
        let stored = Head::parse(head)?;
        let opened = stored.open(|_| true)?;
        let mut places: Vec<(SeriesNo, &Place)> =
            opened.places.iter().filter_map(|place| Some((number(place.series)?, place))).collect();
        places.sort_unstable_by_key(|(series, _)| *series);
        if places.windows(2).any(|two| two[0].0 == two[1].0) {
            return Err(Damaged("a block with a metric that has two columns"));
        }
        let mut block = BlockEncoder::new();
        for (series, place) in &places {
            let chunk = body.get(place.bytes.clone()).ok_or(Damaged("a chunk beyond its block"))?;
            place.check(chunk)?;
            block.body.extend_from_slice(chunk);
            block.note(*series, chunk.len(), place.checksum);
        }
        let (earliest, latest) = span(&opened.times);
        let extent = Extent { host, earliest, latest, ..stored.extent };
        let head = Head { extent: extent.clone(), directory: &block.directory, ..stored };
        let head = postcard::to_stdvec(&head).expect("writing to memory does not fail");
        let series = places.iter().map(|(series, _)| *series).collect();
        Ok((Encoded { extent, head, body: block.body }, series))
    }
}

/// Earliest and latest of the times of a block.
fn span(times: &[Time]) -> (Time, Time) {
    (*times.iter().min().expect("at least one row"), *times.iter().max().expect("at least one row"))
}

/// Host and numbers of the rows of a block; see [`Extent`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowNumbers {
    pub(crate) host: HostNo,
    pub(crate) first_row: u64,
    pub(crate) finer_rows: u64,
}

/// Rows of a host, to be encoded.
pub(crate) struct Rows<C> {
    pub(crate) host: HostNo,
    pub(crate) first_row: u64,
    pub(crate) finer_rows: u64,
    pub(crate) marks: Vec<Mark>,
    /// Time of each row, at least one.
    pub(crate) times: Vec<Time>,
    /// Values of each series, one for each row; series in ascending order.
    pub(crate) columns: Vec<(SeriesNo, Vec<Option<C>>)>,
}

/// An encoded block.
pub(crate) struct Encoded {
    pub(crate) extent: Extent,
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl<C: Cell> Rows<C> {
    /// The rows of a block, as far as its chunks can be read.
    ///
    /// # Errors
    /// If the head cannot be read.
    pub(crate) fn of_block(head: &[u8], body: &[u8]) -> Result<Rows<C>, Damaged> {
        let opened = Opened::new(head, |_| true)?;
        let column = |place: &Place| {
            let chunk = body.get(place.bytes.clone())?;
            Some((place.series, opened.chunk(place, chunk).ok()?))
        };
        let columns = opened.places.iter().filter_map(column).collect();
        let Extent { host, first_row, finer_rows, .. } = opened.extent;
        Ok(Rows { host, first_row, finer_rows, marks: opened.marks, times: opened.times, columns })
    }

    /// These of the rows, counted from the first one; at least one.
    pub(crate) fn part(&self, rows: Range<usize>) -> Rows<C> {
        let column = |(series, cells): &(SeriesNo, Vec<Option<C>>)| (*series, cells[rows.clone()].to_vec());
        Rows {
            host: self.host,
            first_row: self.first_row + rows.start as u64,
            finer_rows: self.finer_rows,
            marks: self.marks.clone(),
            times: self.times[rows.clone()].to_vec(),
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// Encodes the rows; series without any value are left out.
    pub(crate) fn encode(&self) -> Encoded {
        let mut block = BlockEncoder::new();
        self.columns.iter().for_each(|(series, rows)| block.add(*series, rows));
        let Rows { host, first_row, finer_rows, .. } = *self;
        block.finish(&self.times, self.marks.clone(), RowNumbers { host, first_row, finer_rows })
    }
}

/// Head of a block, decoded: what is needed to read its chunks.
pub(crate) struct Opened {
    pub(crate) extent: Extent,
    pub(crate) marks: Vec<Mark>,
    pub(crate) times: Vec<Time>,
    pub(crate) places: Vec<Place>,
    /// Length of the body that the directory describes.
    pub(crate) body_len: usize,
    decoder: Decoder,
}

/// Reads the extent of a block from its head.
pub(crate) fn extent(head: &[u8]) -> Result<Extent, Damaged> {
    let (extent, _) = postcard::take_from_bytes(head).map_err(|_| Damaged("a head that cannot be read"))?;
    Ok(extent)
}

impl Opened {
    /// Reads the head of a block, and the places of the series for which `wanted` returns true.
    pub(crate) fn new(head: &[u8], wanted: impl Fn(SeriesNo) -> bool) -> Result<Opened, Damaged> {
        Head::parse(head)?.open(wanted)
    }

    /// Decodes the chunk at this place, given its bytes.
    pub(crate) fn chunk<C: Cell>(&self, place: &Place, bytes: &[u8]) -> Result<Vec<Option<C>>, Damaged> {
        place.check(bytes)?;
        chunk::decode(bytes, self.times.len(), &self.decoder)
    }
}

/// Places of the wanted series, and the end of the last chunk.
fn places(directory: &[u8], wanted: impl Fn(SeriesNo) -> bool) -> Result<(Vec<Place>, usize), Damaged> {
    let (mut from, mut places) = (Cursor(directory), Vec::new());
    let (mut series, mut end) = (0u32, 0usize);
    while !from.0.is_empty() {
        let step = u32::try_from(from.number()?).map_err(|_| Damaged("a series beyond the last number"))?;
        series = series.checked_add(step).ok_or(Damaged("a series beyond the last number"))?;
        let start = end;
        end = start.checked_add(from.size(u32::MAX as usize)?).ok_or(Damaged("a chunk beyond its block"))?;
        let checksum = u32::from_le_bytes(from.array()?);
        if wanted(series) {
            places.push(Place { series, bytes: start..end, checksum });
        }
    }
    Ok((places, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Exact;

    fn rows() -> Rows<Exact> {
        let value = |row: u64| Some(Exact::Whole(row));
        Rows {
            host: 3,
            first_row: 100,
            finer_rows: 100,
            marks: vec![Mark::Started(Time::from_micros(5))],
            times: [5, 6, 4].map(Time::from_micros).to_vec(),
            columns: vec![
                (2, vec![value(1), None, value(3)]),
                (7, vec![None; 3]),
                (9, vec![value(7), value(7), value(7)]),
            ],
        }
    }

    #[test]
    fn a_block_is_read_as_it_was_written_chunk_by_chunk() {
        let rows = rows();
        let encoded = rows.encode();
        let opened = Opened::new(&encoded.head, |_| true).expect("just encoded");
        assert_eq!(extent(&encoded.head), Ok(encoded.extent.clone()));
        assert_eq!((opened.extent.next_row(), opened.extent.earliest.micros()), (103, 4));
        assert_eq!((&opened.times, &opened.marks), (&rows.times, &rows.marks));
        assert_eq!(opened.body_len, encoded.body.len());
        let series: Vec<_> = opened.places.iter().map(|place| place.series).collect();
        assert_eq!(series, [2, 9], "a series without values takes no place");
        for place in &opened.places {
            let cells: Vec<Option<Exact>> =
                opened.chunk(place, &encoded.body[place.bytes.clone()]).expect("just encoded");
            let column =
                rows.columns.iter().find(|(series, _)| *series == place.series).expect("of the block");
            assert_eq!(cells, column.1);
        }
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let mut encoded = rows().encode();
        let opened = Opened::new(&encoded.head, |_| true).expect("just encoded");
        encoded.body[1] ^= 1;
        let place = &opened.places[0];
        assert!(opened.chunk::<Exact>(place, &encoded.body[place.bytes.clone()]).is_err());
        for cut in 0..encoded.head.len() {
            assert!(Opened::new(&encoded.head[..cut], |_| true).is_err(), "cut at {cut}");
        }
    }
}
