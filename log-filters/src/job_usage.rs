//! To which calls a measured usage belongs.
//!
//! Pure. Rule: to those of its product that have one of its names, ran on its host at its time, and are of its user, unless
//! a control group of the middleware proves the job: what a process claims of another user's job does not count.
//! Not here: finding calls by name (`join`).

use crate::sameness::same_host;
use wire::call::Call;
use wire::call::job::Fact;
use wire::call::usage::Usage;
use wire::time::Time;

/// How far the times of a usage and of its call may be apart: a log may be of another host's clock.
const APART_MICROS: i64 = 60_000_000;

/// Whether a usage is of this call, which has one of its names.
#[must_use]
pub fn belongs(usage: &Usage, call: &Call) -> bool {
    is_of_owner(usage, call) && is_of_course(usage, call)
}

/// Whether the middleware proves it, or the user of the processes is that of the call.
fn is_of_owner(usage: &Usage, call: &Call) -> bool {
    let is_user = || {
        let by_number = |uid: &str| uid.parse() == Ok(usage.uid);
        call.user == usage.user || by_number(&call.user) || call.fact(Fact::Uid).is_some_and(by_number)
    };
    usage.is_proved || call.user.is_empty() || is_user()
}

/// Whether the call ran on the host at that time, as far as that is known.
fn is_of_course(usage: &Usage, call: &Call) -> bool {
    let runs = call.details.iter().flat_map(|details| &details.runs);
    let mut hosts = runs.clone().flat_map(|run| &run.hosts).chain(&call.hosts).peekable();
    let is_there = hosts.peek().is_none() || hosts.any(|host| same_host(host, &usage.host));
    let began = runs.filter_map(|run| run.started).chain(call.submitted).chain(call.started).min();
    let micros = |time: Option<Time>, otherwise: i64| time.map_or(otherwise, Time::micros);
    is_there
        && usage.until.micros() >= micros(began, i64::MIN).saturating_sub(APART_MICROS)
        && usage.started.micros() <= micros(call.ended, i64::MAX).saturating_add(APART_MICROS)
}
