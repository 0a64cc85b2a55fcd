//! The question before a process is ended.
//!
//! Rule: nothing is signed before the person has said yes to the very process that is shown, by its number and start.
//! Not here: signing and handing over (`live::flock`), who may (docs/control.md).

use crate::app::text::span;
use crate::app::theme::{self, Colors};
use crate::app::{App, Source, question};
use crate::feed::{Kill, Wish};
use crate::flock::Member;
use crate::timeline::Mode;
use egui::{RichText, Ui};
use wire::control::Signal;

/// A process that is asked about.
#[derive(Clone)]
pub(super) struct Asked {
    kill: Kill,
    /// What it is, in a line.
    shown: String,
}

impl App {
    /// Ask about the one process that is chosen, or the only one that fits the search.
    pub(in crate::app) fn ask_to_end(&mut self) {
        let view = &self.flock;
        let mut found: Vec<Member> = view.selected.iter().copied().take(2).collect();
        if found.is_empty() && !view.chosen.fits_all() {
            view.flock.each(self.flock_time(), |member, track, _| {
                if found.len() < 2
                    && view.chosen.fits(&view.flock, track.name, track.pid, view.flock.host_of(member))
                {
                    found.push(member);
                }
            });
        }
        if let [only] = found[..] {
            ask(self, only);
        }
    }

    /// Whether a process is asked about.
    pub(in crate::app) fn asks_of_process(&self) -> bool {
        self.flock.asked.is_some()
    }

    /// Leave the process that is asked about, if one is; whether it was so.
    pub(in crate::app) fn leave_question(&mut self) -> bool {
        self.flock.asked.take().is_some()
    }

    /// What to say where no mark is.
    pub(super) fn flock_words(&self) -> String {
        match &self.source {
            Source::Daemon(_) if self.flock.wished.hosts.is_empty() => {
                "No host is live: nothing to sweep.".to_owned()
            }
            Source::Daemon(_) => "Waiting for the first sweeps …".to_owned(),
            Source::Log(_) => {
                "A log tells of calls, not of processes: connect to a daemon to see their flock.".to_owned()
            }
            Source::File(_) | Source::Invented => "No processes are known of this time.".to_owned(),
        }
    }
}

/// Ask about a process.
pub(super) fn ask(app: &mut App, member: Member) {
    let flock = &app.flock.flock;
    let (Some(track), Some(host)) = (flock.track(member), flock.host_of(member)) else { return };
    if !matches!(app.source, Source::Daemon(_)) {
        return;
    }
    let name = flock.name(track.name).to_owned();
    let of = if host.domain.is_empty() { String::new() } else { format!(" of {}", host.domain) };
    let used = span(track.usage.cpu_secs);
    let shown =
        format!("{name} ({}) of user {} on {}{of}, {used} of CPU time", member.pid, track.uid, host.host);
    let (pid, start_ns, host) = (member.pid, member.start_ns, host.clone());
    app.flock.asked = Some(Asked { kill: Kill { host, pid, start_ns, name, signal: Signal::Term }, shown });
}

/// Draw the question, where there is one.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    let Some(asked) = app.flock.asked.clone() else { return };
    let draw = |ui: &mut Ui| {
        ui.label(RichText::new("End this process?").strong().size(15.0));
        ui.add_space(4.0);
        ui.label(&asked.shown);
        if app.timeline.mode() != Mode::Live {
            ui.label("It is shown as it was then, and may have ended since: its sensor looks first.");
        }
        let words = RichText::new("An operator's order is signed and written down.");
        ui.label(words.size(theme::SMALL).color(colors.weak));
    };
    let choices = [
        (RichText::new("Ask it to end"), "TERM (Return)"),
        (RichText::new("Kill it").color(colors.failed()), "KILL: it is not asked"),
        (RichText::new("Leave it"), "Esc"),
    ];
    let Some(answer) = question::ask(ui.ctx(), "end a process", draw, &choices) else { return };
    let signal = [Some(Signal::Term), Some(Signal::Kill), None][answer.min(2)];
    app.flock.asked = None;
    if let (Some(signal), Some(inbox)) = (signal, &app.flock.inbox) {
        let kill = Kill { signal, ..asked.kill };
        let words = match inbox.wish(Wish::Kill(kill)) {
            true => "Ordered …",
            false => "Too much is asked for already; try again.",
        };
        app.notify(app.now, words.to_owned());
    }
}
