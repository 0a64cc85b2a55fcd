//! Configuration of the graphs: hosts, metrics, arrangement, and time span.
//!
//! Pure. Rule: the user's choice is restored at the next start, and a settings file is validated like typed
//! input. Not here: the source of the data (`live`), drawing (`app::graphs`).

pub mod axis;
pub mod cells;
pub mod coverage;
pub mod metric;
pub mod span;
pub mod tiles;

use crate::flock::sweep::HostName;
use metric::Metric;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum number of hosts with graphs.
pub const HOSTS_MAX: usize = 64;
/// Maximum number of metrics.
pub const METRICS_MAX: usize = 8;

/// Farthest time that is compared, in seconds: five years.
const COMPARED_SECS_MAX: u64 = 5 * 366 * 86_400;

/// Arrangement of plots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrangement {
    /// One plot for each metric, with all hosts in it.
    #[default]
    Together,
    /// Small multiples: one plot for each host and metric.
    Each,
}

/// Scale of the vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The same in every plot of a metric, so that they can be compared.
    #[default]
    Shared,
    /// From the highest value of each plot.
    Own,
}

/// The user's choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    pub arrangement: Arrangement,
    pub scale: Scale,
    pub span: span::Span,
    /// How much earlier the time is that is compared, in seconds; 0 for none.
    compared_secs: u64,
    /// Domain and name of the hosts; the first live ones while the user has not chosen.
    hosts: Option<Vec<(String, String)>>,
    /// Keywords of the metrics; all built-in ones while the user has not chosen.
    metrics: Option<Vec<String>>,
}

impl Choice {
    /// The hosts, if the user has chosen.
    #[must_use]
    pub fn hosts(&self) -> Option<Vec<HostName>> {
        let hosts = self.hosts.as_ref()?;
        Some(hosts.iter().take(HOSTS_MAX).map(|(domain, host)| HostName::new(domain, host)).collect())
    }

    /// Choose these hosts; `None` returns to the first live ones.
    pub fn set_hosts(&mut self, hosts: Option<&[HostName]>) {
        let pair = |host: &HostName| (host.domain.to_string(), host.host.to_string());
        self.hosts = hosts.map(|hosts| hosts.iter().take(HOSTS_MAX).map(pair).collect());
    }

    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        match &self.metrics {
            None => Metric::USUAL.to_vec(),
            Some(words) => {
                words.iter().filter_map(|word| Metric::parse(word).ok()).take(METRICS_MAX).collect()
            }
        }
    }

    /// How much earlier the time is that is compared, if one is.
    #[must_use]
    pub fn compared(&self) -> Option<Duration> {
        let secs = self.compared_secs.min(COMPARED_SECS_MAX);
        (secs > 0).then(|| Duration::from_secs(secs))
    }

    /// Compare with the time so much earlier; with none for `None`.
    pub fn compare(&mut self, before: Option<Duration>) {
        self.compared_secs = before.map_or(0, |before| before.as_secs());
    }

    /// Add or remove a metric; ignored beyond the limit.
    pub fn toggle(&mut self, metric: &Metric) {
        let mut metrics = self.metrics();
        match metrics.iter().position(|known| known == metric) {
            Some(at) => {
                metrics.remove(at);
            }
            None if metrics.len() < METRICS_MAX => metrics.push(metric.clone()),
            None => {}
        }
        // The built-in ones in their order, others in the order of selection.
        metrics.sort_by_key(|metric| {
            Metric::USUAL.iter().position(|usual| usual == metric).unwrap_or(usize::MAX)
        });
        self.set_metrics(&metrics);
    }

    /// What to store in the settings: for parts unchanged since the start, the previously stored value.
    pub(crate) fn to_keep(&self, initial: &Choice, before: &Choice) -> Choice {
        Choice {
            arrangement: to_save(&self.arrangement, &initial.arrangement, &before.arrangement),
            scale: to_save(&self.scale, &initial.scale, &before.scale),
            span: to_save(&self.span, &initial.span, &before.span),
            compared_secs: to_save(&self.compared_secs, &initial.compared_secs, &before.compared_secs),
            hosts: to_save(&self.hosts, &initial.hosts, &before.hosts),
            metrics: to_save(&self.metrics, &initial.metrics, &before.metrics),
        }
    }

    pub fn set_metrics(&mut self, metrics: &[Metric]) {
        let words = metrics.iter().take(METRICS_MAX).map(|metric| metric.word().to_owned());
        self.metrics = (metrics != Metric::USUAL).then(|| words.collect());
    }
}

/// The stored value, unless the current one differs from that at the start.
pub(crate) fn to_save<T: PartialEq + Clone>(now: &T, initial: &T, before: &T) -> T {
    if now == initial { before.clone() } else { now.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_and_bounded() {
        let mut choice = Choice { arrangement: Arrangement::Each, scale: Scale::Own, ..Choice::default() };
        assert_eq!((choice.hosts(), choice.metrics().len()), (None, Metric::USUAL.len()));
        let hosts: Vec<HostName> =
            (0..99).map(|number| HostName::new("demo", &format!("wn{number}"))).collect();
        choice.set_hosts(Some(&hosts));
        choice.toggle(&Metric::Disk);
        choice.toggle(&Metric::parse("module.gpu.*").unwrap());
        let text = serde_json::to_string(&choice).unwrap();
        let back: Choice = serde_json::from_str(&text).unwrap();
        assert_eq!(back, choice);
        assert_eq!(back.hosts().unwrap(), hosts[..HOSTS_MAX]);
        let words: Vec<String> = back.metrics().iter().map(|metric| metric.word().to_owned()).collect();
        assert_eq!(words, ["cpu", "network", "memory", "load", "module.gpu.*"]);
        choice.toggle(&Metric::Disk);
        assert_eq!(choice.metrics()[1], Metric::Disk, "it is back in its place");
    }

    #[test]
    fn what_another_source_kept_is_bounded() {
        let metrics: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
        let odd = serde_json::json!({"metrics": metrics, "span": {"secs": -1.0, "back_secs": 1e300}});
        let choice: Choice = serde_json::from_value(odd).unwrap();
        assert_eq!(choice.metrics().len(), METRICS_MAX);
        let odd = serde_json::json!({"metrics": ["a b", "", "cpu"]});
        let choice: Choice = serde_json::from_value(odd).unwrap();
        assert_eq!(choice.metrics(), [Metric::Cpu]);
    }
}
