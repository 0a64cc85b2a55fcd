//! The flock where somebody goes back: what is asked of sensors for it, and what is said where they kept nothing.
//!
//! Rule: a host is asked one question at a time, and again only a while after it could not be answered; no one is asked
//! while the flock is not seen. Not here: which stretch is missing (`crate::flock::past`).

use super::FlockView;
use crate::app::text::{count, moment, span};
use crate::app::theme::{self, Colors};
use crate::app::{App, Source};
use crate::feed::{Past, Wish};
use crate::flock::past::{Kept, Lack, Pace, shifted};
use crate::flock::sweep::HostName;
use crate::live::kept::Span;
use crate::timeline::Mode;
use egui::{Align2, Button, Rect, RichText, Ui, vec2};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// The same is asked again after so long, another stretch after so long; an answer that did not come in so long will not come.
const AGAIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);
const ANSWER_MAX: Duration = Duration::from_secs(90);
/// So often a sensor is asked of which times it has sweeps.
const SPANS_AGAIN: Duration = Duration::from_secs(30);
/// The newest sweep of a sensor that is on time was so long before its answer.
const ON_TIME: Duration = Duration::from_secs(3);
/// Sweeps a second of a person's time do where time runs faster than it does.
const HZ_MAX: f64 = 30.0;
/// What is played back ends so long before a span of sweeps does: from there on nothing would be seen.
const INTO_SPAN: Duration = Duration::from_secs(1);
/// The timeline reaches so far before the first call, if something is kept of that time.
const REACH_MIN: Duration = Duration::from_secs(600);

/// What is known of the past of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// When it was asked, while no answer came.
    asked: Option<Time>,
    /// When the last answer came, and what the question was.
    came: Option<Time>,
    question: Option<Lack>,
    spans: Vec<Span>,
    trouble: Option<String>,
}

/// What is known of the past, by host.
pub(super) type Hosts = BTreeMap<HostName, Host>;

impl FlockView {
    /// The past of a host came; of one that is not watched any more it is nothing.
    fn take_kept(&mut self, host: &HostName, kept: Result<(Arc<Kept>, Vec<Span>), String>, now: Time) {
        let moved = self.flock.moved(host);
        let Some(known) = self.past.get_mut(host).filter(|_| self.wished.hosts.contains(host)) else {
            return;
        };
        (known.asked, known.came) = (None, Some(now));
        match kept {
            Ok((kept, spans)) => {
                known.spans =
                    spans.into_iter().map(|(from, to)| (shifted(from, moved), shifted(to, moved))).collect();
                self.has_new_spans = true;
                known.trouble = None;
                self.flock.take_kept(host, &kept);
                (self.groups, self.rows, self.ranks) = (None, None, None);
            }
            Err(trouble) => known.trouble = Some(trouble),
        }
    }

    /// Whether a host may be asked this now.
    fn may_ask(&self, lack: &Lack, now: Time) -> bool {
        let Some(known) = self.past.get(&lack.host) else { return true };
        let is_over =
            |since: Option<Time>, pause: Duration| since.is_none_or(|since| now.since(since) > pause);
        // What did not help once will not help at once.
        let is_same = known.question.as_ref().is_some_and(|question| question.from == lack.from);
        let pause = if is_same || known.trouble.is_some() { AGAIN } else { PAUSE };
        is_over(known.asked, ANSWER_MAX) && is_over(known.came, pause)
    }

    /// Others are asked now, or in another way: answers to what was asked do not come any more.
    pub(super) fn begin_past_anew(&mut self) {
        let hosts = &self.wished.hosts;
        // Who looks at another tab for a while comes back to the same time.
        self.past.retain(|host, _| hosts.is_empty() || hosts.contains(host));
        self.past.values_mut().for_each(|known| known.asked = None);
    }
}

impl App {
    /// What a sensor kept of the past of its host.
    pub(in crate::app) fn take_kept(
        &mut self,
        at: Time,
        host: &HostName,
        kept: Result<(Arc<Kept>, Vec<Span>), String>,
    ) {
        self.flock.take_kept(host, kept, at);
    }

