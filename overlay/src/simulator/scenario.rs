//! Scenarios: a domain, and a list of steps with expectations.
//!
//! Pure. A step that names a role ("the representative") means the host that has it when the step is taken.
//! Not here: the invariants, which hold in every scenario (`domain`).

use super::Domain;
use crate::election::Input;
use std::time::Duration;

/// A host, by number or by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The host with this number.
    Host(usize),
    /// The representative that all hosts obey, or the one that serves under the highest term.
    Representative,
    /// The n-th standby by number.
    Standby(usize),
    /// The n-th running host that is neither.
    Member(usize),
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every running host obeys one representative, which serves.
    One,
    /// The same within each of these groups; the representative is marked partial or not.
    OneEach(Vec<Vec<usize>>, Partial),
    /// This host is the representative of all.
    Is(usize),
    /// The representative is the one noted with [`Step::Note`].
    Same,
    /// The representative is another than the one noted.
    Another,
    /// At most so many promotions since [`Step::Note`].
    PromotionsAtMost(usize),
}

/// Whether a representative marks its domain partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    Marked,
    Whole,
}

/// A step of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start a process.
    Start(usize),
    /// Start every process that does not live.
    StartAll,
    /// Kill the process; its host closes its connections.
    Kill(Who),
    /// Power the host off, without closing its connections.
    PowerOff(Who),
    /// Stop the daemon cleanly.
    Stop(Who),
    /// The same as `StartAll`, after others were killed.
    RestartAll,
    /// Suspend the process.
    Pause(Who, Duration),
    /// Let the process run for the first time span and suspend it for the second, repeatedly.
    Starve(Who, Duration, Duration),
    /// Cut both directions.
    Cut(Who, Who),
    /// Cut one direction.
    CutOneWay(Who, Who),
    /// Cut a host from all others.
    Isolate(Who),
    /// Cut all paths between groups.
    Partition(Vec<Vec<usize>>),
    /// Open all paths.
    Mend,
    /// Lose this share of messages, in thousandths.
    Lose(u32),
    /// Set the minimum and maximum delay.
    Delay(Duration, Duration),
    /// Names of seeds do not resolve.
    NamesFail,
    /// Names of seeds resolve again.
    NamesResolve,
    /// Let time pass.
    Wait(Duration),
    /// Note the representative and the time.
    Note,
    /// The expectation must be met within this time.
    Expect(Duration, Expected),
    /// The expectation must be met all this time.
    Always(Duration, Expected),
}

/// A scenario that runs.
pub struct Story {
    /// The domain, for changes that no step makes.
    pub domain: Domain,
    noted: Option<usize>,
    noted_at: Duration,
    /// How long each [`Step::Expect`] took until it was met.
    pub took: Vec<Duration>,
}

impl Story {
    /// A scenario in `domain`.
    #[must_use]
    pub fn new(domain: Domain) -> Story {
        Story { domain, noted: None, noted_at: Duration::ZERO, took: Vec::new() }
    }

