//! Methods `jobs.index` and `directory.jobs`: the index of all domains' ended jobs, which each directory has.
//!
//! Pure. Rule: of a job the index has what a queue shows to everyone ([`Job::reduced`]). Not here: where it is stored
//! (`call_store::job_index`), when a directory asks (`directory::job_index`).

use super::calls::CallOrder;
use super::jobs::{Job, JobsSearchParams};
use super::{Effect, Request, Subject, UnixTime};
use crate::call::State;
use crate::event::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Jobs of an answer by default.
const LIMIT_DEFAULT: u64 = 100;

/// Most jobs of a page of the index.
pub const PAGE_JOBS_MAX: usize = 20_000;

/// Most hosts of a job of the index, and most characters of each of its texts: the rest is left out.
const HOSTS_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 512;

/// Get what follows in the index of the domain's ended jobs, for a directory: what a queue shows of each.
///
/// A job follows again when more of it becomes known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobIndexParams {
    /// Positions that are reached in stores: an answer follows the one of its store, or begins with the first job.
    pub reached: Vec<IndexPosition>,
}

impl Request for JobIndexParams {
    const METHOD: &'static str = "jobs.index";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = JobIndexPage;
}

/// Position in the jobs of a store: each representative of a domain has a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexPosition {
    /// The store: 16 hexadecimal digits.
    pub store: String,
    /// Key of the last job.
    pub key: u64,
}

/// Page of the index: lists of equal length with a value for each job. Numbers are places in `texts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobIndexPage {
    /// Where the page ends.
    pub reached: IndexPosition,
    /// Whether nothing follows at the moment.
    pub is_end: bool,
    /// Each text once; the first is empty.
    pub texts: Vec<String>,
    /// Ids of the jobs.
    pub ids: Vec<String>,
    /// Numbers that the middleware gave.
    pub jobs: Vec<u32>,
    /// Names that users gave.
    pub names: Vec<u32>,
    /// Users.
    pub users: Vec<u32>,
    /// Queues.
    pub queues: Vec<u32>,
    /// Outcomes; the empty text if none is known.
    pub outcomes: Vec<u32>,
    /// Reasons of the outcomes.
    pub reasons: Vec<u32>,
    /// Numbers of the arrays that they are tasks of, and numbers within these.
    pub array_jobs: Vec<u32>,
    /// Numbers within the array.
    pub array_tasks: Vec<u32>,
    /// Numbers of heterogeneous jobs that they are components of.
    pub het_jobs: Vec<u32>,
    /// Numbers within the heterogeneous job.
    pub het_offsets: Vec<u32>,
    /// Times of submission.
    pub submitted: Vec<Option<UnixTime>>,
    /// Times of the last start.
    pub started: Vec<Option<UnixTime>>,
    /// Times of the end.
    pub ended: Vec<Option<UnixTime>>,
    /// Hosts of the last run.
    pub hosts: Vec<Vec<u32>>,
    /// Allocated hosts.
    pub nodes: Vec<Option<u64>>,
    /// Numbers of starts.
    pub tries: Vec<u32>,
}

