//! Generates logs of the NetSolve agent by the specification next to the collection's excerpt, with the
//! expected calls.
//!
//! The same seed gives the same log. An end is related to its call only by problem and server, so of several
//! such calls the oldest is taken. Not here: the output of the filter.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection::SEEN;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use wire::event::Kind;
use wire::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    OneLine,
    Wrapped,
}

#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) start_secs: u64,
    pub(crate) zone_hours: i64,
    pub(crate) servers: usize,
    pub(crate) clients: usize,
    pub(crate) problems: usize,
    pub(crate) calls: usize,
    pub(crate) calls_a_second: u64,
    pub(crate) farming_percent: u64,
    pub(crate) failing_percent: u64,
    pub(crate) empty_percent: u64,
    pub(crate) noise_percent: u64,
    pub(crate) period_secs: u64,
    pub(crate) form: Form,
    pub(crate) has_dead_server: bool,
    pub(crate) restarts: bool,
    pub(crate) ends_without_lf: bool,
}

impl Default for Draw {
    fn default() -> Draw {
        Draw {
            seed: 1,
            start_secs: 1_017_336_647,
            zone_hours: -5,
            servers: 6,
            clients: 5,
            problems: 4,
            calls: 300,
            calls_a_second: 3,
            farming_percent: 20,
            failing_percent: 15,
            empty_percent: 5,
            noise_percent: 30,
            period_secs: 7,
            form: Form::OneLine,
            has_dead_server: true,
            restarts: false,
            ends_without_lf: false,
        }
    }
}

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Expected call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) client: String,
    pub(crate) submitted: Option<Time>,
    pub(crate) is_offered: bool,
    pub(crate) offers: Vec<String>,
    pub(crate) ended: Option<Time>,
    pub(crate) code: Option<i64>,
}

/// Expected event: kind, line, time and other data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogEvent {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
    pub(crate) time: Time,
    pub(crate) says: BTreeMap<String, String>,
}

enum Step {
    Submit(usize),
    List(usize),
    Done { server: usize, problem: usize, code: i64 },
    Report,
    Noise(u64),
}

/// One generation of the log file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) text: String,
    pub(crate) lines: usize,
    pub(crate) events: Vec<LogEvent>,
    pub(crate) last_stamp: Option<Time>,
}

impl File {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
        self.lines += 1;
    }

    fn add_event(&mut self, kind: Kind, line: usize, says: &[(&str, &str)]) {
        let says = says.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let time = self.last_stamp.unwrap_or(SEEN);
        self.events.push(LogEvent { kind, line, time, says });
    }
}

pub(crate) struct Generator {
    draw: Draw,
    dice: Dice,
    steps: BTreeMap<(u64, u64), Step>,
    sequence: u64,
    calls: Vec<(Expected, usize)>,
    loads: Vec<u64>,
    /// Calls that wait for an end, by problem and server.
    waiting: BTreeMap<(usize, usize), VecDeque<usize>>,
}

impl Generator {
    pub(crate) fn new(draw: Draw) -> Generator {
        let dice = Dice(draw.seed);
        let loads = vec![0; draw.servers];
        Generator {
            draw,
            dice,
            steps: BTreeMap::new(),
            sequence: 0,
            calls: Vec::new(),
            loads,
            waiting: BTreeMap::new(),
        }
    }

    fn at(&mut self, millis: u64, step: Step) {
        self.sequence += 1;
        self.steps.insert((millis, self.sequence), step);
    }

