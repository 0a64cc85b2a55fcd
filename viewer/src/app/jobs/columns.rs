//! Columns of the table of jobs, and which of them have room.
//!
//! Pure. Rule: in a narrow table columns are left out in a fixed order, as `visperf jobs` does; those that are left
//! share the width. The page of a job has all.

use crate::jobs::sort::Column;

/// What a column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Value(Column),
    /// The curve of CPUs in use, by which nothing is sorted.
    Curve,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) shown: Shown,
    pub(super) name: &'static str,
    pub(super) hint: &'static str,
    /// Least width in points, with the gap to the next.
    width: f32,
    /// Whether figures are in it, at its right.
    pub(super) is_figure: bool,
    /// Whether of other users' jobs it is empty.
    is_own: bool,
}

const fn spec(column: Column, name: &'static str, width: f32, is_figure: bool) -> Spec {
    Spec { shown: Shown::Value(column), name, hint: "", width, is_figure, is_own: false }
}

/// What is measured or allocated of own jobs alone.
const fn own(column: Column, name: &'static str, hint: &'static str, width: f32) -> Spec {
    Spec { shown: Shown::Value(column), name, hint, width, is_figure: true, is_own: true }
}

const SPECS: [Spec; 14] = [
    spec(Column::Job, "job", 96.0, false),
    spec(Column::Name, "name", 92.0, false),
    spec(Column::User, "user", 70.0, false),
    spec(Column::Queue, "queue", 56.0, false),
    spec(Column::State, "state", 72.0, false),
    spec(Column::Submitted, "submitted", 148.0, true),
    spec(Column::Waited, "waited", 76.0, true),
    spec(Column::Ran, "ran", 76.0, true),
    own(Column::Cpus, "CPUs", "Allocated CPUs, or requested ones while it waits", 50.0),
    own(
        Column::CpuUsed,
        "CPU used",
        "Measured CPU time as a share of that of the allocated CPUs; else in seconds",
        72.0,
    ),
    Spec {
        shown: Shown::Curve,
        name: "CPUs in use",
        hint: "From its start to its end or until now, on all of its hosts; the height is that of the allocated CPUs",
        width: 104.0,
        is_figure: false,
        is_own: true,
    },
    own(Column::PeakMemory, "peak", "Measured peak memory of all hosts", 78.0),
    spec(Column::Hosts, "hosts", 100.0, false),
    Spec {
        is_figure: false,
        ..own(Column::Findings, "findings", "Why it failed, and what it did not use", 104.0)
    },
];

/// The columns to leave out in a narrow table, in this order.
const SPARED: [Shown; 10] = [
    Shown::Value(Column::Waited),
    Shown::Value(Column::PeakMemory),
    Shown::Value(Column::Cpus),
    Shown::Value(Column::Submitted),
    Shown::Value(Column::Queue),
    Shown::Value(Column::Hosts),
    Shown::Value(Column::CpuUsed),
    Shown::Value(Column::Name),
    Shown::Curve,
    Shown::Value(Column::Findings),
];

/// The columns of a table of this width in points, each with its share of it; `has_own` is whether a row is not
/// reduced.
pub(super) fn fitting(width: f32, has_own: bool) -> Vec<(Spec, f32)> {
    let mut specs: Vec<Spec> = SPECS.into_iter().filter(|spec| has_own || !spec.is_own).collect();
    let whole = |specs: &[Spec]| specs.iter().map(|spec| spec.width).sum::<f32>();
    for spared in SPARED {
        if whole(&specs) <= width {
            break;
        }
        specs.retain(|spec| spec.shown != spared);
    }
    let all = whole(&specs);
    specs.into_iter().map(|spec| (spec, spec.width / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width: f32, has_own: bool) -> Vec<&'static str> {
        fitting(width, has_own).iter().map(|(spec, _)| spec.name).collect()
    }

    #[test]
    fn a_narrow_table_leaves_out_columns_in_order_and_the_others_share_its_width() {
        assert_eq!(names(1_400.0, true).len(), SPECS.len());
        assert!(!names(1_150.0, true).contains(&"waited") && names(1_150.0, true).contains(&"peak"));
        assert_eq!(names(100.0, true), ["job", "user", "state", "ran"], "these stay");
        for width in [300.0, 700.0, 2_000.0] {
            let shares: f32 = fitting(width, true).iter().map(|(_, share)| share).sum();
            assert!((shares - 1.0).abs() < 1e-4, "{shares}");
        }
    }

    #[test]
    fn what_other_users_may_not_see_has_no_column_where_all_jobs_are_reduced() {
        let names = names(1_400.0, false);
        assert!(!names.contains(&"CPU used") && !names.contains(&"findings") && names.contains(&"hosts"));
    }
}
