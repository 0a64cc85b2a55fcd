//! Synthetic metrics: for tests and measurements of graphs.
//!
//! Pure. Rule: the same host gives the same metrics.

use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::series::HostSeries;
use crate::synthetic::time_f;
use overlay::dice::Dice;

/// Length of the series and interval of its samples, in seconds.
const UNTIL_SECS: u32 = 3_600;
const STEP_SECS: u32 = 2;

/// The series of a host over the synthetic hour.
#[must_use]
pub fn host(host: &HostName) -> HostSeries {
    let seed = host
        .domain
        .bytes()
        .chain(host.host.bytes())
        .fold(17_u64, |seed, byte| seed.wrapping_mul(1_099_511_628_211).wrapping_add(u64::from(byte)));
    let mut dice = Dice::new(seed);
    let mut share = || f64::from(u32::try_from(dice.draw() >> 40).unwrap_or(0)) / f64::from(1 << 24);
    let (much, pace, phase) = (share(), 120.0 + 700.0 * share(), share() * std::f64::consts::TAU);
    let mut series = HostSeries::new();
    let mut load = 0.0;
    for secs in (0..UNTIL_SECS).step_by(STEP_SECS as usize) {
        let turn = phase + f64::from(secs) / pace * std::f64::consts::TAU;
        // Jobs come and go: plateaus with a little noise.
        let busy = (much * (0.5 + 0.5 * (2.4 * turn.sin()).tanh()) + 0.03 * share()).clamp(0.0, 1.0);
        load += (32.0 * busy - load) / 30.0;
        let burst = if share() > 0.97 { 1.0 } else { 0.08 };
        let of_line = |line: &str| match line {
            "user" => 27.0 * busy,
            "system" => 3.0 * busy,
            "I/O wait" => 2.0 * burst * busy,
            "CPU" => 30.0 * busy + 2.0 * burst * busy,
            "read" => 24e6 * burst * busy,
            "written" => 9e6 * busy,
            "disk" => 24e6 * burst * busy + 9e6 * busy,
            "received" => 40e6 * busy * burst,
            "sent" => 5e6 * busy,
            "network" => 40e6 * busy * burst + 5e6 * busy,
            "memory" => 12e9 + 80e9 * busy,
            _ => load,
        };
        for metric in Metric::USUAL {
            for line in metric.usual_lines().iter().copied().chain(metric.whole()) {
                series.entry(line.to_owned()).or_default().push(time_f(f64::from(secs)), of_line(line));
            }
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::metric::Shows;

    #[test]
    fn the_same_host_has_the_same_figures_and_another_others() {
        let one = host(&HostName::new("a", "wn01"));
        assert_eq!(one, host(&HostName::new("a", "wn01")));
        assert_ne!(one, host(&HostName::new("a", "wn02")));
        assert!(Metric::USUAL.iter().all(|metric| !metric.lines(&one, Shows::Parts).is_empty()));
    }
}