    /// Plan the calls and reports of the whole run; later steps of a call are added when it happens.
    fn plan(&mut self) {
        let mut now = 0;
        let mut planned = 0;
        while planned < self.draw.calls {
            now += self.dice.below(2_000 / self.draw.calls_a_second + 1);
            let problem = usize::try_from(self.dice.below(self.draw.problems as u64)).unwrap();
            let client = self.dice.below(self.draw.clients as u64);
            let farm = if self.dice.chance(self.draw.farming_percent) { 2 + self.dice.below(6) } else { 1 };
            for _ in 0..farm {
                let call = Expected {
                    name: format!("prob_{problem}+x"),
                    user: format!("user.{client}"),
                    client: format!("c{client}.cs.example"),
                    ..Expected::default()
                };
                self.calls.push((call, problem));
                self.at(now, Step::Submit(self.calls.len() - 1));
                planned += 1;
            }
            if self.dice.chance(self.draw.noise_percent) {
                let which = self.dice.next();
                self.at(now, Step::Noise(which));
            }
        }
        for report in 0..now / 1_000 / self.draw.period_secs {
            self.at(report * self.draw.period_secs * 1_000 + 500, Step::Report);
        }
    }

    /// Generate the log: one text, or two if the agent starts it again.
    pub(crate) fn run(mut self) -> (Vec<File>, Vec<Expected>) {
        self.plan();
        let restarts_at = self.steps.keys().nth(self.steps.len() / 2).map_or(0, |&(millis, _)| millis);
        let mut files = vec![File::default()];
        let (mut shift, mut list_at) = (0, BTreeMap::new());
        while let Some(((millis, _), step)) = self.steps.pop_first() {
            if self.draw.restarts && files.len() == 1 && millis > restarts_at {
                files.push(File::default());
                shift = 60_000;
                // After its restart the agent answers no earlier request; servers still report ends.
                self.steps.retain(|_, step| !matches!(step, Step::List(_)));
                if matches!(step, Step::List(_)) {
                    continue;
                }
            }
            let file = files.last_mut().unwrap();
            match step {
                Step::Submit(call) => {
                    self.submit(file, call, millis + shift);
                    // Lists of one problem appear in the order of its submissions.
                    let next: &mut u64 = list_at.entry(self.calls[call].1).or_default();
                    *next = (*next).max(millis + self.dice.below(300));
                    let at = *next;
                    self.at(at, Step::List(call));
                }
                Step::List(call) => self.list(file, call, millis),
                Step::Done { server, problem, code } => self.done(file, server, problem, code),
                Step::Report => self.report(file),
                Step::Noise(which) => noise(file, which),
            }
        }
        if self.draw.ends_without_lf {
            let file = files.last_mut().unwrap();
            file.text.truncate(file.text.trim_end().len());
        }
        (files, self.calls.into_iter().map(|(call, _)| call).collect())
    }

    fn submit(&mut self, file: &mut File, call: usize, millis: u64) {
        let secs = self.draw.start_secs + millis / 1_000;
        let stamp = i64::try_from(secs).unwrap() + self.draw.zone_hours * 3_600;
        let local = jiff::Timestamp::from_second(stamp).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
        let ctime = local.strftime("%a %b %e %H:%M:%S %Y");
        let (input, output, size) = (self.dice.below(1_000), self.dice.below(1_000), self.dice.below(50));
        let time = Time::from_micros(i64::try_from(secs).unwrap() * 1_000_000);
        let expected = &mut self.calls[call].0;
        expected.submitted = Some(time);
        file.last_stamp = Some(time);
        let line = file.lines + 1;
        let parts = [
            format!("NS_PROT_PROBLEM_SUBMIT: Time {secs} ({ctime}),"),
            format!(
                "Nickname {}, Input size {input}, Output Size {output}, Problem Size {size},",
                expected.name
            ),
            format!("ID {}@{}", expected.user, expected.client),
        ];
        match self.draw.form {
            Form::OneLine => file.line(&parts.join(" ")),
            Form::Wrapped => parts.iter().for_each(|part| file.line(part)),
        }
        let sizes = [input.to_string(), output.to_string(), size.to_string()];
        file.add_event(
            Kind::JobSubmit,
            line,
            &[
                ("name", &expected.name),
                ("user", &expected.user),
                ("client", &expected.client),
                ("input_size", &sizes[0]),
                ("output_size", &sizes[1]),
                ("problem_size", &sizes[2]),
            ],
        );
    }

