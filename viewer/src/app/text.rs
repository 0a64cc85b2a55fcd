//! Formatting of text: names shortened to their room, counts, times and durations.
//!
//! Rule: one format for each kind of value, in every tab.

use egui::text::LayoutJob;
use egui::{Color32, FontId, Galley, Painter};
use jiff::tz::TimeZone;
use std::sync::Arc;
use wire::time::Time;

/// Names with room for fewer characters than this are cut at their end.
const CUT_INSIDE_FROM: usize = 6;
/// Most attempts to shorten a name inside until it fits: some characters are wider than others.
const TRIES_MAX: usize = 4;

/// A text in one row of at most `room` points, with `…` where it was cut: a name inside, for names of hosts
/// and calls differ at their end, other text at its end.
#[must_use]
pub fn elided(painter: &Painter, text: &str, font: FontId, color: Color32, room: f32) -> Arc<Galley> {
    let at_end = cut_at_end(painter, text, font.clone(), color, room);
    let fitting = at_end.rows.first().map_or(0, |row| row.glyphs.len()).saturating_sub(1);
    if !at_end.elided || fitting < CUT_INSIDE_FROM || text.contains(' ') {
        return at_end;
    }
    for fitting in (CUT_INSIDE_FROM..=fitting).rev().take(TRIES_MAX) {
        let mut galley = cut_at_end(painter, &cut_inside(text, fitting), font.clone(), color, room);
        if !galley.elided {
            Arc::make_mut(&mut galley).elided = true;
            return galley;
        }
    }
    at_end
}

/// A text cut to `left` characters, two fifths of them its end.
fn cut_inside(text: &str, left: usize) -> String {
    let end = left * 2 / 5;
    let start: String = text.chars().take(left - end).collect();
    let rest: String = text.chars().skip(text.chars().count().saturating_sub(end)).collect();
    format!("{start}…{rest}")
}

fn cut_at_end(painter: &Painter, text: &str, font: FontId, color: Color32, room: f32) -> Arc<Galley> {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), font, color);
    job.wrap.max_width = room.max(1.0);
    job.wrap.max_rows = 1;
    job.wrap.break_anywhere = true;
    job.wrap.overflow_character = Some('…');
    painter.layout_job(job)
}

/// `1 host`, `2 hosts`.
#[must_use]
pub fn count(number: u32, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// A time of day, after its date where `with_date` is set.
#[must_use]
pub fn moment(time: Time, zone: &TimeZone, with_date: bool) -> String {
    let Ok(stamp) = jiff::Timestamp::from_microsecond(time.micros()) else { return "—".to_owned() };
    let zoned = stamp.to_zoned(zone.clone());
    zoned.strftime(if with_date { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" }).to_string()
}

/// A duration in its two largest units.
#[must_use]
pub fn span(secs: f64) -> String {
    if !secs.is_finite() {
        return "—".to_owned();
    }
    let secs = secs.abs();
    if secs < 0.9995 {
        return format!("{:.0} ms", secs * 1e3);
    }
    if secs < 9.95 {
        return format!("{secs:.1} s");
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = secs.round().min(1e15) as u64;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let at = units.iter().position(|&(unit, _)| whole >= unit).unwrap_or(3);
    let (unit, word) = units[at];
    match units.get(at + 1).map(|&(small, word)| (whole % unit / small, word)) {
        Some((rest, small)) if rest > 0 => format!("{} {word} {rest} {small}", whole / unit),
        _ => format!("{} {word}", whole / unit),
    }
}

/// A share as a whole number of percent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let check = |secs: f64, expected: &str| assert_eq!(span(secs), expected, "{secs}");
        check(0.0, "0 ms");
        check(0.0123, "12 ms");
        check(1.25, "1.2 s");
        check(59.7, "1 min");
        check(61.0, "1 min 1 s");
        check(3_600.0, "1 h");
        check(90_061.0, "1 d 1 h");
        check(f64::NAN, "—");
        check(1e300, "11574074074 d 1 h");
    }

    #[test]
    fn names_are_cut_inside_and_sentences_at_their_end() {
        let ctx = egui::Context::default();
        let mut found = Vec::new();
        let _output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let names = ["worker-of-the-second-room-0017", "no report since the power went", "wn01"];
            for text in names {
                let galley = elided(ui.painter(), text, FontId::monospace(12.0), Color32::WHITE, 110.0);
                assert!(galley.size().x <= 110.0);
                let shown: String = galley.rows[0].glyphs.iter().map(|glyph| glyph.chr).collect();
                found.push((shown, galley.elided));
            }
        });
        assert!(found[0].0.starts_with("worker") && found[0].0.ends_with("0017") && found[0].1, "{found:?}");
        assert!(found[1].0.starts_with("no report") && found[1].0.ends_with('…'), "{found:?}");
        assert_eq!(found[2], ("wn01".to_owned(), false));
    }

    #[test]
    fn moments_beyond_the_calendar_are_a_dash() {
        assert_eq!(moment(Time::from_micros(0), &TimeZone::UTC, true), "1970-01-01 00:00:00");
        assert_eq!(moment(Time::from_micros(i64::MAX), &TimeZone::UTC, false), "—");
        assert_eq!((count(1, "host"), count(0, "host")), ("1 host".to_owned(), "0 hosts".to_owned()));
    }
}
