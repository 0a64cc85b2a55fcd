//! Points by measurement: what a measurement belongs to may change while it runs, as an earlier process or a better name of
//! the job becomes known; its points are one curve all the same.
//!
//! Pure. Rule: a host measures a job of a user once at a time, so what begins before the last point of the same job belongs to
//! the same measurement. Not here: reading points (`job_series`).

use crate::job_series::piece::{Point, Whose};
use crate::serving::job_names;
use std::collections::BTreeMap;

/// Joins the points of each measurement: under its earliest start, and its latest names and user.
#[must_use]
pub(super) fn joined(found: BTreeMap<Whose, Vec<Point>>) -> Vec<(Whose, Vec<Point>)> {
    let mut by_job: BTreeMap<_, Vec<(Whose, Vec<Point>)>> = BTreeMap::new();
    for (whose, points) in found.into_iter().filter(|(_, points)| !points.is_empty()) {
        // Processes of one control group may be of several users: root starts the first.
        let user = (!whose.is_proved).then_some(whose.uid);
        by_job.entry((job_names::common(&whose.jobs).cloned(), user)).or_default().push((whose, points));
    }
    by_job.into_values().flat_map(joined_of_job).collect()
}

fn joined_of_job(mut parts: Vec<(Whose, Vec<Point>)>) -> Vec<(Whose, Vec<Point>)> {
    parts.sort_by_key(|(whose, _)| whose.started);
    let mut joined: Vec<(Whose, Vec<Point>)> = Vec::new();
    for (whose, points) in parts {
        match joined.last_mut().filter(|(_, former)| last(former) >= Some(whose.started)) {
            Some((former, all)) => {
                if last(&points) > last(all) {
                    *former = Whose { started: former.started, ..whose };
                }
                all.extend(points);
            }
            None => joined.push((whose, points)),
        }
    }
    joined
}

fn last(points: &[Point]) -> Option<wire::time::Time> {
    points.iter().map(|point| point.time).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_series::piece::tests::{points, whose};
    use std::time::Duration;

    fn later(mut whose: Whose, micros: u64) -> Whose {
        whose.started = whose.started.plus(Duration::from_micros(micros));
        whose
    }

    fn join(parts: &[(Whose, u64, u64)]) -> Vec<(Whose, usize)> {
        let first = whose("slurm:95", 0);
        let found =
            parts.iter().map(|(whose, from, count)| (whose.clone(), points(&first, *from, *count, 1)));
        joined(found.collect()).into_iter().map(|(whose, points)| (whose, points.len())).collect()
    }

    #[test]
    fn what_becomes_known_while_a_job_runs_does_not_part_its_curve() {
        let first = whose("slurm:95", 1000);
        let named = Whose { jobs: vec!["slurm:94_1".into(), "slurm:95".into()], ..first.clone() };
        let parts =
            [(later(first.clone(), 150), 1, 5), (first.clone(), 6, 1), (later(named.clone(), 20), 7, 3)];
        assert_eq!(join(&parts), [(named, 9)]);
        let by = |uid, micros| Whose { is_proved: true, ..later(whose("slurm:95", uid), micros) };
        assert_eq!(join(&[(by(0, 0), 1, 5), (by(1000, 9), 6, 5)]), [(by(1000, 0), 10)]);
    }

    #[test]
    fn other_runs_users_and_tasks_have_curves_of_their_own() {
        let first = whose("slurm:95", 1000);
        let again = later(first.clone(), 10_000_000);
        assert_eq!(join(&[(first.clone(), 1, 5), (again.clone(), 11, 3)]), [(first.clone(), 5), (again, 3)]);
        let task = |name: &str, own: &str| Whose { jobs: vec![name.into(), own.into()], ..first.clone() };
        for other in [
            whose("slurm:95", 1001),
            Whose { is_proved: true, ..first.clone() },
            task("slurm:95_2", "slurm:96"),
        ] {
            assert_eq!(join(&[(first.clone(), 1, 5), (other.clone(), 1, 5)]).len(), 2, "{other:?}");
        }
        assert_eq!(join(&[(task("sge:7.1", "sge:7"), 1, 5), (task("sge:7.2", "sge:7"), 1, 5)]).len(), 2);
    }
}
