//! Hints for unknown words on the command line: `visperf jobs` suggests `visperf calls`.
//!
//! Pure. Rule: a hint names a command that works, or there is no hint.
//! Not here: how errors are printed (clap does it).

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wire::call::State;
use wire::event::{Kind, Outcome};

/// Commands of other programs, and what to use here.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["qstat", "squeue", "sacct", "queue", "bjobs", "condor_q"],
        "visperf jobs lists jobs, visperf job show JOB shows one",
    ),
    (&["transfers", "requests"], "visperf calls lists transfers and requests, and jobs too"),
    (&["node", "nodes", "machines", "members"], "visperf hosts lists the hosts of the domain"),
    (
        &["status", "health", "stat"],
        "visperf info shows the state of a daemon, visperf summary that of the domain, visperf hosts that of each host",
    ),
    (
        &["ps", "load"],
        "visperf processes shows what runs, visperf watch as it changes, visperf hosts the load, visperf metrics every figure",
    ),
    (
        &["tail", "follow", "read"],
        "visperf up --tail FILE reads a log as it is written, visperf filter try FILE a log as it is; visperf \
         events --follow shows events as they come",
    ),
    (
        &["log", "logs"],
        "visperf files lists the logs that are read, visperf filter try FILE shows what is in one",
    ),
    (&["parse", "test", "try", "new"], "visperf filter --help explains how filters are written and tried"),
    (
        &["start", "run", "serve", "daemon", "agent"],
        "visperf up watches this machine, visperf sensor as a service",
    ),
    (&["stop", "quit", "down", "restart"], "Ctrl-C ends a daemon where it runs; visperf info prints its pid"),
    (&["demo"], "visperf up --demo"),
    (&["version"], "visperf --version"),
    (&["validate"], "visperf config check FILE"),
    (
        &["list", "ls", "show", "get", "query"],
        "visperf calls, events, hosts, files or metrics; visperf help shows more",
    ),
    (
        &["init", "create", "setup"],
        "visperf up needs nothing; visperf domain create NAME begins a domain of several hosts",
    ),
    (&["user", "users"], "visperf summary shows who has most calls, visperf calls --user NAME those of one"),
];

/// Options of other programs, by command, and what to use here.
const OPTIONS: &[(&[&str], &[&str], &str)] = &[
    (
        &["calls", "jobs"],
        &["--status"],
        "--in waiting, running or ended; --outcome ok, failed, cancelled, timeout, node_fail or finished",
    ),
    (&["events"], &["--tail"], "--follow shows events as they come, --limit N the newest N"),
    (&["jobs"], &["--partition", "-p"], "--queue QUEUE"),
    (&["events", "calls", "jobs"], &["-n", "--last", "--count", "--head"], "--limit N"),
    (&["events", "calls", "jobs"], &["--node", "--on-host", "--machine"], "--host HOST"),
    (&["events", "calls", "jobs"], &["--after"], "--since TIME"),
    (&["events", "calls", "jobs"], &["--to", "--before"], "--until TIME"),
    (&["events"], &["--type", "--event"], "--kind KIND"),
    (&["events"], &["--grep", "--search", "--match", "--text"], "--regex REGEX"),
    (&["up", "sensor", "directory"], &["--port", "-p"], "--listen 127.0.0.1:PORT"),
    (&["up", "sensor", "directory"], &["-v", "--verbose", "--debug"], "--log info, or --log debug"),
    (&["up", "sensor"], &["--file", "--log-file", "-f"], "--tail FILE"),
];

/// Options that select an output format in other programs; here it is text or JSON.
const FORMATS: &[&str] = &["--format", "--output", "-o", "--jsonl"];

