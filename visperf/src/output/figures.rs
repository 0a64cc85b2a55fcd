//! Figures as text: numbers, users, values of metrics.
//!
//! Pure. Not here: times ([`crate::output::times`]), bytes, shares and counts (`wire::shown`).

use std::borrow::Cow;
use wire::api::metrics;
use wire::sample::Number;

/// A number with as many digits as it needs, at most three after the point.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "0" | "-0" => format!("{value:.3e}"),
        cut => cut.to_owned(),
    }
}

/// `1:05`, `3:00:07`: whole seconds as minutes and seconds, with hours where there are some.
pub(crate) fn clock(secs: u64) -> String {
    match secs / 3600 {
        0 => format!("{}:{:02}", secs / 60, secs % 60),
        hours => format!("{hours}:{:02}:{:02}", secs / 60 % 60, secs % 60),
    }
}

/// A user by name; if only the UID is known, as `uid 1000`.
pub(crate) fn user(name: &str) -> Cow<'_, str> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("uid {name}").into() } else { name.into() }
}

/// A value of a metric: whole ones with all their digits.
pub(crate) fn metric_value(value: metrics::Value) -> String {
    match value.0 {
        Number::Whole(whole) => whole.to_string(),
        Number::Real(real) => number(real),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(number(3.0), "3");
        check(number(0.25), "0.25");
        check(number(12.34567), "12.346");
        check(number(0.000_012), "1.200e-5");
        check(user("1000").into(), "uid 1000");
        check(user("ann7").into(), "ann7");
        check(user("").into(), "");
    }
}
