//! `visperf archive`: the archives of the domain, and which hosts' series of jobs they have.
//!
//! Not here: what an archive does (`sensor::archive`).

use crate::client::PATIENCE;
use crate::command::at_once::ask_each;
use crate::command::query;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{OfDomain, Query};
use crate::output::table::{Cell, Table};
use crate::output::times;
use crate::output::{Color, Output, note};
use ::client::Error;
use ::client::typed::{About, Answered};
use std::collections::BTreeMap;
use wire::api::archive::{Archive, ArchiveParams, ArchivedHost};
use wire::api::domain::{Host, HostState, HostsParams};
use wire::shown::{age, count, whole_bytes};
use wire::time::Time;

/// A host whose series were not completely copied for so long is behind, in seconds.
const BEHIND_SECS: f64 = 600.0;

/// Most hosts that a note names.
const NAMED_MAX: usize = 3;

/// Print the archives of the domain, and whose series of jobs they have
///
/// An archive is a sensor with `[sensor.archive]` on: it copies the series of jobs of other hosts, so that they are there when a
/// host is not. Exits with 8 if an archive does not answer.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf archive
  visperf archive --hosts
  visperf archive --json | jq '.hosts[] | select(.problem)'")]
pub(crate) struct Args {
    /// Print a line for each host and archive
    #[arg(long)]
    hosts: bool,
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
}

/// An archive, and its answer.
type Asked = (String, Result<Answered<Archive>, Error>);

/// Print the archives.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault; if an archive does not answer.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = query::request(&args.query, &HostsParams {}, &args.whose.about())?.typed;
    let rows: Vec<&Host> = answer.hosts.iter().filter(|host| host.archive == Some(true)).collect();
    let names: Vec<String> = rows.iter().map(|host| host.host.clone()).collect();
    let asked = ask_each(&args.query.target, &names, |client, host| {
        let about = About { domain: Some(answer.domain.clone()), host: Some(host.to_owned()) };
        client.request(&ArchiveParams::default(), &about, PATIENCE)
    });
    let mut output = args.query.width.output();
    if args.query.json {
        asked
            .iter()
            .filter_map(|(_, answer)| answer.as_ref().ok())
            .try_for_each(|it| output.json(&it.raw))?;
    } else if args.hosts {
        hosts(&asked, &mut output)?;
    } else if !rows.is_empty() {
        archives(&rows, &asked, &mut output)?;
    }
    output.flush()?;
    remarks(&asked);
    let is_away = asked.iter().any(|(_, answer)| answer.is_err());
    if is_away { Err(Failure::Printed(Kind::HostAway)) } else { Ok(()) }
}

fn archives(rows: &[&Host], asked: &[Asked], output: &mut Output) -> Result<(), Failure> {
    let heads = ["ARCHIVE", "STATE", "USED", "OF", "HOSTS", "BEHIND", "OTHERS", "OLDEST", "DELETED"];
    let mut table = Table::new(&heads).spares(&["DELETED", "OTHERS", "OF"]);
    let now = times::now();
    for (row, (name, answer)) in rows.iter().zip(asked) {
        let color = if row.state == HostState::Live { Color::Good } else { Color::Caution };
        let mut cells =
            vec![Cell::text(name).color(Color::Name), Cell::text(row.state.as_str()).color(color)];
        if let Ok(Answered { typed, .. }) = answer {
            let own = || typed.hosts.iter().filter(|host| host.is_own);
            let behind = own().filter(|host| is_behind(host, now)).count();
            let oldest = typed.hosts.iter().filter_map(|host| host.oldest.as_deref()).min();
            let behind = match behind {
                0 => Cell::figure("0"),
                behind => Cell::figure(behind.to_string()).color(Color::Caution),
            };
            cells.extend([
                Cell::figure(whole_bytes(typed.used_bytes)),
                Cell::figure(whole_bytes(typed.budget_bytes)),
                Cell::figure(own().count().to_string()),
                behind,
                Cell::figure((typed.hosts.len() - own().count()).to_string()),
                Cell::text(oldest.unwrap_or_default()),
                Cell::figure(typed.days_deleted.to_string()),
            ]);
        }
        cells.resize_with(heads.len(), || Cell::text(""));
        table.row(cells);
    }
    table.print(output)
}

fn hosts(asked: &[Asked], output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new(&["HOST", "ARCHIVE", "LENGTH", "OLDEST", "NEWEST", "COMPLETE", "PROBLEM"]);
    let now = times::now();
    let mut all: Vec<(&ArchivedHost, &str)> = Vec::new();
    for (name, answer) in asked {
        let answer = answer.iter().flat_map(|answer| &answer.typed.hosts);
        all.extend(answer.map(|host| (host, name.as_str())));
    }
    all.sort_by(|one, other| (&one.0.host, one.1).cmp(&(&other.0.host, other.1)));
    for (host, archive) in all {
        let complete = match (host.complete, host.is_own) {
            (Some(at), _) => format!("{} ago", age(now.since(at.0).as_secs_f64())),
            (None, true) => "not yet".to_owned(),
            (None, false) => "elsewhere".to_owned(),
        };
        table.row(vec![
            Cell::text(&host.host).color(Color::Name),
            Cell::text(archive),
            Cell::figure(whole_bytes(host.bytes)),
            Cell::text(host.oldest.as_deref().unwrap_or_default()),
            Cell::text(host.newest.as_deref().unwrap_or_default()),
            Cell::figure(complete),
            Cell::text(host.problem.as_deref().unwrap_or_default()).color(Color::Caution),
        ]);
    }
    table.print(output)
}

fn is_behind(host: &ArchivedHost, now: Time) -> bool {
    host.complete.is_none_or(|at| now.since(at.0).as_secs_f64() > BEHIND_SECS)
}

/// Says what is missing.
fn remarks(asked: &[Asked]) {
    if asked.is_empty() {
        note("no sensor of the domain is an archive ([sensor.archive] on, in its configuration)");
    }
    let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wanted = 0;
    for (name, answer) in asked {
        let name = clean(name);
        match answer {
            Ok(Answered { typed, .. }) => {
                if let Some(problem) = &typed.problem {
                    note(&format!("{name}: {}", clean(problem)));
                }
                wanted = wanted.max(typed.copies);
                for host in &typed.hosts {
                    *copies.entry(&host.host).or_default() +=
                        u64::from(host.bytes > 0 || host.complete.is_some());
                }
            }
            Err(error) => note(&format!("{name}: {}; what it has is not known", clean(&error.to_string()))),
        }
    }
    let archives = asked.len() as u64;
    if (1..wanted).contains(&archives) {
        note(&format!(
            "{wanted} archives are to have the series of each host, and the domain has {archives}"
        ));
    }
    // An archive does not have the series of its own host.
    let others =
        |host: &str| archives - u64::from(asked.iter().any(|(name, _)| name.eq_ignore_ascii_case(host)));
    let is_short = |(host, have): &(&&str, &u64)| **have < wanted.min(others(host));
    let short: Vec<String> =
        copies.iter().filter(is_short).map(|(host, _)| clean(host).into_owned()).collect();
    if !short.is_empty() {
        let hosts = count(short.len() as u64, "host");
        let more = if short.len() > NAMED_MAX { ", …" } else { "" };
        let named = short[..short.len().min(NAMED_MAX)].join(", ");
        note(&format!("the series of {hosts} are at fewer archives than they are to be: {named}{more}"));
    }
}
