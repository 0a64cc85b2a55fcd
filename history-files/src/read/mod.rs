//! Reading exported days: of a file only the parts that are needed.
//!
//! Shell. Not here: which rows they are ([`metrics`], [`calls`]), which days there are ([`Destination::days`]).

pub mod calls;
pub mod metrics;
mod skip;

use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::RecordBatch;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _};
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
        let path = self.path(&file.path);
        let failed = |error| Error::parquet(path.clone())(error);
        let none = || Error::Table {
            path: path.clone(),
            problem: format!("expected the columns of {}", file.table),
        };
        self.block_on(async {
            let location = Path::from(file.path.as_str());
            let stored = Stored { store: self.store(), path: location, len_bytes: file.len_bytes };
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

/// A stored file; the parts of it that are needed are read.
struct Stored {
    store: Arc<dyn ObjectStore>,
    path: Path,
    len_bytes: u64,
}

impl AsyncFileReader for Stored {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.store.get_range(&self.path, range).map_err(external).boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move { self.store.get_ranges(&self.path, &ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        let len_bytes = self.len_bytes;
        let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
        async move { reader.load_and_finish(self, len_bytes).await.map(Arc::new) }.boxed()
    }
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
