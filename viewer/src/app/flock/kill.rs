//! The question before a process is ended.
//!
//! Rule: nothing is signed before the person has confirmed the very process that is shown, by its number and
//! start. Not here: signing and sending (`live::flock`), who may (docs/control.md).

use crate::app::command::{Answer, Command, Question};
use crate::app::text::span;
use crate::feed::Kill;
use crate::flock::Member;
use crate::model::Model;
use crate::timeline::Mode;
use wire::control::Signal;

/// Ask about the selected process, or the only one that fits the search.
pub(in crate::app) fn question_for_selected(model: &Model) -> Option<Question> {
    let (state, flock) = (model.flock(), model.flock().flock());
    let mut found: Vec<Member> = state.selected().iter().copied().take(2).collect();
    if found.is_empty() && !state.filter().fits_all() {
        flock.each(model.flock_time(), |member, track, _| {
            if found.len() < 2 && state.includes(member, track.name, flock.host_of(member)) {
                found.push(member);
            }
        });
    }
    match found[..] {
        [only] => question(model, only),
        _ => None,
    }
}

/// Ask about a process; none where there is no daemon to order.
pub(super) fn question(model: &Model, member: Member) -> Option<Question> {
    let flock = model.flock().flock();
    let (track, host) = (flock.track(member)?, flock.host_of(member)?);
    if !model.source().is_daemon() {
        return None;
    }
    let name = flock.name(track.name).to_owned();
    let of = if host.domain.is_empty() { String::new() } else { format!(" of {}", host.domain) };
    let used = span(track.usage.cpu_secs);
    let mut lines = vec![format!(
        "{name} ({}) of user {} on {}{of}, {used} of CPU time",
        member.pid, track.uid, host.host
    )];
    if model.timeline().mode() != Mode::Live {
        lines
            .push("It is shown as it was then, and may have ended since: its sensor looks first.".to_owned());
    }
    let kill = |signal| {
        let (pid, start_ns, host) = (member.pid, member.start_ns, host.clone());
        vec![Command::Kill(Kill { host, pid, start_ns, name: name.clone(), signal })]
    };
    let answer = |text, hint, is_dangerous, commands| Answer { text, hint, is_dangerous, commands };
    Some(Question {
        kind: "end a process",
        title: "End this process?".to_owned(),
        lines,
        note: "An operator's order is signed and written down.",
        answers: vec![
            answer("Ask it to end", "TERM (Return)", false, kill(Signal::Term)),
            answer("Kill it", "KILL: it is not asked", true, kill(Signal::Kill)),
            answer("Leave it", "Esc", false, Vec::new()),
        ],
    })
}
