//! Axes of graphs: ticks at round times and round values, and short labels of values.
//!
//! Pure. Rule: ticks are round in the calendar and the clock of the zone: at midnight, on Mondays, on the first of a
//! month.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time as Time24};
use jiff::tz::TimeZone;
use wire::time::Time;

/// Maximum number of ticks on an axis.
const MARKS_MAX: usize = 24;

/// A round time on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub time: Time,
    /// As short as the distance to the next allows.
    pub label: String,
}

/// Distance of two ticks.
#[derive(Clone, Copy)]
enum Step {
    /// At most half a day, in microseconds.
    Micros(i64),
    Days(i64),
    Months(i64),
}

const SEC: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SEC;
const DAY: i64 = 24 * HOUR;
/// Days from 1970-01-01, a Thursday, to the first Monday.
const TO_MONDAY: i64 = 4;

/// The steps, the shortest first.
const STEPS: [Step; 31] = {
    use Step::{Days, Micros, Months};
    [
        Micros(SEC / 100),
        Micros(SEC / 10),
        Micros(SEC / 2),
        Micros(SEC),
        Micros(2 * SEC),
        Micros(5 * SEC),
        Micros(10 * SEC),
        Micros(20 * SEC),
        Micros(30 * SEC),
        Micros(60 * SEC),
        Micros(120 * SEC),
        Micros(300 * SEC),
        Micros(600 * SEC),
        Micros(1_200 * SEC),
        Micros(1_800 * SEC),
        Micros(HOUR),
        Micros(2 * HOUR),
        Micros(4 * HOUR),
        Micros(6 * HOUR),
        Micros(12 * HOUR),
        Days(1),
        Days(2),
        Days(7),
        Days(14),
        Months(1),
        Months(2),
        Months(3),
        Months(6),
        Months(12),
        Months(24),
        Months(60),
    ]
};

impl Step {
    /// Its length; of months about.
    fn micros(self) -> i64 {
        match self {
            Step::Micros(micros) => micros,
            Step::Days(days) => days * DAY,
            Step::Months(months) => months * 30 * DAY,
        }
    }

    /// The first tick after a local time, and those that follow, in local time.
    fn after(self, local: DateTime) -> impl Iterator<Item = DateTime> {
        let micros = local.to_zoned(TimeZone::UTC).map_or(0, |zoned| zoned.timestamp().as_microsecond());
        let month = i64::from(local.year()) * 12 + i64::from(local.month()) - 1;
        let next = move |of: i64, by: i64, offset: i64| (of - offset).div_euclid(by) * by + by + offset;
        let first = match self {
            Step::Micros(by) => next(micros, by, 0),
            Step::Days(by) => next(micros.div_euclid(DAY), by, if by % 7 == 0 { TO_MONDAY } else { 0 }),
            Step::Months(by) => next(month, by, 0),
        };
        (0..).map_while(move |number: i64| match self {
            Step::Micros(by) => utc(first.saturating_add(number * by)),
            Step::Days(by) => utc((first + number * by).saturating_mul(DAY)),
            Step::Months(by) => {
                let month = first + number * by;
                let year = i16::try_from(month.div_euclid(12)).ok()?;
                Date::new(year, i8::try_from(month.rem_euclid(12) + 1).ok()?, 1).ok().map(DateTime::from)
            }
        })
    }

    fn label(self, local: DateTime) -> String {
        let format = match self {
            Step::Micros(micros) if micros < SEC => "%H:%M:%S%.2f",
            Step::Micros(micros) if micros < 60 * SEC => "%H:%M:%S",
            Step::Micros(_) if local.time() != Time24::midnight() => "%H:%M",
            Step::Micros(_) | Step::Days(_) => "%b %-d",
            Step::Months(months) if months < 12 => "%Y-%m",
            Step::Months(_) => "%Y",
        };
        local.strftime(format).to_string()
    }
}

/// The date and time that a clock without a zone shows so many microseconds after 1970.
fn utc(micros: i64) -> Option<DateTime> {
    let time = Timestamp::from_microsecond(micros).ok()?;
    Some(time.to_zoned(TimeZone::UTC).datetime())
}

/// Round times of a zone between two times, at most `most` of them.
#[must_use]
pub fn ticks(from: Time, to: Time, most: usize, zone: &TimeZone) -> Vec<Tick> {
    let most = most.clamp(1, MARKS_MAX);
    let width = to.micros().saturating_sub(from.micros());
    let count = i64::try_from(most).unwrap_or(i64::MAX);
    let fits = |step: &Step| width <= step.micros().saturating_mul(count);
    let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
    let Ok(start) = Timestamp::from_microsecond(from.micros()) else { return Vec::new() };
    let tick = |local: DateTime| {
        let zoned = local.to_zoned(zone.clone()).ok()?;
        let time = Time::from_micros(zoned.timestamp().as_microsecond());
        Some(Tick { time, label: step.label(zoned.datetime()) })
    };
    let ticks = step.after(start.to_zoned(zone.clone()).datetime()).map_while(tick);
    ticks.skip_while(|tick| tick.time <= from).take_while(|tick| tick.time <= to).take(most).collect()
}

