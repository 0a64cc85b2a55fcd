//! `visperf top`: the busiest processes of a host or of one or more domains, on a screen or printed.
//!
//! Not here: the screen (`crate::top`).

use crate::client::target::Target;
use crate::exit::Failure;
use crate::options::{Width, chosen, whole, words};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, note};
use crate::top::filter::Filter;
use crate::top::querier::{Querier, Running};
use crate::top::rows::{self, Order, Place, Process, Totals};
use crate::top::state::{Host, Scope, State};
use crate::top::terminal;
use ::client::recovery::{self, Recovery};
use overlay::clock;
use serde_json::Value;
use std::io::IsTerminal as _;
use std::time::Duration;
use wire::shown::{bytes, share};

/// Show the busiest processes of this host, of a domain or of several, live
///
/// Keys: arrows select a process, k sends it a signal (as an operator: see `visperf kill`), c m i t sort, /
/// filters, h selects a host, space pauses, ? shows all keys, q quits. Unreachable daemons are marked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf top                                   the domain of the daemon here
  visperf top --host wn01 --sort memory
  visperf top --domain UT-ICL --domain CERN     two domains on one screen
  visperf top --once --rows 20                  printed once, for scripts
  visperf top --filter 'cpu > 0.5 and uid >= 1000'
  visperf top --json --rounds 3 | jq '.name, .cpu'")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Domain to show; may be repeated [default: the domain of the queried daemon]
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    domain: Vec<String>,
    /// Show only this host (of the first domain)
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    /// Column to sort by, largest first
    #[arg(long, value_name = "ORDER", value_parser = words(Order::WORDS), default_value = "cpu")]
    sort: String,
    /// Only rows that contain all these words, each in the name, command, user, PID or host; or that match an
    /// expression as in visperf watch: 'cpu > 0.5'
    #[arg(long, value_name = "FILTER", value_parser = filter, default_value = "", hide_default_value = true)]
    filter: String,
    /// Time between two rounds in seconds, 1 to 3600
    #[arg(long, short, value_name = "SECONDS", value_parser = whole(1..=3600), default_value_t = 2)]
    interval: u64,
    /// Print one round and exit
    #[arg(long, conflicts_with = "rounds")]
    once: bool,
    /// Print this number of rounds and exit
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000_000))]
    rounds: Option<u64>,
    /// Maximum number of processes per printed round
    #[arg(long, value_name = "N", value_parser = whole(1..=10_000), default_value_t = 30)]
    rows: u64,
    /// Print JSON, one object per line: each process as its sensor sent it, with domain and host
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Show or print the processes.
///
/// # Errors
/// If there is no terminal for the screen, or no daemon answers when printing.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut querier = Querier::new(&args.target, args.domain.clone());
    let only = args.host.as_deref().map(|host| querier.place(host)).transpose()?;
    let scope = Scope { only, order: Order::of(&args.sort), is_filtered: !args.filter.is_empty() };
    match (args.rounds, args.once || args.json) {
        (Some(rounds), _) => print(args, &mut querier, &scope, rounds),
        (None, true) => print(args, &mut querier, &scope, 1),
        (None, false) => screen(args, querier, scope),
    }
}

fn screen(args: &Args, querier: Querier, scope: Scope) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "the screen needs a terminal to read keys from and to draw on; --once prints what it would show"
                .to_owned(),
        ));
    }
    let interval = Duration::from_secs(args.interval);
    let asking = Running::start(querier, scope.clone(), interval)?;
    let state = State::new(scope, args.filter.clone(), interval, clock::now());
    terminal::show(state, &asking, Output::stdout().has_colors())
}

