//! The past as Parquet files: tables by domain and day, in a folder or an object store.
//!
//! Rule: a day is there once its record is, which is written last, after every file was read back and compared. The
//! only crate that names parquet and object_store. Not here: where the rows come from (the command line).

mod blocks;
mod bucket;
pub mod calls;
mod column;
pub mod day;
pub mod destination;
mod error;
pub mod events;
mod folder;
pub mod metrics;
pub mod processes;
pub mod read;
pub mod table;
pub mod values;

pub use error::Error;
