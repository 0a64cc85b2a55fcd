//! Which archives are to have the series of a host.
//!
//! Pure. Rule: every archive computes the same from the same names, without asking another (highest random weight: Thaler and
//! Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998). If an archive comes or goes, only those hosts move that
//! it has or had.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use wire::id::HostName;
use xxhash_rust::xxh3::xxh3_64;

/// Returns the archives that are to have the series of a host, the first one first: `copies` of them, or all if there are
/// fewer. An archive does not have those of its own host: both would be lost with its disk.
#[must_use]
pub fn owners<'a>(host: &HostName, archives: &'a BTreeSet<HostName>, copies: usize) -> Vec<&'a HostName> {
    let mut all: Vec<&HostName> = archives.iter().filter(|archive| *archive != host).collect();
    all.sort_by_cached_key(|archive| Reverse(weight(archive, host)));
    all.truncate(copies);
    all
}

/// Weight of an archive for a host. The same in every version: otherwise all archives would copy all hosts again.
fn weight(archive: &HostName, host: &HostName) -> u64 {
    xxh3_64(format!("{}\0{}", spelled(archive), spelled(host)).as_bytes())
}

/// One spelling of the name, as one host has several.
pub(super) fn spelled(host: &HostName) -> String {
    host.as_str().trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> HostName {
        HostName::try_from(name).expect("a name")
    }

    fn names(names: impl IntoIterator<Item = String>) -> BTreeSet<HostName> {
        names.into_iter().map(|each| name(&each)).collect()
    }

    #[test]
    fn hosts_are_shared_evenly_and_few_move_when_an_archive_comes() {
        let archives = names((0..5).map(|number| format!("store{number}")));
        let more = names((0..6).map(|number| format!("store{number}")));
        let (mut counts, mut moved) = ([0; 6], 0);
        for number in 0..1000 {
            let host = name(&format!("wn{number:04}"));
            let before = owners(&host, &archives, 2);
            assert!(before.len() == 2 && before[0] != before[1]);
            for (count, archive) in counts.iter_mut().zip(&archives) {
                *count += usize::from(before.contains(&archive));
            }
            let after = owners(&host, &more, 2);
            let new: Vec<_> = after.iter().filter(|archive| !before.contains(*archive)).collect();
            assert!(new.is_empty() || new == [&&name("store5")], "only to the new one");
            moved += new.len();
        }
        assert!(counts[..5].iter().all(|count| (330..470).contains(count)), "{counts:?}");
        assert!(
            (260..400).contains(&moved),
            "a third of the hosts, as two of six archives have each: {moved}"
        );
    }

    #[test]
    fn an_archive_has_not_its_own_host_and_spelling_does_not_matter() {
        let archives = names(["store1".to_owned(), "store2".to_owned()]);
        assert_eq!(owners(&name("store1"), &archives, 2), [&name("store2")]);
        assert_eq!(owners(&name("Store1."), &archives, 2), [&name("store2")]);
        let capitals = names(["STORE1.".to_owned(), "Store2".to_owned()]);
        for number in 0..20 {
            let host = format!("wn{number}.site");
            let first = owners(&name(&host), &archives, 1)[0].clone();
            assert_eq!(owners(&name(&host.to_uppercase()), &capitals, 1), [&first]);
        }
        assert!(owners(&name("wn1"), &BTreeSet::new(), 2).is_empty());
    }

    #[test]
    fn weights_are_the_same_in_every_version() {
        assert_eq!(weight(&name("store1"), &name("wn01")), 6_993_344_833_611_162_126);
    }
}
