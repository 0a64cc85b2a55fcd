//! `visperf recordings fetch`: downloads the file of a recording from its host.
//!
//! Rule: the file gets its name only after it was written completely.

use super::file;
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::options::{Place, Query};
use crate::output::note;
use std::path::PathBuf;
use wire::api::Request as _;
use wire::api::recordings::RecordingFileParams;
use wire::recording::LEN_MAX_BYTES;
use wire::shown::whole_bytes;

/// Fetch a recording into a file
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings fetch 20261120T122417Z -o slow.vpr
  visperf recordings fetch 20261120T122417Z --host wn01 -o slow.vpr")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Id of the recording, as printed by `visperf recordings list`
    #[arg(value_name = "ID")]
    id: String,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    place: Place,
}

/// Download the recording.
///
/// # Errors
/// If no daemon is reached, it answers with a fault, or the file cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    file::refuse_existing(&args.output, args.force)?;
    let mut client = Client::new(&args.query.target);
    let mut whole = Vec::new();
    loop {
        let params = RecordingFileParams {
            id: args.id.clone(),
            offset: whole.len() as u64,
            ..RecordingFileParams::default()
        };
        let answer = client.request(&params, &args.place.about(), PATIENCE);
        let part = answer.map_err(|error| client.explain(RecordingFileParams::METHOD, error))?.typed;
        whole.extend_from_slice(&part.data.0);
        let (len, size) = (whole.len() as u64, part.size_bytes);
        match size <= LEN_MAX_BYTES {
            true if size == len => break,
            true if len < size && !part.data.0.is_empty() => {}
            true | false => {
                return Err(Failure::Failed(format!(
                    "the daemon gave {len} bytes of a file of {size} bytes; nothing is written; fetch it again"
                )));
            }
        }
    }
    let recording = file::parse(&args.output, &whole)?;
    file::write_bytes(&args.output, &whole, args.force)?;
    let size = whole_bytes(whole.len() as u64);
    note(&format!("{}: {size}, {}", args.output.display(), file::describe(&recording)));
    Ok(())
}
