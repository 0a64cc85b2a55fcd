//! The jobs of the tab of jobs: the search, the loaded rows, the job that is chosen, and the page that is open.
//!
//! Pure. Rule: no job is queried while the tab is not seen, and none of a log or a file. Not here: queries
//! (`live::jobs`), rows (`crate::jobs`).

mod loading;
mod opened;
mod range;
mod sparks;

pub use range::JobsRange;

use crate::feed::{JobsRequest, JobsUpdate};
use crate::jobs::curves::Spark;
use crate::jobs::page::JobPage;
use crate::jobs::rows::Rows;
use crate::jobs::sort::Column;
use crate::jobs::{JobKey, PAGE, Page, Row, search};
use crate::timeline::Timeline;
use loading::{Loading, Purpose};
use opened::Opened;
use sparks::Sparks;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use wire::api::jobs::JobsSearchParams;
use wire::time::Time;

/// The tab is hidden this long after it was last drawn, in seconds.
const HIDDEN_AFTER_SECS: f64 = 3.0;
/// The span of the timeline is followed after so many seconds.
const FOLLOW_SECS: f64 = 2.0;

/// A change of the tab of jobs.
#[derive(Clone, Debug)]
pub enum JobsChange {
    Search(String),
    SetRange(JobsRange),
    SetDomain(String),
    /// The head of a column was clicked.
    Sort(Column),
    /// Positions of the rows that are drawn.
    ShowRows(Range<usize>),
    /// Choose a row, so many below the chosen one.
    Move(isize),
    OpenChosen,
    Open(JobKey),
    /// Close the page of a job, and choose its row.
    Close,
}

/// State of the jobs.
#[derive(Clone, Debug, Default)]
pub struct JobsState {
    text: String,
    search: JobsSearchParams,
    text_error: Option<String>,
    range: JobsRange,
    /// The domain that the user chose.
    domain: Option<Arc<str>>,
    /// Shared with a copy of the window that is written into a file.
    rows: Arc<Rows>,
    loading: Loading,
    /// When the search started.
    started_at: Option<Time>,
    /// What the first page says of all.
    head: Page,
    sparks: Sparks,
    shown: Range<usize>,
    chosen: Option<JobKey>,
    opened: Option<Opened>,
    seen_at: Option<Time>,
}

impl JobsState {
    /// Text of the search.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with the text.
    #[must_use]
    pub fn text_error(&self) -> Option<&str> {
        self.text_error.as_deref()
    }

