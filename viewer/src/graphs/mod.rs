//! What the graphs show: which metrics of which hosts, how they are arranged, and over what span of time.
//!
//! Pure. Rule: what a person chose holds at the next start, and what is kept in a file by somebody else is bounded as
//! what is typed. Not here: where figures come from (`live`), what is painted (`app::graphs`).

pub mod axis;
pub mod cells;
pub mod metric;
pub mod span;

use crate::flock::sweep::HostName;
use metric::Metric;
use serde::{Deserialize, Serialize};

/// Most hosts whose figures are shown at a time.
pub const HOSTS_MAX: usize = 64;
/// Most metrics at a time.
pub const METRICS_MAX: usize = 8;

/// How plots are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrangement {
    /// One plot for each metric, with all hosts in it.
    #[default]
    Together,
    /// Small multiples: one plot for each host and metric.
    Each,
}

/// How high values reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// As high in every plot of a metric, so that they can be compared.
    #[default]
    Shared,
    /// As high as the highest of the plot.
    Own,
}

/// What a person chose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// How plots are arranged.
    pub arrangement: Arrangement,
    /// How high they reach.
    pub scale: Scale,
    /// Over what span.
    pub span: span::Span,
    /// Domain and name of the hosts; the first that are live where no one chose.
    hosts: Option<Vec<(String, String)>>,
    /// The metrics by their words; all the usual ones where no one chose.
    metrics: Option<Vec<String>>,
}

impl Choice {
    /// The hosts, where somebody chose.
    #[must_use]
    pub fn hosts(&self) -> Option<Vec<HostName>> {
        let hosts = self.hosts.as_ref()?;
        Some(hosts.iter().take(HOSTS_MAX).map(|(domain, host)| HostName::new(domain, host)).collect())
    }

    /// Show these hosts; the first that are live for nothing.
    pub fn set_hosts(&mut self, hosts: Option<&[HostName]>) {
        let pair = |host: &HostName| (host.domain.to_string(), host.host.to_string());
        self.hosts = hosts.map(|hosts| hosts.iter().take(HOSTS_MAX).map(pair).collect());
    }

    /// The metrics.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        match &self.metrics {
            None => Metric::USUAL.to_vec(),
            Some(words) => {
                words.iter().filter_map(|word| Metric::parse(word).ok()).take(METRICS_MAX).collect()
            }
        }
    }

    /// Show a metric, or show it no more; one beyond those that have room is not taken.
    pub fn toggle(&mut self, metric: &Metric) {
        let mut metrics = self.metrics();
        match metrics.iter().position(|known| known == metric) {
            Some(at) => {
                metrics.remove(at);
            }
            None if metrics.len() < METRICS_MAX => metrics.push(metric.clone()),
            None => {}
        }
        // The usual ones in their order, others as they were chosen.
        metrics.sort_by_key(|metric| {
            Metric::USUAL.iter().position(|usual| usual == metric).unwrap_or(usize::MAX)
        });
        self.set_metrics(&metrics);
    }

    /// What of it is kept: where nothing was changed since the begin, what was kept before.
    pub(crate) fn to_keep(&self, begun: &Choice, before: &Choice) -> Choice {
        Choice {
            arrangement: kept(&self.arrangement, &begun.arrangement, &before.arrangement),
            scale: kept(&self.scale, &begun.scale, &before.scale),
            span: kept(&self.span, &begun.span, &before.span),
            hosts: kept(&self.hosts, &begun.hosts, &before.hosts),
            metrics: kept(&self.metrics, &begun.metrics, &before.metrics),
        }
    }

    /// Show these metrics.
    pub fn set_metrics(&mut self, metrics: &[Metric]) {
        let words = metrics.iter().take(METRICS_MAX).map(|metric| metric.word().to_owned());
        self.metrics = (metrics != Metric::USUAL).then(|| words.collect());
    }
}

/// What was before, unless what is now differs from how it started.
pub(crate) fn kept<T: PartialEq + Clone>(now: &T, begun: &T, before: &T) -> T {
    if now == begun { before.clone() } else { now.clone() }
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
    fn what_somebody_else_kept_is_bounded() {
        let metrics: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
        let odd = serde_json::json!({"metrics": metrics, "span": {"secs": -1.0, "back_secs": 1e300}});
        let choice: Choice = serde_json::from_value(odd).unwrap();
        assert_eq!(choice.metrics().len(), METRICS_MAX);
        let odd = serde_json::json!({"metrics": ["a b", "", "cpu"]});
        let choice: Choice = serde_json::from_value(odd).unwrap();
        assert_eq!(choice.metrics(), [Metric::Cpu]);
    }
}
