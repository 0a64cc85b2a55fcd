//! Admission list and rate limiter of a directory: the domains from which it accepts statements.
//!
//! Pure. A domain name alone proves nothing, so the operator lists each name with its root key. The list in
//! the configuration and the list that commands write to a file apply together. Statements of one domain are
//! limited in rate, so a faulty domain cannot slow down the others.
//!
//! ```text
//! # the file: one domain per line
//! UT-ICL 12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA
//! ```
//! Not here: reading and writing the file (`admitted_file`), signatures (`overlay::identity`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::time::Moment;

/// Most root keys of one name: the key in use, and a second one while an operator replaces it.
pub const ROOTS_MAX: usize = 4;

/// Burst of statements allowed for one domain: a domain split in four, each part changing its record a few
/// times.
pub const BURST: u32 = 20;

/// Interval at which one more statement is allowed: ten times the renewal rate of one representative.
pub const STATEMENT_INTERVAL: Duration = Duration::from_millis(500);

/// Longest list, in bytes: [`crate::registry::DOMAINS_MAX`] lines of usual names.
pub const LIST_LEN_MAX_BYTES: usize = 16 << 20;

/// Domain names, each with its root keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(BTreeMap<DomainName, Vec<PeerKey>>);

/// Error in a list of admitted domains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The line is not a name and a key.
    #[error("line {line}: {found:?}; expected the domain's name, a space and its root key")]
    Line {
        /// Line number, counted from 1.
        line: usize,
        /// Start of the line.
        found: String,
    },
    /// The domain name is invalid.
    #[error("line {line}: {error}")]
    Name {
        /// Line number, counted from 1.
        line: usize,
        error: wire::id::Error,
    },
    /// The root key is invalid.
    #[error("line {line}: {error}")]
    Key {
        /// Line number, counted from 1.
        line: usize,
        error: wire::id::NoPeerKey,
    },
    /// More than [`ROOTS_MAX`] keys for one name.
    #[error("{domain} would have more than {ROOTS_MAX} root keys; remove one that is not used any more")]
    Roots {
        /// Domain with too many keys.
        domain: DomainName,
    },
    /// More names than [`crate::registry::DOMAINS_MAX`].
    #[error("more than {} domains; run another directory for the others", crate::registry::DOMAINS_MAX)]
    Domains,
    /// The list is longer than [`LIST_LEN_MAX_BYTES`].
    #[error("the list has {len_bytes} bytes; expected at most {LIST_LEN_MAX_BYTES}")]
    TooLong {
        /// Length of the list in bytes.
        len_bytes: usize,
    },
}

impl List {
    /// Parse the output of [`List::to_text`] or a hand-written list: `NAME KEY` per line, `#` starts a
    /// comment.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<List, Error> {
        if text.len() > LIST_LEN_MAX_BYTES {
            return Err(Error::TooLong { len_bytes: text.len() });
        }
        let mut list = List::default();
        for (at, line) in text.lines().enumerate() {
            let said = line.split('#').next().unwrap_or("").trim();
            if said.is_empty() {
                continue;
            }
            let line = at + 1;
            let mut words = said.split_whitespace();
            let (Some(name), Some(key), None) = (words.next(), words.next(), words.next()) else {
                return Err(Error::Line { line, found: said.chars().take(80).collect() });
            };
            let name = DomainName::try_from(name).map_err(|error| Error::Name { line, error })?;
            list.add(name, key.parse().map_err(|error| Error::Key { line, error })?)?;
        }
        Ok(list)
    }

    /// The list as text, in the format that [`List::parse`] reads.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from("# Domains that this directory admits, each with its root key.\n");
        for (name, root) in self.iter() {
            writeln!(text, "{name} {root}").expect("a text takes everything");
        }
        text
    }

    /// Add `domain` with the root key `root`. Returns whether the pair is new.
    ///
    /// # Errors
    /// If the name would have too many keys, or the list too many names.
    pub fn add(&mut self, domain: DomainName, root: PeerKey) -> Result<bool, Error> {
        if self.0.len() >= crate::registry::DOMAINS_MAX && !self.0.contains_key(&domain) {
            return Err(Error::Domains);
        }
        let roots = self.0.entry(domain.clone()).or_default();
        if roots.contains(&root) {
            return Ok(false);
        }
        if roots.len() >= ROOTS_MAX {
            return Err(Error::Roots { domain });
        }
        roots.push(root);
        Ok(true)
    }

    /// Remove the root key `root` of `domain`, or the whole domain if `root` is `None`. Returns whether
    /// anything was removed.
    pub fn remove(&mut self, domain: &DomainName, root: Option<PeerKey>) -> bool {
        let Some(roots) = self.0.get_mut(domain) else { return false };
        let before = roots.len();
        roots.retain(|held| root.is_some_and(|root| *held != root));
        let removed = roots.len() < before;
        if roots.is_empty() {
            self.0.remove(domain);
        }
        removed
    }

    /// All names and keys, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&DomainName, PeerKey)> {
        self.0.iter().flat_map(|(name, roots)| roots.iter().map(move |&root| (name, root)))
    }

    fn roots(&self, domain: &DomainName) -> &[PeerKey] {
        self.0.get(domain).map_or(&[], Vec::as_slice)
    }
}

