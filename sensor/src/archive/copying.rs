//! Copying of one host's series: asks a source what it has, and fetches what is lacking, part by part.
//!
//! Shell. Rule: one part of a host is under way at a time, and the next is asked for once it is on disk, so a source is never
//! ahead of the archive. Not here: which hosts are copied, and from where (`rounds`).

use super::copies::From;
use super::{Archive, Peers};
use jiff::civil::Date;
use rpc::dispatch::typed::{answer_of, params_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::daily_copy::{DayLen, Following, Reached};
use wire::api::Request;
use wire::api::archive::{COPY_DAYS_MAX, ReachedDay, SeriesCopy, SeriesCopyParams};
use wire::id::HostName;

/// Timeout for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Most parts of a host in one round: a gigabyte.
const PARTS_MAX: usize = 4096;

/// Asks a method of a host, or of the representative.
///
/// # Errors
/// What went wrong, as a sentence.
pub(super) async fn ask<R: Request>(
    peers: &Arc<dyn Peers>,
    host: Option<&HostName>,
    request: &R,
) -> Result<R::Answer, String> {
    let params = params_of(request).map_err(|fault| fault.to_string())?;
    let answer = peers.call(host, R::METHOD, params, ANSWER_WITHIN).await;
    answer.and_then(answer_of::<R>).map_err(|fault| fault.to_string())
}

impl Archive {
    /// Copies what an archive or the host itself (`source`) has of a host and is lacking here; returns whether that is all.
    ///
    /// # Errors
    /// Why not, as a sentence.
    pub(super) async fn copy(
        &self,
        peers: &Arc<dyn Peers>,
        host: &HostName,
        source: &HostName,
    ) -> Result<bool, String> {
        let from = if source == host { From::Host } else { From::Archive };
        let measured_by = (from == From::Archive).then(|| host.to_string());
        // Days without more at the moment, though their files are longer.
        let mut ended = BTreeSet::new();
        let mut wanted = Vec::new();
        for _ in 0..PARTS_MAX {
            let days = wanted.iter().map(reached_day).collect();
            let request = SeriesCopyParams { measured_by: measured_by.clone(), days };
            let answer = ask(peers, Some(source), &request).await?;
            let (lacking, over) = self.take(host, from, wanted, answer).await?;
            ended.extend(over);
            wanted =
                lacking.into_iter().filter(|day| !ended.contains(&day.date)).take(COPY_DAYS_MAX).collect();
            if wanted.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores an answer; returns what is still lacking, and the days without more.
    async fn take(
        &self,
        host: &HostName,
        from: From,
        wanted: Vec<Reached>,
        answer: SeriesCopy,
    ) -> Result<(Vec<Reached>, Vec<Date>), String> {
        let (own, host) = (self.clone(), host.clone());
        let taking = tokio::task::spawn_blocking(move || {
            let copies = &own.0.copies;
            let mut ended = Vec::new();
            for part in answer.parts {
                let date = date_of(&part.day)?;
                let day = wanted.iter().find(|day| day.date == date);
                let day = day.ok_or_else(|| format!("{date} was sent, and not asked for"))?;
                let following = match part.differs {
                    true => Following::Differs,
                    false => Following::Bytes(part.data.0),
                };
                let stored = copies.store(&host, from, day, &following);
                if !stored.map_err(|error| storing(&own, &error))? {
                    ended.push(date);
                }
            }
            own.note(None);
            let day =
                |day: &wire::api::archive::DayLen| Ok(DayLen { date: date_of(&day.day)?, len: day.bytes });
            let there = answer.days.iter().map(day).collect::<Result<Vec<_>, String>>()?;
            let lacking = copies.lacking(&host, from, &there).map_err(|error| storing(&own, &error))?;
            Ok((lacking, ended))
        });
        match taking.await {
            Ok(taken) => taken,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err("the process is ending".to_owned()),
        }
    }
}

/// Notes that the disk refuses; it concerns all hosts.
fn storing(archive: &Archive, error: &std::io::Error) -> String {
    archive.note(Some(error.to_string()));
    error.to_string()
}

fn date_of(day: &str) -> Result<Date, String> {
    day.parse().map_err(|_| {
        format!("expected a day such as 2026-11-30, found {:?}", day.chars().take(20).collect::<String>())
    })
}

fn reached_day(day: &Reached) -> ReachedDay {
    ReachedDay { day: day.date.to_string(), bytes: day.len, crc: day.end }
}
