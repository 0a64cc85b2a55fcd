//! Query of events as a choice of blocks: those whose summary does not rule out every event of the query.
//!
//! Pure. Rule: it must accept the block of every event that `EventQuery::fits` accepts; it may accept more.
//! Not here: the events of a block (`events`).

use crate::segments::packed::summary::{Summary, Term};
use wire::event::Kind;
use wire::time::Time;

/// What a block must have.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockQuery {
    /// One of these kinds; any if there are none.
    pub(super) kinds: Vec<Kind>,
    pub(super) since: Option<Time>,
    pub(super) until: Option<Time>,
    /// Of each of these lists one name.
    pub(super) names: Vec<Vec<Term>>,
}

impl BlockQuery {
    /// Whether a block may have a requested event.
    pub(super) fn chooses(&self, summary: &Summary) -> bool {
        summary.may_have_time(self.since, self.until)
            && (self.kinds.is_empty() || summary.may_have_kind(&self.kinds))
            && self.names.iter().all(|names| names.iter().any(|name| summary.may_have(*name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::packed::summary::Collector;
    use wire::event::Content;

    #[test]
    fn a_block_is_read_only_if_it_has_everything_that_is_requested() {
        let mut content = Content::new(Kind::JobStart, Time::from_micros(5));
        content.user = "ada".into();
        content.to = "wn01.example".into();
        let mut collector = Collector::default();
        collector.add(&content, "slurm:94");
        let summary = collector.finish();
        let query = |names: &[&[Term]]| BlockQuery {
            names: names.iter().map(|names| names.to_vec()).collect(),
            ..BlockQuery::default()
        };
        assert!(query(&[]).chooses(&summary));
        assert!(query(&[&[Term::user("ada")], &[Term::host("wn01")]]).chooses(&summary));
        assert!(query(&[&[Term::user("bob"), Term::call("slurm:94")]]).chooses(&summary));
        assert!(!query(&[&[Term::user("ada")], &[Term::host("wn02")]]).chooses(&summary));
        assert!(!query(&[&[]]).chooses(&summary), "no name is none of the block");
        let kinds = BlockQuery { kinds: vec![Kind::JobEnd], ..BlockQuery::default() };
        let since = BlockQuery { since: Some(Time::from_micros(6)), ..BlockQuery::default() };
        assert!(!kinds.chooses(&summary) && !since.chooses(&summary));
    }
}
