//! Real signals to a real process: the test starts itself again as a daemon with one task that drains at
//! shutdown, and sends signals to that.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use daemon::shutdown::{EXIT_CODE_FORCED, EXIT_CODE_STUCK, Failure, GRACE, Signals, Tasks};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use tokio_util::sync::CancellationToken;

const ROLE: &str = "VISPERF_TEST_ROLE";

/// Not a test itself: the code of the child process. Without the variable it does nothing.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let signals = Signals::catch().unwrap();
        let mut tasks = Tasks::new(shutdown.clone());
        let token = shutdown.clone();
        tasks.spawn("work", async move {
            println!("\nready");
            token.cancelled().await;
            println!("draining");
            match role.as_str() {
                "slow" => std::future::pending::<()>().await,
                // Blocks a thread of the runtime, and so its shutdown.
                "held" => std::thread::park(),
                _ => {}
            }
            Ok::<(), Failure>(())
        });
        let _obeying = signals.obey(shutdown).unwrap();
        tasks.run(GRACE).await
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
fn the_second_signal_exits_at_once_whatever_is_at_work() {
    for role in ["slow", "held"] {
        let (mut child, mut lines) = start(role);
        await_line(&mut lines, "ready");
        send(&child, "-TERM");
        await_line(&mut lines, "draining");
        send(&child, "-INT");
        assert_eq!(child.wait().unwrap().code(), Some(EXIT_CODE_FORCED), "{role}");
    }
}

#[test]
fn a_thread_that_is_held_up_does_not_keep_the_process() {
    let (mut child, mut lines) = start("held");
    await_line(&mut lines, "ready");
    send(&child, "-TERM");
    await_line(&mut lines, "draining");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(EXIT_CODE_STUCK));
    assert!(text.contains("still at work 4.7 s after SIGTERM"), "{text}");
}

#[allow(clippy::disallowed_methods)] // Only a separate process can be sent a signal that ends it.
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
