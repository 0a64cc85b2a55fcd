//! Ended jobs of a domain that does not answer, as the index of a directory has them.
//!
//! Not here: how a directory gets them (`directory::job_index`), what is asked of domains that answer (`jobs`, `job`).

use super::pages::Pages;
use crate::client::{Client, PATIENCE};
use crate::output::times::now;
use ::client::Error;
use ::client::typed::About;
use wire::api::job_index::{DirectoryJobs, DirectoryJobsParams, IndexedDomain};
use wire::fault;
use wire::shown::age;
use wire::time::Time;

/// Whether an error says that a domain cannot be asked now.
pub(crate) fn is_away(error: &Error) -> bool {
    matches!(error, Error::Fault { code, .. } if *code == i64::from(fault::UNAVAILABLE))
}

/// Searches the index for jobs of a domain; returns them, and how old they are as the end of a sentence. Without an index it is as if
/// that did not have the domain.
pub(crate) fn of_domain(
    client: &mut Client,
    domain: &str,
    search: Option<&DirectoryJobsParams>,
    limit: u64,
) -> (Option<Pages<DirectoryJobs>>, String) {
    let mut indexed = |search: &DirectoryJobsParams| {
        Pages::read(None, limit, |cursor, limit| {
            let domain = Some(domain.to_owned());
            let search = DirectoryJobsParams { domain, limit, cursor, ..search.clone() };
            client.request(&search, &About::default(), PATIENCE)
        })
    };
    let pages = search.and_then(|search| indexed(search).ok());
    let known = known_of(pages.as_ref().and_then(|pages| pages.last.domains.first()), now());
    (pages, known)
}

/// What the index has of a domain.
fn known_of(domain: Option<&IndexedDomain>, now: Time) -> String {
    match domain {
        None => "its jobs are missing".to_owned(),
        Some(IndexedDomain { complete: Some(complete), .. }) => format!(
            "its ended jobs are printed as the directory knew them {} ago; those that wait or run are missing",
            age(now.since(complete.0).as_secs_f64())
        ),
        Some(_) => {
            "of its ended jobs only those are printed that the directory has so far; others are missing"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;

    #[test]
    fn the_age_of_what_is_known_is_said() {
        let complete = Some(UnixTime(Time::from_micros(40_000_000)));
        let known = IndexedDomain { complete, ..IndexedDomain::default() };
        let text = known_of(Some(&known), Time::from_micros(220_000_000));
        assert!(text.contains("as the directory knew them 3m ago"), "{text}");
        assert!(known_of(None, Time::default()).contains("are missing"));
    }

    #[test]
    fn a_domain_without_the_job_is_not_away() {
        let fault = |code: i32| Error::Fault { code: i64::from(code), message: String::new() };
        assert!(is_away(&fault(fault::UNAVAILABLE)));
        assert!(!is_away(&fault(fault::NOT_FOUND)) && !is_away(&Error::Unreachable(String::new())));
    }
}
