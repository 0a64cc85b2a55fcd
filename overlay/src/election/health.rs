//! Local health: the lag of the own event loop and the loss of heartbeats stretch the timers.
//!
//! Pure. A sensor doubts itself first (Lifeguard): one that is starved, or is behind a lossy link, hears all
//! others late and must not count them as lost. Every heartbeat carries the stretch, so that others are as
//! patient with a representative that knows that it is slow.
//! Not here: what is stretched (`node`, `succession`).

use super::Config;
use std::time::Duration;
use wire::time::Moment;

/// Window of the moving average of lost heartbeats, in heartbeats.
const LOSS_WINDOW: u32 = 64;

/// Most heartbeats lost in a row that count: more mean a link that was cut or a host that was suspended,
/// which does not predict further loss.
const LOST_IN_ROW_MAX: u64 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// The worst recent lag, and when it was measured.
    lag: Duration,
    lagged: Moment,
    /// When the event loop was last late by half a unit or more.
    late: Option<Moment>,
    /// Moving average of the share of lost heartbeats on all links, in millionths.
    loss_ppm: u32,
}

impl Health {
    /// The event loop was late by `lag`.
    pub(super) fn note_lag(&mut self, lag: Duration, config: &Config, now: Moment) {
        if lag * 2 >= config.lag_unit {
            self.late = Some(now);
        }
        if lag >= self.lag_at(config, now) {
            self.lag = lag;
            self.lagged = now;
        }
    }

    /// A heartbeat arrived, and `missed` before it did not.
    pub(super) fn note_heard(&mut self, missed: u64) {
        for _ in 0..missed.min(LOST_IN_ROW_MAX) {
            self.loss_ppm += (1_000_000 - self.loss_ppm) / LOSS_WINDOW;
        }
        self.loss_ppm -= self.loss_ppm / LOSS_WINDOW;
    }

    /// Factor of the timers in per cent: 100 or more.
    pub(super) fn stretch_percent(&self, config: &Config, now: Moment) -> u32 {
        if !config.mechanisms.local_health {
            return 100;
        }
        let lag = self.lag_at(config, now).as_millis() * 100 / config.lag_unit.as_millis().max(1);
        self.stretched_by(u32::try_from(lag).unwrap_or(u32::MAX), config)
    }

    /// The same for the silence that is excused: a lag that ended longer ago than silence may last does not
    /// excuse silence after it.
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
        // Less than half a unit of either is normal on a busy host.
        let part = |percent: u32| if percent < 50 { 0 } else { percent };
        100_u32.saturating_add(part(lag_percent)).saturating_add(part(loss)).min(config.stretch_max * 100)
    }

    /// Recent share of lost heartbeats, in thousandths.
    pub(super) fn loss_permille(&self) -> u32 {
        self.loss_ppm / 1000
    }

    /// The lag as it has faded by `now`.
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
