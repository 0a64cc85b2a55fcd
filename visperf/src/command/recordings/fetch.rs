//! `visperf recordings fetch`: a recording's file, from wherever its host is.
//!
//! Rule: the file has its name only when all of it is there.

use super::file;
use crate::cli::{Place, Query};
use crate::client::{Client, PATIENCE};
use crate::command::query::Params;
use crate::exit::Failure;
use crate::output::figures::{bytes, text_of};
use crate::output::note;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::PathBuf;
use wire::recording::LEN_MAX_BYTES;

/// Fetch a recording into a file
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings fetch 20261120T122417Z -o slow.vpr
  visperf recordings fetch 20261120T122417Z --host wn01 -o slow.vpr")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Which, as `visperf recordings list` tells
    #[arg(value_name = "ID")]
    id: String,
    /// Write it there
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    place: Place,
}

/// Fetch it.
///
/// # Errors
/// If no daemon is reached, it answers with a fault, or the file cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    const METHOD: &str = "sensor.recording_file";
    file::refuse_existing(&args.output, args.force)?;
    let mut client = Client::new(&args.query.target);
    let mut whole = Vec::new();
    loop {
        let params = Params::default()
            .with("id", Some(args.id.clone()))
            .with("offset", Some(whole.len()))
            .at(&args.place);
        let answer = client.call(METHOD, &params.value(), PATIENCE);
        let answer = answer.map_err(|error| client.explain(METHOD, error))?;
        let part = STANDARD.decode(text_of(&answer, "data"));
        let part = part.map_err(|_| Failure::Failed("the daemon's answer holds no file".to_owned()))?;
        whole.extend_from_slice(&part);
        let len = whole.len() as u64;
        match answer["size"].as_u64() {
            Some(size) if size == len && size <= LEN_MAX_BYTES => break,
            Some(size) if len < size && size <= LEN_MAX_BYTES && !part.is_empty() => {}
            size => {
                let size = size.map_or("of no size".to_owned(), |size| format!("of {size} bytes"));
                return Err(Failure::Failed(format!(
                    "the daemon gave {len} bytes of a file {size}; nothing is written; fetch it again"
                )));
            }
        }
    }
    let recording = file::parse(&args.output, &whole)?;
    file::write_bytes(&args.output, &whole, args.force)?;
    #[allow(clippy::cast_precision_loss)] // At most LEN_MAX_BYTES.
    let size = bytes(whole.len() as f64);
    note(&format!("{}: {size}, {}", args.output.display(), file::told(&recording)));
    Ok(())
}