    fn list(&mut self, file: &mut File, call: usize, millis: u64) {
        let line = file.lines + 1;
        let problem = self.calls[call].1;
        let name = self.calls[call].0.name.clone();
        file.line(&format!("Server List for problem {name}:"));
        self.calls[call].0.is_offered = true;
        if self.dice.chance(self.draw.empty_percent) {
            file.add_event(Kind::ServerList, line, &[("name", &name), ("servers", "0")]);
            return;
        }
        let mut servers: Vec<usize> = (0..self.draw.servers).collect();
        servers.sort_by_key(|&server| (self.loads[server], server));
        servers.truncate(usize::try_from(1 + self.dice.below(self.draw.servers as u64)).unwrap());
        let hosts: Vec<String> = servers.iter().map(|&server| listed(server)).collect();
        hosts.iter().for_each(|host| file.line(host));
        file.add_event(Kind::ServerList, line, &[("name", &name), ("hosts", &hosts.join(" "))]);
        file.add_event(Kind::JobSelect, line, &[("name", &name), ("host", &hosts[0])]);
        self.calls[call].0.offers = hosts;
        let server = servers[0];
        self.loads[server] += 100;
        self.waiting.entry((problem, server)).or_default().push_back(call);
        if self.draw.has_dead_server && server == 0 {
            return;
        }
        let code = if self.dice.chance(self.draw.failing_percent) {
            1 + i64::try_from(self.dice.below(30)).unwrap()
        } else {
            0
        };
        let lasts = 1 + self.dice.below(20_000);
        self.at(millis + lasts, Step::Done { server, problem, code });
    }

    fn done(&mut self, file: &mut File, server: usize, problem: usize, code: i64) {
        self.loads[server] -= 100;
        let line = file.lines + 1;
        let (host, code_text) = (format!("neo{server}.cs.example"), code.to_string());
        let call =
            self.waiting.get_mut(&(problem, server)).and_then(VecDeque::pop_front).expect("an open call");
        let name = self.calls[call].0.name.clone();
        file.line(&format!("NS_PROT_JOB_COMPLETED_FROM_SERVER: {host} {name} {code}"));
        let outcome = if code == 0 { "ok" } else { "failed" };
        file.add_event(
            Kind::JobEnd,
            line,
            &[("name", &name), ("host", &host), ("code", &code_text), ("outcome", outcome)],
        );
        self.calls[call].0.ended = Some(file.last_stamp.unwrap_or(SEEN));
        self.calls[call].0.code = Some(code);
    }

    fn report(&mut self, file: &mut File) {
        for server in 0..self.draw.servers {
            let (line, host, load) = (file.lines + 1, listed(server), self.loads[server].to_string());
            file.line(&format!("Server {host}: workload = {load}"));
            file.add_event(Kind::Workload, line, &[("host", &host), ("workload", &load)]);
        }
        let (line, host) =
            (file.lines + 1, listed(usize::try_from(self.dice.below(self.draw.servers as u64)).unwrap()));
        let (latency, bandwidth) =
            (self.dice.below(5_000).to_string(), self.dice.below(1_000_000).to_string());
        match self.draw.form {
            Form::OneLine => file.line(&format!("Server {host}: latency: {latency} bandwidth: {bandwidth}")),
            Form::Wrapped => {
                file.line(&format!("Server {host}: latency: {latency}"));
                file.line(&format!("bandwidth: {bandwidth}"));
            }
        }
        file.add_event(
            Kind::Workload,
            line,
            &[("host", &host), ("latency", &latency), ("bandwidth", &bandwidth)],
        );
    }
}

fn listed(server: usize) -> String {
    format!("neo{server}.sinrg.cs.example")
}

fn noise(file: &mut File, which: u64) {
    file.line(match which % 6 {
        0 => "NS_PROT_PING: neo1.cs.example",
        1 => "NS_PROT_PROBLEM_SUBMIT_DENIED: prob_1+x neo1.cs.example 0",
        2 => "..<omitted>...",
        3 => "Server neo1.cs.example: workload unknown",
        4 => "",
        _ => "agent: 3 servers, 2 clients; completed 0",
    });
}
