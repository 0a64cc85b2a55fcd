//! Output on a terminal: tables that fit it, colours unless they are turned off.

use crate::program::{DEADLINE, Home};
use crate::server::{Daemon, Events, LONG_CALL, event};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::fs::File;
use std::io::Read as _;
use std::sync::mpsc::sync_channel;
use wire::api::Named;
use wire::api::events::{Attribute, Event};
use wire::event::Outcome;

/// Output of a run on a terminal with this many columns.
fn on_terminal(columns: u16, arguments: &[&str], variable: Option<(&str, &str)>) -> String {
    let events = Events::default();
    events.lock().unwrap().extend((0..3).map(event).chain([long_event()]));
    let daemon = Daemon::start("127.0.0.1:0", &events);
    let controller = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&controller).unwrap();
    rustix::pty::unlockpt(&controller).unwrap();
    let name = rustix::pty::ptsname(&controller, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let home = Home::new();
    let address = daemon.connect();
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--connect", &address]).collect();
    let mut command = home.command(&arguments);
    command.env("TERM", "xterm").envs(variable).stdout(File::from(terminal));
    let mut child = command.spawn().unwrap();
    drop(command);
    let (give, take) = sync_channel(1);
    std::thread::spawn(move || {
        let mut printed = Vec::new();
        // Reading fails once no process has the terminal open.
        let _ended = File::from(controller).read_to_end(&mut printed);
        give.send(String::from_utf8(printed).unwrap())
    });
    let printed = take.recv_timeout(DEADLINE).expect("it ends");
    assert_eq!(child.wait().unwrap().code(), Some(0), "{printed}");
    printed.replace("\r\n", "\n")
}

fn longest(printed: &str) -> usize {
    printed.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn tables_fit_the_terminal_unless_the_option_asks_for_wide_ones() {
    let plain = Some(("NO_COLOR", "1"));
    let narrow = on_terminal(80, &["calls"], plain);
    assert!(longest(&narrow) <= 80 && narrow.contains('…') && !narrow.contains(LONG_CALL), "{narrow}");
    let roomy = on_terminal(200, &["calls"], plain);
    assert!(roomy.contains(LONG_CALL) && !roomy.contains('…'), "{roomy}");
    for arguments in [&["calls", "--wide"][..], &["calls", "--json"]] {
        let whole = on_terminal(80, arguments, plain);
        assert!(whole.contains(LONG_CALL) && !whole.contains('…'), "{whole}");
    }
    for command in ["metrics", "hosts", "info"] {
        let printed = on_terminal(80, &[command], plain);
        assert!(longest(&printed) <= 80, "{printed}");
    }
}

/// An event with more attributes than fit on a line.
fn long_event() -> Event {
    let texts = ["queue", "name", "code", "memory", "account", "partition", "reason"];
    let attributes = texts.map(|text| (text.into(), Attribute::Text(format!("{text} of it").into())));
    Event {
        to: (1..5).map(|n| format!("wn{n:02}.site.example")).collect::<Vec<_>>().join(",").into(),
        outcome: Some(Outcome::Failed),
        attributes: Named(attributes.into()),
        ..event(123_456)
    }
}

#[test]
fn events_and_files_are_whole_on_a_terminal_of_80_columns() {
    let plain = Some(("NO_COLOR", "1"));
    let events = on_terminal(80, &["events"], plain);
    assert!(longest(&events) <= 80, "{events}");
    for text in
        ["123456", "wn04.site.example", "failed", "reason=\"reason of it\"", "partition=\"partition of it\""]
    {
        assert!(events.contains(text), "{text}: {events}");
    }
    let files = on_terminal(80, &["files"], plain);
    let row = files.lines().find(|line| line.contains("slurmctld ")).unwrap();
    assert!(row.chars().count() <= 80 && row.contains("/slurmctld.log"), "{files}");
    for text in ["following", "awaited", "as soon as it comes", "1234"] {
        assert!(files.contains(text), "{text}: {files}");
    }
}

#[test]
fn colours_come_to_terminals_that_want_them() {
    assert!(on_terminal(80, &["calls"], None).contains("\x1b[1mCALL"));
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!on_terminal(80, &["calls"], Some(variable)).contains('\x1b'), "{variable:?}");
    }
}
