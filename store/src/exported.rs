//! Times whose minutes are exported: others are held beyond their age.
//!
//! Pure. Rule: the limit of space is hard all the same. Not here: what is exported (`sensor`), what is deleted (`tier_files`).

use crate::block::Extent;
use wire::time::Time;

/// Spans of exported minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedTimes(Vec<(Time, Time)>);

impl ExportedTimes {
    /// Spans in ascending order, each from the first time on and before the second.
    #[must_use]
    pub fn new(spans: Vec<(Time, Time)>) -> ExportedTimes {
        ExportedTimes(spans)
    }

    /// Whether the rows of a block are exported. Between its first and last one can be days in which there was nothing to
    /// export.
    pub(crate) fn has(&self, extent: &Extent) -> bool {
        self.has_time(extent.earliest) && self.has_time(extent.latest)
    }

    fn has_time(&self, time: Time) -> bool {
        let before = self.0.partition_point(|(start, _)| *start <= time);
        before.checked_sub(1).is_some_and(|at| time < self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_exported_if_its_first_and_last_row_are() {
        let at = Time::from_micros;
        let times = ExportedTimes::new(vec![(at(10), at(20)), (at(40), at(50))]);
        let check = |earliest, latest, expected| {
            let (earliest, latest) = (at(earliest), at(latest));
            let extent = Extent { host: 1, first_row: 0, rows: 2, finer_rows: 0, earliest, latest };
            assert_eq!(times.has(&extent), expected, "{earliest:?} to {latest:?}");
        };
        check(10, 19, true);
        check(10, 20, false);
        check(9, 12, false);
        check(15, 45, true);
        check(25, 30, false);
        check(45, 55, false);
    }
}