/// Round values from `low` to `high`, about `most` of them, including one other than zero if possible.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn round(low: f64, high: f64, most: usize) -> Vec<f64> {
    let most = most.clamp(1, MARKS_MAX);
    let rough = ((high - low) / most as f64).max(1e-12);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [0.5, 1.0, 2.0, 5.0, 10.0].map(|by| by * power);
    let at = steps.iter().position(|step| *step >= rough).unwrap_or(steps.len() - 1);
    // If not even one step fits into the plot, use the next smaller.
    let at = if steps[at] > high.max(-low) { at.saturating_sub(1) } else { at };
    let step = steps[at];
    let first = (low / step).ceil();
    (0_u32..24).map(|number| (first + f64::from(number)) * step).take_while(|value| *value <= high).collect()
}

/// Range of a plot: from zero to a little beyond the extreme values.
#[must_use]
pub fn reach(figures: impl Iterator<Item = f64>, at_least: f64) -> (f64, f64) {
    let finite = figures.filter(|figure| figure.is_finite());
    let (low, high) =
        finite.fold((0.0_f64, at_least.max(0.0)), |(low, high), figure| (low.min(figure), high.max(figure)));
    if low < high { (low * 1.06, high * 1.06) } else { (0.0, 1.0) }
}

/// A value in at most four characters and a unit; a very small or very large one as a power of ten.
#[must_use]
pub fn short(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 0.01) {
        return format!("{value:.1e}");
    }
    match units.iter().find(|(unit, _)| value.abs() >= *unit) {
        Some((unit, word)) => {
            let digits: String = format!("{:.3}", value / unit).chars().take(4).collect();
            digits.trim_end_matches('.').to_owned() + word
        }
        None if value.fract() == 0.0 => format!("{value:.0}"),
        None => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn marks_stand_at_whole_moments_and_round_figures() {
        let from = Time::from_micros(1_000_000_007_500_000);
        let marks = ticks(from, from.plus(Duration::from_secs(300)), 6, &TimeZone::UTC);
        assert_eq!(marks.len(), 5);
        assert!(marks.iter().all(|mark| mark.time.micros() % 60_000_000 == 0 && mark.time > from));
        assert_eq!(ticks(from, from.plus(Duration::from_secs(300)), 2, &TimeZone::UTC).len(), 1);
        assert_eq!(round(0.0, 270.0, 4), [0.0, 100.0, 200.0]);
        assert_eq!(round(0.0, 1.06, 2), [0.0, 1.0]);
        assert_eq!(round(0.0, 45e6, 2), [0.0, 20e6, 40e6], "not nothing alone");
        assert!(round(0.0, 0.0, 4).len() <= MARKS_MAX && round(f64::NAN, 1.0, 4).len() <= MARKS_MAX);
        for odd in [i64::MAX, i64::MIN] {
            assert!(ticks(from, Time::from_micros(odd), 99, &TimeZone::UTC).len() <= MARKS_MAX);
            assert!(ticks(Time::from_micros(odd), from, 99, &TimeZone::UTC).len() <= MARKS_MAX);
        }
    }

    #[test]
    fn ticks_are_round_in_their_zone_and_as_short_as_can_be() {
        let rome = TimeZone::get("Europe/Rome").unwrap();
        // 2026-10-23 10:30 in Rome; two days later its clocks are set back.
        let from = Time::from_secs_f64(1_792_744_200.0);
        let check = |days: f64, most: usize, expected: &[&str]| {
            let ticks = ticks(from, from.plus(Duration::from_secs_f64(days * 86_400.0)), most, &rome);
            let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
            assert_eq!(labels, expected, "{days} days");
        };
        check(2e-6, 2, &["10:30:00.10"]);
        check(0.001, 4, &["10:30:30", "10:31:00"]);
        check(0.1, 4, &["11:00", "12:00"]);
        check(1.0, 4, &["12:00", "18:00", "Oct 24", "06:00"]);
        check(4.0, 4, &["Oct 24", "Oct 25", "Oct 26", "Oct 27"]);
        check(30.0, 5, &["Oct 26", "Nov 2", "Nov 9", "Nov 16"]);
        check(200.0, 8, &["2026-11", "2026-12", "2027-01", "2027-02", "2027-03", "2027-04", "2027-05"]);
        check(1_830.0, 8, &["2027", "2028", "2029", "2030", "2031"]);
    }

    #[test]
    fn plots_reach_from_nothing_to_a_little_beyond_the_greatest() {
        assert_eq!(reach([0.2, 0.4].into_iter(), 1.0), (0.0, 1.06));
        assert_eq!(reach([f64::NAN, 100.0, -50.0].into_iter(), 0.0), (-53.0, 106.0));
        assert_eq!(reach([0.0, f64::INFINITY].into_iter(), 0.0), (0.0, 1.0));
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.25, 12.0, 1_000.0, 123_456.0, 1.5e9, 0.001, -0.002, 1.7e18].map(short);
        assert_eq!(shown, ["0", "0.25", "12", "1.00k", "123k", "1.50G", "1.0e-3", "-2.0e-3", "1.7e18"]);
    }
}
