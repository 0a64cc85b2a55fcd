//! `visperf modules`: the collectors and handlers that others wrote for a sensor, how they fare, and orders to them.
//!
//! Rule: an order goes to the daemon that is asked, for its own host; which program runs is the host's to say, in its folder.
//! Not here: the modules (the sensor has them).

use crate::cli::{Place, Query};
use crate::client::typed::About;
use crate::client::{Client, PATIENCE};
use crate::command::control::giver;
use crate::command::query::{Params, ask, items, print};
use crate::exit::Failure;
use crate::output::figures::{number, number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, clean, note};
use crate::state_folder::SOCKET_MARK;
use clap::Subcommand;
use overlay::identity::state_folder;
use serde_json::Value;
use std::path::PathBuf;
use wire::api::daemon::InfoParams;

/// Lines of what a module said that are shown below it.
const SAID_MAX: usize = 3;

/// List, reload, stop and start the modules of a sensor
///
/// A module is a program, or WebAssembly, that gives figures or takes events, figures and processes. The sensor's folder of modules
/// names what runs; docs/modules.md tells how to write one. Orders are taken from root and from the user that the sensor runs as.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

const EXAMPLES: &str = "Examples:
  visperf modules
  visperf modules --host wn07 --json | jq -r 'select(.failures > 0).name'
  visperf modules reload gpu
  visperf modules stop plot
  visperf metrics 'module.gpu.*'";

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    /// Look at the folder now, and start the module anew
    Reload {
        #[command(flatten)]
        query: Query,
        /// Which; none unless given
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// End a module, until it is started, its file changes, or the sensor starts anew
    Stop(Order),
    /// Start a module, also one that is quarantined or off
    Start(Order),
}

/// Print the modules of a host, how they fare and what went wrong
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct Order {
    #[command(flatten)]
    query: Query,
    /// Which
    #[arg(value_name = "NAME")]
    name: String,
}

/// Run the action.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        None => list(&args.list),
        Some(Action::List(args)) => list(args),
        Some(Action::Reload { query, name }) => order(query, name.as_deref(), "reload"),
        Some(Action::Stop(order_to)) => order(&order_to.query, Some(&order_to.name), "stop"),
        Some(Action::Start(order_to)) => order(&order_to.query, Some(&order_to.name), "start"),
    }
}

fn list(args: &List) -> Result<(), Failure> {
    let answer = ask(&args.query, "sensor.modules", Params::default().at(&args.place))?;
    shown(&args.query, &answer)
}

fn order(query: &Query, name: Option<&str>, act: &str) -> Result<(), Failure> {
    let params = Params::default().with("name", name).with("act", Some(act)).with("key", key(query));
    let answer = ask(query, "sensor.change_module", params)?;
    shown(query, &answer)
}

/// What shows the sensor that who orders is root or its own user. It goes to nobody but the daemon whose folder it is in: one that listens on
/// this machine, where the folder says so, for whoever answers may name any folder. Without it the sensor says what it misses.
fn key(query: &Query) -> Option<String> {
    let mut client = Client::new(&query.target);
    let info = client.request(&InfoParams {}, &About::default(), PATIENCE).ok()?.typed;
    if !giver::is_here(&client.address()) || query.target.door_domain().is_some() {
        return None;
    }
    let folder = PathBuf::from(info.state_directory);
    let asked = client.address();
    let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
    state_folder::modules_key(&folder, |listen| match asked.starts_with(SOCKET_MARK) {
        true => listen == asked,
        false => port(listen) == port(&asked),
    })
}

fn shown(query: &Query, answer: &Value) -> Result<(), Failure> {
    print(query, items(answer, "modules"), "no modules", table)?;
    if query.json {
        return Ok(());
    }
    if answer.get("on").and_then(Value::as_bool) != Some(true) {
        note(
            "folder = \"/etc/visperf/modules\" in [sensor.modules] of the sensor's configuration says where they are",
        );
    }
    if let Some(trouble) = answer.get("trouble").and_then(Value::as_str) {
        note(trouble);
    }
    Ok(())
}

fn table(modules: &[Value], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["MODULE", "KIND", "STATE", "CALLS", "MS/CALL", "CPU S", "FIGURES", "FAILURES", "PID", "PROGRAM"];
    let mut table = Table::new(&heads).spares(&["PROGRAM", "PID", "CPU S", "FIGURES"]);
    for module in modules {
        let figure = |name: &str| Cell::figure(plain(module.get(name)));
        let calls = number_of(module, "calls").filter(|calls| *calls > 0.0);
        let per_call =
            number_of(module, "seconds").zip(calls).map(|(secs, calls)| format!("{:.1}", secs * 1e3 / calls));
        let cpu = number_of(module, "cpu_seconds").map(|secs| format!("{secs:.2}"));
        table.row(vec![
            Cell::text(text_of(module, "name")).color(Color::Name),
            Cell::text(text_of(module, "kind")),
            Cell::whole(text_of(module, "state")).color(color(text_of(module, "state"))),
            figure("calls"),
            Cell::figure(per_call.unwrap_or_default()),
            Cell::figure(cpu.unwrap_or_default()),
            figure("figures"),
            figure("failures"),
            figure("pid"),
            Cell::text(text_of(module, "program")),
        ]);
    }
    table.print(output)?;
    for module in modules {
        for line in remarks(module) {
            output.line(&output.paint(Color::Caution, &line))?;
        }
    }
    Ok(())
}

fn color(state: &str) -> Color {
    match state {
        "running" => Color::Good,
        "quarantined" | "refused" => Color::Bad,
        "waiting" => Color::Caution,
        _ => Color::Dim,
    }
}

/// What went wrong with a module, and what it said last.
fn remarks(module: &Value) -> Vec<String> {
    let name = clean(text_of(module, "name")).into_owned();
    let error = text_of(module, "last_error");
    if error.is_empty() {
        return Vec::new();
    }
    let again =
        number_of(module, "retry_in").map(|secs| format!("; tried again in {} s", number(secs.ceil())));
    let mut remarks = vec![format!("{name}: {}{}", clean(error), again.unwrap_or_default())];
    let said = items(module, "stderr");
    let last = said.iter().skip(said.len().saturating_sub(SAID_MAX)).filter_map(Value::as_str);
    remarks.extend(last.map(|line| format!("{name} says: {}", clean(line))));
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::kept::Kept;
    use serde_json::json;

    #[test]
    fn a_module_that_failed_is_told_with_its_last_words() {
        let kept = Kept::default();
        let mut output = Output::into_writer(kept.clone(), None);
        let modules = [
            json!({"name": "gpu", "kind": "collector", "state": "running", "calls": 4, "seconds": 0.01, "cpu_seconds": 0.5,
                "figures": 12, "failures": 0, "pid": 7, "program": "nvidia-counters", "stderr": ["fine"]}),
            json!({"name": "plot", "state": "waiting", "calls": 0, "seconds": 0.0, "cpu_seconds": 0.0, "figures": 0,
                "failures": 1, "last_error": "it ended (exit status 1)", "retry_in": 1.2,
                "stderr": ["a", "b", "c", "no\u{1b} disk"]}),
        ];
        table(&modules, &mut output).unwrap();
        let printed = kept.text();
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(
            lines[1],
            "gpu     collector  running      4      2.5   0.50       12         0    7  nvidia-counters"
        );
        assert_eq!(lines[3], "plot: it ended (exit status 1); tried again in 2 s");
        assert_eq!(&lines[4..], ["plot says: b", "plot says: c", "plot says: no\\u{1b} disk"]);
    }
}
