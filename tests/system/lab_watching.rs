//! Watching a domain continues: when its representative dies, and when the proxy through which it is queried
//! is restarted.
//!
//! Rules: the commands as a user types them, at the proxy's HTTPS listener, over the overlay, and at a
//! directory; every event of the representative arrives once. The commands end when their account is removed.
//! Not here: following at the HTTPS listener by any program (`lab_follow`), single queries (`lab_visits`).

use super::lab_ladder::{WEB, report};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY, agreed, visperf};
use system_tests::lab::proxies::Proxy;
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::wait::Seen;

/// Timeout for anything that is expected.
const PATIENCE: Duration = Duration::from_secs(120);
/// Exit code of a command for a fault.
const FAULT: i32 = 4;

fn log(host: &Host) -> PathBuf {
    host.folder().join("slurmctld.log")
}

/// Write submissions of these jobs to the log of `host`.
fn submit(host: &Host, jobs: RangeInclusive<u32>) {
    let mut file = OpenOptions::new().append(true).create(true).open(log(host)).unwrap();
    for job in jobs {
        let line = format!("_slurm_rpc_submit_batch_job: JobId={job} InitPrio=1 usec=100");
        writeln!(file, "[2026-11-21T10:00:00.000] {line}").unwrap();
    }
}

/// A running command that watches.
struct Watcher {
    name: &'static str,
    child: Child,
    folder: PathBuf,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watcher {
    fn start(name: &'static str, host: &Host, words: &[&str], login: &[String]) -> Watcher {
        let folder = host.folder().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| Stdio::from(std::fs::File::create(folder.join(name)).unwrap());
        let (output, errors) = (file("output"), file("errors"));
        let child = host.run(|| {
            let mut command = program::command(program::visperf()?);
            command.env("VISPERF_KNOWN_DOMAINS", host.folder().join("known_domains"));
            Ok(command.args(words).args(login).stdout(output).stderr(errors).spawn()?)
        });
        Watcher { name, child: child.unwrap(), folder }
    }

    /// The jobs of the events that it printed, in order.
    fn jobs(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder.join("output")).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let job = |line: &str| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let event = entry.get("event").unwrap_or(&entry);
            event["job"].as_str().and_then(|job| job.parse().ok())
        };
        whole.lines().filter_map(job).collect()
    }

    /// Wait until it printed this text this many times.
    fn says(&self, words: &str, times: usize) {
        let look = || {
            let errors = self.errors();
            Ok(if errors.matches(words).count() >= times { Seen::Done(()) } else { Seen::NotYet(errors) })
        };
        Stopwatch::start().until(PATIENCE, words, look).unwrap();
    }

    /// Wait until it ends by itself.
    fn ends(&mut self) -> ExitStatus {
        let look =
            || Ok(self.child.try_wait()?.map_or_else(|| Seen::NotYet("it goes on".to_owned()), Seen::Done));
        Stopwatch::start().until(PATIENCE, "it to end", look).unwrap().1
    }

    fn errors(&self) -> String {
        format!("{}:\n{}", self.name, std::fs::read_to_string(self.folder.join("errors")).unwrap())
    }
}

/// Wait until each has printed the events of jobs 1 to `last`, each once and in order.
fn all_printed(watchers: &[Watcher], last: u32, output: impl Fn() -> String) -> Duration {
    let expected: Vec<u32> = (1..=last).collect();
    let look = || {
        let is_late = |watcher: &&Watcher| watcher.jobs().len() < expected.len();
        Ok(match watchers.iter().find(is_late) {
            None => Seen::Done(()),
            Some(late) => Seen::NotYet(format!("{}: {:?}", late.name, late.jobs())),
        })
    };
    let found = Stopwatch::start().until(PATIENCE, &format!("the events up to {last}"), look);
    let all_errors = || watchers.iter().map(Watcher::errors).collect::<Vec<_>>().join("\n");
    let (time, ()) = found.unwrap_or_else(|error| panic!("{error:#}\n{}\n{}", all_errors(), output()));
    for watcher in watchers {
        assert_eq!(watcher.jobs(), expected, "{}", watcher.errors());
    }
    time
}

/// Wait until `daemon` has this many subscriptions.
fn subscribed(daemon: &Daemon, many: usize, watchers: &[Watcher]) -> Duration {
    let look = || {
        let answer = daemon.result("sensor.subscriptions", &json!({}))?;
        let found = answer["subscriptions"].as_array().map_or(0, Vec::len);
        Ok(if found >= many { Seen::Done(()) } else { Seen::NotYet(format!("{found} are")) })
    };
    let found = Stopwatch::start().until(PATIENCE, "all to be subscribed", look);
    let all_errors = || watchers.iter().map(Watcher::errors).collect::<Vec<_>>().join("\n");
    found.unwrap_or_else(|error| panic!("{error:#}\n{}\n{}", all_errors(), daemon.output())).0
}