/// Gives each text a place.
#[derive(Default)]
struct Texts {
    places: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Texts {
    fn place(&mut self, text: &str) -> u32 {
        let text = cut(text);
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// The beginning of a text, as long as the index has it.
fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}

impl JobIndexPage {
    /// Makes the page of these jobs.
    #[must_use]
    pub fn new(reached: IndexPosition, is_end: bool, jobs: &[Job]) -> JobIndexPage {
        let mut texts = Texts::default();
        texts.place("");
        let mut page = JobIndexPage { reached, is_end, ..JobIndexPage::default() };
        for job in jobs {
            page.ids.push(cut(&job.id).to_owned());
            page.jobs.push(texts.place(&job.job));
            page.names.push(texts.place(&job.name));
            page.users.push(texts.place(&job.user));
            page.queues.push(texts.place(&job.queue));
            page.outcomes.push(texts.place(job.outcome.map_or("", Outcome::as_str)));
            page.reasons.push(texts.place(&job.reason));
            page.array_jobs.push(texts.place(&job.array_job));
            page.array_tasks.push(texts.place(&job.array_task));
            page.het_jobs.push(texts.place(&job.het_job));
            page.het_offsets.push(texts.place(&job.het_offset));
            page.submitted.push(job.submitted);
            page.started.push(job.started);
            page.ended.push(job.ended);
            page.hosts.push(job.hosts.iter().take(HOSTS_MAX).map(|host| texts.place(host)).collect());
            page.nodes.push(job.nodes);
            page.tries.push(job.tries);
        }
        page.texts = texts.texts;
        page
    }

    /// Returns the jobs, without their domain, within the bounds of the index whatever the page has; `None` for one that the lists
    /// do not fit.
    pub fn jobs(&self) -> impl Iterator<Item = Option<Job>> {
        (0..self.ids.len()).map(|at| self.job(at))
    }

    fn job(&self, at: usize) -> Option<Job> {
        let text = |place: u32| Some(cut(self.texts.get(place as usize)?).to_owned());
        let of = |list: &[u32]| text(*list.get(at)?);
        let id = cut(self.ids.get(at)?).to_owned();
        let outcome = of(&self.outcomes)?;
        let hosts = self.hosts.get(at)?.iter().take(HOSTS_MAX).map(|place| text(*place));
        Some(Job {
            product: id.split([':', '/']).next().unwrap_or_default().to_owned(),
            id,
            job: of(&self.jobs)?,
            name: of(&self.names)?,
            user: of(&self.users)?,
            queue: of(&self.queues)?,
            array_job: of(&self.array_jobs)?,
            array_task: of(&self.array_tasks)?,
            het_job: of(&self.het_jobs)?,
            het_offset: of(&self.het_offsets)?,
            state: State::Ended,
            // An outcome that only a later version knows is an end all the same.
            outcome: Some(Outcome::from_word(&outcome).unwrap_or(Outcome::Finished)),
            reason: of(&self.reasons)?,
            submitted: *self.submitted.get(at)?,
            started: *self.started.get(at)?,
            ended: *self.ended.get(at)?,
            hosts: hosts.collect::<Option<_>>()?,
            nodes: *self.nodes.get(at)?,
            tries: *self.tries.get(at)?,
            is_reduced: true,
            ..Job::default()
        })
    }
}

/// Search the ended jobs of all domains in a directory's index: what a queue shows of each, also of domains that do not answer.
///
/// The index is some seconds behind; `jobs.search` of a domain has more of each job, and those that wait or run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirectoryJobsParams {
    /// Only jobs of this domain [default: all].
    pub domain: Option<String>,
    /// Only jobs with this id; `*` and `…` match any characters.
    pub id: Option<String>,
    /// Only jobs with this number of the middleware, and tasks of the array with this number.
    pub job: Option<String>,
    /// Only jobs to which their user gave this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only jobs of this user.
    pub user: Option<String>,
    /// Only jobs of this queue or partition.
    pub queue: Option<String>,
    /// Only jobs that ran on this host.
    pub on_host: Option<String>,
    /// Only jobs with one of these outcomes.
    pub outcome: Vec<Outcome>,
    /// Only jobs whose latest time is this time or later.
    pub since: Option<UnixTime>,
    /// Only jobs whose latest time is this time or earlier.
    pub until: Option<UnixTime>,
    /// Maximum number of jobs on the page.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
    /// Sort order, by the latest time of a job.
    pub order: CallOrder,
    /// Cursor of the page, from `next` of an earlier answer. Absent for the first page.
    pub cursor: Option<String>,
}

impl Default for DirectoryJobsParams {
    fn default() -> DirectoryJobsParams {
        DirectoryJobsParams {
            domain: None,
            id: None,
            job: None,
            name: None,
            user: None,
            queue: None,
            on_host: None,
            outcome: Vec::new(),
            since: None,
            until: None,
            limit: LIMIT_DEFAULT,
            order: CallOrder::default(),
            cursor: None,
        }
    }
}

impl DirectoryJobsParams {
    /// The same search of the index; `None` if it chooses by what the index does not have.
    #[must_use]
    pub fn of(search: &JobsSearchParams) -> Option<DirectoryJobsParams> {
        let is_answerable = search.account.is_none()
            && search.conditions.is_empty()
            && search.finding.is_none()
            && search.sort.is_none()
            && search.state.is_none_or(|state| state == State::Ended);
        is_answerable.then(|| DirectoryJobsParams {
            domain: None,
            id: search.id.clone(),
            job: search.job.clone(),
            name: search.name.clone(),
            user: search.user.clone(),
            queue: search.queue.clone(),
            on_host: search.on_host.clone(),
            outcome: search.outcome.clone(),
            since: search.since,
            until: search.until,
            limit: search.limit,
            order: search.order,
            cursor: search.cursor.clone(),
        })
    }
}

impl Request for DirectoryJobsParams {
    const METHOD: &'static str = "directory.jobs";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    type Answer = DirectoryJobs;
}

/// Page of jobs of the index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirectoryJobs {
    /// Jobs of this page, in the requested order.
    pub jobs: Vec<Job>,
    /// Cursor of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Domains in the index that were searched.
    pub domains: Vec<IndexedDomain>,
}

