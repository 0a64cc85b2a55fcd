//! `visperf modules`: the user-written collectors and handlers of a sensor, their state, and commands to
//! them.
//!
//! Rule: a command goes to the queried daemon, for its own host; the host's modules folder defines which
//! programs run.
//! Not here: running the modules (the sensor does).

use crate::client::command_sender;
use crate::client::items;
use crate::client::{Client, PATIENCE};
use crate::command::query::{print_typed, request};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{Place, Query};
use crate::output::figures::number;
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, note};
use crate::state_folder::SOCKET_MARK;
use ::client::typed::{About, Answered};
use clap::Subcommand;
use overlay::identity::state_folder;
use std::path::PathBuf;
use wire::api::daemon::InfoParams;
use wire::api::modules::{
    ChangeModuleParams, Module, ModuleAct, ModuleKind, ModuleState, Modules, ModulesParams,
};

/// Most lines of a module's output shown below it.
const LINES_MAX: usize = 3;

/// List, reload, stop and start the modules of a sensor
///
/// A module is a program, or WebAssembly, that provides figures or receives events, figures and processes.
/// The sensor's folder of modules determines what runs; docs/modules.md explains how to write a module. Only
/// root and the user that runs the sensor can start, stop and reload modules.
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
    /// Read the folder now, and restart the module
    Reload {
        #[command(flatten)]
        query: Query,
        /// Module to restart [default: none]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Stop a module until it is started, its file changes, or the sensor restarts
    Stop(Order),
    /// Start a module, even if it is quarantined or disabled
    Start(Order),
}

/// Print the modules of a host, with state, counters and last errors
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
    /// Name of the module
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
        Some(Action::Reload { query, name }) => order(query, name.as_deref(), ModuleAct::Reload),
        Some(Action::Stop(order_to)) => order(&order_to.query, Some(&order_to.name), ModuleAct::Stop),
        Some(Action::Start(order_to)) => order(&order_to.query, Some(&order_to.name), ModuleAct::Start),
    }
}

fn list(args: &List) -> Result<(), Failure> {
    shown(&args.query, &request(&args.query, &ModulesParams {}, &args.place.about())?)
}

fn order(query: &Query, name: Option<&str>, act: ModuleAct) -> Result<(), Failure> {
    let name = name.map(ToOwned::to_owned);
    let params = ChangeModuleParams { name, act, key: key(query).unwrap_or_default() };
    shown(query, &request(query, &params, &About::default())?)
}

/// The key that shows the sensor that the caller is root or the sensor's own user. It is sent only to the
/// daemon that owns the folder: the folder must state that this daemon listens on this machine, as the
/// answering daemon may name any folder. Without it the sensor's answer states what is missing.
fn key(query: &Query) -> Option<String> {
    let mut client = Client::new(&query.target);
    let info = client.request(&InfoParams {}, &About::default(), PATIENCE).ok()?.typed;
    if !command_sender::is_here(&client.address()) || query.target.door_domain().is_some() {
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

fn shown(query: &Query, answer: &Answered<Modules>) -> Result<(), Failure> {
    let Modules { modules, on, trouble, .. } = &answer.typed;
    print_typed(query, &items(&answer.raw, "modules"), modules, "no modules", table)?;
    if query.json {
        return Ok(());
    }
    if !on {
        note(
            "folder = \"/etc/visperf/modules\" in [sensor.modules] of the sensor's configuration says where they are",
        );
    }
    if let Some(trouble) = trouble {
        note(trouble);
    }
    Ok(())
}

fn table(modules: &[Module], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["MODULE", "KIND", "STATE", "CALLS", "MS/CALL", "CPU S", "FIGURES", "FAILURES", "PID", "PROGRAM"];
    let mut table = Table::new(&heads).spares(&["PROGRAM", "PID", "CPU S", "FIGURES"]);
    for module in modules {
        // Nothing was counted for a module whose file is invalid.
        let is_known = module.state != ModuleState::Refused;
        let figure = |text: String| Cell::figure(if is_known { text } else { String::new() });
        table.row(vec![
            Cell::text(&module.name).color(Color::Name),
            Cell::text(module.kind.map(ModuleKind::as_str).unwrap_or_default()),
            Cell::whole(module.state.as_str()).color(color(module.state)),
            figure(module.calls.to_string()),
            Cell::figure(per_call(module)),
            figure(format!("{:.2}", module.cpu_seconds)),
            figure(module.figures.to_string()),
            figure(module.failures.to_string()),
            Cell::figure(module.pid.map(|pid| pid.to_string()).unwrap_or_default()),
            Cell::text(module.program.as_deref().unwrap_or_default()),
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

/// Average duration of a call in milliseconds; empty if none was answered.
#[allow(clippy::cast_precision_loss)] // it is shown with one digit behind the point
fn per_call(module: &Module) -> String {
    match module.calls {
        0 => String::new(),
        calls => format!("{:.1}", module.answering_secs * 1e3 / calls as f64),
    }
}

fn color(state: ModuleState) -> Color {
    match state {
        ModuleState::Running => Color::Good,
        ModuleState::Quarantined | ModuleState::Refused => Color::Bad,
        ModuleState::Waiting => Color::Caution,
        ModuleState::Starting | ModuleState::Stopped | ModuleState::Off | ModuleState::Unknown => Color::Dim,
    }
}

/// Notes on a module: its last error, and the end of its output.
fn remarks(module: &Module) -> Vec<String> {
    let name = clean(&module.name);
    let Some(error) = module.last_error.as_ref().filter(|error| !error.is_empty()) else { return Vec::new() };
    let again = module.retry_in_secs.map(|secs| format!("; tried again in {} s", number(secs.ceil())));
    let mut remarks = vec![format!("{name}: {}{}", clean(error), again.unwrap_or_default())];
    let lines = module.stderr.as_deref().unwrap_or_default();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES_MAX));
    remarks.extend(last.map(|line| format!("{name} says: {}", clean(line))));
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use serde_json::json;

    #[test]
    fn a_module_that_failed_is_listed_with_its_last_output() {
        let kept = Capture::default();
        let mut output = Output::into_writer(kept.clone(), None);
        let modules = [
            json!({"name": "gpu", "kind": "collector", "state": "running", "calls": 4, "answering_secs": 0.01, "cpu_seconds": 0.5,
                "figures": 12, "failures": 0, "pid": 7, "program": "nvidia-counters", "stderr": ["fine"]}),
            json!({"name": "plot", "state": "waiting", "calls": 0, "answering_secs": 0.0, "cpu_seconds": 0.0, "figures": 0,
                "failures": 1, "last_error": "it ended (exit status 1)", "retry_in_secs": 1.2,
                "stderr": ["a", "b", "c", "no\u{1b} disk"]}),
        ];
        let modules: Vec<Module> = modules.map(|module| serde_json::from_value(module).unwrap()).into();
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
