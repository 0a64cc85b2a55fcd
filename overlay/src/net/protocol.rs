//! Stream protocols between daemons, and the size limits of each.
//!
//! Pure. One stream carries one protocol; the exchange on it is in the table of
//! `docs/decisions/0011-overlay.md`. Invariant: a question or an answer of a peer is refused before more than
//! its limit has been read.
//! Not here: the content of questions and answers (`wire`).

use std::fmt;

/// Protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Each side sends its certificate.
    Hello,
    /// Exchanges a token for a certificate.
    Join,
    /// Logs in with an account at a proxy; the answer is a visa.
    Enter,
    /// Messages of membership and election.
    Control,
    /// Registrations, look-ups and replication of directories.
    Directory,
    /// One call of a method of the query interface at another daemon.
    Query,
    /// Several such calls, one after the other, on one stream.
    Queries,
    /// Events and samples of a member.
    Report,
    /// Agrees when and where both sides dial each other directly (`net::punch`).
    Punch,
}

/// Use of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One question and one answer, then the stream ends; several of them for [`Protocol::Queries`].
    Question,
    /// The stream stays open and carries frames.
    Lasting,
}

impl Protocol {
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

    /// Its name on the wire; its number is increased when the exchange changes.
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

    /// Whether a peer that has not shown a certificate may use it.
    #[must_use]
    pub const fn is_open_to_strangers(self) -> bool {
        matches!(self, Protocol::Hello | Protocol::Join | Protocol::Enter)
    }

    /// Whether visitors may use it: they ask questions, and take part in nothing else.
    #[must_use]
    pub const fn is_for_visitors(self) -> bool {
        matches!(self, Protocol::Hello | Protocol::Enter | Protocol::Query | Protocol::Queries)
    }

    /// Longest question, or longest frame of a lasting stream, in bytes. Protocols open to strangers allow no
    /// more than a certificate chain or a token needs.
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

    /// Longest answer, in bytes; sized for a page of events with long attributes.
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
