//! Selection of calls by a job's number or a user, in a query.
//!
//! Rule: a number matches every call that has it, whatever the product, under any of its names, and the parts
//! of a whole with that number. Not here: how names are joined (`log_filters::join`).

use compact_str::{CompactString, format_compact};
use log_filters::join::Joiner;
use std::collections::{BTreeSet, HashSet};
use wire::call::Call;
use wire::name_match;

/// Returns the ids of the calls that this number matches, as in `Joiner::calls`.
pub(crate) fn of_job(joiner: &Joiner, job: &str) -> HashSet<CompactString> {
    let mut ids = HashSet::new();
    let mut scopes = BTreeSet::new();
    for call in joiner.calls() {
        if let Some((scope, _)) = call.id.split_once(':') {
            scopes.insert(CompactString::from(scope));
        }
        if call.has_number(job) {
            ids.insert(call.id);
        }
    }
    // A name that is not in the call's id: the number of its own that a task of an array has.
    let named = scopes.iter().filter_map(|scope| joiner.get(&format_compact!("{scope}:{job}")));
    ids.extend(named.map(|call| call.id));
    ids
}

/// Returns every id that events of this job's calls have.
pub(crate) fn event_ids_of_job(joiner: &Joiner, job: &str) -> HashSet<CompactString> {
    of_job(joiner, job).iter().flat_map(|id| joiner.ids(id)).collect()
}

/// Returns every id that events of this call have; `call` itself if the call is not stored.
pub(crate) fn event_ids_of_call(joiner: &Joiner, call: &str) -> Vec<CompactString> {
    let ids = joiner.ids(call);
    if ids.is_empty() && name_match::has_wildcard(call) {
        let meant = joiner.calls().filter(|known| name_match::matches(call, &known.id));
        return meant.flat_map(|known| joiner.ids(&known.id)).collect();
    }
    if ids.is_empty() { vec![call.into()] } else { ids }
}

/// Returns every id that events of this user's calls have.
pub(crate) fn event_ids_of_user(joiner: &Joiner, user: &str) -> HashSet<CompactString> {
    let own = |call: Call| (call.user == user).then_some(call.id);
    joiner.calls().filter_map(own).flat_map(|id| joiner.ids(&id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use log_filters::found::Found;
    use wire::call::{Authority, Keys, Naming};
    use wire::event::{Content, Id, Kind};
    use wire::id::{Generation, SensorKey};
    use wire::time::Time;

    /// Creates calls of these products, each with its names, the best first.
    fn joiner(calls: &[(&str, &[&str])]) -> Joiner {
        let mut joiner = Joiner::default();
        for (offset, (scope, names)) in (0..).zip(calls) {
            let mut content = Content::new(Kind::JobStart, Time::from_micros(1_000_000));
            content.job = names[0].into();
            content.user = if *scope == "slurm" { "ada".into() } else { "bob".into() };
            let keys = Keys {
                scope: (*scope).into(),
                names: names.iter().map(|name| (*name).into()).collect(),
                parent: None,
                naming: Naming::Unique,
                authority: Authority::Scheduler,
            };
            let id = Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 };
            joiner.join(&Found { offset, number: 0, content, keys: Some(keys) }, id);
        }
        joiner
    }

    fn sorted(ids: HashSet<CompactString>) -> Vec<CompactString> {
        let ids: BTreeSet<_> = ids.into_iter().collect();
        ids.into_iter().collect()
    }

    #[test]
    fn a_number_means_the_calls_of_every_product_their_parts_and_other_names() {
        let joiner = joiner(&[
            ("slurm", &["94_1", "99"]),
            ("slurm", &["94_2", "100"]),
            ("gridengine", &["94"]),
            ("htcondor", &["94.0"]),
            ("torque", &["94[3].head"]),
            ("slurm", &["941"]),
            ("slurm", &["9"]),
        ]);
        let expected = ["gridengine:94", "htcondor:94.0", "slurm:94_1", "slurm:94_2", "torque:94[3].head"];
        assert_eq!(sorted(of_job(&joiner, "94")), expected);
        assert_eq!(sorted(of_job(&joiner, "100")), ["slurm:94_2"]);
        assert_eq!(sorted(of_job(&joiner, "94_1")), ["slurm:94_1"]);
        assert_eq!(sorted(of_job(&joiner, "")), [""; 0]);
    }

    #[test]
    fn a_user_means_the_events_of_all_calls_of_that_user() {
        let joiner = joiner(&[("slurm", &["1"]), ("gridengine", &["1"]), ("slurm", &["2"])]);
        assert_eq!(sorted(event_ids_of_user(&joiner, "ada")), ["slurm:1", "slurm:2"]);
        assert_eq!(sorted(event_ids_of_user(&joiner, "eve")), [""; 0]);
    }
}