/// Create the account `ana` at `proxy`, with its secret in a file of `viewer`; returns the options for both
/// routes.
fn login(proxy: &Proxy, viewer: &Host) -> [Vec<String>; 2] {
    let file = viewer.folder().join("secret");
    std::fs::write(&file, proxy.account("ana", &["--domain", "UT-ICL"]).unwrap()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let certificate = proxy.certificate().display().to_string();
    let vias = [format!("{}/d/UT-ICL", proxy.url()), format!("{}/d/UT-ICL", proxy.contact)];
    let file = file.display().to_string();
    let words = |via: &str| ["--via", via, "--account", "ana", "--secret", &file].map(str::to_owned).to_vec();
    let [mut door, overlay] = vias.map(|via| words(&via));
    door.extend(["--certificate".to_owned(), certificate]);
    [door, overlay]
}

/// Wait until the domain is answered for at the proxy.
fn reach(viewer: &Host, login: &[String]) {
    let words: Vec<&str> = std::iter::once("hosts").chain(login.iter().map(String::as_str)).collect();
    let look = || {
        let asked = visperf(viewer, &words);
        Ok(asked.map_or_else(|error| Seen::NotYet(format!("{error:#}")), Seen::Done))
    };
    Stopwatch::start().until(PATIENCE, "the domain behind the door", look).unwrap();
}

/// Start commands that watch the domain represented by `sensor`, at the directory's host and through the
/// proxy.
fn start(sensor: &Daemon, [outside, viewer]: [&Host; 2], [door, overlay]: [&[String]; 2]) -> Vec<Watcher> {
    let watch = ["watch", "--kind", "event", "--event", "job_submit", "--json", "--rate", "10"];
    let follow = ["events", "--follow", "--cursor", "", "--json"];
    let of_domain = ["--domain".to_owned(), "UT-ICL".to_owned()];
    let mut watchers = vec![
        Watcher::start("watch at the door", viewer, &watch, door),
        Watcher::start("watch over the overlay", viewer, &watch, overlay),
        Watcher::start("watch at a directory", outside, &watch, &of_domain),
    ];
    subscribed(sensor, watchers.len(), &watchers);
    watchers.push(Watcher::start("events at the door", viewer, &follow, door));
    watchers.push(Watcher::start("events over the overlay", viewer, &follow, overlay));
    watchers
}

/// Wait until `sensor` has journalled the event of this job.
fn journalled(sensor: &Daemon, job: &str) {
    let look = || {
        let answer = sensor.result("sensor.events", &json!({ "last": true, "limit": 1 }))?;
        let is_last = answer["events"][0]["job"] == job;
        Ok(if is_last { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    };
    Stopwatch::start().until(PATIENCE, "the sensor to have read them", look).unwrap();
}

fn remove_account(proxy: &Proxy) {
    let own = proxy.host.folder().join("proxy").display().to_string();
    visperf(&proxy.host, &["account", "remove", "ana", "--state", &own]).unwrap();
}

#[test]
fn watchers_go_on_though_the_proxy_restarts_and_the_representative_dies() {
    let name = "lab_watching::watchers_go_on_though_the_proxy_restarts_and_the_representative_dies";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let [outside, gate, viewer, members @ ..] = network.hosts() else { panic!("hosts") };
    let domain = Domain::create("UT-ICL", members).unwrap();
    let proxy = Proxy::join(gate, OVERLAY, &domain, &members[0]).unwrap().with_door(WEB);
    let [by_door, by_overlay] = login(&proxy, viewer);
    let directory = Directory::new(outside).unwrap();
    let directories = std::slice::from_ref(&directory);
    let _directory = directory.start(&[], &[&domain]).unwrap();
    let gateway = proxy.start(directories, "").unwrap();
    let options = |host: &Host| {
        std::fs::write(log(host), "").unwrap();
        let tail = format!("{}=slurmctld", log(host).display());
        ["--via".to_owned(), proxy.contact.clone(), "--tail".to_owned(), tail].to_vec()
    };
    // The firewall makes the proxy carry the clients that come over the overlay.
    for member in members {
        let but = members.iter().map(Host::ipv4).collect();
        Wall::NoInbound { but }.put_up(member).unwrap();
    }
    let mut daemons = domain.start(directories, options).unwrap();
    let (first, _) = agreed(&daemons, None).unwrap();
    reach(viewer, &by_door);
    let at = daemons.iter().position(|daemon| daemon.host().name() == first).unwrap();
    let mut watchers = start(&daemons[at], [outside, viewer], [&by_door, &by_overlay]);
    let tunnel = Watcher::start("tunnel", viewer, &["tunnel"], &by_overlay);
    submit(daemons[at].host(), 1..=10);
    all_printed(&watchers, 10, || gateway.output());

    // An answer to a query that waits at the representative while the proxy dies reaches no client.
    tunnel.says("UT-ICL answers this machine", 1);
    gateway.kill().unwrap();
    submit(daemons[at].host(), 11..=25);
    journalled(&daemons[at], "25");
    tunnel.says("UT-ICL cannot be asked now", 1);
    let gateway = proxy.start(directories, "").unwrap();
    let time = all_printed(&watchers, 25, || gateway.output());
    tunnel.says("UT-ICL answers again", 1);
    report(&format!("{name}: all events {} ms after the proxy was there again", time.as_millis()));

    daemons.remove(at).kill().unwrap();
    let (second, _) = agreed(&daemons, Some(&first)).unwrap();
    let at = daemons.iter().position(|daemon| daemon.host().name() == second).unwrap();
    let time = subscribed(&daemons[at], 3, &watchers);
    report(&format!("{name}: all watch {} ms after another represented the domain", time.as_millis()));
    submit(daemons[at].host(), 26..=30);
    all_printed(&watchers, 30, || gateway.output());
    for watcher in &watchers[..3] {
        let errors = watcher.errors();
        assert!(errors.contains("another sensor answers"), "{errors}");
        // The proxy was away, and the representative; each was reported once.
        let waited = errors.matches("waiting until it answers").count();
        assert!(waited <= 2, "{errors}");
    }

    remove_account(&proxy);
    for which in [0, 1, 3, 4] {
        assert_eq!(watchers[which].ends().code(), Some(FAULT), "{}", watchers[which].errors());
    }
    tunnel.says("UT-ICL is not answered for any more", 1);
    assert!(watchers[2].child.try_wait().unwrap().is_none(), "{}", watchers[2].errors());
}