/// Add a hint to a command line error, if there is one. `arguments` are those after the program's name.
pub(crate) fn explained(mut error: Error, arguments: &[String]) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    };
    let command = arguments.iter().find(|argument| !argument.starts_with('-')).map_or("", String::as_str);
    let hint = if error.kind() == ErrorKind::InvalidSubcommand {
        text(ContextKind::InvalidSubcommand).and_then(|word| match command {
            "job" | "jobs" => meant_value(command, &word),
            _ => meant_command(&word),
        })
    } else if error.kind() == ErrorKind::UnknownArgument {
        text(ContextKind::InvalidArg).and_then(|word| match word.starts_with('-') {
            true => meant_option(command, &word),
            false => meant_value(command, &word),
        })
    } else if error.kind() == ErrorKind::MissingRequiredArgument && command == "jobs" {
        let is_login = arguments.iter().any(|argument| argument.starts_with("--account"));
        is_login.then(|| "visperf jobs --charged-to ACCOUNT; --account is a login at a proxy".to_owned())
    } else {
        None
    };
    if let Some(hint) = hint {
        // This hint is exact; clap's suggestions only compare letters.
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

/// Hint for a state or outcome of calls that was given as a folder (`--state failed`).
pub(crate) fn meant_state(command: &str, word: &str) -> Option<String> {
    if State::ALL.iter().any(|state| state.as_str() == word) {
        return Some(format!("visperf {command} --in {word}"));
    }
    let is_outcome = Outcome::ALL.iter().any(|outcome| outcome.as_str() == word);
    is_outcome.then(|| format!("visperf {command} --outcome {word}"))
}

fn meant_command(word: &str) -> Option<String> {
    let of_word = COMMANDS.iter().find(|(words, _)| words.contains(&word));
    of_word.map(|(_, hint)| (*hint).to_owned()).or_else(|| meant_state("jobs", word))
}

fn meant_option(command: &str, option: &str) -> Option<String> {
    let option = option.split(['=', ' ']).next().unwrap_or(option);
    let known =
        OPTIONS.iter().find(|(commands, words, _)| commands.contains(&command) && words.contains(&option));
    let json = FORMATS.contains(&option).then_some("--json prints one object a line");
    known.map(|(_, _, hint)| *hint).or(json).map(str::to_owned)
}

/// Hint for a word that was given without an option.
fn meant_value(command: &str, word: &str) -> Option<String> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_kind = Kind::ALL.iter().any(|kind| kind.as_str() == word);
    // The word becomes part of a command that the user may type.
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/@-*".contains(&byte));
    match command {
        _ if !is_plain => None,
        "calls" => meant_state(command, word).or_else(|| Some(chosen(command, word, digits))),
        "jobs" if word.starts_with("imp") => None,
        "jobs" if word == "show" => Some("visperf job show JOB".to_owned()),
        "jobs" | "job" if word == "report" => Some("visperf job report".to_owned()),
        "jobs" => Some(meant_state(command, word).unwrap_or_else(|| chosen_job(word, digits))),
        "job" => Some(format!("visperf job show {word}")),
        "events" if is_kind => Some(format!("visperf events --kind {word}")),
        "events" => Some(meant_state("calls", word).unwrap_or_else(|| chosen(command, word, digits))),
        "hosts" | "summary" => Some(format!(
            "visperf calls --host {word}, visperf events --host {word}: what happened on one host"
        )),
        "files" => {
            Some(format!("visperf up --tail {word} reads it, visperf filter try {word} shows what is in it"))
        }
        "up" if word == "demo" => Some("visperf up --demo".to_owned()),
        "up" | "sensor" => Some(format!("visperf {command} --tail {word}")),
        "config" => Some(format!("visperf config check {word}")),
        _ => None,
    }
}

fn chosen_job(word: &str, digits: bool) -> String {
    match digits || word.contains(':') {
        true => format!("visperf job show {word}"),
        false => format!(
            "visperf jobs --user {word}, --host {word}, --queue {word}, --charged-to {word} or --name {word}"
        ),
    }
}

