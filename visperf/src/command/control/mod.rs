//! Orders to processes: `visperf kill` and `visperf renice`, and what they share.
//!
//! Rule: what is signed names the process that was shown, by its number and start; nothing is signed before the person who
//! types has said yes, or `--yes` was given.
//! Not here: whether an order is obeyed (`sensor::control`).

pub(crate) mod giver;
pub(crate) mod kill;
pub(crate) mod renice;

use crate::cli::{chosen, whole};
use crate::client::target::Target;
use crate::exit::Failure;
use crate::output::figures::{number_of, text_of};
use crate::output::times::{brief, now};
use crate::output::{Output, clean, colors_on_stderr, guarded, note};
use giver::Giver;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use wire::control::Act;
use wire::process::ProcessKey;
use wire::time::Time;

/// Most processes of one command: as many as a sensor takes at once.
const PROCESSES_MAX: usize = 100;

/// Which processes, and how it is asked and told.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    target: Target,
    /// The host, as `visperf hosts` names it; localhost is that of the daemon that is asked
    #[arg(value_name = "HOST", value_parser = chosen)]
    host: String,
    /// The processes' numbers
    #[arg(value_name = "PID", required = true, num_args = 1..=PROCESSES_MAX, value_parser = whole(1..=1 << 22))]
    pids: Vec<u64>,
    /// Of this domain; that of the daemon that is asked, unless given
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    domain: Option<String>,
    /// Only if the process has this start_ns (as `visperf processes --json` tells): of one process
    #[arg(long, value_name = "NS", value_parser = whole(0..=u64::MAX))]
    start_ns: Option<u64>,
    /// Do not ask whether it is meant
    #[arg(long, short)]
    yes: bool,
    /// Print JSON, one object a line, as the sensor gave it
    #[arg(long)]
    json: bool,
}

/// A process that is meant.
struct Meant {
    key: ProcessKey,
    shown: String,
}

/// Have `act` done to each of the processes.
fn run(common: &Common, act: Act) -> Result<(), Failure> {
    if common.start_ns.is_some() && common.pids.len() > 1 {
        return Err(Failure::Usage("--start-ns is of one process; give one PID".to_owned()));
    }
    let mut giver = Giver::new(&common.target, common.domain.as_deref(), &common.host)?;
    let (mut meant, mut failed) = (Vec::new(), None);
    for pid in &common.pids {
        match find(&mut giver, common, *pid) {
            Ok(process) => meant.push(process),
            Err(failure) if common.pids.len() == 1 => return Err(failure),
            Err(failure) => {
                note(&failure.message().unwrap_or_default());
                failed = failed.or(Some(failure.told()));
            }
        }
    }
    if !common.yes && !meant.is_empty() {
        confirm(&meant, act, &giver.place())?;
    }
    let mut output = Output::stdout();
    for process in &meant {
        match giver.give(process.key, act) {
            Ok(done) if common.json => output.json(&done)?,
            Ok(done) => output.line(&told(&done, &process.shown))?,
            Err(failure) if common.pids.len() == 1 => return Err(failure),
            Err(failure) => {
                note(&format!("{}: {}", process.shown, failure.message().unwrap_or_default()));
                failed = failed.or(Some(failure.told()));
            }
        }
        output.flush()?;
    }
    failed.map_or(Ok(()), Err)
}

fn find(giver: &mut Giver, common: &Common, pid: u64) -> Result<Meant, Failure> {
    let process = giver.find(pid)?;
    let start_ns = process["start_ns"].as_u64().ok_or_else(|| {
        Failure::Failed("the sensor does not tell when the process began; update it".to_owned())
    })?;
    if let Some(wanted) = common.start_ns.filter(|wanted| *wanted != start_ns) {
        return Err(Failure::Failed(format!(
            "process {pid} has start_ns {start_ns}, expected {wanted}: another process has that number now"
        )));
    }
    let pid = u32::try_from(pid).map_err(|_| Failure::Usage(format!("{pid} is no process number")))?;
    Ok(Meant { key: ProcessKey { pid, start_ns }, shown: shown(&process) })
}

/// `burn (4711) of mrossi, since 12:03:04, 99 % of a core`.
fn shown(process: &Value) -> String {
    let user = match text_of(process, "user") {
        "" => format!("user {}", process["uid"]),
        user => user.to_owned(),
    };
    let since = number_of(process, "start").map(|secs| {
        let since = brief(Time::from_secs_f64(secs), now(), &TimeZone::system());
        format!(", since {since}")
    });
    format!("{} ({}) of {user}{}", text_of(process, "name"), process["pid"], since.unwrap_or_default())
}

/// What is to be done, as a question has it.
fn words(act: Act) -> String {
    match act {
        Act::Signal(signal) => format!("send {} to", signal.as_str()),
        Act::Renice(nice) => format!("set the niceness to {} of", nice.value()),
    }
}

fn confirm(meant: &[Meant], act: Act, place: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "nobody can be asked whether it is meant, for standard input is no terminal; say --yes if it is"
                .to_owned(),
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

/// What came of it, in a line.
fn told(done: &Value, shown: &str) -> String {
    let act = text_of(done, "act");
    let (what, then) = match act.strip_prefix("nice=") {
        Some(nice) => (format!("set the niceness to {nice} of"), ""),
        None => (
            format!("sent {act} to"),
            match done.get("ended").and_then(Value::as_bool) {
                Some(true) => "; it has ended",
                Some(false) if act == "KILL" => "; it is there still, and ends when the kernel lets it",
                Some(false) => "; it is there still (--signal KILL does not ask it)",
                None => "",
            },
        ),
    };
    clean(&format!("{what} {shown} on {}{then}", text_of(done, "host"))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::control::Signal;

    #[test]
    fn what_was_done_is_told_in_a_line() {
        let check = |done: Value, expected: &str| assert_eq!(told(&done, "burn (7) of ada"), expected);
        check(
            json!({"act": "TERM", "host": "wn01", "ended": true}),
            "sent TERM to burn (7) of ada on wn01; it has ended",
        );
        check(
            json!({"act": "TERM", "host": "wn01", "ended": false}),
            "sent TERM to burn (7) of ada on wn01; it is there still (--signal KILL does not ask it)",
        );
        check(json!({"act": "STOP", "host": "wn01"}), "sent STOP to burn (7) of ada on wn01");
        check(json!({"act": "nice=5", "host": "wn01"}), "set the niceness to 5 of burn (7) of ada on wn01");
        assert_eq!(words(Act::Signal(Signal::Kill)), "send KILL to");
    }

    #[test]
    fn a_process_is_shown_by_what_it_is() {
        assert_eq!(shown(&json!({"name": "burn", "pid": 7, "uid": 1000})), "burn (7) of user 1000");
        assert_eq!(shown(&json!({"name": "burn", "pid": 7, "uid": 1000, "user": "ada"})), "burn (7) of ada");
    }
}
