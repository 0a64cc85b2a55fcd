//! Query of events: its parameters, checked and made ready, and which events fit.
//!
//! Pure. Not here: reading events (`events`, `domain_events`), which blocks are read (`block_query`).

use super::block_query::BlockQuery;
use crate::call_ids;
use crate::segments::packed::summary::Term;
use call_store::answer::Owners;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::fault::Fault;
use std::collections::HashSet;
use std::time::Duration;
use wire::api::events::EventsParams;
use wire::call::usage::is_private;
use wire::event::Fields;
use wire::text_regex::TextRegex;

/// Longest wait for a first event: below the timeout of a call.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// Parameters of a query.
pub(super) struct EventQuery {
    pub(super) limit: usize,
    /// Whether the last matching events are requested.
    pub(super) is_last: bool,
    params: EventsParams,
    /// Whose usage the viewer may see.
    owners: Owners,
    /// Ids of the calls that are requested.
    calls: Option<Vec<CompactString>>,
    pub(super) wait: Duration,
}

/// Ids of the calls that match the requested job and user now; empty if none is requested.
#[derive(Default)]
pub(super) struct MatchingCalls {
    of_job: HashSet<CompactString>,
    of_user: HashSet<CompactString>,
}

impl EventQuery {
    /// Parses the parameters; `ids` returns the ids that events of a call have.
    pub(super) fn new(
        params: &EventsParams,
        owners: Owners,
        ids: impl Fn(&str) -> Vec<CompactString>,
    ) -> Result<EventQuery, Fault> {
        if params.last && (params.cursor.is_some() || !params.wait.0.is_zero()) {
            return Err(Fault::invalid_params(
                "last: expected neither cursor nor wait beside it, for it begins at the newest event; to go on from \
                 there give the cursor of its answer, without last",
            ));
        }
        Ok(EventQuery {
            limit: usize::try_from(params.limit).unwrap_or(usize::MAX),
            is_last: params.last,
            calls: params.call.as_deref().map(ids),
            params: params.clone(),
            owners,
            wait: params.wait.0.min(WAIT_MAX),
        })
    }

    /// Returns whether the calls must be known to decide which events match.
    pub(super) fn chooses_calls(&self) -> bool {
        self.params.job.is_some() || self.params.user.is_some()
    }

    /// Returns the ids of the matching calls; looked up again for each read, since calls are added while a
    /// query waits.
    pub(super) fn chosen(&self, joiner: &Joiner) -> MatchingCalls {
        let of_job = self.params.job.as_ref().map(|job| call_ids::event_ids_of_job(joiner, job));
        let of_user = self.params.user.as_ref().map(|user| call_ids::event_ids_of_user(joiner, user));
        MatchingCalls { of_job: of_job.unwrap_or_default(), of_user: of_user.unwrap_or_default() }
    }

    /// The expression that a text of each requested event matches.
    pub(super) fn regex(&self) -> Option<&TextRegex> {
        self.params.regex.as_ref()
    }

    /// Returns what a block must have to be read.
    pub(super) fn blocks(&self, chosen: &MatchingCalls) -> BlockQuery {
        let EventsParams { kind, job, user, on_host, since, until, .. } = &self.params;
        let calls = |calls: &HashSet<CompactString>| calls.iter().map(|call| Term::call(call)).collect();
        let with = |name: Term, mut others: Vec<Term>| {
            others.push(name);
            others
        };
        let names = [
            self.calls.as_ref().map(|calls| calls.iter().map(|call| Term::call(call)).collect()),
            job.as_ref().map(|job| with(Term::job(job), calls(&chosen.of_job))),
            user.as_ref().map(|user| with(Term::user(user), calls(&chosen.of_user))),
            on_host.as_ref().map(|host| vec![Term::host(host)]),
        ];
        BlockQuery {
            kinds: kind.clone(),
            since: since.map(|since| since.0),
            until: until.map(|until| until.0),
            names: names.into_iter().flatten().collect(),
        }
    }

    pub(super) fn fits(&self, event: &dyn Fields, chosen: &MatchingCalls) -> bool {
        let EventsParams { job, user, .. } = &self.params;
        (!is_private(event) || self.owners.include(event.user()))
            && self.params.fit(event)
            && self.calls.as_ref().is_none_or(|calls| calls.iter().any(|call| call == event.call()))
            && job.as_ref().is_none_or(|job| job == event.job() || chosen.of_job.contains(event.call()))
            && user.as_ref().is_none_or(|user| user == event.user() || chosen.of_user.contains(event.call()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Content, Event, Id, Kind, Source};
    use wire::id::{Generation, SensorKey};
    use wire::time::Time;

    #[test]
    fn an_event_that_prints_no_user_and_another_number_is_found_by_its_call() {
        let wanted = EventQuery {
            limit: 1,
            is_last: false,
            params: EventsParams {
                job: Some("94".into()),
                user: Some("ada".into()),
                ..EventsParams::default()
            },
            owners: Owners::All,
            calls: None,
            wait: Duration::ZERO,
        };
        let mut content = Content::new(Kind::JobStart, Time::from_micros(1));
        content.job = "100".into();
        let event = Event {
            id: Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 },
            seen: Time::from_micros(1),
            call: "slurm:94_2".into(),
            content,
            source: Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        };
        let call = || HashSet::from([CompactString::from("slurm:94_2")]);
        assert!(wanted.fits(&event, &MatchingCalls { of_job: call(), of_user: call() }));
        assert!(!wanted.fits(&event, &MatchingCalls { of_job: call(), ..MatchingCalls::default() }));
        assert!(!wanted.fits(&event, &MatchingCalls { of_user: call(), ..MatchingCalls::default() }));
    }

    #[test]
    fn what_jobs_of_others_used_fits_no_query() {
        let of = |kind: Kind, user: &str| Event {
            id: Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 },
            seen: Time::from_micros(1),
            call: CompactString::default(),
            content: Content { user: user.into(), ..Content::new(kind, Time::from_micros(1)) },
            source: Source { host: "h".into(), file: "/f".into(), filter: "visperf-usage".into() },
        };
        let fits = |owners: &Owners, event: &Event| {
            let query = EventQuery::new(&EventsParams::default(), owners.clone(), |_| Vec::new());
            query.expect("valid").fits(event, &MatchingCalls::default())
        };
        let ann = Owners::Only(vec!["ann".into(), "1000".into()]);
        for (kind, user, of_all, of_ann, of_none) in [
            (Kind::Workload, "ann", true, true, false),
            (Kind::Workload, "1000", true, true, false),
            (Kind::Workload, "eve", true, false, false),
            (Kind::Workload, "", true, true, true),
            (Kind::JobEnd, "eve", true, true, true),
        ] {
            let event = of(kind, user);
            let found = [&Owners::All, &ann, &Owners::Only(Vec::new())].map(|owners| fits(owners, &event));
            assert_eq!(found, [of_all, of_ann, of_none], "{kind} of {user:?}");
        }
    }
}