    /// Ask for what is missing of the past that is looked at, and of which times there is any.
    pub(in crate::app) fn wish_past(&mut self) {
        if std::mem::take(&mut self.flock.has_new_spans) {
            self.reach();
        }
        if !self.is_flock_seen() || !matches!(self.source, Source::Daemon(_)) {
            return;
        }
        let (time, speed, now) = (self.flock_time(), self.timeline.speed(), self.now);
        let every = Duration::from_secs_f64((1.0 / self.flock.rate_hz).max(speed / HZ_MAX));
        let mut lacks = match self.timeline.mode() {
            Mode::Live => Vec::new(),
            Mode::Playing | Mode::Paused => self.flock.flock.lacks(time, Pace { speed, every }, now),
        };
        let is_old = |host: &&HostName| {
            let came = self.flock.past.get(*host).and_then(|known| known.came);
            !lacks.iter().any(|lack| lack.host == **host)
                && came.is_none_or(|came| now.since(came) > SPANS_AGAIN)
        };
        // Of no time at all: it is asked for the spans alone.
        let of_spans = self.flock.wished.hosts.iter().filter(is_old);
        let of_spans: Vec<Lack> =
            of_spans.map(|host| Lack { host: host.clone(), from: now, to: now }).collect();
        lacks.extend(of_spans);
        for lack in lacks.into_iter().filter(|lack| self.flock.wished.hosts.contains(&lack.host)) {
            if !self.flock.may_ask(&lack, now) {
                continue;
            }
            let Some(inbox) = &self.flock.inbox else { return };
            if !inbox.wish(Wish::Past(Past { lack: lack.clone(), every })) {
                return;
            }
            let known = self.flock.past.entry(lack.host.clone()).or_default();
            (known.asked, known.question) = (Some(now), Some(lack));
        }
    }

    /// From when to when sensors of the flock have sweeps, where it is seen.
    pub(in crate::app) fn spans_of_flock(&self) -> impl Iterator<Item = Span> + '_ {
        let is_seen = self.is_flock_seen();
        let now = self.now;
        let known = self.flock.past.values().filter(move |_| is_seen);
        known.flat_map(move |known| {
            // What reached to the answer reaches to now: a sensor goes on sweeping until it cannot be asked.
            let goes_on =
                known.came.filter(|came| known.trouble.is_none() && now.since(*came) <= 2 * SPANS_AGAIN);
            let until = move |to: Time| match goes_on {
                Some(came) if came.since(to) <= ON_TIME => now,
                Some(_) | None => to,
            };
            known.spans.iter().map(move |&(from, to)| (from, until(to)))
        })
    }

    /// Whether a sensor was asked for the past and has not answered yet.
    #[must_use]
    pub fn awaits_past(&self) -> bool {
        self.flock.past.values().any(|known| known.asked.is_some())
    }

    /// Why no one is seen at the time that is looked at, where that is so.
    #[must_use]
    pub fn why_no_flock(&self) -> Option<String> {
        let is_empty = self.flock.flock.hosts_at(self.flock_time()) == 0;
        is_empty.then(|| words(self, self.flock_time()).0.replace('\n', " "))
    }

    /// From when on the timeline reaches to what is kept, where calls are known from `first` to `last`: no farther before them than
    /// they make it long.
    pub(in crate::app) fn kept_since(&self, first: Time, last: Time) -> Time {
        let farthest = first.minus(last.since(first).max(REACH_MIN));
        let spans = self.flock.past.values().flat_map(|known| &known.spans);
        spans.map(|(from, _)| *from).filter(|from| *from >= farthest).fold(first, Time::min)
    }

    /// The time within a span of sweeps that is nearest, of those on the timeline.
    fn nearest_kept(&self, time: Time) -> Option<Time> {
        let into = |(from, to): Span| {
            let last = to.minus(INTO_SPAN).max(from);
            time.clamp(from.plus(INTO_SPAN).min(last), last)
        };
        let (first, last) = self.timeline.span();
        let reached = self.spans_of_flock().filter(|(from, to)| *to > first && *from < last);
        reached.map(into).min_by_key(|kept| kept.since(time).max(time.since(*kept)))
    }
}

