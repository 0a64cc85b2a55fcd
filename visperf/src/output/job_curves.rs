//! Curves of a job: as plots, as small bars on its page, and as comma-separated values.
//!
//! Pure.

use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::plot::Plot;
use crate::output::sparkline::sparkline_from_zero;
use crate::output::table::{Cell, Table};
use crate::output::times::{shown, to_second};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use wire::api::job_series::JobCurve;
use wire::shown::{age, bytes, whole_bytes};

/// Lines of a plot, at most: as many as there are colours that differ enough.
const LINES_MAX: usize = 6;

/// Curves on the page of a job.
const SHOWN_MAX: usize = 8;

/// Bars of a curve on the page of a job.
const BARS: usize = 24;

const COLUMNS: &str =
    "host,uid,started,time,cpus,memory_bytes,processes,threads,read_bytes_per_sec,written_bytes_per_sec";

/// Print curves as comma-separated values, with a line of names; times are in UTC.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_csv(curves: &[(String, JobCurve)], output: &mut Output) -> Result<(), Failure> {
    output.line(COLUMNS)?;
    for (host, curve) in curves {
        for (at, time) in curve.times.iter().enumerate() {
            let whole = |values: &[u64]| values.get(at).map(ToString::to_string).unwrap_or_default();
            let real = |values: &[f64]| values.get(at).map(|value| format!("{value:.4}")).unwrap_or_default();
            let row = [
                clean(host).replace(',', " "),
                curve.uid.to_string(),
                shown(curve.started.0, &TimeZone::UTC),
                shown(time.0, &TimeZone::UTC),
                real(&curve.cpus),
                whole(&curve.memory_bytes),
                whole(&curve.processes),
                whole(&curve.threads),
                real(&curve.read_bytes_per_sec),
                real(&curve.written_bytes_per_sec),
            ];
            output.line(&row.join(","))?;
        }
    }
    Ok(())
}

/// Print CPUs in use and memory as lines over time, a plot each, and a table below.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_plots(
    curves: &[(String, JobCurve)],
    step_secs: f64,
    zone: &TimeZone,
    output: &mut Output,
) -> Result<(), Failure> {
    let step = age(step_secs);
    // Without colours two lines in one plot would look alike.
    let lines = curves.len().min(if output.has_colors() { LINES_MAX } else { 1 });
    let cpus = |curve: &JobCurve| curve.cpus.clone();
    let head = format!("CPUs in use, on average of {step}");
    plot(&curves[..lines], &head, &cpus, &cores, zone, output)?;
    let memory = |curve: &JobCurve| curve.memory_bytes.iter().map(|bytes| float(*bytes)).collect();
    plot(&curves[..lines], &format!("memory, most in {step}"), &memory, &bytes, zone, output)?;
    if lines < curves.len() {
        let text = format!("{lines} of {} curves are drawn; --host chooses others", curves.len());
        output.line(&output.paint(Color::Dim, &text))?;
    }
    print_bars(curves, output)
}

fn plot(
    curves: &[(String, JobCurve)],
    head: &str,
    values: &dyn Fn(&JobCurve) -> Vec<f64>,
    figure: &dyn Fn(f64) -> String,
    zone: &TimeZone,
    output: &mut Output,
) -> Result<(), Failure> {
    let times = || curves.iter().flat_map(|(_, curve)| &curve.times).map(|time| time.0);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return Ok(()) };
    output.line(&output.paint(Color::Head, head))?;
    let line = |curve: &JobCurve| {
        let times = curve.times.iter().map(|time| time.0.secs_f64());
        times.zip(values(curve)).collect::<Vec<(f64, f64)>>()
    };
    let plot = Plot {
        lines: curves.iter().map(|(_, curve)| line(curve)).collect(),
        span: [first.secs_f64(), last.secs_f64().max(first.secs_f64() + 1.0)],
        times: [to_second(first, zone), to_second(last, zone)],
        figure,
    };
    plot.print(output)?;
    if curves.len() > 1 {
        for (place, curve) in curves.iter().enumerate() {
            let mark = output.paint(Color::Series(u8::try_from(place).unwrap_or(u8::MAX)), "━━").into_owned();
            output.line(&format!("{mark} {}", name(curves, curve)))?;
        }
    }
    output.line("")
}

/// Print a line for each curve: its mean, its most, and small bars over time.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_bars(curves: &[(String, JobCurve)], output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "CPUS", "MOST", "OVER TIME", "MEMORY", "OVER TIME"];
    let mut table = Table::new(&heads);
    for both in curves.iter().take(SHOWN_MAX) {
        let curve = &both.1;
        let memory: Vec<f64> = curve.memory_bytes.iter().map(|bytes| float(*bytes)).collect();
        let most = curve.cpus.iter().copied().fold(0.0, f64::max);
        table.row(vec![
            Cell::text(name(curves, both)).color(Color::Name),
            Cell::figure(format!("{:.2}", mean(curve))),
            Cell::figure(format!("{most:.2}")),
            Cell::text(sparkline_from_zero(&over_time(curve, &curve.cpus), BARS)),
            Cell::figure(whole_bytes(curve.memory_bytes.iter().copied().max().unwrap_or_default())),
            Cell::text(sparkline_from_zero(&over_time(curve, &memory), BARS)),
        ]);
    }
    table.print(output)?;
    if curves.len() > SHOWN_MAX {
        let text = format!("{SHOWN_MAX} of {} curves; visperf job series has all", curves.len());
        output.line(&output.paint(Color::Dim, &text))?;
    }
    Ok(())
}

