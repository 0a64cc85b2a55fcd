//! Cache of the newest figures of every module, and the collector that adds them to the host's metrics.
//!
//! Rules: the figures of a module expire, and are removed when it ends or is stopped; the metrics with their
//! names and labels are built once and shared while the module returns the same ones.
//! Not here: which figures are valid (`protocol`).

use super::protocol::{Figure, metric_name};
use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use crate::sample::ticker::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::sample::{Metric, Number};

/// Figures by module; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct FigureCache(Arc<Mutex<BTreeMap<String, CachedFigures>>>);

#[derive(Debug, Default)]
struct CachedFigures {
    rows: Vec<(Arc<Metric>, Number)>,
    /// When they expire, on the monotonic clock.
    until: Duration,
}

impl FigureCache {
    /// Replaces the figures of a module; they expire at `until`.
    pub fn pin(&self, module: &str, figures: &[Figure], until: Duration) {
        let mut figure_cache = locked(&self.0);
        let before = figure_cache.remove(module).unwrap_or_default();
        let same = |metric: &Metric, name: &str, figure: &Figure| {
            metric.name == name
                && metric.labels == figure.labels
                && metric.unit == figure.unit
                && metric.semantics == figure.semantics
        };
        let rows = figures.iter().enumerate().map(|(at, figure)| {
            let name = metric_name(module, &figure.name);
            let known = before.rows.get(at).filter(|(known, _)| same(known, &name, figure));
            let metric = known.map_or_else(|| made(&name, figure), |(known, _)| Arc::clone(known));
            (metric, figure.value)
        });
        let rows = rows.collect();
        figure_cache.insert(module.to_owned(), CachedFigures { rows, until });
    }

    /// Removes the figures of a module.
    pub fn clear(&self, module: &str) {
        locked(&self.0).remove(module);
    }

    /// Number of figures of a module.
    #[must_use]
    pub fn count(&self, module: &str) -> usize {
        locked(&self.0).get(module).map_or(0, |pinned| pinned.rows.len())
    }

    /// Collector that adds the figures to the host's metrics.
    #[must_use]
    pub fn collector(&self) -> Box<dyn Collector> {
        Box::new(CacheCollector(self.clone()))
    }
}

fn made(name: &str, figure: &Figure) -> Arc<Metric> {
    let labels: Vec<_> = figure.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    metric(name, &figure.unit, figure.semantics, &labels)
}

struct CacheCollector(FigureCache);

impl Collector for CacheCollector {
    fn name(&self) -> &'static str {
        "modules"
    }

    fn collect(&mut self, now: Now, out: &mut Rows) -> Result<(), Error> {
        for pinned in locked(&self.0.0).values().filter(|pinned| now.running <= pinned.until) {
            pinned.rows.iter().for_each(|(metric, value)| out.push(metric, *value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::protocol::answer;

    fn figures(text: &str) -> Vec<Figure> {
        answer(format!("{{\"figures\":{text}}}").as_bytes()).expect("good")
    }

    #[test]
    fn figures_are_among_the_hosts_while_they_are_new() {
        let (figure_cache, mut rows) = (FigureCache::default(), Rows::default());
        let mut collector = figure_cache.collector();
        let mut sweep = |secs: u64| {
            let now = Now { running: Duration::from_secs(secs), ..Now::default() };
            collector.collect(now, &mut rows).expect("it does not fail");
            rows.finish(now.calendar)
        };
        let (b, a) = (
            figures(r#"[{"name":"y","value":2}]"#),
            figures(r#"[{"name":"x","labels":{"n":"0"},"value":1}]"#),
        );
        figure_cache.pin("b", &b, Duration::from_secs(9));
        figure_cache.pin("a", &a, Duration::from_secs(5));
        let first = sweep(1);
        assert_eq!(first.get("module.a.x", &[("n", "0")]), Some(Number::Whole(1)));
        assert_eq!(first.get("module.b.y", &[]), Some(Number::Whole(2)));
        figure_cache.pin("b", &figures(r#"[{"name":"y","value":3}]"#), Duration::from_secs(9));
        let second = sweep(2);
        assert!(Arc::ptr_eq(first.metrics(), second.metrics()), "the same names are made once");
        assert_eq!(second.get("module.b.y", &[]), Some(Number::Whole(3)));
        assert_eq!(sweep(6).rows().len(), 1, "what is old is left out");
        figure_cache.clear("b");
        assert_eq!((sweep(7).rows().len(), figure_cache.count("b")), (0, 0));
    }
}
