//! Figures as text: bytes, shares, counts, users, values of metrics.
//!
//! Pure. Not here: times ([`crate::output::times`]).

use std::borrow::Cow;
use wire::api::metrics;
use wire::sample::Number;

/// `512 B`, `1.5 KiB`, `2.0 GiB`.
pub(crate) fn bytes(count: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count.abs() < 1024.0 {
        return format!("{count:.0} B");
    }
    let mut scaled = count / 1024.0;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// The same of a whole number.
#[allow(clippy::cast_precision_loss)] // it is shown with two digits
pub(crate) fn whole_bytes(count: u64) -> String {
    bytes(count as f64)
}

/// A share of one as `12 %`.
pub(crate) fn share(of_one: f64) -> String {
    format!("{:.0} %", of_one * 100.0)
}

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

/// `1 line`, `2 lines`.
pub(crate) fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
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
        check(bytes(512.0), "512 B");
        check(bytes(1536.0), "1.5 KiB");
        check(bytes(2.0 * 1024.0 * 1024.0 * 1024.0), "2.0 GiB");
        check(bytes(f64::MAX), format!("{:.1} EiB", f64::MAX / 1024f64.powi(6)).as_str());
        check(share(0.123), "12 %");
        check(number(3.0), "3");
        check(number(0.25), "0.25");
        check(number(12.34567), "12.346");
        check(number(0.000_012), "1.200e-5");
        check(count(1, "line"), "1 line");
        check(count(0, "line"), "0 lines");
        check(user("1000").into(), "uid 1000");
        check(user("ann7").into(), "ann7");
        check(user("").into(), "");
    }
}