/// Why a statement is rejected before it is examined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The domain is not in the list.
    #[error(
        "{domain} is not admitted here; its operator has to ask the directory's to admit it with root {root}"
    )]
    Unknown {
        domain: DomainName,
        /// Root key with which the statement came.
        root: PeerKey,
    },
    /// The list has the domain with another root key.
    #[error(
        "{domain} came under root {root}, but is admitted here under another; another domain uses its name"
    )]
    Root {
        domain: DomainName,
        /// Root key with which the statement came.
        root: PeerKey,
    },
    /// The domain exceeds its rate limit.
    #[error("{domain} states itself more than {BURST} times at once; expected once each {} ms at most", STATEMENT_INTERVAL.as_millis())]
    TooOften {
        /// Domain that sends too often.
        domain: DomainName,
    },
}

/// Counters of the statements of one domain since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Statements that passed both checks.
    pub admitted_total: u64,
    /// Statements that came with another root key.
    pub foreign_total: u64,
    /// Statements that exceeded the rate limit.
    pub too_often_total: u64,
}

/// Decides which statements are examined.
#[derive(Debug, Default)]
pub struct Admission {
    configured: List,
    kept: List,
    /// Only admitted names get an entry, so the map is bounded by the lists.
    meters: BTreeMap<DomainName, Meter>,
    unknown_total: u64,
}

#[derive(Debug, Default)]
struct Meter {
    counts: Counts,
    /// When the whole burst is available again.
    whole_at: Moment,
}

impl Admission {
    /// Admit the domains of the configuration and those of the file that commands write.
    #[must_use]
    pub fn new(configured: List, kept: List) -> Admission {
        Admission { configured, kept, ..Admission::default() }
    }

    /// Replace the list of the file. Returns the domains that are no longer admitted.
    pub fn replace_kept(&mut self, kept: List) -> Vec<DomainName> {
        let before = std::mem::replace(&mut self.kept, kept);
        let mut gone: Vec<DomainName> = before.0.into_keys().collect();
        gone.retain(|domain| self.roots(domain).next().is_none());
        for domain in &gone {
            self.meters.remove(domain);
        }
        gone
    }

    /// All admitted names and keys after the name `after`, sorted by name.
    pub fn domains(&self, after: Option<&DomainName>) -> impl Iterator<Item = (&DomainName, PeerKey)> {
        let mut all: Vec<_> = self.configured.iter().chain(self.kept.iter()).collect();
        all.retain(|(name, _)| after.is_none_or(|after| *name > after));
        all.sort();
        all.dedup();
        all.into_iter()
    }

    /// Check that `domain` is admitted under `root`, without counting.
    ///
    /// # Errors
    /// If the domain or the root key is not listed.
    pub fn check(&self, domain: &DomainName, root: PeerKey) -> Result<(), Refused> {
        let mut roots = self.roots(domain).peekable();
        if roots.peek().is_none() {
            return Err(Refused::Unknown { domain: domain.clone(), root });
        }
        if roots.any(|held| held == root) {
            return Ok(());
        }
        Err(Refused::Root { domain: domain.clone(), root })
    }

    /// Whether `domain` is admitted under any root key, so that fetching it makes sense.
    #[must_use]
    pub fn knows(&self, domain: &DomainName) -> bool {
        self.roots(domain).next().is_some()
    }

    /// Check and count one statement of `domain` under `root`.
    ///
    /// # Errors
    /// If the domain is not admitted, or exceeds its rate limit.
    pub fn admit(&mut self, domain: &DomainName, root: PeerKey, now: Moment) -> Result<(), Refused> {
        let checked = self.check(domain, root);
        if let Err(Refused::Unknown { .. }) = checked {
            self.unknown_total += 1;
            return checked;
        }
        if !self.meters.contains_key(domain) {
            self.meters.insert(domain.clone(), Meter::default());
        }
        let meter = self.meters.get_mut(domain).expect("just put");
        if let Err(refused) = checked {
            meter.counts.foreign_total += 1;
            return Err(refused);
        }
        let whole_at = meter.whole_at.max(now).plus(STATEMENT_INTERVAL);
        if whole_at.since(now) > STATEMENT_INTERVAL * BURST {
            meter.counts.too_often_total += 1;
            return Err(Refused::TooOften { domain: domain.clone() });
        }
        meter.whole_at = whole_at;
        meter.counts.admitted_total += 1;
        Ok(())
    }

