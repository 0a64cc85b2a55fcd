//! A grid of three domains and three directories with the real program: set up by the commands of
//! `docs/domains.md`, queried everywhere, while directories and representatives die.
//!
//! Rule: only commands, and queries on each host's loopback, are used.
//! Not here: a single domain (`lab_domain`), the directories' rules and their seeds (`directory/tests`).

use super::lab_everywhere;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use system_tests::lab::domains::{AGREED, Directory, Domain, agreed, sensor, state};
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch, Trials};
use system_tests::program;
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// The domains, each with its number of sensors.
const DOMAINS: [(&str, usize); 3] = [("UT-ICL", 5), ("CERN", 8), ("KISTI", 7)];

const DIRECTORIES: usize = 3;

/// Daemons of one grid.
struct Grid {
    domains: Vec<Domain>,
    directories: Vec<Directory>,
    /// Sensors of each domain.
    sensors: Vec<Vec<Daemon>>,
    /// Each directory; `None` while it is dead.
    servers: Vec<Option<Daemon>>,
}

impl Grid {
    fn start(network: &Network) -> Grid {
        let (dirs, mut rest) = network.hosts().split_at(DIRECTORIES);
        let directories: Vec<Directory> = dirs.iter().map(|host| Directory::new(host).unwrap()).collect();
        let mut domains = Vec::new();
        for (name, sensors) in DOMAINS {
            let (own, others) = rest.split_at(sensors);
            domains.push(Domain::create(name, own).unwrap());
            rest = others;
        }
        let admitted: Vec<&Domain> = domains.iter().collect();
        let servers = directories.iter().map(|it| Some(it.start(&directories, &admitted).unwrap())).collect();
        let sensors =
            domains.iter().map(|it| it.start(&directories, lab_everywhere::tails).unwrap()).collect();
        Grid { domains, directories, sensors, servers }
    }

    fn daemons(&self) -> impl Iterator<Item = &Daemon> {
        self.sensors.iter().flatten().chain(self.servers.iter().flatten())
    }

    /// Wait until every daemon names the same representative for each domain, with all of its hosts; returns
    /// the representatives.
    #[allow(clippy::print_stdout)] // A test's output is read when it fails.
    fn agreed(&self) -> BTreeMap<String, String> {
        let look = || {
            let mut all = BTreeMap::new();
            for (domain, (_, hosts)) in self.domains.iter().zip(DOMAINS) {
                let named: BTreeSet<Option<String>> = self
                    .sensors
                    .iter()
                    .flatten()
                    .map(|daemon| representative(daemon, &domain.name, hosts))
                    .collect();
                match named.into_iter().collect::<Vec<_>>().as_slice() {
                    [Some(one)] => drop(all.insert(domain.name.clone(), one.clone())),
                    several => return Ok(Seen::NotYet(format!("{}: {several:?}", domain.name))),
                }
            }
            Ok(Seen::Done(all))
        };
        let found = Stopwatch::start().until(AGREED, "one view of the grid", look);
        let (took, all) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", self.output()));
        println!("{} daemons agree on {all:?} after {} ms", self.daemons().count(), took.as_millis());
        all
    }

    fn output(&self) -> String {
        let output = self.daemons().map(|daemon| format!("{}:\n{}", daemon.host().name(), daemon.output()));
        output.collect::<Vec<_>>().join("\n")
    }

    /// Kill the domain's representative; returns its host.
    fn kill_representative(&mut self, at: usize, name: &str) -> Host {
        let sensors = &mut self.sensors[at];
        let place = sensors.iter().position(|daemon| daemon.host().name() == name).unwrap();
        let dead = sensors.swap_remove(place);
        let host = dead.host().clone();
        dead.kill().unwrap();
        host
    }
}

/// The domain's representative according to `daemon`, if all its hosts are listed.
fn representative(daemon: &Daemon, domain: &str, hosts: usize) -> Option<String> {
    let Ok(Answer::Result(answer)) = daemon.ask("domain.hosts", &json!({ "domain": domain })) else {
        return None;
    };
    // The row of a host that has not reported yet has no sensor.
    let reports = |row: &&Value| row["state"] == "live" && row["sensor"].is_string();
    let rows: Vec<&Value> = answer["hosts"].as_array()?.iter().filter(reports).collect();
    let represents = rows.iter().find(|row| row["role"] == "representative")?;
    represents["host"].as_str().filter(|_| rows.len() == hosts).map(str::to_owned)
}

