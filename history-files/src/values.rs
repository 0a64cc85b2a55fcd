//! File of values as a command found them: a row for each, of one or more series.
//!
//! Rule: a file is there when it is whole, in place of a file that had its name. Not here: exported days, which have
//! every value of a day ([`crate::metrics`]).

use crate::column::{batch, known_texts, maps, numbers, texts, times};
use crate::error::Error;
use crate::table::compressed;
use arrow_array::RecordBatch;
use compact_str::CompactString;
use parquet::arrow::ArrowWriter;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use wire::api::history::HistorySeries;

/// Writes the values of these series, each of a host or of several, whose name is empty then. Returns how many they are.
///
/// # Errors
/// If the file cannot be written, or something else than a file has its name.
pub fn write(path: &Path, series: &[(&str, &HistorySeries)]) -> Result<u64, Error> {
    let shown = path.display();
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let other =
            io::Error::new(io::ErrorKind::InvalidInput, "expected a file, found a folder or a device");
        return Err(Error::io(shown.to_string())(other));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::metadata(folder).map_err(Error::io(folder.display().to_string()))?;
    let new = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder);
    let new = new.map_err(Error::io(format!("a new file in {}", folder.display())))?;
    let failed = || Error::parquet(shown.to_string());
    let none = rows("", &HistorySeries::default());
    let writer = ArrowWriter::try_new(new.as_file(), none.schema(), Some(compressed().build()));
    let mut writer = writer.map_err(failed())?;
    for (host, series) in series {
        writer.write(&rows(host, series)).map_err(failed())?;
    }
    let written = writer.close().map_err(failed())?;
    new.persist(path).map_err(|error| Error::io(shown.to_string())(error.error))?;
    Ok(u64::try_from(written.file_metadata().num_rows()).unwrap_or_default())
}

fn rows(host: &str, series: &HistorySeries) -> RecordBatch {
    let labels: Vec<(CompactString, CompactString)> = series.labels.0.clone();
    let all = || series.samples.iter();
    batch(vec![
        times("time", all().map(|sample| sample.time.0)),
        known_texts("host", all().map(|_| host)),
        texts("name", all().map(|_| series.name.as_str())),
        maps("labels", all().map(|_| labels.as_slice())),
        known_texts("unit", all().map(|_| series.unit.as_str())),
        numbers("value", all().map(|sample| sample.value.as_f64())),
    ])
}