    /// Take the steps.
    ///
    /// # Errors
    /// If an expectation is not met; with a picture of the domain. Later steps are not taken.
    pub fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        for (at, step) in steps.iter().enumerate() {
            self.take(step).map_err(|why| format!("step {at}: {why}\n{}", self.domain.picture()))?;
        }
        match self.domain.violations() {
            [] => Ok(()),
            violations => Err(format!("{}\n{}", violations.join("\n"), self.domain.picture())),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        let hosts = self.domain.world.len();
        match step {
            Step::Start(host) => self.domain.world.start(*host),
            Step::StartAll | Step::RestartAll => self.domain.start_all(),
            Step::Kill(who) => {
                let host = self.find(*who)?;
                self.domain.world.kill(host);
            }
            Step::PowerOff(who) => {
                let host = self.find(*who)?;
                self.domain.world.power_off(host);
            }
            Step::Stop(who) => {
                let host = self.find(*who)?;
                self.domain.world.with(host, |sensor, now| sensor.node.handle(Input::Stop, now));
                self.domain.run(Duration::from_millis(20));
                self.domain.world.kill(host);
            }
            Step::Pause(who, span) => {
                let host = self.find(*who)?;
                self.domain.world.pause(host, *span);
            }
            Step::Starve(who, run, stop) => {
                let host = self.find(*who)?;
                self.domain.world.starve(host, Some((*run, *stop)));
            }
            Step::Cut(one, other) => {
                let (one, other) = (self.find(*one)?, self.find(*other)?);
                self.domain.world.network.cut(one, other);
            }
            Step::CutOneWay(from, to) => {
                let (from, to) = (self.find(*from)?, self.find(*to)?);
                self.domain.world.network.cut_one_way(from, to);
            }
            Step::Isolate(who) => {
                let host = self.find(*who)?;
                for other in (0..hosts).filter(|other| *other != host) {
                    self.domain.world.network.cut(host, other);
                }
            }
            Step::Partition(groups) => self.domain.world.network.partition(hosts, groups),
            Step::Mend => self.domain.world.network.mend_all(),
            Step::Lose(permille) => self.domain.world.network.loss_permille = *permille,
            Step::Delay(low, high) => self.domain.world.network.delay = (*low, *high),
            Step::NamesFail => self.domain.world.network.names_resolve = false,
            Step::NamesResolve => self.domain.world.network.names_resolve = true,
            Step::Wait(span) => self.domain.run(*span),
            Step::Note => {
                self.noted = Some(self.find(Who::Representative)?);
                self.noted_at = self.domain.world.now();
            }
            Step::Expect(within, expected) => {
                let (noted, since) = (self.noted, self.noted_at);
                let took = self.domain.run_until(*within, |domain| holds(domain, expected, noted, since));
                self.took.push(took.ok_or_else(|| format!("expected within {within:?}: {expected:?}"))?);
            }
            Step::Always(span, expected) => {
                let (noted, since) = (self.noted, self.noted_at);
                let broken = self.domain.run_until(*span, |domain| !holds(domain, expected, noted, since));
                if let Some(after) = broken {
                    return Err(format!("expected for {span:?}: {expected:?}; not so after {after:?}"));
                }
            }
        }
        Ok(())
    }

    /// The host that `who` means now.
    ///
    /// # Errors
    /// If no host has that role.
    pub fn find(&self, who: Who) -> Result<usize, String> {
        let domain = &self.domain;
        let representative = || {
            let under = |host: &usize| domain.state(*host).map(|state| state.term);
            domain.agreed_by_all().or_else(|| domain.serving().into_iter().max_by_key(under))
        };
        let found = match who {
            Who::Host(host) => Some(host),
            Who::Representative => representative(),
            Who::Standby(number) => domain.standbys().get(number).copied(),
            Who::Member(number) => {
                let standbys = domain.standbys();
                let ruler = representative();
                let plain = |host: &usize| {
                    Some(*host) != ruler && !standbys.contains(host) && domain.world.is_running(*host)
                };
                (0..domain.world.len()).filter(plain).nth(number)
            }
        };
        found.ok_or_else(|| format!("expected a host that is {who:?}, found none"))
    }
}

fn holds(domain: &Domain, expected: &Expected, noted: Option<usize>, since: Duration) -> bool {
    match expected {
        Expected::One => domain.agreed_by_all().is_some(),
        Expected::OneEach(groups, partial) => groups.iter().all(|group| {
            let state = domain.agreed(group).and_then(|host| domain.state(host));
            state.is_some_and(|state| state.partial == (*partial == Partial::Marked))
        }),
        Expected::Is(host) => domain.agreed_by_all() == Some(*host),
        Expected::Same => noted.is_some() && domain.agreed_by_all() == noted,
        Expected::Another => domain.agreed_by_all().is_some_and(|host| Some(host) != noted),
        Expected::PromotionsAtMost(most) => domain.promotions_since(since) <= *most,
    }
}
