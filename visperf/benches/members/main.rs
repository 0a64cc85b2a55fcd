//! Simulated members of a real domain: each joins, takes part in the election and reports over its own
//! connection.
//!
//! ```text
//! members STATE HEAD MEMBERS HZ:SECONDS[,HZ:SECONDS…]
//! ```
//! STATE is the state folder where the domain was created: certificates are issued there, for publishers
//! only, so that HEAD, the overlay address of its daemon, stays the representative. `ready` is printed once
//! all members report; then each phase runs: every member sweeps HZ times a second, and what they sent is
//! printed at its end. Started by `benches/domain.sh`, which measures the representative.
#![allow(clippy::print_stdout)]

#[path = "../grid/mod.rs"]
mod grid;
#[path = "../../../sensor/benches/made_up/mod.rs"]
mod made_up;
mod member;

use anyhow::{Context as _, bail};
use made_up::Names;
use member::{Domain, Member};
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;

/// Timeout for all members to report.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// Members that join concurrently: like a cluster that is switched on, not like an attack.
const JOINING_MAX: usize = 16;
/// Polling interval for whether a member reports.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Most groups in which members sweep; groups are spread over a period as far as the timer's millisecond
/// allows.
const GROUPS_MAX: u32 = 20;

struct Plan {
    state: PathBuf,
    head: Address,
    members: u32,
    phases: Vec<Phase>,
}

#[derive(Clone, Copy)]
struct Phase {
    hz: f64,
    span: Duration,
}

impl Plan {
    fn parse(words: &[String]) -> anyhow::Result<Plan> {
        let [state, head, members, phases] = words else {
            bail!("expected STATE HEAD MEMBERS HZ:SECONDS, found {} words", words.len());
        };
        let phase = |text: &str| {
            let (hz, secs) = text.split_once(':').context("a phase is HZ:SECONDS")?;
            Ok(Phase { hz: hz.parse()?, span: Duration::from_secs_f64(secs.parse()?) })
        };
        Ok(Plan {
            state: state.into(),
            head: Address::try_from(head.as_str())?,
            members: members.parse()?,
            phases: phases.split(',').map(phase).collect::<anyhow::Result<_>>()?,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words = grid::words();
    if words.is_empty() {
        println!("made-up members of a domain, started by benches/domain.sh");
        return Ok(());
    }
    let plan = Plan::parse(&words)?;
    let mut all = All::default();
    let folder = tempfile::tempdir()?;
    let domain = Domain::open(&plan.state, plan.head.clone(), folder.path())?;
    all.join(&plan, &domain).await?;
    println!("ready");
    for phase in &plan.phases {
        all.run(*phase).await;
    }
    all.ending.cancel();
    while all.tasks.join_next().await.is_some() {}
    Ok(())
}

#[derive(Default)]
struct All {
    members: Vec<Member>,
    second: u64,
    tasks: JoinSet<()>,
    ending: CancellationToken,
}

impl All {
    /// Start all members, a limited number at a time, and wait until each reports.
    async fn join(&mut self, plan: &Plan, domain: &Domain) -> anyhow::Result<()> {
        let names = Names::default();
        let joining = async {
            for nth in 0..plan.members {
                let member = Member::start(nth, domain, &names, &mut self.tasks, &self.ending)?;
                self.members.push(member);
                self.until_missing_at_most(JOINING_MAX).await;
            }
            self.until_missing_at_most(0).await;
            anyhow::Ok(())
        };
        match tokio::time::timeout(READY_WITHIN, joining).await {
            Ok(joined) => joined,
            Err(_) => bail!("not all members report after {} s", READY_WITHIN.as_secs()),
        }
    }

    async fn until_missing_at_most(&self, most: usize) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        while self.members.iter().filter(|member| !member.figures().is_open).count() > most {
            look.tick().await;
        }
    }

    /// Sweep for the duration of the phase.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A few milliseconds.
    async fn run(&mut self, phase: Phase) {
        let before = self.sums();
        let period = Duration::from_secs_f64(1.0 / phase.hz);
        let groups = (period.as_millis() as u32).clamp(1, GROUPS_MAX);
        let mut slot = tokio::time::interval(period / groups);
        let until = overlay::clock::now().plus(phase.span);
        let mut group = 0;
        while overlay::clock::now() < until {
            slot.tick().await;
            let time = overlay::clock::calendar();
            for member in self.members.iter_mut().skip(group as usize).step_by(groups as usize) {
                member.sweep(self.second, time);
            }
            group = (group + 1) % groups;
            self.second += u64::from(group == 0);
            // Let the reports be sent before the next sweep, however late it is.
            tokio::task::yield_now().await;
        }
        let (sent, thinned, bytes) = self.sums();
        println!(
            "phase of {} Hz: {} samples sent, {} left out, {} bytes",
            phase.hz,
            sent - before.0,
            thinned - before.1,
            bytes - before.2
        );
    }

    fn sums(&self) -> (u64, u64, u64) {
        let counts = self.members.iter().map(|member| member.figures().counts);
        counts.fold((0, 0, 0), |(sent, thinned, bytes), counts| {
            (sent + counts.samples_total, thinned + counts.thinned_total, bytes + counts.len_bytes_total)
        })
    }
}