fn chosen(command: &str, word: &str, digits: bool) -> String {
    if digits {
        return format!("visperf {command} --job {word}");
    }
    if word.contains(':') {
        return format!("visperf {command} --call {word}");
    }
    format!(
        "visperf {command} --user {word}, --host {word}, or --call '{word}:*' for those of a product such as slurm"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;
    use clap::{CommandFactory as _, Parser as _};

    fn message(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let all = std::iter::once("visperf".to_owned()).chain(arguments.iter().cloned());
        let error = Cli::try_parse_from(all).expect_err(line);
        explained(error, &arguments).to_string()
    }

    #[test]
    fn a_word_of_other_programs_leads_to_the_command_that_does_it() {
        for (line, hint) in [
            ("squeue", "tip: visperf jobs lists jobs"),
            ("transfers", "visperf calls"),
            ("jobs failed", "visperf jobs --outcome failed"),
            ("jobs 17", "visperf job show 17"),
            ("jobs show", "visperf job show JOB"),
            ("jobs mrossi", "--user mrossi"),
            ("job 17", "visperf job show 17"),
            ("jobs --partition long", "--queue QUEUE"),
            ("jobs --account physics", "--charged-to ACCOUNT"),
            ("nodes", "visperf hosts"),
            ("status", "visperf info"),
            ("load", "visperf metrics"),
            ("tail x.log", "visperf up --tail FILE"),
            ("running", "visperf jobs --in running"),
            ("calls failed", "tip: visperf calls --outcome failed"),
            ("calls waiting", "visperf calls --in waiting"),
            ("calls slurm:17", "visperf calls --call slurm:17"),
            ("calls 17", "visperf calls --job 17"),
            ("calls mrossi", "--user mrossi"),
            ("calls --status failed", "--outcome ok, failed"),
            ("events slurm", "--call 'slurm:*'"),
            ("events job_end", "visperf events --kind job_end"),
            ("events --tail", "--follow"),
            ("events --format json", "--json"),
            ("hosts wn01", "visperf calls --host wn01"),
            ("files /x.log", "visperf filter try /x.log"),
            ("up demo", "visperf up --demo"),
            ("up /x.log", "visperf up --tail /x.log"),
            ("up --port 80", "--listen 127.0.0.1:PORT"),
        ] {
            let text = message(line);
            assert!(text.contains(hint) && text.matches("tip: ").count() == 1, "{line}: {text}");
        }
    }

    #[test]
    fn an_unknown_word_gets_no_hint_and_no_control_characters() {
        for line in ["xyzzy", "calls \x1b[2J", "metrics x y", "key x"] {
            assert!(!message(line).contains("tip: "), "{line}: {}", message(line));
        }
        assert!(message("host").contains("'hosts'"), "likeness of letters is left to clap");
    }

    #[test]
    fn every_hint_names_commands_and_options_that_are_there() {
        let cli = Cli::command();
        let hints = COMMANDS.iter().map(|(_, hint)| *hint);
        for hint in hints {
            for after in hint.split("visperf ").skip(1) {
                let word = after.split([' ', ',', ';']).next().expect("a part of a split");
                let known = word.starts_with("--") || word == "help" || cli.find_subcommand(word).is_some();
                assert!(known, "{word} in {hint}");
            }
        }
        for (words, _) in COMMANDS {
            assert!(words.iter().all(|word| cli.find_subcommand(word).is_none()), "{words:?}");
        }
        for (commands, options, hint) in OPTIONS {
            for command in *commands {
                let command = cli.find_subcommand(command).expect("a command");
                let has = |option: &str| {
                    command.get_arguments().any(|argument| argument.get_long() == Some(option))
                };
                assert!(
                    hint.split("--").skip(1).all(|after| has(after.split(' ').next().expect("a word"))),
                    "{hint}"
                );
                assert!(!options.iter().any(|option| has(option.trim_start_matches('-'))), "{options:?}");
            }
        }
    }
}
