//! The protocols spoken between daemons, and how much each may carry.
//!
//! Pure. One stream carries one protocol; the exchange on it is in the table of
//! `docs/decisions/0011-overlay.md`. Invariant: whatever a peer sends, a question or an answer is refused
//! before more than its cap has been read.
//! Not here: what the questions and answers are (`wire`).

use std::fmt;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Each side shows its certificate.
    Hello,
    /// A token for a certificate.
    Join,
    /// An account's secret for a visa.
    Enter,
    /// Membership and election.
    Control,
    /// Statements, look-ups and replication of directories.
    Directory,
    /// A method of the query interface, asked of another daemon.
    Query,
    /// Such questions one after the other on one stream.
    Queries,
    /// A member's events and samples.
    Report,
    /// When and where to dial each other directly (`net::punch`).
    Punch,
}

/// How a stream is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One question, one answer, then it ends; or several of [`Protocol::Queries`].
    Question,
    /// It stays open and carries frames.
    Lasting,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 9] = [
        Protocol::Hello,
        Protocol::Join,
        Protocol::Enter,
        Protocol::Control,
        Protocol::Directory,
        Protocol::Query,
        Protocol::Queries,
        Protocol::Report,
        Protocol::Punch,
    ];

    /// Its name on the wire; the number grows when the exchange changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Hello => "/visperf/hello/1",
            Protocol::Join => "/visperf/join/1",
            Protocol::Enter => "/visperf/enter/1",
            Protocol::Control => "/visperf/control/1",
            Protocol::Directory => "/visperf/directory/1",
            Protocol::Query => "/visperf/query/3",
            Protocol::Queries => "/visperf/queries/1",
            Protocol::Report => "/visperf/report/1",
            Protocol::Punch => "/visperf/punch/1",
        }
    }

    /// The protocol of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// How a stream of it is used.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Protocol::Hello
            | Protocol::Join
            | Protocol::Enter
            | Protocol::Directory
            | Protocol::Query
            | Protocol::Queries
            | Protocol::Punch => Shape::Question,
            Protocol::Control | Protocol::Report => Shape::Lasting,
        }
    }

    /// Whether it is spoken with a peer whose certificate has not been seen.
    #[must_use]
    pub const fn is_open_to_strangers(self) -> bool {
        matches!(self, Protocol::Hello | Protocol::Join | Protocol::Enter)
    }

    /// Whether visitors speak it: they ask, and take part in nothing.
    #[must_use]
    pub const fn is_for_visitors(self) -> bool {
        matches!(self, Protocol::Hello | Protocol::Enter | Protocol::Query | Protocol::Queries)
    }

    /// Longest question, or longest frame of a lasting stream, in bytes. Strangers get what a certificate
    /// chain or a token needs and no more.
    #[must_use]
    pub const fn question_len_max_bytes(self) -> usize {
        match self {
            Protocol::Hello | Protocol::Join => 16 << 10,
            Protocol::Enter => 1 << 10,
            Protocol::Punch => 128,
            Protocol::Control => wire::membership::MESSAGE_LEN_MAX_BYTES,
            Protocol::Query | Protocol::Queries => 1 << 20,
            Protocol::Directory | Protocol::Report => 4 << 20,
        }
    }

    /// Longest answer, in bytes: a page of events with long attributes fits.
    #[must_use]
    pub const fn answer_len_max_bytes(self) -> usize {
        match self {
            Protocol::Hello => 4 << 10,
            Protocol::Punch => 128,
            Protocol::Join => 64 << 10,
            Protocol::Enter => 24 << 10,
            Protocol::Control | Protocol::Report => 1 << 20,
            Protocol::Directory => 4 << 20,
            Protocol::Query | Protocol::Queries => 16 << 20,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_by_its_name() {
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::by_name(protocol.name()), Some(protocol));
            assert!(protocol.answer_len_max_bytes() <= wire::codec::BODY_LEN_MAX_BYTES);
        }
        assert_eq!(Protocol::by_name("/visperf/hello/2"), None);
    }
}
