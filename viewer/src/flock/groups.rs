//! Programs of the flock: processes grouped by name, with their resource use, for the list beside the chart.
//!
//! Pure. Rule: all values are those of one time, as in the chart.

use super::chosen::Chosen;
use super::measure::{Spots, share};
use super::names::NameId;
use super::{Flock, Member};
use std::collections::{BTreeMap, BTreeSet};
use wire::time::Time;

/// Processes of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub name: NameId,
    /// Number of processes.
    pub processes: u32,
    /// Number of selected processes.
    pub chosen: u32,
    /// CPU use of all of them, in cores.
    pub cores: f64,
}

/// A process of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub member: Member,
    /// Its positions in the chart.
    pub spots: Spots,
    /// Number of threads.
    pub threads: u32,
    /// Resident memory, in bytes.
    pub rss_bytes: f64,
}

/// The matching programs at a time, by name.
#[must_use]
pub fn groups(flock: &Flock, wanted: &Chosen, chosen: &BTreeSet<Member>, time: Time) -> Vec<Group> {
    let mut found: BTreeMap<NameId, Group> = BTreeMap::new();
    flock.each(time, |member, track, spots| {
        if !wanted.fits(flock, track.name, track.pid, flock.host_of(member)) {
            return;
        }
        let group = found.entry(track.name).or_insert(Group {
            name: track.name,
            processes: 0,
            chosen: 0,
            cores: 0.0,
        });
        group.processes += 1;
        group.chosen += u32::from(chosen.contains(&member));
        group.cores += share(spots[0].x) * flock.capacity_of(member).map_or(0.0, |host| host.cpus);
    });
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by_cached_key(|group| flock.name(group.name).to_lowercase());
    groups
}

/// Sort by CPU use, highest first, in steps of a tenth of a core, as of `before`; groups of equal use keep
/// their order.
pub fn most_used_first(groups: &mut [Group], before: &BTreeMap<NameId, f64>) {
    let tenths = |group: &Group| (before.get(&group.name).copied().unwrap_or(0.0) * 10.0).round();
    groups.sort_by(|one, other| tenths(other).total_cmp(&tenths(one)));
}

/// The matching processes of these programs at a time; if some are selected, only those. At most `most` of
/// each program, those that use most CPU, by host and PID.
#[must_use]
pub fn rows(
    flock: &Flock,
    wanted: &Chosen,
    names: &BTreeSet<NameId>,
    chosen: &BTreeSet<Member>,
    time: Time,
    most: usize,
) -> BTreeMap<NameId, Vec<Row>> {
    let mut rows: BTreeMap<NameId, Vec<Row>> = BTreeMap::new();
    if names.is_empty() {
        return rows;
    }
    flock.each(time, |member, track, spots| {
        let is_chosen = chosen.is_empty() || chosen.contains(&member);
        let is_wanted = names.contains(&track.name) && is_chosen;
        if is_wanted && wanted.fits(flock, track.name, track.pid, flock.host_of(member)) {
            let (threads, rss_bytes) = (track.threads, track.usage.rss_bytes);
            rows.entry(track.name).or_default().push(Row { member, spots: *spots, threads, rss_bytes });
        }
    });
    for rows in rows.values_mut() {
        if rows.len() > most {
            rows.sort_by(|one, other| {
                other.spots[0].x.total_cmp(&one.spots[0].x).then(one.member.cmp(&other.member))
            });
            rows.truncate(most);
        }
        rows.sort_by_key(|row| row.member);
    }
    rows
}
