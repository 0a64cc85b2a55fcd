//! Texts of the live view of `visperf up`: where to query, an ended call, the end of a recording.
//!
//! Not here: when they are printed (`live`), and where they appear (`screen`).

use crate::demo::player::Player;
use crate::harmless::clean;
use crate::output::event_lines::outcome_color;
use crate::output::figures::user;
use crate::output::times::between;
use crate::output::{Color, Output};
use crate::serve::grid::Grid;
use std::fmt::Write as _;
use std::path::Path;
use wire::call::Call;
use wire::shown::count;
use wire::time::Time;

/// Width of the block at the end of a recording.
const BLOCK_CHARS: usize = 72;

/// Lines above the live view: what is played, and where to query.
pub(super) fn header(grid: &Grid, player: Option<&Player>, beside: &[String]) -> Vec<String> {
    let address = grid.address();
    let mut lines = Vec::new();
    if let Some(player) = player {
        let secs = player.length().as_secs();
        lines.push(format!(
            "recorded logs of {}, written again as if it were now, for {} min {} s",
            player.clusters().join(", "),
            secs / 60,
            secs % 60
        ));
    }
    lines.push(format!("XML-RPC  http://{address}/RPC2"));
    lines.push(format!("JSON     curl http://{address}/api/v1/sensor.calls"));
    let connect = connect(address);
    lines.push(format!("or       visperf calls{connect}   visperf hosts{connect}   visperf help"));
    lines.extend_from_slice(beside);
    let files = grid.sensor().map(|sensor| sensor.config().tails.len()).unwrap_or_default();
    if files == 0 {
        lines.push(
            "no log of known middleware is on this machine; --tail FILE adds one, --demo shows recorded clusters".to_owned(),
        );
    }
    lines.push(String::new());
    lines
}

/// `--connect ADDRESS` for commands; empty if they find this daemon by default.
pub(super) fn connect(address: std::net::SocketAddr) -> String {
    match address == crate::state_folder::LISTEN_DEFAULT {
        true => String::new(),
        false => format!(" --connect {address}"),
    }
}

/// Note that another program uses the default port, so that this daemon listens on another one: commands
/// query that program, unless they find this daemon by its state folder.
pub(super) fn beside(is_found: bool, address: std::net::SocketAddr) -> Vec<String> {
    let usual = crate::state_folder::LISTEN_DEFAULT;
    if is_found || address == usual {
        return Vec::new();
    }
    vec![
        format!("Another program has {usual}: commands ask that one without"),
        format!("--connect {address}"),
    ]
}

/// How commands find the local socket in a state folder, and with it are identified.
pub(super) fn identified(folder: &Path) -> [String; 2] {
    [
        "To see what only you may see, such as your processes, type first:".to_owned(),
        format!("  export VISPERF_STATE={}", wire::shell::quoted(&folder.display().to_string())),
    ]
}

/// Line for an ended call: its user, hosts, duration and outcome.
pub(super) fn call_line(call: &Call, output: &Output) -> String {
    let mut text = format!("    call {}", call.id);
    let user = user(&call.user);
    for (before, value) in [("", call.name.as_str()), ("by ", &*user), ("from ", call.from.as_str())] {
        if !value.is_empty() {
            let _ = write!(text, "  {before}{}", clean(value));
        }
    }
    if !call.hosts.is_empty() {
        let _ = write!(text, "  on {}", clean(&call.hosts.join(",")));
    }
    let [submitted, started, ended] =
        [call.submitted, call.started, call.ended].map(|time| time.map(Time::secs_f64));
    for (what, span) in [("waited", between(submitted, started)), ("ran", between(started, ended))] {
        if !span.is_empty() {
            let _ = write!(text, "  {what} {span}");
        }
    }
    let outcome = call.outcome.map_or("", |outcome| outcome.as_str());
    let code = if call.code.is_empty() { String::new() } else { format!(" ({})", clean(&call.code)) };
    format!("{}  {}{}", output.paint(Color::Dim, &text), output.paint(outcome_color(outcome), outcome), code)
}

/// A finished recording and its results.
pub(super) struct Over<'a> {
    pub(super) clusters: &'a str,
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) ended: u64,
    /// Ended calls by outcome.
    pub(super) outcomes: Vec<(&'static str, u64)>,
}

/// Text at the end of a recording: its results, what continues, and what to try next; it fits 80 columns.
pub(super) fn recording_over(over: &Over<'_>, connect: &str, beside: &[String]) -> Vec<String> {
    let outcomes: Vec<String> =
        over.outcomes.iter().map(|(outcome, calls)| format!("{calls} {outcome}")).collect();
    let calls = over.waiting + over.running + over.ended;
    let mut block = vec![
        String::new(),
        "-".repeat(BLOCK_CHARS),
        format!("The recording is over: {} of", count(calls, "call")),
        format!("  {}", over.clusters),
        format!("{} ended: {}", over.ended, outcomes.join(", ")),
        format!("{} still waiting, {} still running", over.waiting, over.running),
        String::new(),
        "This machine is still watched and every question answered; in another".to_owned(),
        "terminal try:".to_owned(),
        format!("  visperf summary{connect}"),
        format!("  visperf calls{connect} --outcome failed --limit 10"),
        format!("  visperf events{connect} --kind node_down --kind node_drain"),
        format!("  visperf metrics{connect} 'node_memory_Mem*'"),
    ];
    block.extend_from_slice(beside);
    block.extend([
        "Ctrl-C ends it. Then visperf up watches your own logs, and".to_owned(),
        "visperf up --demo --speed 1 plays this as it was.".to_owned(),
        "-".repeat(BLOCK_CHARS),
    ]);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_recording_is_a_block_that_fits_a_small_terminal() {
        let outcomes = vec![("ok", 592), ("failed", 77), ("cancelled", 40), ("timeout", 1), ("node_fail", 2)];
        let over = Over {
            clusters: "slurm, htcondor, gridengine, gridftp",
            waiting: 3,
            running: 1,
            ended: 712,
            outcomes,
        };
        let other = "127.0.0.1:65535".parse().unwrap();
        let block = recording_over(&over, &connect(other), &beside(false, other));
        let edge = "-".repeat(BLOCK_CHARS);
        assert_eq!(
            (block[1].as_str(), block.last().map(String::as_str)),
            (edge.as_str(), Some(edge.as_str()))
        );
        assert!(block.iter().all(|line| line.chars().count() <= 80), "{block:#?}");
        let text = block.join("\n");
        for part in [
            "over: 716 calls of\n  slurm, htcondor",
            "712 ended: 592 ok, 77 failed, 40",
            "3 still waiting, 1 still",
            "Another program has 127.0.0.1:7317",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_folder_of_a_demo_is_quoted_for_a_shell() {
        let [_, line] = identified(Path::new("/tmp/a b"));
        assert_eq!(line, "  export VISPERF_STATE='/tmp/a b'");
    }

    #[test]
    fn another_daemon_on_the_usual_port_is_said_where_none_was_asked_for() {
        let usual = crate::state_folder::LISTEN_DEFAULT;
        let other = "127.0.0.1:40123".parse().unwrap();
        assert_eq!(beside(false, usual), [""; 0]);
        assert_eq!(beside(true, other), [""; 0]);
        assert_eq!(
            beside(false, other),
            [
                "Another program has 127.0.0.1:7317: commands ask that one without",
                "--connect 127.0.0.1:40123"
            ]
        );
    }
}
