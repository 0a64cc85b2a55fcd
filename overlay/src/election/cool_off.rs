//! Back-off of a sensor that lost the role: it does not stand again for a while, longer each time.
//!
//! Pure. Held in memory only: a crash is never waited out. While it lasts a sensor stands last, and only if
//! it hears no other that may stand (`succession`): the back-off must not leave a domain without a
//! representative.
//! Not here: what a loss of the role is (`node::representative`).

use super::Config;
use std::time::Duration;
use wire::backoff::Backoff;
use wire::time::Moment;

#[derive(Clone, Debug, Default)]
pub(super) struct CoolOff {
    /// Losses of the role that followed another before it counted as forgotten.
    repeats: u32,
    lost: Option<Moment>,
}

impl CoolOff {
    /// The role was lost.
    pub(super) fn start(&mut self, config: &Config, now: Moment) {
        let quiet = self.lost.is_none_or(|lost| now.since(lost) >= self.span(config) + config.cool_off_max);
        self.repeats = if quiet { 0 } else { self.repeats.saturating_add(1) };
        self.lost = Some(now);
    }

    /// Whether this sensor may stand as any other.
    pub(super) fn is_over(&self, config: &Config, now: Moment) -> bool {
        !config.mechanisms.cool_off || self.lost.is_none_or(|lost| now.since(lost) >= self.span(config))
    }

    fn span(&self, config: &Config) -> Duration {
        Backoff::new(config.cool_off, config.cool_off_max).pause(self.repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::DomainName;

    #[test]
    fn it_doubles_up_to_a_limit_and_starts_over_after_quiet() {
        let config = Config::new(DomainName::try_from("d").unwrap());
        let mut cool_off = CoolOff::default();
        let mut now = Moment::default();
        assert!(cool_off.is_over(&config, now));
        for secs in [60, 120, 240, 480, 600, 600] {
            cool_off.start(&config, now);
            let span = Duration::from_secs(secs);
            assert!(!cool_off.is_over(&config, now.plus(span - Duration::from_millis(1))), "{secs}");
            now = now.plus(span);
            assert!(cool_off.is_over(&config, now), "{secs}");
        }
        now = now.plus(config.cool_off_max + config.cool_off_max);
        cool_off.start(&config, now);
        assert!(cool_off.is_over(&config, now.plus(config.cool_off)));
    }
}