    /// Counters of `domain`.
    #[must_use]
    pub fn counts(&self, domain: &DomainName) -> Counts {
        self.meters.get(domain).map(|meter| meter.counts).unwrap_or_default()
    }

    /// Number of statements from domains that are not admitted.
    #[must_use]
    pub fn unknown_total(&self) -> u64 {
        self.unknown_total
    }

    fn roots(&self, domain: &DomainName) -> impl Iterator<Item = PeerKey> {
        self.configured.roots(domain).iter().chain(self.kept.roots(domain)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::domain;

    fn key(byte: u8) -> PeerKey {
        PeerKey([byte; 32])
    }

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn list(domains: &[(&str, u8)]) -> List {
        let mut list = List::default();
        for (name, root) in domains {
            list.add(domain(name), key(*root)).expect("few");
        }
        list
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_with_remarks() {
        let written = list(&[("UT-ICL", 1), ("a", 2), ("a", 3)]);
        assert_eq!(List::parse(&written.to_text()), Ok(written.clone()));
        let remarked = format!("\n  UT-ICL\t{}  # since March\n#x\n", key(1));
        assert_eq!(List::parse(&remarked), Ok(list(&[("UT-ICL", 1)])));
        let check = |text: &str, expected: &str| {
            let error = List::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check("a", "line 1: \"a\"; expected the domain's name");
        check("\na b c", "line 2: \"a b c\"");
        check("a! x", "line 1: domain name holds '!'");
        check("a x", "line 1: \"x\" is no key");
        let many: String =
            (0..=ROOTS_MAX).map(|n| format!("a {}\n", key(n.try_into().expect("few")))).collect();
        check(&many, "a would have more than 4 root keys");
    }

    #[test]
    fn only_listed_names_under_their_roots_pass() {
        let mut admission = Admission::new(list(&[("a", 1)]), list(&[("b", 2), ("a", 9)]));
        assert_eq!(admission.admit(&domain("a"), key(1), at(0)), Ok(()));
        assert_eq!(admission.admit(&domain("a"), key(9), at(0)), Ok(()));
        assert!(matches!(admission.admit(&domain("a"), key(2), at(0)), Err(Refused::Root { .. })));
        assert!(matches!(admission.admit(&domain("c"), key(1), at(0)), Err(Refused::Unknown { .. })));
        let counts = Counts { admitted_total: 2, foreign_total: 1, too_often_total: 0 };
        assert_eq!((admission.counts(&domain("a")), admission.unknown_total()), (counts, 1));
        assert_eq!(admission.replace_kept(list(&[("c", 3)])), [domain("b")], "a stays by configuration");
        assert!(admission.check(&domain("b"), key(2)).is_err());
        let (a, c) = (domain("a"), domain("c"));
        assert_eq!(admission.domains(None).collect::<Vec<_>>(), [(&a, key(1)), (&c, key(3))]);
        assert_eq!(admission.domains(Some(&a)).collect::<Vec<_>>(), [(&c, key(3))]);
    }

    #[test]
    fn a_name_is_removed_as_a_whole_or_by_key() {
        let mut list = list(&[("a", 1), ("a", 2)]);
        assert!(list.remove(&domain("a"), Some(key(1))) && !list.remove(&domain("a"), Some(key(1))));
        assert_eq!(list.roots(&domain("a")), [key(2)]);
        assert!(list.remove(&domain("a"), None) && !list.remove(&domain("a"), None));
    }

    #[test]
    fn one_domain_gone_wild_is_held_back_and_others_are_not() {
        let mut admission = Admission::new(list(&[("a", 1), ("b", 1)]), List::default());
        let mut passed = 0;
        for millis in 0..10_000 {
            passed += u32::from(admission.admit(&domain("a"), key(1), at(millis)).is_ok());
        }
        assert_eq!(passed, BURST + 19, "the burst, then one each half second");
        assert_eq!(admission.counts(&domain("a")).too_often_total, 10_000 - u64::from(passed));
        assert_eq!(admission.admit(&domain("b"), key(1), at(10_000)), Ok(()));
        assert_eq!(admission.admit(&domain("a"), key(1), at(30_000)), Ok(()));
    }
}
