//! Versions of the formats on disk and in messages.
//!
//! Pure. Rule: a program reads its own version of a format and the previous one; a reader refuses any other
//! with an error that names both versions, and never guesses. A last field that a reader may ignore needs no
//! new version.
//! A new version takes two releases, so that two adjacent ones can share a domain and a state folder: the
//! first one reads it ([`Format::newest`]), the next one writes it ([`Format::written`]).
//! Not here: the formats (next to their readers), the samples of each version (`tests/samples`).

use std::fmt;

/// Version of the frames of [`crate::codec`]: of length, checksum and encoding. The content of a frame has
/// its own version.
pub const FRAME: u8 = 2;

/// The versions of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Name of the format, unique in [`FORMATS`].
    pub name: &'static str,
    /// The first released version.
    pub first: u16,
    /// The version that this program writes or sends.
    pub written: u16,
    /// The newest version that this program reads: [`Format::written`] or the one after it.
    pub newest: u16,
}

impl Format {
    const fn new(name: &'static str, version: u16) -> Format {
        Format { name, first: version, written: version, newest: version }
    }

    /// The oldest version that this program reads: the one before [`Format::written`], if there was one.
    #[must_use]
    pub const fn oldest(self) -> u16 {
        if self.written > self.first { self.written - 1 } else { self.first }
    }

    /// Whether this program reads that version.
    #[must_use]
    pub const fn reads(self, version: u16) -> bool {
        self.oldest() <= version && version <= self.newest
    }

    /// First text in a file of frames: the name and the written version.
    #[must_use]
    pub fn purpose(self) -> String {
        format!("visperf {} {}", self.name, self.written)
    }

    /// Parse the version in a [`Format::purpose`]; `None` if it is of another format.
    #[must_use]
    pub fn version_of(self, purpose: &str) -> Option<u16> {
        let rest = purpose.strip_prefix("visperf ")?.strip_prefix(self.name)?;
        rest.strip_prefix(' ')?.parse().ok()
    }

    /// The supported versions, for messages: `2`, or `2 or 3`.
    #[must_use]
    pub fn expected(self) -> Expected {
        Expected(self)
    }
}

/// Formats the supported versions; see [`Format::expected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected(Format);

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oldest, newest) = (self.0.oldest(), self.0.newest);
        write!(f, "{oldest}")?;
        (oldest + 1..=newest).try_for_each(|version| write!(f, " or {version}"))
    }
}

/// Journal of the sensor. Version 2 may have compressed segments beside the live one.
pub const JOURNAL: Format = Format { name: "journal", first: 1, written: 2, newest: 2 };
/// The representative's store of its domain's events.
pub const DOMAIN_STORE: Format = Format::new("domain store", 1);
/// A recording of processes.
pub const RECORDING: Format = Format::new("recording", 1);
/// Key of a daemon.
pub const KEY: Format = Format::new("key", 1);
/// Root key of a domain.
pub const ROOT_KEY: Format = Format::new("root key", 1);
/// Certificate and contacts of a member.
pub const MEMBERSHIP: Format = Format::new("membership", 1);
/// Previous certificate of a member.
pub const PREVIOUS_CERTIFICATE: Format = Format::new("previous certificate", 1);
/// Revocation lists that a daemon received.
pub const DENIALS: Format = Format::new("denials", 1);
/// The root's certificate for the issuer.
pub const DELEGATION: Format = Format::new("delegation", 1);
/// Tokens and members of the issuer.
pub const BOOK: Format = Format::new("book", 1);
/// Revocation list of the issuer.
pub const DENY_LIST: Format = Format::new("deny-list", 1);
/// Tokens of the type replace.
pub const REPLACE_TOKENS: Format = Format::new("replace tokens", 1);
/// The last correct time of the issuer's host.
pub const CLOCK: Format = Format::new("clock", 1);
/// Signed commands that a sensor received.
pub const ORDERS: Format = Format::new("orders", 1);
/// Number of the last signed command that was sent.
pub const ORDER_SEQUENCE: Format = Format::new("order sequence", 1);
/// Operator of a sensor without a domain.
pub const OPERATOR: Format = Format::new("operator", 1);
/// Highest term of an election.
pub const ELECTION: Format = Format::new("election", 1);
/// Records of other domains.
pub const DOMAINS: Format = Format::new("domains", 1);
/// Table of a directory.
pub const DIRECTORY_SNAPSHOT: Format = Format::new("directory snapshot", 2);
/// Accounts of a proxy.
pub const ACCOUNTS: Format = Format::new("accounts", 1);
/// First message on a connection between daemons.
pub const HELLO: Format = Format::new("hello", 1);
/// Report of a member to its representative.
pub const REPORT: Format = Format::new("report", 2);
/// The stream carried over HTTPS.
pub const CARRIER: Format = Format::new("carrier", 1);
/// Lines between a sensor and its modules.
pub const MODULE: Format = Format::new("module", 1);

