//! A file of a table while it is written: in a temporary file without a name, which goes if the program does.
//!
//! Not here: the columns ([`crate::metrics`], [`crate::processes`], [`crate::calls`], [`crate::events`]), where the file goes ([`crate::destination`]).

use crate::blocks::Blocks;
use crate::error::Error;
use arrow_array::cast::AsArray as _;
use data_encoding::HEXLOWER;
use jiff::civil::Date;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};

/// Rows of a table, by columns.
pub type Rows = arrow_array::RecordBatch;

/// Version of the tables' columns. Columns are added; one that changes its meaning makes another version.
pub const SCHEMA_VERSION: u32 = 1;

/// Rows of a group, at most: a reader skips the groups whose statistics do not fit.
const GROUP_ROWS_MAX: usize = 128 << 10;

/// Rows of a page, at most, so that a metric of a host is in one or two of each column.
const PAGE_ROWS_MAX: usize = 4 << 10;

/// Length of a dictionary, at most: it is read with every page that uses it.
const DICTIONARY_BYTES_MAX: usize = 64 << 10;

/// Level of the compression.
const ZSTD_LEVEL: i32 = 6;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Metrics of hosts by minute or hour.
    Metrics,
    /// Processes that used most, by hour.
    Processes,
    /// Ended calls.
    Calls,
    /// Events of logs.
    Events,
}

impl Table {
    /// Name of the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Table::Metrics => "metrics",
            Table::Processes => "processes",
            Table::Calls => "calls",
            Table::Events => "events",
        }
    }
}

impl Table {
    /// Whether its rows are in the order of hosts.
    const fn is_by_host(self) -> bool {
        match self {
            Table::Metrics | Table::Processes => true,
            Table::Calls | Table::Events => false,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a file holds: one day of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The table.
    pub table: Table,
    /// The domain.
    pub domain: String,
    /// The day, in UTC.
    pub date: Date,
}

/// A table that is being written.
pub struct TableFile {
    part: Part,
    writer: ArrowWriter<Hashed>,
    rows: u64,
    /// Host of the latest row.
    host: String,
}

/// A file that is complete.
#[derive(Debug)]
pub struct Finished {
    /// What it holds.
    pub part: Part,
    /// The file, to be read from its start.
    pub file: File,
    /// Number of rows.
    pub rows: u64,
    /// Length, in bytes.
    pub len_bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// CRC-32 of each block, in hexadecimal digits.
    pub checksums: String,
}

impl TableFile {
    /// Begins a file with the columns of this batch, which may be empty.
    ///
    /// # Errors
    /// If there is no room for a temporary file.
    pub fn create(part: Part, first: &Rows) -> Result<TableFile, Error> {
        let folder = std::env::temp_dir();
        let what = || format!("a temporary file in {} (see TMPDIR)", folder.display());
        let file = tempfile::tempfile_in(&folder).map_err(Error::io(what()))?;
        let hashed = Hashed { file, hash: Sha256::new(), blocks: Blocks::default(), len_bytes: 0 };
        let writer = ArrowWriter::try_new(hashed, first.schema(), Some(properties(&part)));
        let writer = writer.map_err(Error::parquet(what()))?;
        let mut table = TableFile { part, writer, rows: 0, host: String::new() };
        table.write(first)?;
        Ok(table)
    }

    /// Appends rows with the same columns. Those of each host, where they are in the order of hosts, are groups of their
    /// own: whether a group has any of a host is then known by its statistics.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, rows: &Rows) -> Result<(), Error> {
        self.rows += rows.num_rows() as u64;
        let hosts = rows.column_by_name("host").filter(|_| self.part.table.is_by_host());
        let Some(hosts) = hosts.and_then(|hosts| hosts.as_string_opt::<i32>()) else {
            return self.append(rows);
        };
        let mut start = 0;
        while start < rows.num_rows() {
            let host = hosts.value(start);
            let end = (start..rows.num_rows()).find(|row| hosts.value(*row) != host);
            let end = end.unwrap_or(rows.num_rows());
            if self.host != host {
                self.writer.flush().map_err(self.failed())?;
                host.clone_into(&mut self.host);
            }
            self.append(&rows.slice(start, end - start))?;
            start = end;
        }
        Ok(())
    }

    fn append(&mut self, rows: &Rows) -> Result<(), Error> {
        self.writer.write(rows).map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(ParquetError) -> Error + use<> {
        let Part { table, date, .. } = &self.part;
        Error::parquet(format!("table {table} of {date}"))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<Finished, Error> {
        let TableFile { part, writer, rows, host: _ } = self;
        let what = format!("table {} of {}", part.table, part.date);
        let Hashed { file, hash, blocks, len_bytes } = writer.into_inner().map_err(Error::parquet(what))?;
        let sha256 = HEXLOWER.encode(&hash.finalize());
        Ok(Finished { part, file, rows, len_bytes, sha256, checksums: blocks.finish() })
    }
}

fn properties(part: &Part) -> WriterProperties {
    let Part { table, domain, date } = part;
    let about = [
        ("visperf.table", table.as_str().to_owned()),
        ("visperf.schema", SCHEMA_VERSION.to_string()),
        ("visperf.domain", domain.clone()),
        ("visperf.date", date.to_string()),
    ];
    let about = about.map(|(name, value)| KeyValue::new(name.to_owned(), value));
    compressed()
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .set_data_page_row_count_limit(PAGE_ROWS_MAX)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .set_key_value_metadata(Some(about.to_vec()))
        .build()
}

/// Properties of every file.
pub(crate) fn compressed() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by(concat!("visperf ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).expect("a level")))
}

/// A file, and the checksums of what was written to it.
struct Hashed {
    file: File,
    hash: Sha256,
    blocks: Blocks,
    len_bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.file.write(bytes)?;
        self.hash.update(&bytes[..len]);
        self.blocks.update(&bytes[..len]);
        self.len_bytes += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