fn resolved(daemon: &Daemon, domain: &str) -> Value {
    daemon.result("directory.resolve", &json!({ "domain": domain })).unwrap_or(Value::Null)
}

#[test]
fn a_question_enters_anywhere_and_directories_may_die() {
    let name = "lab_grid::a_question_enters_anywhere_and_directories_may_die";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let sensors: usize = DOMAINS.iter().map(|(_, sensors)| sensors).sum();
    let network = lab.network(u16::try_from(DIRECTORIES + sensors).unwrap()).unwrap();
    let mut grid = Grid::start(&network);
    let first = grid.agreed();
    let daemons: Vec<&Daemon> = grid.daemons().collect();
    for ((domain, _), members) in DOMAINS.iter().zip(&grid.sensors) {
        lab_everywhere::same(&daemons, domain, members);
    }
    let jobs = same_jobs_everywhere(&grid);

    // A representative dies: every daemon, wherever it is queried, finds the next one.
    let mut trials = Trials::default();
    for (at, (domain, hosts)) in DOMAINS.into_iter().enumerate() {
        let former = first[domain].clone();
        let host = grid.kill_representative(at, &former);
        let asked = &grid.sensors[(at + 1) % DOMAINS.len()][0];
        let look = || match representative(asked, domain, hosts - 1) {
            Some(next) if next != former => Ok(Seen::Done(())),
            other => Ok(Seen::NotYet(format!("{other:?}"))),
        };
        let found = Stopwatch::start().until(AGREED, "the next representative, from another domain", look);
        trials.add(found.unwrap_or_else(|error| panic!("{error:#}\n{}", grid.output())).0);
        grid.sensors[at].push(sensor(&host, &lab_everywhere::tails(&host)).unwrap());
        agreed(&grid.sensors[at], None).unwrap();
    }
    println!("another domain is answered by the next representative after {trials}");
    let second = grid.agreed();

    // A host's own files, queried at sensors of other domains.
    let far = &grid.sensors[1][0];
    let own = far.result("sensor.filters", &json!({})).unwrap();
    let there = json!({ "domain": "CERN", "host": far.host().name() });
    for daemon in grid.daemons() {
        assert_eq!(daemon.result("sensor.filters", &there).unwrap(), own, "{}", daemon.host().name());
    }

    // Two directories die, then all of them: daemons that resolved the domains before still know them.
    for server in grid.servers.iter_mut().take(2) {
        server.take().unwrap().kill().unwrap();
    }
    assert_eq!(grid.agreed(), second);
    grid.servers.iter_mut().filter_map(Option::take).for_each(|server| server.kill().unwrap());
    assert_eq!(grid.agreed(), second);
    for daemon in grid.sensors.iter().flatten() {
        let look = || {
            let record = resolved(daemon, "CERN");
            Ok(if record["host"] == json!(second["CERN"]) {
                Seen::Done(())
            } else {
                Seen::NotYet(record.to_string())
            })
        };
        Stopwatch::start().until(AGREED, "what was known before", look).unwrap();
    }

    // They come back with their stored state, and the domains state themselves again.
    let admitted: Vec<&Domain> = grid.domains.iter().collect();
    let started = grid.directories.iter().map(|it| Some(it.start(&grid.directories, &admitted).unwrap()));
    grid.servers = started.collect();
    grid.agreed();
    let look = || {
        let states = grid.servers.iter().flatten().map(|server| resolved(server, "KISTI")["state"].clone());
        let states: Vec<Value> = states.collect();
        Ok(if states.iter().all(|it| it == "live") {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{states:?}"))
        })
    };
    Stopwatch::start().until(AGREED, "live records", look).unwrap();

    without_a_domain(&mut grid, jobs);
}

