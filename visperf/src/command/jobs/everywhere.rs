//! `visperf jobs --all-domains`: the jobs of all domains that the directory knows, each asked through the connected daemon.
//!
//! Rule: a domain that does not answer is named, and the others are printed; its ended jobs are from the index of a directory.
//! Not here: one domain (`super`).

use super::{Search, params};
use crate::client::{Client, PATIENCE};
use crate::command::at_once::ask_each;
use crate::command::known_jobs;
use crate::command::pages::Pages;
use crate::exit::Failure;
use ::client::Error;
use ::client::typed::About;
use serde_json::Value;
use std::cmp::Reverse;
use wire::api::directory::DomainsParams;
use wire::api::job_index::DirectoryJobsParams;
use wire::api::jobs::{Job, Jobs, JobsSearchParams};
use wire::api::{Request, UnixTime};

/// Most domains that are asked.
const DOMAINS_MAX: u64 = 10_000;

/// Jobs of all domains.
#[derive(Default)]
pub(super) struct Found {
    /// Each job, and its JSON.
    pub(super) items: Vec<(Job, Value)>,
    /// Number of matching jobs of all domains that answered.
    pub(super) total: u64,
    /// Whether there may be more than `total`.
    pub(super) is_more: bool,
    /// Domains that did not answer, why, and what is known of them.
    pub(super) missing: Vec<String>,
    /// Hosts whose jobs may be missing, each with its domain.
    pub(super) unheard: Vec<String>,
}

/// Asks every domain, and returns the newest jobs of all, or the oldest.
///
/// # Errors
/// If no directory names domains, or none of them answers.
pub(super) fn read(args: &Search) -> Result<Found, Failure> {
    let names = domains(args)?;
    let mut found = Found::default();
    let (mut failure, mut away) = (None, Vec::new());
    let answers = ask_each(&args.query.target, &names, |client, domain| ask_one(client, args, domain));
    for (name, answer) in answers {
        match answer {
            Ok(Pages { items, last, .. }) => {
                found.total += last.total;
                found.is_more |= last.total_is_more;
                found.unheard.extend(last.unheard.iter().map(|host| format!("{host} of {name}")));
                found.items.extend(items);
            }
            Err(error) => {
                away.push((name, error.to_string()));
                failure.get_or_insert(error);
            }
        }
    }
    add_indexed(args, &away, &mut found);
    match failure {
        Some(error) if away.len() == names.len() && found.items.is_empty() => Err(error.into()),
        _ => {
            sort(&mut found.items, args.oldest);
            if args.sorted_there().is_none() {
                found.items.truncate(usize::try_from(args.limit()).unwrap_or(usize::MAX));
            }
            Ok(found)
        }
    }
}

/// Returns what a directory knows of the one domain that is asked, which does not answer.
///
/// # Errors
/// Why it does not, if nothing is known.
pub(super) fn of_away(args: &Search, domain: &str, error: Error) -> Result<Found, Failure> {
    let mut found = Found::default();
    add_indexed(args, &[(domain.to_owned(), error.to_string())], &mut found);
    if found.items.is_empty() { Err(error.into()) } else { Ok(found) }
}

/// Adds the jobs of domains that did not answer, as the index of a directory has them.
fn add_indexed(args: &Search, away: &[(String, String)], found: &mut Found) {
    let search = DirectoryJobsParams::of(&params(args, None, 0));
    let mut client = Client::new(&args.query.target);
    for (name, error) in away {
        let (pages, known) = known_jobs::of_domain(&mut client, name, search.as_ref(), args.limit());
        found.missing.push(format!("{name}: {error}; {known}"));
        if let Some(Pages { items, last, .. }) = pages {
            found.total += items.len() as u64;
            found.is_more |= last.next.is_some();
            found.items.extend(items);
        }
    }
}

fn domains(args: &Search) -> Result<Vec<String>, Failure> {
    let mut client = Client::new(&args.query.target);
    let params = DomainsParams { limit: DOMAINS_MAX, ..DomainsParams::default() };
    let answer = client.ask(&params, &About::default(), PATIENCE);
    let domains = answer.map_err(|error| client.explain(DomainsParams::METHOD, error))?.domains;
    match domains.is_empty() {
        true => Err(Failure::Usage(
            "no directory names a domain: expected a daemon that knows a directory (visperf domains); without --all-domains \
             the jobs of one domain are listed"
                .to_owned(),
        )),
        false => Ok(domains.into_iter().map(|domain| domain.domain).collect()),
    }
}

fn ask_one(client: &mut Client, args: &Search, domain: &str) -> Result<Pages<Jobs>, Error> {
    let about = About { domain: Some(domain.to_owned()), host: None };
    Pages::read(None, args.limit(), |cursor, limit| {
        let params: JobsSearchParams = params(args, cursor, limit);
        client.request(&params, &about, PATIENCE)
    })
}

/// Sorts by the latest time of a job, as a domain does.
fn sort(items: &mut [(Job, Value)], is_oldest_first: bool) {
    let key = |job: &Job| {
        let latest: Option<UnixTime> = job.submitted.max(job.started).max(job.ended);
        (latest, job.domain.clone(), job.id.clone())
    };
    match is_oldest_first {
        true => items.sort_by_cached_key(|(job, _)| key(job)),
        false => items.sort_by_cached_key(|(job, _)| Reverse(key(job))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::time::Time;

    #[test]
    fn jobs_of_several_domains_are_in_one_order() {
        let job = |domain: &str, id: &str, ended: Option<i64>| {
            let ended = ended.map(|secs| UnixTime(Time::from_micros(secs * 1_000_000)));
            (Job { domain: domain.to_owned(), id: id.to_owned(), ended, ..Job::default() }, Value::Null)
        };
        let mut items = vec![
            job("a", "1", Some(10)),
            job("b", "1", Some(30)),
            job("a", "2", None),
            job("b", "2", Some(10)),
        ];
        let order = |items: &[(Job, Value)]| -> Vec<String> {
            items.iter().map(|(job, _)| format!("{}{}", job.domain, job.id)).collect()
        };
        sort(&mut items, false);
        assert_eq!(order(&items), ["b1", "b2", "a1", "a2"]);
        sort(&mut items, true);
        assert_eq!(order(&items), ["a2", "a1", "b2", "b1"]);
    }
}