fn print(args: &Args, querier: &mut Querier, scope: &Scope, rounds: u64) -> Result<(), Failure> {
    let mut totals = Totals::default();
    let filter = Filter::new(&args.filter).map_err(Failure::Usage)?;
    let most = usize::try_from(args.rows).unwrap_or(usize::MAX);
    let mut output = args.width.output();
    for number in 0..rounds {
        if number > 0 {
            std::thread::sleep(Duration::from_secs(args.interval));
        }
        let mut raw = Vec::new();
        let mut round = match querier.round(scope, args.json.then_some(&mut raw)) {
            Err(error) if number > 0 && recovery::of(&error, true) != Recovery::End => {
                note(&format!("{}; waiting until it answers (Ctrl-C ends)", error.first_line()));
                raw.clear();
                querier.round_at_last(scope, args.json.then_some(&mut raw))?
            }
            round => round?,
        };
        totals.rate(&mut round.processes, clock::now().0);
        let mut shown: Vec<Process> = round.processes.into_iter().filter(|one| filter.passes(one)).collect();
        rows::sort(&mut shown, scope.order);
        shown.truncate(most);
        let wanted = |host: &&Host| scope.only.as_ref().is_none_or(|only| host.place == *only);
        let hosts: Vec<&Host> = round.hosts.iter().filter(wanted).collect();
        if let (Some(Place { domain, host }), true) = (&scope.only, hosts.is_empty() && number == 0) {
            return Err(Failure::Failed(format!(
                "no host {host} in {domain}; visperf hosts lists those that are"
            )));
        }
        round.notes.iter().for_each(|text| note(text));
        match silence(&hosts, round.answered) {
            Some(silence) if number == 0 => return Err(Failure::Unreachable(silence)),
            // Each of these hosts is reported below.
            Some(_) | None => {}
        }
        for host in &hosts {
            note_trouble(host);
        }
        if args.json {
            shown.iter().try_for_each(|process| json(process, &raw, &mut output))?;
        } else {
            if number > 0 {
                output.line("")?;
            }
            table(&shown, hosts.len() > 1, &mut output)?;
        }
        output.flush()?;
        if !args.json && (shown.len() as u64) < round.total {
            note(&format!("{} of {} processes", shown.len(), round.total));
        }
    }
    Ok(())
}

/// The message if there are hosts and none of them answered.
fn silence(hosts: &[&Host], answered: usize) -> Option<String> {
    if answered > 0 {
        return None;
    }
    let lines = hosts.iter().filter_map(|host| trouble(host));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn note_trouble(host: &Host) {
    if let Some(text) = trouble(host) {
        note(&text);
    }
}

fn trouble(host: &Host) -> Option<String> {
    let Place { domain, host: name } = &host.place;
    match &host.trouble {
        Some(trouble) => Some(format!("{name} of {domain}: {trouble}")),
        None if !host.is_live => Some(format!("{name} of {domain} is silent")),
        None => None,
    }
}

/// A process as its sensor sent it, with its domain and host.
fn json(process: &Process, raw: &[(Place, Value)], output: &mut Output) -> Result<(), Failure> {
    let (place, key) = &process.id;
    let is_it = |(there, value): &&(Place, Value)| {
        there == place && value["pid"] == key.pid && value["start_ns"].as_u64().unwrap_or(0) == key.start_ns
    };
    let Some((_, value)) = raw.iter().find(is_it) else { return Ok(()) };
    let mut value = value.clone();
    value["domain"] = place.domain.clone().into();
    value["host"] = place.host.clone().into();
    if let Some(rate) = process.io_rate {
        value["io_rate"] = rate.into();
    }
    output.json(&value)
}

fn table(processes: &[Process], has_hosts: bool, output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "PID", "USER", "STATE", "CPU", "MEMORY", "IO/S", "NAME", "COMMAND"];
    let mut table = Table::new(&heads).spares(&["STATE", "IO/S", "USER", "COMMAND"]);
    for process in processes {
        let (place, key) = &process.id;
        table.row(vec![
            Cell::text(if has_hosts { place.host.as_str() } else { "" }),
            Cell::figure(key.pid.to_string()),
            Cell::text(&process.user),
            Cell::whole(&process.state).color(Color::Dim),
            Cell::figure(process.cpu.map(share).unwrap_or_default()),
            Cell::figure(bytes(process.rss_bytes)),
            Cell::figure(process.io_rate.map(bytes).unwrap_or_default()),
            Cell::text(&process.name).color(Color::Name),
            Cell::text(&process.command),
        ]);
    }
    table.print(output)
}

fn filter(text: &str) -> Result<String, String> {
    Filter::new(text).map(|_| text.to_owned())
}
