//! The flock in the past: what is shown where sensors have stored nothing.
//!
//! Not here: what is requested of them (`model::flock::past`).

use crate::app::command::Commands;
use crate::app::text::{count, moment, span};
use crate::app::theme::{self, Colors};
use crate::flock::past::SPEED_MAX;
use crate::model::{Model, Source, TimeChange};
use crate::timeline::Mode;
use egui::{Align2, Button, Rect, RichText, Ui, vec2};
use wire::time::Time;

/// Why no process is seen at the time that is shown, where that is so.
pub(in crate::app) fn why_empty(model: &Model) -> Option<String> {
    let time = model.flock_time();
    let is_empty = model.flock().flock().hosts_at(time) == 0;
    is_empty.then(|| explanation(model, time).0.replace('\n', " "))
}

fn is_back(model: &Model) -> bool {
    model.timeline().mode() != Mode::Live && model.source().is_daemon()
}

/// Explain why no process is seen in the past, with a button to a time when one is.
pub(super) fn show(model: &Model, ui: &mut Ui, colors: Colors, inner: Rect, commands: &mut Commands) {
    let (flock, time) = (model.flock().flock(), model.flock_time());
    if !is_back(model) || flock.hosts_at(time) > 0 || flock.hosts().next().is_none() {
        return;
    }
    let (text, nearest) = explanation(model, time);
    let galley = ui.painter().layout(text, theme::body(), colors.weak, (inner.width() - 40.0).max(80.0));
    let at = inner.center() - galley.size() / 2.0;
    let below = at.y + galley.size().y + 18.0;
    let behind = Rect::from_min_size(at, galley.size()).expand(8.0);
    ui.painter().rect_filled(behind, 4.0, colors.ground);
    ui.painter().galley(at, galley, colors.weak);
    let Some(nearest) = nearest else { return };
    let text = format!("Go to {}", moment(nearest, model.zone(), true));
    let rect = Align2::CENTER_CENTER.anchor_size(egui::pos2(inner.center().x, below), vec2(220.0, 24.0));
    if ui.put(rect, Button::new(text)).clicked() {
        commands.push(TimeChange::GoTo(nearest));
    }
}

/// Why no process is seen at a time, and the nearest time when one is.
fn explanation(model: &Model, time: Time) -> (String, Option<Time>) {
    let is_replayed = model.timeline().mode() == Mode::Playing;
    if is_replayed && model.timeline().speed() > SPEED_MAX {
        let text = "what is requested would be over before it arrives";
        return (format!("Processes are shown up to a speed of {SPEED_MAX}×: {text}."), None);
    }
    if model.flock().may_get_past() {
        return ("Asking the sensors for what they kept of this moment …".to_owned(), None);
    }
    if let Some((host, error)) = model.flock().past_error() {
        return (format!("{} has no data of this moment: {error}", host.host), None);
    }
    let text = nothing_stored(model.source());
    match model.nearest_stored(time) {
        Some(nearest) => {
            let apart = span(nearest.since(time).max(time.since(nearest)).as_secs_f64());
            let side = if nearest > time { "later" } else { "earlier" };
            (format!("{text}\nThe nearest that is kept is {apart} {side}."), Some(nearest))
        }
        None => (text.to_owned(), None),
    }
}

/// That there is nothing of a moment, and what there could be.
fn nothing_stored(source: &Source) -> &'static str {
    match source.is_identified() {
        true => {
            "Nothing is kept of this moment: a sensor keeps its last minute in memory, what it recorded, and of each \
             minute the processes that used most; those of others are for root and operators."
        }
        false => {
            "Nothing that everyone may see is kept of this moment. The viewer is connected by TCP and is therefore not \
             identified: of each minute the processes that used most are listed over the local socket of a daemon \
             alone, own ones to their user, those of others to root and operators."
        }
    }
}

/// The number of hosts that are seen in the past, where that is not all.
pub(super) fn state(model: &Model, ui: &mut Ui, colors: Colors) {
    if !is_back(model) {
        return;
    }
    let flock = model.flock().flock();
    if flock.is_by_minute(model.flock_time()) {
        let text = "of each minute the processes that used most";
        ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak)).on_hover_text(
            "Full sweeps are kept of the last minute and in recordings; kernel and program are not distinguished here",
        );
    }
    let all = flock.hosts().count();
    let seen = flock.hosts_at(model.flock_time());
    if seen < all {
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let text = format!("{} of {}", seen, count(of(all), "host"));
        ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak))
            .on_hover_text("Of the others no sweeps are kept of this moment");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_that_is_not_identified_shows_why_it_lists_less() {
        let text = |address: &str| nothing_stored(&Source::Daemon(address.to_owned()));
        for tcp in ["127.0.0.1:7317", "[::1]:7317"] {
            assert!(text(tcp).contains("connected by TCP"), "{tcp}");
        }
        for identified in ["/run/visperf/sensor.sock", "https://proxy.example:7443/d/UT-ICL"] {
            assert!(!text(identified).contains("TCP"), "{identified}");
        }
    }
}