/// The values by time, at most as many as there are bars: the mean of each part of the time, not a number where there is none.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn over_time(curve: &JobCurve, values: &[f64]) -> Vec<f64> {
    let secs = |at: usize| curve.times.get(at).map_or(0.0, |time| time.0.secs_f64());
    let (count, first) = (values.len().min(BARS), secs(0));
    let width = (secs(values.len().saturating_sub(1)) - first) / count.max(1) as f64;
    let mut parts = vec![(0.0, 0.0); count];
    for (at, value) in values.iter().enumerate() {
        let part = if width > 0.0 { ((secs(at) - first) / width) as usize } else { 0 };
        let (sum, number) = &mut parts[part.min(count - 1)];
        (*sum, *number) = (*sum + value, *number + 1.0);
    }
    parts.into_iter().map(|(sum, number): (f64, f64)| sum / number).collect()
}

/// Number of CPUs, with the digits that small ones need.
fn cores(cpus: f64) -> String {
    if cpus > 0.0 && cpus < 1.0 { format!("{cpus:.3}") } else { format!("{cpus:.1}") }
}

/// Name of a curve: its host, and its user where another one claims the job too.
fn name(curves: &[(String, JobCurve)], (host, curve): &(String, JobCurve)) -> String {
    let is_other = |(known, other): &(String, JobCurve)| known == host && other.uid != curve.uid;
    let host = clean(host);
    if curves.iter().any(is_other) { format!("{host} (uid {})", curve.uid) } else { host.into_owned() }
}

/// Mean CPUs in use over the time of the curve: steps may be of different length.
fn mean(curve: &JobCurve) -> f64 {
    let mut before = curve.started.0.secs_f64();
    let (mut used, mut all) = (0.0, 0.0);
    for (time, cpus) in curve.times.iter().zip(&curve.cpus) {
        let secs = (time.0.secs_f64() - before).max(0.0);
        // What was before the first point may be left out.
        if all > 0.0 || secs <= 120.0 {
            used += cpus * secs;
            all += secs;
        }
        before = time.0.secs_f64();
    }
    if all > 0.0 { used / all } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // amounts are below 2^53
fn float(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use wire::api::UnixTime;
    use wire::time::Time;

    fn at(secs: i64) -> UnixTime {
        UnixTime(Time::from_micros(secs * 1_000_000))
    }

    fn curves() -> Vec<(String, JobCurve)> {
        let curve = |cpus: f64| JobCurve {
            uid: 1000,
            started: at(100),
            times: (1..=60).map(|second| at(100 + second)).collect(),
            cpus: (0..60).map(|second| if second < 30 { cpus } else { 0.0 }).collect(),
            memory_bytes: vec![1 << 30; 60],
            processes: vec![3; 60],
            threads: vec![4; 60],
            read_bytes_per_sec: vec![0.5; 60],
            written_bytes_per_sec: vec![0.0; 60],
            ..JobCurve::default()
        };
        vec![("wn01".to_owned(), curve(4.0)), ("wn02".to_owned(), curve(2.0))]
    }

    fn printed(print: impl Fn(&mut Output) -> Result<(), Failure>, width: Option<usize>) -> String {
        let shared = Capture::default();
        print(&mut Output::into_writer(shared.clone(), width)).unwrap();
        shared.text()
    }

    #[test]
    fn a_job_has_a_line_for_each_host_with_its_mean_and_most() {
        let text = printed(|output| print_bars(&curves(), output), Some(100));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        for part in ["wn01", "2.00", "4.00", "████", "1.0 GiB"] {
            assert!(lines[1].contains(part), "{part} in {text}");
        }
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        let mut gap = curves().remove(0);
        gap.1
            .times
            .iter_mut()
            .skip(30)
            .for_each(|time| *time = UnixTime(time.0.plus(std::time::Duration::from_secs(60))));
        gap.1.cpus.fill(1.0);
        let text = printed(|output| print_bars(std::slice::from_ref(&gap), output), Some(100));
        assert!(
            text.contains(&format!("██████{}██████", " ".repeat(12))),
            "a time without points is a gap: {text}"
        );
        let many: Vec<_> = std::iter::repeat_with(curves).take(10).flatten().collect();
        assert!(printed(|output| print_bars(&many, output), None).contains("8 of 20 curves"));
    }

    #[test]
    fn plots_have_both_amounts_and_say_what_is_not_drawn() {
        let text = printed(|output| print_plots(&curves(), 1.0, &TimeZone::UTC, output), Some(80));
        for part in
            ["CPUs in use, on average of 1s", "memory, most in 1s", "1 of 2 curves are drawn", "00:01:41"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(
            printed(|output| print_plots(&[], 1.0, &TimeZone::UTC, output), Some(80)).lines().count(),
            1
        );
    }

    #[test]
    fn values_have_a_row_for_each_host_and_point() {
        let text = printed(|output| print_csv(&curves(), output), None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (121, COLUMNS));
        assert_eq!(
            lines[1],
            "wn01,1000,1970-01-01T00:01:40.000Z,1970-01-01T00:01:41.000Z,4.0000,1073741824,3,4,0.5000,0.0000"
        );
    }
}
