//! Query interface: types of the parameters and the answer of each method.
//!
//! Pure. Handlers, commands and introspection use these types; their doc comments are the texts of
//! `system.methodHelp`. Methods without types here are declared by hand (`rpc::dispatch::method`). The
//! parameters of a method are a structure that implements [`Request`], without the parameters `domain`,
//! `host`, `big_integers` and `follow`, which many methods share.
//! Rules: a name carries its unit (`age_secs`, `memory_used_bytes`); a field without a value is omitted; a
//! field that is added later has a default, because a daemon of the previous version does not send it.
//! Not here: encoding (`rpc`), handlers (the daemons).

pub mod archive;
mod bytes;
pub mod calls;
pub mod channels;
pub mod control;
pub mod daemon;
pub mod directory;
pub mod domain;
pub mod entries;
pub mod events;
pub mod files;
pub mod findings;
pub mod history;
pub mod job_amount;
pub mod job_import;
pub mod job_index;
pub mod job_report;
pub mod job_series;
pub mod job_usage;
pub mod jobs;
pub mod metrics;
pub mod modules;
mod moment;
mod named;
mod one_or_more;
pub mod process_history;
pub mod processes;
pub mod recordings;
pub mod samples;
mod settings;

pub use bytes::Bytes;
pub use moment::{Span, UnixTime};
pub use named::Named;
pub use one_or_more::OneOrMore;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The name of a field, and its name in the previous version.
pub type Renamed = (&'static str, &'static str);

/// Parameters of a method. The doc comment of the type describes the method: its first paragraph is the
/// summary.
pub trait Request: Default + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Name of the method: `domain.hosts`.
    const METHOD: &'static str;

    /// What a call changes.
    const EFFECT: Effect;

    /// Which daemon answers.
    const SUBJECT: Subject;

    /// Fields of the answer that had another name in the previous version. They are sent under both names.
    const RENAMED: &'static [Renamed] = &[];

    /// Parameters that had another name in the previous version. Both names are accepted, and the previous
    /// one is sent, because a daemon of that version accepts no other; the next version will send the present
    /// one and still accept both.
    const RENAMED_PARAMETERS: &'static [Renamed] = &[];

    /// Type of the answer.
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// What a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads: GET may call it.
    Reads,
    /// It stores something for the client, and changes nothing for others.
    KeepsForClient,
    /// It changes something.
    Changes,
    /// It changes something, and the parameters prove that their author may do so: any daemon may forward it.
    ChangesByProof,
}

/// Subject of a method, which decides where it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The daemon that is called.
    Daemon,
    /// A domain: the parameter `domain` names it, and its representative answers.
    Domain,
    /// A host of a domain: the parameters `domain` and `host` name it, and its sensor answers.
    Host,
}

/// Whether the representative of a domain answers the method with this name; its [`Request::SUBJECT`] is
/// [`Subject::Domain`]. A daemon that only forwards a call knows its name alone.
#[must_use]
pub fn is_of_domain(method: &str) -> bool {
    method.starts_with("domain.") || method.starts_with("jobs.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<R: Request>() {
        assert_eq!(is_of_domain(R::METHOD), R::SUBJECT == Subject::Domain, "{}", R::METHOD);
    }

    #[test]
    fn methods_of_a_domain_are_known_by_their_names() {
        check::<archive::ArchiveParams>();
        check::<archive::SeriesCopyParams>();
        check::<calls::DomainCallsParams>();
        check::<calls::SensorCallsParams>();
        check::<domain::HostsParams>();
        check::<domain::SummaryParams>();
        check::<directory::DomainsParams>();
        check::<events::DomainEventsParams>();
        check::<events::SensorEventsParams>();
        check::<history::DomainHistoryParams>();
        check::<history::HistoryParams>();
        check::<job_report::JobReportParams>();
        check::<job_series::JobSeriesParams>();
        check::<job_index::JobIndexParams>();
        check::<job_index::DirectoryJobsParams>();
        check::<job_import::ImportJobsParams>();
        check::<jobs::JobParams>();
        check::<jobs::JobsSearchParams>();
        check::<metrics::DomainMetricsParams>();
        check::<metrics::SensorMetricsParams>();
        check::<process_history::ProcessHistoryParams>();
    }
}
