//! `visperf info`: what a daemon says of itself.
//!
//! Not here: what a daemon puts into it (`serve::info`).

use crate::cli::Query;
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{number_of, plain};
use crate::output::times::{age, brief, now};
use crate::output::{Color, Output, clean};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Print what the daemon says of itself: version, addresses, health, statistics
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
}

/// Print it.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.query.target.via.is_inside() {
        return Err(Failure::Usage(
            "--via: expected a daemon or a proxy's door to tell of itself, found KEY@HOST:PORT, by which the domain alone is \
             told of; `visperf summary` and `visperf hosts` tell of that"
                .to_owned(),
        ));
    }
    let answer = query::ask(&args.query, "daemon.info", Params::default())?;
    let mut output = args.query.width.output();
    if args.query.json {
        output.json(&answer)?;
        return output.flush();
    }
    for (name, value) in answer.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("statistics", Value::Object(_)) | ("health", _) => {}
            ("started", _) => {
                let secs = number_of(&answer, name).unwrap_or(0.0);
                line(name, &brief(Time::from_secs_f64(secs), now(), &TimeZone::system()), &mut output)?;
            }
            ("uptime", _) => line(name, &age(number_of(&answer, name).unwrap_or(0.0)), &mut output)?,
            _ => line(name, &plain(Some(value)), &mut output)?,
        }
    }
    for problem in query::items(&answer, "health") {
        let text = output.paint(Color::Bad, &clean(&plain(Some(&problem)))).into_owned();
        output.line(&format!("{:<32}{text}", "problem"))?;
    }
    if let Some(statistics) = answer.get("statistics") {
        show_statistics(statistics, 1, &mut output)?;
    }
    output.flush()
}

/// Figures a line each; those of a part of the daemon below its name.
fn show_statistics(value: &Value, depth: usize, output: &mut Output) -> Result<(), Failure> {
    for (name, value) in value.as_object().into_iter().flatten() {
        let indented = format!("{}{name}", "  ".repeat(depth));
        if value.is_object() && depth < 4 {
            line(&indented, "", output)?;
            show_statistics(value, depth + 1, output)?;
        } else {
            line(&indented, &plain(Some(value)), output)?;
        }
    }
    Ok(())
}

fn line(name: &str, text: &str, output: &mut Output) -> Result<(), Failure> {
    let name = output.paint(Color::Head, &format!("{name:<32}")).into_owned();
    output.line(format!("{name}{}", clean(text)).trim_end())
}
