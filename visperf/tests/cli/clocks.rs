//! Domains whose hosts have wrong clocks for a while: real daemons, each with a calendar that the test moves.
//!
//! The calendar is moved by a preloaded library (`moved_clock.c`), so the programs are those that users run.

use crate::program::{Home, Ran};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything takes: a daemon checks its certificate every ten seconds, and after a failure
/// every 30.
const LONG: Duration = Duration::from_secs(180);

/// More than half of a certificate's lifetime plus the spread between hosts: every daemon renews.
const AHEAD_SECS: i64 = 17 * 86_400;

/// Build the library that moves calendars, with the system's compiler.
fn library(home: &Home) -> PathBuf {
    let made = home.path().join("moved_clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/moved_clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&made).arg(source).arg("-ldl");
    let ended = compiler.status().expect("cc, which links every test, runs");
    assert!(ended.success(), "cc cannot build the library");
    made
}

/// A host of the domain: its folder, its calendar, its daemon.
struct Host<'a> {
    home: &'a Home,
    name: &'static str,
    calendar: File,
    library: PathBuf,
    daemon: Option<Child>,
}

impl<'a> Host<'a> {
    fn new(home: &'a Home, library: &Path, name: &'static str) -> Host<'a> {
        // An address of this process alone: of 127.0.0.1 another test may take the port before the daemon has it.
        let process = std::process::id();
        let own = format!("127.{}.{}.1:0", 1 + process % 250, process / 250 % 250);
        let free = std::net::TcpListener::bind(own).unwrap().local_addr().unwrap();
        home.file(&format!("{name}.toml"), format!("[sensor]\n[overlay]\nlisten = \"{free}\"\n"));
        let path = home.file(&format!("{name}.calendar"), 0_i64.to_ne_bytes());
        let calendar = File::options().write(true).open(path).unwrap();
        Host { home, name, calendar, library: library.to_owned(), daemon: None }
    }

    fn move_by(&self, secs: i64) {
        self.calendar.write_all_at(&secs.to_ne_bytes(), 0).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        let calendar = self.home.path().join(format!("{}.calendar", self.name));
        command.env("LD_PRELOAD", &self.library).env("MOVED_CLOCK", calendar);
        command
    }

    /// Run a command with this host's calendar and folder.
    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(&[arguments, &["--state", self.name]].concat()).output().unwrap())
    }

    fn start(&mut self) {
        let config = format!("{}.toml", self.name);
        let log = File::create(self.home.path().join(format!("{}.log", self.name))).unwrap();
        let arguments = ["sensor", "--config", &config, "--state", self.name, "--listen", "127.0.0.1:0"];
        let mut command = self.command(&arguments);
        self.daemon = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let listen = self.home.path().join(self.name).join("listen");
        until(|| if listen.exists() { Ok(()) } else { Err(self.log()) });
    }

    fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
        let listen = self.home.path().join(self.name).join("listen");
        if listen.exists() {
            std::fs::remove_file(listen).unwrap();
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join(format!("{}.log", self.name))).unwrap()
    }

    /// Serial number of its certificate, and when it was issued.
    fn certificate(&self) -> (u64, f64) {
        let key = self.run(&["key", "--json"]).ok().json().remove(0);
        (key["serial"].as_u64().unwrap(), key["issued"].as_f64().unwrap())
    }

    /// The domain's hosts according to its daemon: the live ones, and all output with problems.
    fn hosts(&self) -> (Vec<String>, String) {
        let ran = self.run(&["hosts", "--json"]);
        let live = |host: &&Value| host["state"] == "live";
        let hosts = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let hosts: Vec<Value> = hosts.collect();
        let names = hosts.iter().filter(live).map(|host| host["host"].as_str().unwrap().to_owned());
        (names.collect(), format!("{}{}", ran.out, ran.notes))
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Wait for success; the panic shows the last error.
#[track_caller]
fn until<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + LONG;
    loop {
        match look() {
            Ok(found) => return found,
            Err(found) => {
                assert!(Instant::now() < end, "expected something else within {LONG:?}, found {found}")
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Create a domain of three hosts that know each other; the first is its issuer.
fn domain(home: &Home) -> [Host<'_>; 3] {
    let library = library(home);
    let mut hosts = ["head", "wn01", "wn02"].map(|name| Host::new(home, &library, name));
    hosts[0].run(&["domain", "create", "UT-ICL", "--host", "head"]).ok();
    hosts[0].start();
    let token = hosts[0].run(&["token", "create", "--uses", "2"]).ok().out;
    let token = token.trim().strip_prefix("visperf join ").unwrap();
    for host in &mut hosts[1..] {
        host.run(&["join", token, "--host", host.name]).ok();
        host.start();
    }
    whole(&hosts);
    hosts
}

/// Wait until each of `hosts` lists exactly these as live.
#[track_caller]
fn alive(hosts: &[Host<'_>], names: &[&str]) {
    for host in hosts {
        until(|| {
            let (live, text) = host.hosts();
            if live == names { Ok(()) } else { Err(format!("on {}: {text}\n{}", host.name, host.log())) }
        });
    }
}

/// Wait until all hosts are live, and none reports a problem with a clock.
#[track_caller]
fn whole(hosts: &[Host<'_>]) {
    alive(hosts, &["head", "wn01", "wn02"]);
    for host in hosts {
        until(|| {
            let text = host.hosts().1;
            if text.contains("clock") {
                Err(format!("on {}: {text}\n{}", host.name, host.log()))
            } else {
                Ok(())
            }
        });
    }
}

#[test]
fn while_clocks_are_wrong_nothing_is_signed_and_the_domain_is_whole_when_they_are_right() {
    let home = Home::new();
    let hosts = domain(&home);
    let before = hosts.each_ref().map(Host::certificate);
    let not_renewed = |host: &Host<'_>| {
        until(|| {
            let log = host.log();
            let is_refused = log.contains("is not renewed yet") && log.contains("the issuer does not sign");
            if is_refused { Ok(()) } else { Err(log) }
        });
    };
    // The issuer alone is wrong: it reports that itself, with both times.
    hosts[0].move_by(AHEAD_SECS);
    not_renewed(&hosts[0]);
    let text = until(|| match hosts[0].hosts().1 {
        text if text.contains("the clock of this host is wrong: it says") => Ok(text),
        text => Err(text),
    });
    assert!(text.contains("2 of 2 members say") && !text.contains("join again"), "{text}");
    let info = hosts[0].run(&["info"]).out;
    assert!(info.contains("the clock of this host is wrong") && info.contains("confirm-clock"), "{info}");
    hosts[0].move_by(0);
    whole(&hosts);
    // All hosts are wrong: only their uptime shows it.
    hosts.iter().for_each(|host| host.move_by(AHEAD_SECS));
    hosts.iter().for_each(not_renewed);
    hosts.iter().for_each(|host| host.move_by(0));
    whole(&hosts);
    assert_eq!(hosts.each_ref().map(Host::certificate), before);
}

#[test]
fn a_certificate_from_the_future_is_not_shown_before_it_holds_and_is_replaced() {
    let home = Home::new();
    let mut hosts = domain(&home);
    let before = hosts.each_ref().map(Host::certificate);
    let renewed = |host: &Host<'_>, after: u64| {
        until(|| match host.certificate() {
            found if found.0 > after => Ok(found),
            found => Err(format!("{found:?}\n{}", host.log())),
        })
    };
    hosts[..2].iter().for_each(|host| host.move_by(AHEAD_SECS));
    hosts[0].run(&["domain", "confirm-clock"]).ok().prints(&["signs by this clock for a day"]);
    let wrong = [0, 1].map(|at| renewed(&hosts[at], before[at].0));
    assert!(wrong[1].1 > before[1].1 + 16.0 * 86_400.0, "{wrong:?}");
    // Without the issuer the previous certificate is all that wn01 can present, after a restart too.
    hosts[0].stop();
    hosts[1].stop();
    hosts[..2].iter().for_each(|host| host.move_by(0));
    hosts[1].start();
    alive(&hosts[1..], &["wn01", "wn02"]);
    assert_eq!(hosts[1].certificate(), wrong[1]);
    hosts[0].start();
    for at in [0, 1] {
        let mended = renewed(&hosts[at], wrong[at].0);
        assert!(mended.1 < before[at].1 + 86_400.0, "{mended:?}");
    }
    whole(&hosts);
}