/// Files of the history of metrics: segments and the log of the head. Version 2 has columns as differences.
pub const HISTORY: Format = Format { name: "history", first: 1, written: 2, newest: 2 };

/// Files of the process history, one for each day.
pub const PROCESS_HISTORY: Format = Format::new("process history", 1);

/// Measurements of the jobs that run on a host.
pub const JOB_USAGE: Format = Format::new("job usage", 1);

/// Files of the series of jobs, one for each day.
pub const JOB_SERIES: Format = Format::new("job series", 1);

/// Database of ended calls; its own table of migrations has the number. Version 2 can be copied,
/// version 3 has what filters look at in fewer places, version 4 the details of jobs, version 5 their amounts apart.
pub const CALL_HISTORY: Format = Format { name: "call history", first: 1, written: 5, newest: 5 };

/// Database of the jobs of all domains in a directory; its own table of migrations has the number.
pub const JOB_INDEX: Format = Format::new("job index", 1);

/// All formats that carry a version.
pub const FORMATS: [Format; 30] = [
    JOURNAL,
    DOMAIN_STORE,
    RECORDING,
    KEY,
    ROOT_KEY,
    MEMBERSHIP,
    PREVIOUS_CERTIFICATE,
    DENIALS,
    DELEGATION,
    BOOK,
    DENY_LIST,
    REPLACE_TOKENS,
    CLOCK,
    ORDERS,
    ORDER_SEQUENCE,
    OPERATOR,
    ELECTION,
    DOMAINS,
    DIRECTORY_SNAPSHOT,
    ACCOUNTS,
    HELLO,
    REPORT,
    CARRIER,
    MODULE,
    HISTORY,
    PROCESS_HISTORY,
    JOB_SERIES,
    CALL_HISTORY,
    JOB_INDEX,
    JOB_USAGE,
];

/// Version at the end of a value, as a `u16`. If nothing follows the value, it is 1: the form without a
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Trailing(pub u16);

impl<'de> serde::Deserialize<'de> for Trailing {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Trailing, D::Error> {
        // Nothing follows it, so an error means that it is missing.
        Ok(Trailing(u16::deserialize(deserializer).unwrap_or(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_program_reads_its_own_version_and_the_previous_one() {
        let versions = |first, written, newest| Format { name: "x", first, written, newest };
        let read = |format: Format| (0..9).filter(|version| format.reads(*version)).collect::<Vec<u16>>();
        assert_eq!(read(versions(1, 1, 1)), [1]);
        assert_eq!(read(versions(1, 1, 2)), [1, 2]);
        assert_eq!(read(versions(1, 2, 2)), [1, 2]);
        assert_eq!(read(versions(1, 4, 5)), [3, 4, 5]);
        assert_eq!(versions(1, 4, 5).expected().to_string(), "3 or 4 or 5");
        assert_eq!(versions(2, 2, 2).expected().to_string(), "2");
    }

    #[test]
    fn versions_rise_one_at_a_time_and_names_are_unique() {
        for Format { name, first, written, newest } in FORMATS {
            assert!(first <= written && (written..=written + 1).contains(&newest), "{name}");
        }
        let names: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
        assert_eq!(names.len(), FORMATS.len());
    }

    #[test]
    fn a_purpose_states_its_version() {
        assert_eq!(BOOK.purpose(), "visperf book 1");
        assert_eq!(BOOK.version_of("visperf book 7"), Some(7));
        for other in ["visperf book", "visperf bookshelf 1", "visperf clock 1", "book 1", "visperf book 1 "] {
            assert_eq!(BOOK.version_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_value_without_a_version_is_of_version_1() {
        let bytes = postcard::to_stdvec(&(7_u64, Trailing(3))).expect("short");
        assert_eq!(postcard::from_bytes(&bytes), Ok((7_u64, Trailing(3))));
        assert_eq!(postcard::from_bytes::<u64>(&bytes), Ok(7), "an older reader does not look at it");
        let bytes = postcard::to_stdvec(&7_u64).expect("short");
        assert_eq!(postcard::from_bytes(&bytes), Ok((7_u64, Trailing(1))));
    }
}