/// Where somebody went back and no one is seen: why, and a way to where somebody is.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors, inner: Rect) {
    let is_back = app.timeline.mode() != Mode::Live && matches!(app.source, Source::Daemon(_));
    let time = app.flock_time();
    if !is_back || app.flock.flock.hosts_at(time) > 0 || app.flock.flock.hosts().next().is_none() {
        return;
    }
    let (words, kept) = words(app, time);
    let galley = ui.painter().layout(words, theme::body(), colors.weak, (inner.width() - 40.0).max(80.0));
    let at = inner.center() - galley.size() / 2.0;
    let below = at.y + galley.size().y + 18.0;
    let behind = Rect::from_min_size(at, galley.size()).expand(8.0);
    ui.painter().rect_filled(behind, 4.0, colors.ground);
    ui.painter().galley(at, galley, colors.weak);
    let Some(kept) = kept else { return };
    let text = format!("Go to {}", moment(kept, &app.zone, true));
    let rect = Align2::CENTER_CENTER.anchor_size(egui::pos2(inner.center().x, below), vec2(220.0, 24.0));
    if ui.put(rect, Button::new(text)).clicked() {
        app.timeline.scrub(kept);
    }
}

/// What to say of a time at which no one is seen, and which time near it would be better.
fn words(app: &App, time: Time) -> (String, Option<Time>) {
    let view = &app.flock;
    let waits = view.past.values().any(|known| known.asked.is_some() && known.trouble.is_none());
    if waits {
        return ("Asking the sensors for what they kept of this moment …".to_owned(), None);
    }
    if let Some((host, trouble)) =
        view.past.iter().find_map(|(host, known)| Some((host, known.trouble.as_ref()?)))
    {
        return (format!("{} tells nothing of this moment: {trouble}", host.host), None);
    }
    let told =
        "Nothing is kept of this moment: a sensor keeps its last minute in memory, and what it recorded.";
    match app.nearest_kept(time) {
        Some(kept) => {
            let apart = span(kept.since(time).max(time.since(kept)).as_secs_f64());
            let side = if kept > time { "later" } else { "earlier" };
            (format!("{told}\nThe nearest that is kept is {apart} {side}."), Some(kept))
        }
        None => (told.to_owned(), None),
    }
}

/// Of how many hosts something is seen at the time that is looked at, where that is not all.
pub(super) fn state(app: &App, ui: &mut Ui, colors: Colors) {
    let is_back = app.timeline.mode() != Mode::Live && matches!(app.source, Source::Daemon(_));
    if !is_back {
        return;
    }
    let all = app.flock.flock.hosts().count();
    let seen = app.flock.flock.hosts_at(app.flock_time());
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
    use crate::app::settings::Settings;
    use crate::invented;

    #[test]
    fn what_reached_to_the_answer_reaches_to_now_as_long_as_its_sensor_can_be_asked() {
        let (at, host) = (invented::time_f, HostName::new("demo", "wn01"));
        let source = Source::Daemon("127.0.0.1:7317".into());
        let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, at(100.0));
        app.flock.wished.hosts = vec![host.clone()];
        app.flock.past.insert(host.clone(), Host::default());
        let told = vec![(at(10.0), at(20.0)), (at(40.0), at(99.0))];
        app.take_kept(at(100.0), &host, Ok((Arc::default(), told)));
        let ends = |app: &mut App, now: f64| {
            (app.now, app.flock.seen) = (at(now), Some(at(now)));
            app.spans_of_flock().map(|(_, to)| to).collect::<Vec<_>>()
        };
        assert_eq!(ends(&mut app, 130.0), [at(20.0), at(130.0)]);
        assert_eq!(ends(&mut app, 161.0), [at(20.0), at(99.0)], "nothing was heard of it for long");
        assert_eq!(ends(&mut app, 130.0), [at(20.0), at(130.0)]);
        app.take_kept(at(131.0), &host, Err("it is gone".to_owned()));
        assert_eq!(ends(&mut app, 132.0), [at(20.0), at(99.0)]);
    }
}
