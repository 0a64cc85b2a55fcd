//! Serialized state of a joiner, for a restart.
//!
//! Pure. Rule: only the calls are stored; the indexes by name and id are rebuilt from them. Not here: when
//! and where the state is stored.

use super::usages::Named;
use super::{CALLS_DEFAULT, Entry, Joiner, bear};
use crate::details::Details;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::at_end::AtEnd;

/// Stored form; the entries are owned when it is read and borrowed when it is written.
#[derive(Serialize, Deserialize)]
struct Snapshot<E, D, U> {
    entries: Vec<E>,
    calls_max: u64,
    dropped: u64,
    jobs: AtEnd<Jobs<D, U>>,
}

/// Places of those entries that are jobs, and their details; then usages, which an older version does not know.
type Jobs<D, U> = (Vec<(u32, Option<D>)>, AtEnd<Vec<U>>);

impl Serialize for Joiner {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<_> = self.entries.values().collect();
        let jobs = (0..).zip(self.entries.values()).filter(|(_, entry)| entry.progress.is_job);
        let jobs: Vec<_> = jobs.map(|(at, entry)| (at, entry.progress.details.as_deref())).collect();
        let usages: Vec<_> = self.usages.all().collect();
        let jobs = AtEnd(Some((jobs, AtEnd(Some(usages)))));
        Snapshot { entries, calls_max: self.calls_max as u64, dropped: self.dropped, jobs }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Joiner {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Joiner, D::Error> {
        let Snapshot { mut entries, calls_max, dropped, jobs } =
            Snapshot::<Entry, Box<Details>, Named>::deserialize(from)?;
        let (jobs, usages) = jobs.0.unwrap_or_default();
        for (at, details) in jobs {
            if let Some(entry) = usize::try_from(at).ok().and_then(|at| entries.get_mut(at)) {
                (entry.progress.is_job, entry.progress.details) = (true, details);
            }
        }
        let mut joiner = Joiner::new(usize::try_from(calls_max).unwrap_or(CALLS_DEFAULT));
        joiner.dropped = dropped;
        for entry in entries {
            // Detect data of another version instead of using it.
            if !entry.chief.is_of(&entry.names) {
                return Err(D::Error::custom(
                    "expected calls as this version keeps them, found one without its name",
                ));
            }
            let slot = joiner.next;
            joiner.next += 1;
            for name in &entry.names {
                if let Some((scope, _)) = name.split_once(':') {
                    joiner.usages.note_scope(&scope.into());
                }
                bear(&mut joiner.by_name, name, slot);
            }
            for id in std::iter::once(&entry.progress.id).chain(&entry.absorbed) {
                joiner.by_id.insert(id.clone(), slot);
            }
            if let Some(parent) = entry.parent.clone().filter(|_| entry.is_part) {
                joiner.parts.entry(parent).or_default().push_back(slot);
            }
            joiner.shares.push(entry.owner, slot);
            joiner.entries.insert(slot, Box::new(entry));
            joiner.file(slot);
        }
        for usage in usages.0.unwrap_or_default() {
            joiner.usages.take(usage);
        }
        Ok(joiner)
    }
}