    /// Why the last query failed.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.loading.error()
    }

    #[must_use]
    pub fn range(&self) -> JobsRange {
        self.range
    }

    /// The domain that is searched.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.loading.domain()
    }

    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// What the first page says: totals, hosts that have not reported.
    #[must_use]
    pub fn head(&self) -> &Page {
        &self.head
    }

    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.is_loading()
    }

    /// Whether the first page has not arrived.
    #[must_use]
    pub fn awaits_rows(&self) -> bool {
        self.is_loading() && self.rows.is_empty() && self.error().is_none() && self.text_error().is_none()
    }

    /// CPUs in use over the life of a job, if they are known.
    #[must_use]
    pub fn spark(&self, key: &JobKey) -> Option<&Arc<Spark>> {
        self.sparks.get(key)
    }

    /// Whether the curve of a row is still requested.
    #[must_use]
    pub fn awaits_spark(&self, row: &Row) -> bool {
        row.series.is_some() && !self.sparks.is_known(&row.key)
    }

    /// Whether an answer is missing of what is drawn.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        match &self.opened {
            Some(opened) => opened.is_awaited(),
            None => {
                let is_started = self.loading.is_started() || self.text_error.is_some();
                !is_started || self.is_loading() || self.visible().any(|row| self.awaits_spark(row))
            }
        }
    }

    #[must_use]
    pub fn chosen(&self) -> Option<&JobKey> {
        self.chosen.as_ref()
    }

    /// The page that is open.
    #[must_use]
    pub fn page(&self) -> Option<&JobPage> {
        self.opened.as_ref().map(|opened| &opened.page)
    }

    fn visible(&self) -> impl Iterator<Item = &Row> {
        self.shown.clone().filter_map(|position| self.rows.at(position))
    }

    pub(super) fn mark_seen(&mut self, now: Time) {
        self.seen_at = Some(now);
    }

    fn is_seen(&self, now: Time) -> bool {
        self.seen_at.is_some_and(|at| now.since(at).as_secs_f64() < HIDDEN_AFTER_SECS)
    }

    pub(super) fn apply(&mut self, change: JobsChange, now: Time) {
        match change {
            JobsChange::Search(text) => {
                match search::parse(&text) {
                    Ok(search) => (self.search, self.text_error, self.started_at) = (search, None, None),
                    Err(error) => self.text_error = Some(error),
                }
                self.text = text;
            }
            JobsChange::SetRange(range) => (self.range, self.started_at) = (range, None),
            JobsChange::SetDomain(domain) => (self.domain, self.started_at) = (Some(domain.into()), None),
            JobsChange::Sort(column) => {
                let sort = self.rows.sort().clicked(column);
                Arc::make_mut(&mut self.rows).set_sort(sort, now);
            }
            JobsChange::ShowRows(shown) => self.shown = shown,
            JobsChange::Move(by) => self.move_chosen(by),
            JobsChange::OpenChosen => {
                if let Some(key) = self.chosen.clone() {
                    self.open(key);
                }
            }
            JobsChange::Open(key) => self.open(key),
            JobsChange::Close => self.opened = None,
        }
    }

    fn open(&mut self, key: JobKey) {
        self.chosen = Some(key.clone());
        self.opened = Some(Opened::new(key));
    }

    fn move_chosen(&mut self, by: isize) {
        let position = self.chosen.as_ref().and_then(|key| self.rows.position(key));
        let position = position.map_or(self.shown.start, |at| at.saturating_add_signed(by));
        let row = self.rows.at(position.min(self.rows.len().saturating_sub(1)));
        self.chosen = row.map(|row| row.key.clone());
    }

    pub(super) fn take(&mut self, update: JobsUpdate, now: Time) {
        match update {
            JobsUpdate::Page { number, page: Ok(page) } => {
                self.take_page(number, Arc::unwrap_or_clone(page), now)
            }
            JobsUpdate::Page { number, page: Err(error) } => self.loading.failed(number, now, error),
            JobsUpdate::Spark { key, spark } => self.sparks.take(key, spark, now),
            JobsUpdate::Part { key, part } => {
                if let Some(opened) = &mut self.opened {
                    opened.take(&key, part);
                }
            }
        }
    }

    fn take_page(&mut self, number: u64, page: Page, now: Time) {
        let is_full = self.rows.len() + page.rows.len() >= crate::jobs::ROWS_MAX;
        let Some(purpose) = self.loading.answered(number, now, page.next.as_deref(), is_full) else { return };
        match purpose {
            Purpose::Page if self.rows.is_empty() => {
                self.head = Page { rows: Vec::new(), next: None, unheard: page.unheard.clone(), ..page };
            }
            // A search by findings counts those of a page.
            Purpose::Page if self.loading.params().finding.is_some() => self.head.total += page.total,
            Purpose::Page => {}
            Purpose::Changes if page.next.is_none() && self.loading.params().finding.is_none() => {
                let open = page.rows.iter().map(|row| row.key.clone()).collect::<BTreeSet<_>>();
                Arc::make_mut(&mut self.rows).retain_open(&open, now);
            }
            Purpose::Changes => {}
        }
        Arc::make_mut(&mut self.rows).put(page.rows, now);
        self.head.total = self.head.total.max(self.rows.len() as u64);
    }

    /// The queries that are due; a search of this domain is started if another one is to be.
    pub(super) fn requests(
        &mut self,
        domain: Option<&str>,
        timeline: &Timeline,
        now: Time,
    ) -> Vec<JobsRequest> {
        if !self.is_seen(now) {
            return Vec::new();
        }
        self.start_search(domain, timeline, now);
        let page = self.loading.request(now);
        let record = self.opened.as_ref().filter(|opened| opened.is_due(now));
        let record = record.map(|opened| JobsRequest::Record(opened.page.key.clone()));
        let series = match self.opened {
            // The table is not seen.
            Some(_) => None,
            None => self.sparks.request(self.visible(), now),
        };
        let requests =
            [page.map(|page| JobsRequest::Page(Box::new(page))), record, series.map(JobsRequest::Series)];
        requests.into_iter().flatten().collect()
    }

    fn start_search(&mut self, domain: Option<&str>, timeline: &Timeline, now: Time) {
        let Some(domain) = self.domain.as_deref().or(domain).map(Arc::<str>::from) else { return };
        if self.text_error.is_some() {
            return;
        }
        let bounds = self.range.bounds(now, timeline);
        if let Some(started_at) = self.started_at {
            let params = self.loading.params();
            let searched = (params.since.map(|since| since.0), params.until.map(|until| until.0));
            let is_late = now.since(started_at).as_secs_f64() > FOLLOW_SECS;
            let follows =
                self.range == JobsRange::Timeline && is_late && range::differ(searched, bounds, now);
            if !follows && *self.loading.domain() == *domain {
                return;
            }
        }
        self.loading.start(domain, JobsSearchParams { limit: PAGE, ..self.search.clone() }, bounds);
        (self.rows, self.head, self.shown) = (Arc::new(self.rows.cleared()), Page::default(), 0..0);
        self.started_at = Some(now);
    }

    pub(super) fn requested(&mut self, request: &JobsRequest, now: Time) {
        match request {
            JobsRequest::Page(_) => self.loading.requested(now),
            JobsRequest::Series(requests) => self.sparks.requested(requests, now),
            JobsRequest::Record(_) => self.opened.iter_mut().for_each(|opened| opened.requested(now)),
        }
    }
}
