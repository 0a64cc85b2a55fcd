//! Tables: every value is read back from the file as it was.

use crate::made::{START, call, file, history, minute};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, RecordBatch};
use history_files::table::{Finished, Table, TableFile};
use history_files::{calls, metrics, values};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use wire::api::Named;
use wire::api::history::HistorySeries;
use wire::api::metrics::{Sample, Value};
use wire::event::Outcome;
use wire::sample::Number;

fn read(file: Finished) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.file).expect("a table").build().expect("rows");
    reader.collect::<Result<_, _>>().expect("whole")
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    column.as_string::<i32>().iter().map(|text| text.map(ToOwned::to_owned)).collect()
}

#[test]
fn metrics_are_read_back() {
    let answer = history();
    let rows = metrics::rows(&answer);
    let batches = read(file(Table::Metrics, &rows));
    let [batch] = batches.as_slice() else { panic!("{} batches", batches.len()) };
    assert_eq!(batch.num_rows(), 4 * 12);
    assert_eq!(batch.columns(), rows.columns());
    let times = batch.column_by_name("time").expect("times").as_primitive::<TimestampMicrosecondType>();
    assert_eq!((times.value(0), times.timezone()), (START.micros(), Some("UTC")));
    assert_eq!(times.value(11), minute(129).0.micros());
    let steps = batch.column_by_name("step_seconds").expect("steps").as_primitive::<Int32Type>();
    assert_eq!((0..3).map(|row| steps.value(row)).collect::<Vec<_>>(), [3600, 3600, 60]);
    let labels = batch.column_by_name("labels").expect("labels").as_map().value(12);
    let label = |column: usize| labels.column(column).as_string::<i32>().iter().flatten().collect::<Vec<_>>();
    assert_eq!((label(0), label(1)), (vec!["cpu", "mode"], vec!["0", "user"]));
    let number = |name: &str, row| {
        batch.column_by_name(name).expect("numbers").as_primitive::<Float64Type>().value(row)
    };
    assert_eq!(
        ["min", "max", "sum", "last", "increase", "increase_seconds"].map(|name| number(name, 2)),
        [7200.0, 7259.0, 432_000.0, 7259.0, 60.0, 59.5]
    );
    assert_eq!(batch.column_by_name("count").expect("counts").as_primitive::<Int64Type>().value(2), 60);
    assert_eq!(texts(batch, "host")[24], Some("wn02".to_owned()));
    assert_eq!(texts(batch, "type")[0], Some("counter".to_owned()));
}

#[test]
fn what_is_unknown_of_a_call_is_absent() {
    let rows = calls::rows(&[call(7, Outcome::Failed), call(8, Outcome::Finished)]);
    let batches = read(file(Table::Calls, &rows));
    let batch = &batches[0];
    assert_eq!(texts(batch, "product"), [Some("slurm".to_owned()), Some("slurm".to_owned())]);
    assert_eq!(texts(batch, "outcome"), [Some("failed".to_owned()), Some("finished".to_owned())]);
    assert_eq!(texts(batch, "reason")[0], Some("quota \"exceeded\"\n".to_owned()));
    assert_eq!((&texts(batch, "name")[0], &texts(batch, "signal")[0]), (&None, &None));
    assert!(batch.column_by_name("offered").expect("times").is_null(0));
    let hosts = batch.column_by_name("hosts").expect("hosts").as_list::<i32>().value(1);
    assert_eq!(hosts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["wn01", "wn02"]);
}

#[test]
fn values_of_series_are_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("values.parquet");
    let sample =
        |number: u32| Sample { time: minute(number), value: Value(Number::Real(f64::from(number) / 4.0)) };
    let series = |unit: &str, numbers: std::ops::Range<u32>| HistorySeries {
        name: "node_load1".into(),
        labels: Named(vec![("cpu".into(), "0".into())]),
        unit: unit.into(),
        samples: numbers.map(sample).collect(),
        ..HistorySeries::default()
    };
    let all = [("wn01", &series("", 0..7)), ("", &series("bytes", 0..0)), ("", &series("bytes", 5..6))];
    assert_eq!(values::write(&path, &all).expect("room"), 8);
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).expect("written"));
    let batches: Vec<_> =
        reader.expect("a table").build().expect("rows").map(|batch| batch.expect("whole")).collect();
    let [batch] = batches.as_slice() else { panic!("{} batches", batches.len()) };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!((&texts(batch, "host")[0], &texts(batch, "host")[7]), (&text("wn01"), &None));
    assert_eq!((&texts(batch, "unit")[0], &texts(batch, "unit")[7]), (&None, &text("bytes")));
    let values = batch.column_by_name("value").expect("values").as_primitive::<Float64Type>();
    assert_eq!((values.value(3), values.value(7)), (0.75, 1.25));
    let times = batch.column_by_name("time").expect("times").as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.value(7), minute(5).0.micros());
    // What is there already goes only for a file that is whole.
    let none = values::write(&folder.path().join("none/values.parquet"), &all).expect_err("no such folder");
    assert!(none.to_string().ends_with("/none: No such file or directory (os error 2)"), "{none}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_file_without_rows_has_its_columns() {
    let none = read(file(Table::Calls, &calls::rows(&[])));
    assert_eq!(none.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    let finished = file(Table::Metrics, &metrics::rows(&wire::api::history::History::default()));
    let reader = SerializedFileReader::new(finished.file).expect("a table");
    let columns = reader.metadata().file_metadata().schema().get_fields().len();
    assert_eq!(columns, metrics::rows(&history()).num_columns());
}

#[test]
fn a_file_says_what_it_is_and_has_statistics() {
    let reader = SerializedFileReader::new(file(Table::Metrics, &metrics::rows(&history())).file);
    let reader = reader.expect("a table");
    let about = reader.metadata().file_metadata().key_value_metadata().expect("metadata");
    let value = |name: &str| about.iter().find(|one| one.key == name).and_then(|one| one.value.as_deref());
    assert_eq!(
        ["visperf.table", "visperf.schema", "visperf.domain", "visperf.date"].map(value),
        [Some("metrics"), Some("1"), Some("physics.example"), Some("2026-11-26")]
    );
    let group = reader.metadata().row_group(0);
    let host = group.columns().iter().find(|column| column.column_path().string() == "host").expect("hosts");
    let statistics = host.statistics().expect("statistics");
    assert_eq!(
        statistics.min_bytes_opt().zip(statistics.max_bytes_opt()),
        Some((&b"wn01"[..], &b"wn01"[..]))
    );
}

#[test]
fn rows_of_many_pages_are_one_file_in_groups() {
    let rows = metrics::rows(&history());
    let [first, second] = [0, 24].map(|row| rows.slice(row, 24));
    let mut file = TableFile::create(crate::made::part(Table::Metrics), &first).expect("a temporary file");
    let pages = 150_000 / first.num_rows();
    for page in std::iter::repeat_n(&first, pages - 1).chain([&second, &second]) {
        file.write(page).expect("the same columns");
    }
    let finished = file.finish().expect("written");
    assert_eq!(finished.rows, ((pages + 2) * first.num_rows()) as u64);
    assert_eq!(finished.file.metadata().expect("a file").len(), finished.len_bytes);
    let reader = SerializedFileReader::new(finished.file).expect("a table");
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [131_072, finished.rows as i64 - 131_072 - 48, 48], "each of one host");
}
