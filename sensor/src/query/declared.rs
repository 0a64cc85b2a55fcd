//! Declarations of all methods of a sensor: name, parameters and result.
//!
//! Rule: a daemon that only forwards queries declares the same methods as a sensor, so that its clients see
//! the same.
//! Not here: the implementations.

use rpc::dispatch::method::Declaration;
use wire::api::archive::{ArchiveParams, SeriesCopyParams};
use wire::api::calls::{DomainCallsParams, SensorCallsParams};
use wire::api::channels::{
    AlterParams, ChannelsParams, SubscribeParams, SubscriptionsParams, UnsubscribeParams,
};
use wire::api::control::ControlParams;
use wire::api::domain::{HostsParams, SummaryParams};
use wire::api::entries::TakeParams;
use wire::api::events::{DomainEventsParams, SensorEventsParams};
use wire::api::files::{FilesParams, FiltersParams};
use wire::api::history::{DomainHistoryParams, HistoryParams};
use wire::api::job_import::ImportJobsParams;
use wire::api::job_index::JobIndexParams;
use wire::api::job_report::JobReportParams;
use wire::api::job_series::JobSeriesParams;
use wire::api::jobs::{JobParams, JobsSearchParams};
use wire::api::metrics::{DomainMetricsParams, SensorMetricsParams};
use wire::api::modules::{ChangeModuleParams, ModulesParams};
use wire::api::process_history::ProcessHistoryParams;
use wire::api::processes::ProcessesParams;
use wire::api::recordings::{RecordParams, RecordingFileParams, RecordingParams, RecordingsParams};
use wire::api::samples::{CallProcessesParams, PastProcessesParams};

/// Returns the declarations.
#[must_use]
pub fn all() -> Vec<Declaration> {
    vec![
        Declaration::of::<SensorEventsParams>(),
        Declaration::of::<SensorCallsParams>(),
        Declaration::of::<FilesParams>(),
        Declaration::of::<FiltersParams>(),
        Declaration::of::<SensorMetricsParams>(),
        Declaration::of::<HistoryParams>(),
        Declaration::of::<ProcessesParams>(),
        Declaration::of::<ControlParams>(),
        Declaration::of::<CallProcessesParams>(),
        Declaration::of::<PastProcessesParams>(),
        Declaration::of::<ProcessHistoryParams>(),
        Declaration::of::<JobSeriesParams>(),
        Declaration::of::<ArchiveParams>(),
        Declaration::of::<SeriesCopyParams>(),
        Declaration::of::<RecordingsParams>(),
        Declaration::of::<RecordParams>(),
        Declaration::of::<RecordingParams>(),
        Declaration::of::<RecordingFileParams>(),
        Declaration::of::<ChannelsParams>(),
        Declaration::of::<SubscriptionsParams>(),
        Declaration::of::<SubscribeParams>(),
        Declaration::of::<AlterParams>(),
        Declaration::of::<UnsubscribeParams>(),
        Declaration::of::<TakeParams>(),
        Declaration::of::<ModulesParams>(),
        Declaration::of::<ChangeModuleParams>(),
        Declaration::of::<HostsParams>(),
        Declaration::of::<SummaryParams>(),
        Declaration::of::<DomainEventsParams>(),
        Declaration::of::<DomainCallsParams>(),
        Declaration::of::<JobsSearchParams>(),
        Declaration::of::<JobParams>(),
        Declaration::of::<JobReportParams>(),
        Declaration::of::<ImportJobsParams>(),
        Declaration::of::<JobIndexParams>(),
        Declaration::of::<DomainMetricsParams>(),
        Declaration::of::<DomainHistoryParams>(),
    ]
}
