//! Amounts as people read them: bytes, shares, counts, spans of time.
//!
//! Pure. Not here: points in time, and values of metrics (`visperf::output`).

/// `512 B`, `1.5 KiB`, `2.0 GiB`.
#[must_use]
pub fn bytes(count: f64) -> String {
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
#[must_use]
#[allow(clippy::cast_precision_loss)] // it is shown with two digits
pub fn whole_bytes(count: u64) -> String {
    bytes(count as f64)
}

/// A share of one as `12 %`.
#[must_use]
pub fn share(of_one: f64) -> String {
    format!("{:.0} %", of_one * 100.0)
}

/// `1 line`, `2 lines`.
#[must_use]
pub fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// A span in seconds as `40ms`, `3s`, `5m`, `2h10m`, `4d`.
#[must_use]
pub fn age(secs: f64) -> String {
    #[allow(clippy::cast_possible_truncation)] // cut to whole seconds on purpose; huge spans saturate
    let whole = secs as i64;
    match whole {
        _ if secs < 0.0 => format!("-{}", age(-secs)),
        _ if !secs.is_finite() => "?".to_owned(),
        0 if secs >= 0.000_5 => format!("{:.0}ms", secs * 1e3),
        0..=119 => format!("{whole}s"),
        120..=7199 => format!("{}m", whole / 60),
        7200..=172_799 if whole % 3600 < 60 => format!("{}h", whole / 3600),
        7200..=172_799 => format!("{}h{}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d", whole / 86_400),
    }
}

/// As [`age`], with tenths of a second from one second up to two minutes.
#[must_use]
pub fn tenths(secs: f64) -> String {
    if (1.0..120.0).contains(&secs) { format!("{secs:.1}s") } else { age(secs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(bytes(512.0), "512 B");
        check(bytes(1536.0), "1.5 KiB");
        check(whole_bytes(2 << 30), "2.0 GiB");
        check(bytes(f64::MAX), format!("{:.1} EiB", f64::MAX / 1024f64.powi(6)).as_str());
        check(share(0.123), "12 %");
        check(count(1, "line"), "1 line");
        check(count(0, "line"), "0 lines");
        check(tenths(4.25), "4.2s");
        check(tenths(0.25), "250ms");
        check(tenths(7500.0), "2h5m");
    }
}
