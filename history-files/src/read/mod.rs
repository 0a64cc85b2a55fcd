//! Reading exported days: of a file only the parts that are needed.
//!
//! Shell. Not here: which rows they are ([`metrics`], [`processes`], [`calls`], [`events`]), which days there are ([`Destination::days`]).

pub mod calls;
mod columns;
pub mod events;
pub mod metrics;
pub mod processes;
mod skip;

use crate::blocks;
use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::RecordBatch;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8 << 10;

/// Parts of a file that are read at the same time.
const AT_ONCE_MAX: usize = 8;

/// A part of a file whose checksum is another.
const DAMAGED: &str = "it is not what was exported: it is damaged, or another export replaces it just now";

/// A file that is about to be read.
type Opened = ParquetRecordBatchStreamBuilder<Stored>;

impl Destination {
    /// Passes the rows of a file to `each` until it returns `false`; `None` from it is a table without the expected
    /// columns, as is a file without these. `choose` can leave out rows.
    fn rows(
        &self,
        file: &DayFile,
        columns: &[&str],
        choose: impl FnOnce(Opened) -> Opened,
        mut each: impl FnMut(&RecordBatch) -> Option<bool>,
    ) -> Result<(), Error> {
        self.check_file(&file.path)?;
        if file.checksums.is_empty() {
            // It was exported by a version that did not write them.
            self.verify(file)?;
        }
        let path = self.path(&file.path);
        let failed = |error| Error::parquet(path.clone())(error);
        let none = || Error::Table {
            path: path.clone(),
            problem: format!("expected the columns of {}", file.table),
        };
        self.block_on(async {
            let location = Path::from(file.path.as_str());
            let stored = Stored { store: self.store(), path: location, file: file.clone() };
            // What pages have, and where they are.
            let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
            let opened = Opened::new_with_options(stored, options).await.map_err(failed)?;
            let there = opened.parquet_schema().columns();
            if !columns.iter().all(|name| there.iter().any(|one| one.path().parts()[0] == *name)) {
                return Err(none());
            }
            let mut batches = choose(opened).with_batch_size(BATCH_ROWS).build().map_err(failed)?;
            while let Some(batch) = batches.next().await {
                if !each(&batch.map_err(failed)?).ok_or_else(none)? {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// A stored file; the parts of it that are needed are read, and verified before they are decoded.
struct Stored {
    store: Arc<dyn ObjectStore>,
    path: Path,
    file: DayFile,
}

impl Stored {
    async fn verified(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, ParquetError> {
        let DayFile { len_bytes, checksums, .. } = &self.file;
        let damaged = || ParquetError::General(DAMAGED.to_owned());
        let blocks = blocks::around_all(ranges, *len_bytes).ok_or_else(damaged)?;
        let parts = futures::stream::iter(blocks).map(|block| async move {
            let bytes = self.store.get_range(&self.path, block.clone()).await.map_err(external)?;
            // One that was replaced by a shorter one has less.
            let is_whole = bytes.len() as u64 == block.end - block.start
                && (checksums.is_empty() || blocks::are_whole(&bytes, block.start, checksums));
            is_whole.then_some((block, bytes)).ok_or_else(damaged)
        });
        let parts: Vec<(Range<u64>, Bytes)> = parts.buffered(AT_ONCE_MAX).try_collect().await?;
        let part = |range: &Range<u64>| {
            let (block, bytes) =
                parts.iter().find(|(block, _)| block.start <= range.start && range.end <= block.end)?;
            let at = |place: u64| usize::try_from(place - block.start).ok();
            Some(bytes.slice(at(range.start)?..at(range.end)?))
        };
        ranges.iter().map(|range| part(range).ok_or_else(damaged)).collect()
    }
}

impl AsyncFileReader for Stored {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let read = self.verified(&[range]).await?;
            read.into_iter().next().ok_or_else(|| ParquetError::General(DAMAGED.to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move { self.verified(&ranges).await }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        let len_bytes = self.file.len_bytes;
        let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
        async move { reader.load_and_finish(self, len_bytes).await.map(Arc::new) }.boxed()
    }
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
