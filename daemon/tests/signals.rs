//! Real signals to a real process: the test starts itself again as a daemon with one task that drains
//! when told to, and signals that.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use daemon::shutdown::{EXIT_CODE_FORCED, Failure, GRACE, Signals, Tasks};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use tokio_util::sync::CancellationToken;

const ROLE: &str = "VISPERF_TEST_ROLE";

/// Not a test of its own: what the child runs. Without the variable it does nothing.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let signals = Signals::catch().unwrap();
        let mut tasks = Tasks::new(shutdown.clone());
        let told = shutdown.clone();
        tasks.spawn("work", async move {
            println!("\nready");
            told.cancelled().await;
            println!("draining");
            if role == "slow" {
                std::future::pending::<()>().await;
            }
            Ok::<(), Failure>(())
        });
        tokio::select! {
            result = tasks.run(GRACE) => result,
            () = signals.obey(shutdown) => unreachable!("obey waits for ever"),
        }
    });
    println!("drained");
    std::process::exit(i32::from(result.is_err()));
}

#[test]
fn either_signal_drains_and_ends_well() {
    for signal in ["-INT", "-TERM"] {
        let (mut child, mut lines) = start("quick");
        await_line(&mut lines, "ready");
        send(&child, signal);
        await_line(&mut lines, "draining");
        await_line(&mut lines, "drained");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn the_second_signal_exits_at_once_with_a_message() {
    let (mut child, mut lines) = start("slow");
    await_line(&mut lines, "ready");
    send(&child, "-TERM");
    await_line(&mut lines, "draining");
    send(&child, "-INT");
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(EXIT_CODE_FORCED));
    assert!(told.contains("SIGINT a second time"), "{told}");
}

#[allow(clippy::disallowed_methods)] // Only a process of its own can be sent a signal that ends it.
fn start(role: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

#[allow(clippy::disallowed_methods)] // The workspace forbids unsafe code, so kill(1) sends the signal.
fn send(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

fn await_line(lines: &mut BufReader<ChildStdout>, expected: &str) {
    let mut line = String::new();
    while line.trim() != expected {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the child ended before it said {expected}");
    }
}
