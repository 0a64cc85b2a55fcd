//! `visperf info`: a daemon's own description: version, addresses, health, statistics.
//!
//! Not here: how a daemon fills it (`serve::info`).

use crate::command::query;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::Query;
use crate::output::times::{brief, now};
use crate::output::{Color, Output};
use ::client::typed::About;
use jiff::tz::TimeZone;
use wire::api::daemon::{Info, InfoParams};
use wire::shown::age;

/// Print the state of the daemon: version, addresses, health, statistics
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
}

/// Print the description.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.query.target.via.is_inside() {
        return Err(Failure::Usage(
            "--via: expected the address of a daemon or of a proxy, HOST:PORT, found KEY@HOST:PORT, which leads to the domain; \
             `visperf summary` and `visperf hosts` describe the domain"
                .to_owned(),
        ));
    }
    let answer = query::request(&args.query, &InfoParams {}, &About::default())?;
    let mut output = args.query.width.output();
    match args.query.json {
        true => output.json(&answer.raw)?,
        false => show(&answer.typed, &mut output)?,
    }
    output.flush()
}

fn show(info: &Info, output: &mut Output) -> Result<(), Failure> {
    let started = brief(info.started.0, now(), &TimeZone::system());
    let reach: Vec<String> = info.reach.iter().map(|one| format!("{} {}", one.peer, one.rung)).collect();
    let lines = [
        ("name", info.name.as_str()),
        ("version", &info.version),
        ("kind", &info.kind),
        ("host", &info.host),
        ("domain", info.domain.as_deref().unwrap_or_default()),
        ("pid", &info.pid.to_string()),
        ("started", &started),
        ("uptime", &age(info.uptime_secs)),
        ("listen", &info.listen.join(",")),
        ("state_directory", &info.state_directory),
        ("healthy", if info.healthy { "true" } else { "false" }),
        ("reach", &reach.join(",")),
    ];
    for (name, text) in lines.into_iter().filter(|(name, text)| *name != "domain" || !text.is_empty()) {
        line(name, text, output)?;
    }
    for problem in &info.health {
        let text = output.paint(Color::Bad, &clean(problem)).into_owned();
        output.line(&format!("{:<32}{text}", "problem"))?;
    }
    for (part, figures) in &info.statistics.0 {
        line(&format!("  {part}"), "", output)?;
        for (name, figure) in &figures.0 {
            line(&format!("    {name}"), &figure.to_string(), output)?;
        }
    }
    Ok(())
}

fn line(name: &str, text: &str, output: &mut Output) -> Result<(), Failure> {
    let name = output.paint(Color::Head, &format!("{name:<31} ")).into_owned();
    output.line(format!("{name}{}", clean(text)).trim_end())
}
