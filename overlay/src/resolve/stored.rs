//! File format of the resolver's cache: frames of a head, domains, and an end with the number of domains.
//!
//! Pure: bytes in, bytes out. Rule: restored records count as last seen, with their ages. Bytes that are
//! damaged, cut or of another version are refused as a whole, for the caller to move the file aside.
//! Not here: the file, and whether records are still valid (`identity`; certificates may have expired since).

use super::{Memory, Remembered, Resolver, VerifiedRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::codec;
use wire::credential::Statement;
use wire::registration::Record;
use wire::replication::Number;
use wire::time::{Moment, Time};
use wire::version::DOMAINS;

/// Name of the file in the state folder.
pub const FILE_NAME: &str = "domains";

/// Start of the bytes, which distinguishes them from other frames.
const PURPOSE: &str = "visperf domains";

/// Longest file that is read, in bytes: every domain with a record of some kilobytes.
pub const LEN_MAX_BYTES: usize = 128 << 20;

#[derive(Serialize, Deserialize)]
enum Part {
    Head { purpose: String, version: u16, taken: Time },
    Domain { record: Box<Record>, statement: Box<Statement>, age: Duration },
    Left { domain: wire::id::DomainName, number: Number, age: Duration },
    End { parts: u64 },
}

/// Why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a whole list of domains of version {expected}: {reason}; expected what an earlier run stored", expected = DOMAINS.expected())]
pub struct Unreadable {
    /// What is wrong.
    pub reason: String,
}

impl Resolver {
    /// The bytes to store at `now`, which is `taken` by the calendar.
    ///
    /// # Errors
    /// If a record is longer than a frame may be; no verified one is.
    pub fn to_bytes(&self, now: Moment, taken: Time) -> Result<Vec<u8>, codec::Error> {
        let mut out = Vec::new();
        let mut parts = 0;
        codec::encode(
            &Part::Head { purpose: PURPOSE.to_owned(), version: DOMAINS.written, taken },
            &mut out,
        )?;
        for (domain, memory) in &self.memory {
            if let Some((number, at, age)) = memory.left {
                let age = age.saturating_add(now.since(at));
                codec::encode(&Part::Left { domain: domain.clone(), number, age }, &mut out)?;
                parts += 1;
            }
            if let Some(primary) = &memory.primary {
                let VerifiedRecord { record, statement, age, .. } = primary.now(now);
                let (record, statement) = (Box::new(record), Box::new(statement));
                codec::encode(&Part::Domain { record, statement, age }, &mut out)?;
                parts += 1;
            }
        }
        codec::encode(&Part::End { parts }, &mut out)?;
        Ok(out)
    }

    /// Restore what was stored, at `now`, which is `calendar` by the calendar; every record counts as last
    /// seen. Returns the number of domains.
    ///
    /// # Errors
    /// If the bytes are damaged or cut; nothing is restored then.
    pub fn take_back(&mut self, bytes: &[u8], now: Moment, calendar: Time) -> Result<usize, Unreadable> {
        let (taken, parts) = read(bytes)?;
        let since = calendar.since(taken);
        let mut domains = BTreeSet::new();
        for part in parts {
            match part {
                Part::Domain { record, statement, age } => {
                    let age = age.saturating_add(since);
                    let heard = VerifiedRecord {
                        record: *record,
                        statement: *statement,
                        age,
                        remaining: Duration::ZERO,
                    };
                    let domain = heard.record.domain.clone();
                    self.make_place(&domain);
                    domains.insert(domain.clone());
                    let memory = self.memory.entry(domain).or_insert_with(|| Memory::new(0));
                    // A record received since the start takes precedence over a stored one.
                    if memory.primary.is_none() {
                        memory.primary = Some(Remembered { heard, at: now });
                    }
                }
                Part::Left { domain, number, age } => {
                    self.make_place(&domain);
                    domains.insert(domain.clone());
                    let memory = self.memory.entry(domain).or_insert_with(|| Memory::new(0));
                    memory.leave(number, now, age.saturating_add(since));
                }
                Part::Head { .. } | Part::End { .. } => {}
            }
        }
        Ok(domains.len())
    }
}

fn read(bytes: &[u8]) -> Result<(Time, Vec<Part>), Unreadable> {
    let refuse = |reason: String| Unreadable { reason };
    if bytes.len() > LEN_MAX_BYTES {
        return Err(refuse(format!("{} bytes", bytes.len())));
    }
    let mut rest = bytes;
    let mut next = || -> Result<Part, Unreadable> {
        match codec::decode::<Part>(rest) {
            Ok(Some((part, len_bytes))) => {
                rest = &rest[len_bytes..];
                Ok(part)
            }
            Ok(None) => Err(refuse("it ends early".to_owned())),
            Err(error) => Err(refuse(error.to_string())),
        }
    };
    let taken = match next()? {
        Part::Head { purpose, version, taken } if purpose == PURPOSE && DOMAINS.reads(version) => taken,
        Part::Head { purpose, version, .. } => {
            return Err(refuse(format!("it says {purpose:?}, version {version}")));
        }
        Part::Domain { .. } | Part::Left { .. } | Part::End { .. } => {
            return Err(refuse("it has no head".to_owned()));
        }
    };
    let mut found = Vec::new();
    loop {
        match next()? {
            Part::Head { .. } => return Err(refuse("it has two heads".to_owned())),
            Part::End { parts } if parts == found.len() as u64 => return Ok((taken, found)),
            Part::End { parts } => return Err(refuse(format!("it has {} of {parts} parts", found.len()))),
            part @ (Part::Domain { .. } | Part::Left { .. }) if found.len() < 2 * super::DOMAINS_MAX => {
                found.push(part);
            }
            Part::Domain { .. } | Part::Left { .. } => {
                return Err(refuse(format!("it has more than {} domains", super::DOMAINS_MAX)));
            }
        }
    }
}
