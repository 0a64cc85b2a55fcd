//! What is copied between histories: minutes, and the newest samples.
//!
//! Pure. Not here: frames (`wire::report`), when is copied (`report`, `representative`), how it is stored (`copies`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::minutes::{FETCH_LEN_BYTES, Fetch, Held, HostMinutes, MinuteRow, Minutes, NewNames};
use wire::report::samples::{HostSamples, SampleBlock, Samples};
use wire::report::{FromMember, FromRepresentative};
use wire::sample::Metric;
use wire::time::Time;

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Summaries of each minute.
    Minutes,
    /// Samples of the last hours.
    Samples,
}

/// Something of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfKind<T>(pub [T; 2]);

/// Answer to a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of [`Kind::Minutes`].
    Minutes(Minutes),
    /// Of [`Kind::Samples`].
    Samples(Samples),
}

/// What a fetch answered of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The host.
    pub host: HostName,
    /// Names of the numbers in the rows.
    pub names: NewNames,
    /// The rows.
    pub rows: Rows,
}

/// Rows of a host that were copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Minutes.
    Minutes(Vec<MinuteRow>),
    /// Blocks of samples.
    Samples(Vec<SampleBlock>),
}

/// Rows of a host, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The host.
    pub host: HostName,
    /// Names of the numbers in the rows.
    pub metrics: Arc<BTreeMap<u32, Arc<Metric>>>,
    /// The rows.
    pub rows: Rows,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Minutes, Kind::Samples];

    /// How often it is asked for. Samples are sent in blocks: those of a minute are compressed well, and few enough.
    #[must_use]
    pub const fn every(self) -> Duration {
        match self {
            Kind::Minutes => Duration::from_secs(20),
            Kind::Samples => Duration::from_secs(60),
        }
    }

    /// The fetch of what follows these positions.
    #[must_use]
    pub fn fetch(held: Vec<Held>, since: Time) -> Fetch {
        Fetch { held, since, len_bytes: FETCH_LEN_BYTES, connected: AtEnd(None) }
    }

    /// The frame of a standby that requests it.
    #[must_use]
    pub fn of_standby(self, fetch: Fetch) -> FromMember {
        match self {
            Kind::Minutes => FromMember::Fetch(fetch),
            Kind::Samples => FromMember::FetchSamples(fetch),
        }
    }

    /// The frame of a representative that requests it.
    #[must_use]
    pub fn of_representative(self, fetch: Fetch) -> FromRepresentative {
        match self {
            Kind::Minutes => FromRepresentative::Fetch(fetch),
            Kind::Samples => FromRepresentative::FetchSamples(fetch),
        }
    }
}

impl<T> OfKind<T> {
    /// That of a kind.
    pub fn of(&self, kind: Kind) -> &T {
        &self.0[kind as usize]
    }

    /// That of a kind, to be changed.
    pub fn of_mut(&mut self, kind: Kind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

impl Answer {
    /// Nothing, and nothing follows at the moment.
    #[must_use]
    pub fn nothing(kind: Kind) -> Answer {
        match kind {
            Kind::Minutes => Answer::Minutes(Minutes { hosts: Vec::new(), is_end: true }),
            Kind::Samples => Answer::Samples(Samples { hosts: Vec::new(), is_end: true }),
        }
    }

    /// Its kind, what it has of each host, and whether nothing follows at the moment.
    #[must_use]
    pub fn received(self) -> (Kind, Vec<Received>, bool) {
        match self {
            Answer::Minutes(Minutes { hosts, is_end }) => {
                let of =
                    |HostMinutes { host, names, rows }| Received { host, names, rows: Rows::Minutes(rows) };
                (Kind::Minutes, hosts.into_iter().map(of).collect(), is_end)
            }
            Answer::Samples(Samples { hosts, is_end }) => {
                let of = |HostSamples { host, names, blocks }| Received {
                    host,
                    names,
                    rows: Rows::Samples(blocks),
                };
                (Kind::Samples, hosts.into_iter().map(of).collect(), is_end)
            }
        }
    }

    /// The frame of a member.
    #[must_use]
    pub fn of_member(self) -> FromMember {
        match self {
            Answer::Minutes(minutes) => FromMember::Minutes(minutes),
            Answer::Samples(samples) => FromMember::Samples(samples),
        }
    }

    /// The frame of a representative.
    #[must_use]
    pub fn of_representative(self) -> FromRepresentative {
        match self {
            Answer::Minutes(minutes) => FromRepresentative::Minutes(minutes),
            Answer::Samples(samples) => FromRepresentative::Samples(samples),
        }
    }
}

impl Rows {
    /// Number of the row after the last one, and the time of the last one.
    #[must_use]
    pub fn end(&self) -> Option<(u64, Time)> {
        match self {
            Rows::Minutes(rows) => rows.last().map(|row| (row.number.saturating_add(1), row.start)),
            Rows::Samples(blocks) => blocks.last().map(|block| (block.next, block.last)),
        }
    }

    /// Bytes of the rows.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self {
            Rows::Minutes(rows) => rows.iter().map(|row| row.packed.0.len()).sum(),
            Rows::Samples(blocks) => blocks.iter().map(|block| block.head.0.len() + block.body.0.len()).sum(),
        }
    }

    /// Drops what was copied up to this position.
    pub fn drop_held(&mut self, held: &Held) {
        match self {
            Rows::Minutes(rows) => rows.retain(|row| row.number >= held.next || row.start > held.latest),
            Rows::Samples(blocks) => {
                blocks.retain(|block| block.next > held.next || block.latest > held.latest);
            }
        }
    }

    /// Drops what is later than this.
    pub fn drop_after(&mut self, time: Time) {
        match self {
            Rows::Minutes(rows) => rows.retain(|row| row.start <= time),
            Rows::Samples(blocks) => blocks.retain(|block| block.latest <= time),
        }
    }
}
