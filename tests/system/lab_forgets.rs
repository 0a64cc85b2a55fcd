//! A NAT that drops idle connections after five seconds, a proxy that dies and one that hangs: a reader that
//! continues sees each event once.
//!
//! `VISPERF_CARRIED_SECS` sets how long traffic is carried before that, 10 by default.
//! Rules: the NAT is nft's, and discards packets of dropped connections; the proxy's host is cut off, not
//! stopped; every line written inside meanwhile is requested outside by the cursor only.
//! Not here: other NATs (`lab_reach`), events between daemons (`lab_reports`).

use super::lab_ladder::{Running, Site, report};
use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::domains::sensor;
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::ledger::Ledger;
use system_tests::logs::{Growth, Writer};
use system_tests::wait::{self, Seen};

/// Idle timeout of the NAT, in seconds.
const FORGETS_SECS: u32 = 5;
/// Longest time until a connection to a dead proxy is closed.
const DEAD_MAX: Duration = Duration::from_secs(15);
/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(5);
/// A reader that reads continuously never lags by more lines than this: ten seconds of the log.
const BEHIND_MAX: usize = 500;
/// Timeout for anything else.
const PATIENCE: Duration = Duration::from_secs(90);

fn carried() -> Duration {
    let secs =
        std::env::var("VISPERF_CARRIED_SECS").map_or(10, |secs| secs.parse().expect("a number of seconds"));
    Duration::from_secs(secs)
}

/// Reads events of the inside host from outside, by its cursor.
#[derive(Default)]
struct Reader {
    cursor: String,
    ledger: Ledger,
    /// Error of the last page, if it failed.
    refused: Option<String>,
}

impl Reader {
    /// Read one page, if there is an answer.
    fn read(&mut self, site: &Site) {
        let host = site.inside.name();
        let params = json!({ "domain": "UT-ICL", "host": host, "cursor": self.cursor, "limit": 1000 });
        let text = match site.ask("", &["call", "sensor.events", &params.to_string()]) {
            Ok(text) => text,
            Err(error) => {
                self.refused = Some(format!("{error:#}"));
                return;
            }
        };
        self.refused = None;
        let page: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(page["missed"], 0);
        self.cursor = page["cursor"].as_str().unwrap().to_owned();
        for event in page["events"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.ledger.enter(&text(&event["id"]), &text(&event["job"]));
        }
    }

    /// State of the log and of the reader, for the message when one of them is stuck.
    fn stands(&self, site: &Site) -> String {
        let of = json!({ "domain": "UT-ICL", "host": site.inside.name() }).to_string();
        let files = site.ask("", &["call", "sensor.files", &of]);
        format!("at {}, {:?}, files: {files:?}", self.cursor, self.ledger.verdict(self.ledger.count()))
    }

    fn until(&mut self, site: &Site, lines: usize, daemons: &[&Daemon]) -> Duration {
        let mut watch = Stopwatch::start();
        let found = watch.until(PATIENCE, "events outside", || {
            self.read(site);
            let count = self.ledger.count();
            Ok(if count >= lines {
                Seen::Done(())
            } else {
                Seen::NotYet(format!("{count} of {lines}, {:?}", self.refused))
            })
        });
        let output = || daemons.iter().map(|daemon| daemon.output()).collect::<Vec<_>>().join("\n---\n");
        found.unwrap_or_else(|error| panic!("{error:#}\n{}", output())).0
    }
}

fn figure(daemon: &Daemon, name: &str) -> u64 {
    daemon.figure("overlay", name).unwrap()
}

/// Wait until this daemon has this many registrations; returns the time taken.
fn registers(daemon: &Daemon, expected: u64) -> Duration {
    let look = || {
        let count = figure(daemon, "registrations");
        Ok(if count == expected { Seen::Done(()) } else { Seen::NotYet(format!("{count} registrations")) })
    };
    Stopwatch::start().until(PATIENCE, "the proxy dropped, or found again", look).unwrap().0
}