/// Domain in the index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexedDomain {
    /// Name.
    pub domain: String,
    /// Number of its jobs.
    pub jobs: u64,
    /// When the index last had all that the domain had. Absent if it has not had it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<UnixTime>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn jobs() -> Vec<Job> {
        let first = Job {
            id: "slurm:94_1".to_owned(),
            job: "95".to_owned(),
            product: "slurm".to_owned(),
            name: "relax".to_owned(),
            user: "ada".to_owned(),
            queue: "long".to_owned(),
            array_job: "94".to_owned(),
            array_task: "1".to_owned(),
            state: State::Ended,
            outcome: Some(Outcome::Failed),
            submitted: at(10),
            started: at(20),
            ended: at(30),
            hosts: vec!["wn1".to_owned(), "wn2".to_owned()],
            nodes: Some(2),
            tries: 1,
            is_reduced: true,
            ..Job::default()
        };
        let other = Job { id: "slurm:96".to_owned(), job: "96".to_owned(), ended: None, ..first.clone() };
        vec![first, other]
    }

    fn of(page: &JobIndexPage) -> Option<Vec<Job>> {
        page.jobs().collect()
    }

    #[test]
    fn jobs_are_read_from_a_page_as_they_were() {
        let page = JobIndexPage::new(IndexPosition::default(), true, &jobs());
        assert_eq!(of(&page).as_deref(), Some(&*jobs()));
        assert_eq!(page.texts.iter().filter(|text| *text == "relax").count(), 1, "each text once");
        assert_eq!(of(&JobIndexPage::default()), Some(Vec::new()));
    }

    #[test]
    fn what_is_long_is_cut_where_a_page_is_read_too() {
        let long = "é".repeat(5_000);
        let hosts = vec![long.clone(); 1_000];
        let huge = Job { id: format!("slurm:{long}"), name: long.clone(), hosts, ..jobs().remove(0) };
        let sent = JobIndexPage::new(IndexPosition::default(), true, std::slice::from_ref(&huge));
        assert!(serde_json::to_vec(&sent).expect("JSON").len() < 5_000);
        let mut page = JobIndexPage { hosts: vec![vec![0; 1_000]], ..sent };
        page.texts.iter_mut().for_each(|text| text.push_str(&long));
        page.ids[0].push_str(&long);
        let job = of(&page).expect("a job").remove(0);
        assert_eq!((job.hosts.len(), job.id.chars().count()), (64, 512));
        assert!(job.hosts.iter().chain([&job.name, &job.user]).all(|text| text.chars().count() == 512));
    }

    #[test]
    fn lists_that_do_not_fit_are_no_jobs() {
        let whole = JobIndexPage::new(IndexPosition::default(), true, &jobs());
        let damaged = [
            JobIndexPage { users: vec![1], ..whole.clone() },
            JobIndexPage { hosts: vec![vec![99], vec![]], ..whole.clone() },
            JobIndexPage { texts: Vec::new(), ..whole.clone() },
        ];
        damaged.iter().for_each(|page| assert_eq!(of(page), None, "{page:?}"));
        let of_later = JobIndexPage {
            texts: whole.texts.iter().map(|text| text.replace("failed", "melted")).collect(),
            ..whole
        };
        assert_eq!(of(&of_later).map(|jobs| jobs[0].outcome), Some(Some(Outcome::Finished)));
    }

    #[test]
    fn a_search_by_what_only_the_user_may_see_is_none_of_the_index() {
        let of_user = JobsSearchParams { user: Some("ada".to_owned()), ..JobsSearchParams::default() };
        assert_eq!(DirectoryJobsParams::of(&of_user).and_then(|search| search.user).as_deref(), Some("ada"));
        let account = Some("physics".to_owned());
        assert_eq!(DirectoryJobsParams::of(&JobsSearchParams { account, ..of_user.clone() }), None);
        let state = Some(State::Running);
        assert_eq!(DirectoryJobsParams::of(&JobsSearchParams { state, ..of_user }), None);
    }
}
