//! The programs of the flock: processes of one name together, with what they use, for the list beside the chart.
//!
//! Pure. Rule: what is told is of one time, as the chart is.

use super::chosen::Chosen;
use super::measure::{Spots, share};
use super::names::NameId;
use super::{Flock, Member};
use std::collections::{BTreeMap, BTreeSet};
use wire::time::Time;

/// Processes of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their name.
    pub name: NameId,
    /// How many.
    pub processes: u32,
    /// How many of them are chosen.
    pub chosen: u32,
    /// The cores that they use.
    pub cores: f64,
}

/// A process of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub member: Member,
    /// Where it is.
    pub spots: Spots,
    /// Its threads.
    pub threads: u32,
    /// The memory that it holds, in bytes.
    pub rss_bytes: f64,
}

/// The programs that fit at a time, by name.
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

/// Puts those that used most CPU first, in steps of a tenth of a core, by what they used `before`; those that used as much stay as
/// they are.
pub fn most_used_first(groups: &mut [Group], before: &BTreeMap<NameId, f64>) {
    let tenths = |group: &Group| (before.get(&group.name).copied().unwrap_or(0.0) * 10.0).round();
    groups.sort_by(|one, other| tenths(other).total_cmp(&tenths(one)));
}

/// The processes of these programs that fit at a time, where some are chosen those: at most `most` of each, those that use most CPU
/// where there are more, by host and number.
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
