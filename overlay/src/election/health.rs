//! How well this sensor itself runs: its event loop's lag and what it loses stretch its timers.
//!
//! Pure. Blame yourself first (Lifeguard): who is starved, or sits behind a lossy link, hears everybody late
//! and must not call them lost. The stretch is also told in every heartbeat, so that others are as patient
//! with a representative that knows it is slow.
//! Not here: what is stretched (`candidacy`, `reign`).

use super::Config;
use std::time::Duration;
use wire::time::Moment;

/// How many heartbeats the share of lost ones looks back on, as a smoothing.
const LOSS_WINDOW: u32 = 64;

/// Most heartbeats lost in a row that count: more are a link that was cut, or a host that stood still, and say nothing of
/// how many will be lost from now on.
const LOST_IN_ROW_MAX: u64 = 3;

/// The state of the own health.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// The worst lag lately, and when.
    lag: Duration,
    lagged: Moment,
    /// When it last ran late at all.
    late: Option<Moment>,
    /// Share of heartbeats lost on all links, in millionths.
    loss_ppm: u32,
}

impl Health {
    /// The event loop ran `lag` later than it should.
    pub(super) fn note_lag(&mut self, lag: Duration, config: &Config, now: Moment) {
        if lag * 2 >= config.lag_unit {
            self.late = Some(now);
        }
        if lag >= self.lag_at(config, now) {
            self.lag = lag;
            self.lagged = now;
        }
    }

    /// A heartbeat came, and `missed` before it did not.
    pub(super) fn note_heard(&mut self, missed: u64) {
        for _ in 0..missed.min(LOST_IN_ROW_MAX) {
            self.loss_ppm += (1_000_000 - self.loss_ppm) / LOSS_WINDOW;
        }
        self.loss_ppm -= self.loss_ppm / LOSS_WINDOW;
    }

    /// By how many per cent timers are to be multiplied: from 100 on.
    pub(super) fn stretch_percent(&self, config: &Config, now: Moment) -> u32 {
        if !config.mechanisms.local_health {
            return 100;
        }
        let lag = self.lag_at(config, now).as_millis() * 100 / config.lag_unit.as_millis().max(1);
        self.stretched_by(u32::try_from(lag).unwrap_or(u32::MAX), config)
    }

    /// The same, for how long silence is excused: a stall that is over for longer than silence may last excuses none that came
    /// after it.
    pub(super) fn excuse_percent(&self, config: &Config, now: Moment) -> u32 {
        let is_over = self.late.is_none_or(|late| now.since(late) >= config.suspicion * 2);
        match is_over && config.mechanisms.local_health {
            true => self.stretched_by(0, config),
            false => self.stretch_percent(config, now),
        }
    }

    /// Silence after which a peer that reports `stretch` is suspected.
    pub(super) fn patience(&self, config: &Config, stretch: u8, now: Moment) -> Duration {
        let reported = if config.mechanisms.local_health { u32::from(stretch) * 100 } else { 100 };
        config.suspicion * self.excuse_percent(config, now).max(reported) / 100
    }

    fn stretched_by(&self, lag_percent: u32, config: &Config) -> u32 {
        let loss = self.loss_permille() * 100 / config.loss_unit_permille.max(1);
        // Below half a unit either is the ordinary state of a busy host.
        let part = |percent: u32| if percent < 50 { 0 } else { percent };
        100_u32.saturating_add(part(lag_percent)).saturating_add(part(loss)).min(config.stretch_max * 100)
    }

    /// Share of heartbeats lost lately, in thousandths.
    pub(super) fn loss_permille(&self) -> u32 {
        self.loss_ppm / 1000
    }

    /// The lag, fading.
    pub(super) fn lag_at(&self, config: &Config, now: Moment) -> Duration {
        let left = config.lag_kept.saturating_sub(now.since(self.lagged));
        self.lag.mul_f64(left.as_secs_f64() / config.lag_kept.as_secs_f64().max(0.001))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::DomainName;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn lag_stretches_up_to_eight_times_and_fades() {
        let config = Config::new(DomainName::try_from("d").unwrap());
        let mut health = Health::default();
        assert_eq!(health.stretch_percent(&config, at(0)), 100);
        health.note_lag(Duration::from_millis(1200), &config, at(0));
        assert_eq!(health.stretch_percent(&config, at(0)), 400);
        health.note_lag(Duration::from_secs(60), &config, at(0));
        assert_eq!(health.stretch_percent(&config, at(0)), 800);
        assert_eq!(health.stretch_percent(&config, at(30)), 100);
    }

    #[test]
    fn a_tenth_lost_doubles_the_timers() {
        let config = Config::new(DomainName::try_from("d").unwrap());
        let mut health = Health::default();
        for round in 0..1000 {
            health.note_heard(u64::from(round % 9 == 0));
        }
        let percent = health.stretch_percent(&config, at(0));
        assert!((180..=230).contains(&percent), "{percent}");
    }

    #[test]
    fn a_link_that_was_cut_for_some_seconds_is_no_lossy_one() {
        let config = Config::new(DomainName::try_from("d").unwrap());
        let mut health = Health::default();
        health.note_heard(25);
        assert_eq!(health.stretch_percent(&config, at(0)), 100);
    }
}
