//! Stories: a domain, and a list of steps with what is expected after them.
//!
//! Pure. A step that names a part ("the representative") means whoever has it when the step is taken.
//! Not here: the invariants, which hold in every story (`domain`).

use super::Domain;
use crate::election::Input;
use std::time::Duration;

/// A host, by number or by what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// This one.
    Host(usize),
    /// The representative all agree on, or the one that serves under the highest term.
    Representative,
    /// The n-th standby by number.
    Standby(usize),
    /// The n-th host that is neither.
    Member(usize),
}

/// What is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every running host hears one representative, which serves.
    One,
    /// Within each of these groups there is one, marked partial or not.
    OneEach(Vec<Vec<usize>>, Partial),
    /// This host is the representative of all.
    Is(usize),
    /// The one that was noted with [`Step::Note`] still is.
    Same,
    /// It is another than the one noted.
    Another,
    /// At most so many promotions since [`Step::Note`].
    PromotionsAtMost(usize),
}

/// Whether a representative marks its domain partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// It does.
    Marked,
    /// It does not.
    Whole,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start a process.
    Start(usize),
    /// Start all.
    StartAll,
    /// Kill the process; its host closes its connections.
    Kill(Who),
    /// The whole host goes silent.
    PowerOff(Who),
    /// A clean stop.
    Stop(Who),
    /// Start every process that does not live.
    RestartAll,
    /// The process stands still.
    Pause(Who, Duration),
    /// It gets this long to run, and then none for that long, again and again.
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
    /// Of a thousand messages so many are lost.
    Lose(u32),
    /// Least and most delay.
    Delay(Duration, Duration),
    /// Names do not resolve.
    NamesFail,
    /// They do again.
    NamesResolve,
    /// Let time pass.
    Wait(Duration),
    /// Note the representative and the time.
    Note,
    /// It must come true within this time.
    Expect(Duration, Expected),
    /// It must be true all this time.
    Always(Duration, Expected),
}

/// A story under way.
pub struct Story {
    /// Whose.
    pub domain: Domain,
    noted: Option<usize>,
    noted_at: Duration,
    /// How long each [`Step::Expect`] took to come true.
    pub took: Vec<Duration>,
}

impl Story {
    /// A story of `domain`.
    #[must_use]
    pub fn new(domain: Domain) -> Story {
        Story { domain, noted: None, noted_at: Duration::ZERO, took: Vec::new() }
    }

    /// Take the steps.
    ///
    /// # Errors
    /// What was expected and did not come true, with a picture of the domain; steps after it are not taken.
    pub fn tell(&mut self, steps: &[Step]) -> Result<(), String> {
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
    /// If no one has that part.
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
        found.ok_or_else(|| format!("expected somebody who is {who:?}, found nobody"))
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