/// A whole domain is away: a search of all jobs names it, and has its ended jobs from a directory.
fn without_a_domain(grid: &mut Grid, jobs: BTreeMap<String, usize>) {
    let ended = ended_of(&grid.sensors[1][0]);
    assert!(ended > 0);
    indexed(grid, "CERN", ended);
    let newest = &grid.sensors[1][0].result("jobs.search", &json!({ "state": "ended", "limit": 1 })).unwrap();
    let id = newest["jobs"][0]["id"].as_str().unwrap().to_owned();
    grid.sensors[1].drain(..).for_each(|sensor| sensor.kill().unwrap());
    let (there, notes) = all_jobs(grid.sensors[0][1].host());
    let mut expected = jobs;
    expected.insert("CERN".to_owned(), ended);
    assert_eq!(there, expected, "{notes}");
    assert!(notes.contains("CERN: ") && notes.contains("as the directory knew them"), "{notes}");

    // Asked for that domain, or for one of its jobs, too.
    let asked = grid.sensors[0][1].host();
    for arguments in [["jobs", "--job", &id], ["job", "show", &id]] {
        let arguments: Vec<&str> = arguments.into_iter().chain(["--domain", "CERN"]).collect();
        let (page, notes) = printed(asked, &arguments);
        assert!(page.contains(&id) && notes.contains("as the directory knew them"), "{page}{notes}");
    }
}

/// The number of ended jobs of a sensor's domain.
fn ended_of(member: &Daemon) -> usize {
    let answer = member.result("jobs.search", &json!({ "state": "ended" })).unwrap();
    usize::try_from(answer["total"].as_u64().unwrap()).unwrap()
}

/// What a command prints to a user of a host, and its notes.
fn printed(host: &Host, arguments: &[&str]) -> (String, String) {
    let state = state(host);
    let command = || {
        let mut command = program::command(program::visperf()?);
        Ok(command.args(arguments).args(["--state", &state]).output()?)
    };
    let output = host.run(command).unwrap();
    let [page, notes] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(matches!(output.status.code(), Some(0 | 8)), "{notes}");
    (page, notes)
}

/// Waits until every directory has so many jobs of a domain in its index.
fn indexed(grid: &Grid, domain: &str, jobs: usize) {
    let look = || {
        let search = json!({ "domain": domain, "limit": 1 });
        let answers: Vec<Value> = grid
            .servers
            .iter()
            .flatten()
            .map(|server| server.result("directory.jobs", &search).unwrap()["domains"][0].clone())
            .collect();
        let is_all = answers.iter().all(|known| known["jobs"] == jobs && known["complete"].is_number());
        Ok(if is_all { Seen::Done(()) } else { Seen::NotYet(format!("{jobs} of {answers:?}")) })
    };
    Stopwatch::start().until(AGREED, "the same index at every directory", look).unwrap();
}

/// The number of jobs of each domain, which a search of all domains has too.
fn same_jobs_everywhere(grid: &Grid) -> BTreeMap<String, usize> {
    let jobs = jobs_of(grid);
    let (everywhere, notes) = all_jobs(grid.sensors[0][1].host());
    assert_eq!(everywhere, jobs, "{notes}");
    assert!(!notes.contains("missing"), "{notes}");
    jobs
}

/// The number of jobs of each domain, as one of its sensors answers.
fn jobs_of(grid: &Grid) -> BTreeMap<String, usize> {
    let count = |(domain, members): (&(&str, usize), &Vec<Daemon>)| {
        let total = members[0].result("jobs.search", &json!({})).unwrap()["total"].as_u64().unwrap();
        (domain.0.to_owned(), usize::try_from(total).unwrap())
    };
    DOMAINS.iter().zip(&grid.sensors).map(count).collect()
}

/// The number of jobs of each domain in a search of all domains on a host, and what it notes.
fn all_jobs(host: &Host) -> (BTreeMap<String, usize>, String) {
    let (rows, notes) = printed(host, &["jobs", "--all-domains", "--json", "--limit", "100000"]);
    let jobs: BTreeSet<(String, String)> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|job| (job["domain"].to_string(), job["id"].to_string()))
        .collect();
    assert_eq!(jobs.len(), rows.lines().count(), "each is listed once");
    let mut counts = BTreeMap::new();
    for (domain, _) in jobs {
        *counts.entry(domain.trim_matches('"').to_owned()).or_insert(0) += 1;
    }
    (counts, notes)
}