/// Set up five hosts, one of them behind a NAT that drops idle connections.
fn behind(hosts: &[Host]) -> (Site, Running, Host) {
    let (five, translator) = hosts.split_at(5);
    let (site, inner) = (Site::prepare(five), translator[0].clone());
    let running = site.start_outside();
    let private = Wall::private(&inner, &site.inside).unwrap();
    Wall::translate(private, &inner, &site.inside).unwrap();
    Wall::forget_idle(&inner, FORGETS_SECS).unwrap();
    (site, running, inner)
}

#[test]
fn what_is_written_while_the_proxy_is_dead_is_read_on_without_loss() {
    let name = "lab_forgets::what_is_written_while_the_proxy_is_dead_is_read_on_without_loss";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let (site, running, _) = behind(network.hosts());
    let log = site.inside.folder().join("logs/slurmctld.log");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let growth =
        Growth { lines_per_sec: 50, rotate_every: carried() * 100, ahead_max: usize::MAX / 2, kept: 2 };
    let writer = Writer::start(&log, growth).unwrap();
    let section = format!(
        "[overlay]\nvia = [{:?}]\ndirectories = [{:?}]\n",
        site.proxy.contact, site.directory.contact
    );
    std::fs::write(site.inside.folder().join("sensor.toml"), section).unwrap();
    let daemon =
        sensor(&site.inside, &["--tail".to_owned(), format!("{}=slurmctld", log.display())]).unwrap();
    let mut reader = Reader::default();
    let first = reader.until(&site, 100, &[&daemon, &running.proxy]);
    // Longer than the NAT's idle timeout: only the keepalive of the connection itself preserves it.
    let ended = figure(&daemon, "disconnected_total");
    let watch = Stopwatch::start();
    while watch.elapsed() < carried() {
        reader.read(&site);
        assert_eq!(reader.refused, None, "after {:?}: {}", watch.elapsed(), running.proxy.output());
        let behind = writer.written() - reader.ledger.count();
        assert!(
            behind < BEHIND_MAX,
            "after {:?}: {behind} behind, {}",
            watch.elapsed(),
            reader.stands(&site)
        );
    }
    assert_eq!(figure(&daemon, "disconnected_total"), ended, "{}", daemon.output());
    // The proxy's host loses power: nothing closes its connections.
    network.link_down(site.proxy.host.name()).unwrap();
    let noticed = registers(&daemon, 0);
    assert!(noticed <= DEAD_MAX + SLACK, "{noticed:?}");
    running.proxy.kill().unwrap();
    network.link_up(site.proxy.host.name()).unwrap();
    let proxy = site.proxy.start(std::slice::from_ref(&site.near), "").unwrap();
    let back = reader.until(&site, writer.written(), &[&daemon, &proxy]);
    // It hangs: its host still acknowledges what is sent, and nothing answers.
    registers(&daemon, 1);
    proxy.pause().unwrap();
    let hung = registers(&daemon, 0);
    assert!(hung <= DEAD_MAX + SLACK, "{hung:?}");
    proxy.resume().unwrap();
    let again = reader.until(&site, writer.written(), &[&daemon, &proxy]);
    let written = writer.stop().unwrap();
    reader.until(&site, written, &[&daemon, &proxy]);
    report(&format!(
        "behind what forgets after {FORGETS_SECS} s: first events after {} ms; a dead proxy dropped after {} ms, back \
         {} ms after its new start; one that hangs dropped after {} ms, back {} ms after it goes on; {written} lines",
        first.as_millis(),
        noticed.as_millis(),
        back.as_millis(),
        hung.as_millis(),
        again.as_millis()
    ));
    let verdict = reader.ledger.verdict(written);
    assert!(verdict.is_clean(), "{verdict}");
    // The control: a reader without its cursor sees events twice, and the ledger detects it.
    reader.cursor = String::new();
    wait::until(PATIENCE, "one more page", || {
        reader.read(&site);
        Ok(reader.refused.clone().map_or(Seen::Done(()), Seen::NotYet))
    })
    .unwrap();
    assert!(!reader.ledger.verdict(written).is_clean());
}
