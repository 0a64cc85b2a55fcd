//! Commands to processes: `visperf kill` and `visperf renice`, and their shared code.
//!
//! Rule: the signed command names the process that was shown, by its pid and start time; nothing is signed
//! before the user confirmed, or passed `--yes`.
//! Not here: whether a command is executed (`sensor::control`).

pub(crate) mod kill;
pub(crate) mod renice;

use crate::client::command_sender::CommandSender;
use crate::client::target::Target;
use crate::exit::Failure;
use crate::harmless::{clean, guarded};
use crate::options::{chosen, whole};
use crate::output::times::{brief, now};
use crate::output::{Output, colors_on_stderr, note};
use jiff::tz::TimeZone;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use wire::api::control::ControlAnswer;
use wire::api::processes::{PID_MAX, Process};
use wire::control::Act;
use wire::process::ProcessKey;

/// Most processes in one command: the number that a sensor accepts at once.
const PROCESSES_MAX: usize = 100;

/// Which processes, confirmation and output.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    target: Target,
    /// Name of the host, as printed by `visperf hosts`; localhost for the host of the queried daemon
    #[arg(value_name = "HOST", value_parser = chosen)]
    host: String,
    /// Process ids
    #[arg(value_name = "PID", required = true, num_args = 1..=PROCESSES_MAX, value_parser = whole(1..=PID_MAX.into()))]
    pids: Vec<u64>,
    /// Domain of the host [default: the domain of the queried daemon]
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    domain: Option<String>,
    /// Only if the process has this start_ns (printed by `visperf processes --json`); for a single process
    #[arg(long, value_name = "NS", value_parser = whole(0..=u64::MAX))]
    start_ns: Option<u64>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Print JSON, one object per line, as the sensor sent it
    #[arg(long)]
    json: bool,
}

/// A process to act on, and its description for messages.
struct ChosenProcess {
    key: ProcessKey,
    shown: String,
}

/// Apply `act` to each of the processes.
fn run(common: &Common, act: Act) -> Result<(), Failure> {
    if common.start_ns.is_some() && common.pids.len() > 1 {
        return Err(Failure::Usage("--start-ns is of one process; give one PID".to_owned()));
    }
    let mut sender = CommandSender::new(&common.target, common.domain.as_deref(), &common.host)?;
    let (mut meant, mut failed) = (Vec::new(), None);
    for pid in &common.pids {
        match find(&mut sender, common, *pid) {
            Ok(process) => meant.push(process),
            Err(failure) if common.pids.len() == 1 => return Err(failure),
            Err(failure) => {
                note(&failure.message().unwrap_or_default());
                failed = failed.or(Some(failure.into_printed()));
            }
        }
    }
    if !common.yes && !meant.is_empty() {
        confirm(&meant, act, &sender.place())?;
    }
    let mut output = Output::stdout();
    for process in &meant {
        match sender.send(process.key, act) {
            Ok(done) if common.json => output.json(&done.raw)?,
            Ok(done) => output.line(&result_line(&done.typed, &process.shown))?,
            Err(failure) if common.pids.len() == 1 => return Err(failure),
            Err(failure) => {
                note(&format!("{}: {}", process.shown, failure.message().unwrap_or_default()));
                failed = failed.or(Some(failure.into_printed()));
            }
        }
        output.flush()?;
    }
    failed.map_or(Ok(()), Err)
}

fn find(sender: &mut CommandSender, common: &Common, pid: u64) -> Result<ChosenProcess, Failure> {
    let pid = u32::try_from(pid).map_err(|_| Failure::Usage(format!("{pid} is no process number")))?;
    let process = sender.find(pid)?;
    let key = process.key();
    if key.start_ns == 0 {
        return Err(Failure::Failed(
            "the sensor does not say when the process was started; update it".to_owned(),
        ));
    }
    if let Some(wanted) = common.start_ns.filter(|wanted| *wanted != key.start_ns) {
        return Err(Failure::Failed(format!(
            "process {pid} has start_ns {}, expected {wanted}: another process has that number now",
            key.start_ns
        )));
    }
    Ok(ChosenProcess { key, shown: shown(&process) })
}

/// `burn (4711) of mrossi, since 12:03:04`.
fn shown(process: &Process) -> String {
    let user = process.user.clone().unwrap_or_else(|| format!("user {}", process.uid));
    let since = brief(process.start.0, now(), &TimeZone::system());
    format!("{} ({}) of {user}, since {since}", process.name, process.pid)
}

/// Description of the action in the confirmation prompt.
fn words(act: Act) -> String {
    match act {
        Act::Signal(signal) => format!("send {} to", signal.as_str()),
        Act::Renice(nice) => format!("set the niceness to {} of", nice.value()),
    }
}

fn confirm(meant: &[ChosenProcess], act: Act, place: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "cannot ask for confirmation: standard input is not a terminal; pass --yes to proceed".to_owned(),
        ));
    }
    let many = if meant.len() == 1 { String::new() } else { format!("{} processes\n", meant.len()) };
    let list: Vec<String> = meant.iter().map(|process| clean(&process.shown).into_owned()).collect();
    let question = format!("{} {many}{}\non {place}? [y/N] ", words(act), list.join("\n"));
    let question = guarded(&question, colors_on_stderr());
    let asked = std::io::stderr().write_all(question.as_bytes()).and_then(|()| std::io::stderr().flush());
    asked.map_err(|error| Failure::of("cannot ask", error))?;
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::of("cannot read the answer", error))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Failed("nothing was done".to_owned())),
    }
}

/// Result of a command, as one line.
fn result_line(done: &ControlAnswer, shown: &str) -> String {
    let act = &done.act;
    let (what, then) = match act.strip_prefix("nice=") {
        Some(nice) => (format!("set the niceness to {nice} of"), ""),
        None => (
            format!("sent {act} to"),
            match done.ended {
                Some(true) => "; it has ended",
                Some(false) if act == "KILL" => "; it is there still, and ends when the kernel lets it",
                Some(false) => "; it is there still (--signal KILL does not ask it)",
                None => "",
            },
        ),
    };
    clean(&format!("{what} {shown} on {}{then}", done.host)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::control::Signal;

    #[test]
    fn what_was_done_is_printed_in_a_line() {
        let check = |act: &str, ended: Option<bool>, expected: &str| {
            let done =
                ControlAnswer { act: act.into(), host: "wn01".into(), ended, ..ControlAnswer::default() };
            assert_eq!(result_line(&done, "burn (7) of ada"), expected);
        };
        check("TERM", Some(true), "sent TERM to burn (7) of ada on wn01; it has ended");
        check(
            "TERM",
            Some(false),
            "sent TERM to burn (7) of ada on wn01; it is there still (--signal KILL does not ask it)",
        );
        check("STOP", None, "sent STOP to burn (7) of ada on wn01");
        check("nice=5", None, "set the niceness to 5 of burn (7) of ada on wn01");
        assert_eq!(words(Act::Signal(Signal::Kill)), "send KILL to");
    }

    #[test]
    fn a_process_is_shown_by_what_it_is() {
        let mut process = Process { name: "burn".into(), pid: 7, uid: 1000, ..Process::default() };
        assert!(shown(&process).starts_with("burn (7) of user 1000, since "));
        process.user = Some("ada".into());
        assert!(shown(&process).starts_with("burn (7) of ada, since "));
    }
}
