//! `visperf top` on a real terminal and printed: the terminal is restored, however the program ends.

use crate::program::{DEADLINE, Home};
use crate::server::{Daemon, Events};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

/// The program on its own terminal.
struct OnTerminal {
    child: Child,
    /// The user's end of the terminal.
    controller: File,
    /// The program's end of the terminal.
    terminal: OwnedFd,
    printed: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

/// Start the program on its own terminal; returns both ends.
fn started(home: &Home, arguments: &[&str]) -> (Child, File, OwnedFd) {
    let controller =
        rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    rustix::pty::grantpt(&controller).unwrap();
    rustix::pty::unlockpt(&controller).unwrap();
    let name = rustix::pty::ptsname(&controller, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let end = || File::from(terminal.try_clone().unwrap());
    let mut command = home.command(arguments);
    command.env("TERM", "xterm").stdin(end()).stdout(end());
    (command.spawn().unwrap(), File::from(controller), terminal)
}

impl OnTerminal {
    fn start(home: &Home, arguments: &[&str]) -> OnTerminal {
        let (child, controller, terminal) = started(home, arguments);
        let mut reading = controller.try_clone().unwrap();
        let (give, printed) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = reading.read(&mut buffer) {
                if give.send(buffer[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        OnTerminal { child, controller, terminal, printed, seen: Vec::new() }
    }

    /// Wait until this was printed.
    #[track_caller]
    fn shows(&mut self, part: &str) {
        let until = Instant::now() + DEADLINE;
        while !String::from_utf8_lossy(&self.seen).contains(part) {
            let left = until.saturating_duration_since(Instant::now());
            let more = self.printed.recv_timeout(left);
            let seen = String::from_utf8_lossy(&self.seen).into_owned();
            self.seen.extend(more.unwrap_or_else(|_| panic!("{part:?} does not come after {seen:?}")));
        }
    }

    fn ends(&mut self) -> ExitStatus {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            // Its remaining output must be read.
            self.seen.extend(self.printed.try_iter().flatten());
            assert!(Instant::now() < until, "it does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

#[test]
fn the_terminal_is_given_back_after_a_key_and_after_a_signal() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    for (key, signal) in [("q", None), ("\u{3}", None), ("", Some(Signal::TERM)), ("", Some(Signal::HUP))] {
        let mut top = OnTerminal::start(&home, &["top", "--connect", &daemon.connect()]);
        // Settings of the terminal without the program.
        let before = {
            let other = OnTerminal::start(&home, &["--version"]);
            rustix::termios::tcgetattr(&other.terminal).unwrap()
        };
        top.shows("1 of 1 hosts live");
        top.shows("\u{1b}[?1049h");
        let within = rustix::termios::tcgetattr(&top.terminal).unwrap();
        assert_ne!(within.local_modes, before.local_modes, "keys come one by one");
        top.controller.write_all(key.as_bytes()).unwrap();
        if let Some(signal) = signal {
            rustix::process::kill_process(Pid::from_child(&top.child), signal).unwrap();
        }
        assert_eq!(top.ends().code(), Some(0), "{key:?} {signal:?}");
        top.shows("\u{1b}[?1049l");
        top.shows("\u{1b}[?25h");
        let after = rustix::termios::tcgetattr(&top.terminal).unwrap();
        assert_eq!(after.local_modes, before.local_modes, "{key:?} {signal:?}");
    }
}

/// Keys that are pasted, or typed while the screen is drawn, arrive together.
#[test]
fn keys_that_come_together_are_taken_together() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let mut top = OnTerminal::start(&home, &["top", "--connect", &daemon.connect()]);
    top.shows("1 of 1 hosts live");
    let before = Instant::now();
    let keys = format!("/{}\u{3}", "pasted".repeat(20));
    top.controller.write_all(keys.as_bytes()).unwrap();
    assert_eq!(top.ends().code(), Some(0));
    let took = before.elapsed();
    assert!(took < std::time::Duration::from_secs(6), "{took:?} for 122 keys");
}

/// If the terminal is not a controlling terminal, no signal reports that it is gone.
#[test]
fn it_ends_with_its_terminal() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let (mut child, mut controller, _) = started(&home, &["top", "--connect", &daemon.connect()]);
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains("1 of 1 hosts live") {
        let len = controller.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..len]);
    }
    drop(controller);
    let until = Instant::now() + DEADLINE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= until {
            child.kill().unwrap();
            panic!("it goes on without a terminal");
        }
        std::thread::yield_now();
    };
    assert!(status.code().is_some(), "{status}");
}

#[test]
fn a_daemon_that_goes_away_is_seen_and_one_that_never_was_too() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let address = daemon.connect();
    let mut top = OnTerminal::start(&home, &["top", "--interval", "1", "--connect", &address]);
    top.shows("1 of 1 hosts live");
    drop(daemon);
    top.shows("CONNECTION for");
    let mut alone = OnTerminal::start(&home, &["top", "--connect", &address]);
    alone.shows("CONNECTION for");
    for mut one in [top, alone] {
        one.controller.write_all(b"q").unwrap();
        assert_eq!(one.ends().code(), Some(0));
    }
    home.run(&["top", "--once", "--connect", &address]).with_code(3);
}

#[test]
fn without_a_terminal_it_prints_as_the_options_say() {
    let (home, daemon) = (Home::new(), Daemon::start("127.0.0.1:0", &Events::default()));
    let address = daemon.connect();
    home.run(&["top", "--connect", &address]).with_code(2).notes(&["needs a terminal", "--once"]);
    // This daemon has a host and no processes: only its rows are missing, the rest is printed.
    home.run(&["top", "--once", "--connect", &address]).ok().notes(&["wn01 of d: no method"]);
    home.run(&["top", "--once", "--rounds", "2"]).with_code(2);
}
