//! Faults of the network, and the nft filter that implements them.
//!
//! Pure. Rule: the filter always contains all faults and is replaced in one transaction, so that no step of a
//! test leaves a mixture. It filters the frames that the bridge forwards from port to port, whatever they
//! carry: hosts that are cut off cannot resolve addresses either.
//! Not here: links that are down, slow or late ([`super::network`], [`super::wire`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Active faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Pairs of source and destination between which no frame passes.
    cuts: BTreeSet<(String, String)>,
    /// Loss of each host, in percent of its frames, in each direction.
    loss: BTreeMap<String, u32>,
}

impl Faults {
    pub(super) fn cut_one_way(&mut self, from: &str, to: &str) {
        self.cuts.insert((from.to_owned(), to.to_owned()));
    }

    pub(super) fn cut(&mut self, one: &str, other: &str) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    pub(super) fn heal(&mut self, one: &str, other: &str) {
        self.cuts.remove(&(one.to_owned(), other.to_owned()));
        self.cuts.remove(&(other.to_owned(), one.to_owned()));
    }

    /// Cut each group from all others; a host in no group stays linked to all.
    pub(super) fn partition(&mut self, groups: &[&[&str]]) {
        for (at, group) in groups.iter().enumerate() {
            for other in groups[at + 1..].iter().flat_map(|group| group.iter()) {
                group.iter().for_each(|one| self.cut(one, other));
            }
        }
    }

    pub(super) fn set_loss(&mut self, host: &str, percent: u32) {
        if percent == 0 {
            self.loss.remove(host);
        } else {
            self.loss.insert(host.to_owned(), percent);
        }
    }

    /// Text of the filter, which replaces the previous one as a whole.
    pub(super) fn filter(&self) -> String {
        let mut text = "table bridge lab {}\ndelete table bridge lab\ntable bridge lab {\n".to_owned();
        text.push_str("set cuts { type ifname . ifname\n");
        if !self.cuts.is_empty() {
            let pairs: Vec<_> = self.cuts.iter().map(|(from, to)| format!("\"{from}\" . \"{to}\"")).collect();
            let _ = writeln!(text, "elements = {{ {} }}", pairs.join(", "));
        }
        text.push_str("}\nchain forward { type filter hook forward priority 0; policy accept;\n");
        text.push_str("iifname . oifname @cuts drop\n");
        for (host, percent) in &self.loss {
            for way in ["iifname", "oifname"] {
                let _ = writeln!(text, "{way} \"{host}\" numgen random mod 100 < {percent} drop");
            }
        }
        text.push_str("}\n}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(faults: &Faults) -> Vec<String> {
        faults.cuts.iter().map(|(from, to)| format!("{from}>{to}")).collect()
    }

    #[test]
    fn a_partition_cuts_every_pair_across_and_none_within() {
        let mut faults = Faults::default();
        faults.partition(&[&["h1", "h2"], &["h3"], &["h4"]]);
        let expected = "h1>h3 h1>h4 h2>h3 h2>h4 h3>h1 h3>h2 h3>h4 h4>h1 h4>h2 h4>h3";
        assert_eq!(cuts(&faults).join(" "), expected);
        faults.heal("h3", "h1");
        assert!(!cuts(&faults).iter().any(|cut| cut == "h1>h3" || cut == "h3>h1"));
    }

    #[test]
    fn the_filter_is_the_whole_of_the_faults() {
        let mut faults = Faults::default();
        let whole = faults.filter();
        assert!(!whole.contains("elements") && !whole.contains("numgen"), "{whole}");
        faults.cut_one_way("h1", "h2");
        faults.set_loss("h3", 10);
        let filter = faults.filter();
        assert!(filter.contains("elements = { \"h1\" . \"h2\" }"), "{filter}");
        assert!(filter.contains("iifname \"h3\" numgen random mod 100 < 10 drop"), "{filter}");
        assert!(filter.contains("oifname \"h3\" numgen random mod 100 < 10 drop"), "{filter}");
        faults.heal("h2", "h1");
        faults.set_loss("h3", 0);
        assert_eq!(faults.filter(), whole);
    }
}
