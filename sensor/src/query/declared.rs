//! Every method of a sensor as it is declared: its name, what it takes and gives.
//!
//! Rule: a daemon that only hands questions on declares what a sensor answers, so that its clients see the same.
//! Not here: the answers.

use super::channels;
use rpc::method::Declaration;
use wire::api::calls::{DomainCallsParams, SensorCallsParams};
use wire::api::control::ControlParams;
use wire::api::domain::{HostsParams, SummaryParams};
use wire::api::events::{DomainEventsParams, SensorEventsParams};
use wire::api::files::{FilesParams, FiltersParams};
use wire::api::metrics::{DomainMetricsParams, SensorMetricsParams};
use wire::api::modules::{ChangeModuleParams, ModulesParams};
use wire::api::processes::ProcessesParams;
use wire::api::recordings::{RecordParams, RecordingFileParams, RecordingParams, RecordingsParams};
use wire::api::samples::{CallProcessesParams, PastProcessesParams};

/// All of them.
#[must_use]
pub fn all() -> Vec<Declaration> {
    vec![
        Declaration::of::<SensorEventsParams>(),
        Declaration::of::<SensorCallsParams>(),
        Declaration::of::<FilesParams>(),
        Declaration::of::<FiltersParams>(),
        Declaration::of::<SensorMetricsParams>(),
        Declaration::of::<ProcessesParams>(),
        Declaration::of::<ControlParams>(),
        Declaration::of::<CallProcessesParams>(),
        Declaration::of::<PastProcessesParams>(),
        Declaration::of::<RecordingsParams>(),
        Declaration::of::<RecordParams>(),
        Declaration::of::<RecordingParams>(),
        Declaration::of::<RecordingFileParams>(),
        sensor_channels(),
        sensor_subscriptions(),
        sensor_subscribe(),
        sensor_alter(),
        sensor_unsubscribe(),
        sensor_take(),
        Declaration::of::<ModulesParams>(),
        Declaration::of::<ChangeModuleParams>(),
        Declaration::of::<HostsParams>(),
        Declaration::of::<SummaryParams>(),
        Declaration::of::<DomainEventsParams>(),
        Declaration::of::<DomainCallsParams>(),
        Declaration::of::<DomainMetricsParams>(),
    ]
}

pub(super) fn sensor_channels() -> Declaration {
    Declaration::new("sensor.channels", "what can be subscribed to at this sensor, and within which bounds")
        .reading()
        .of_host()
        .returns("struct", "kinds, bounds")
}

pub(super) fn sensor_subscriptions() -> Declaration {
    Declaration::new("sensor.subscriptions", "who is subscribed at this sensor, to what, and what it costs")
        .reading()
        .details(channels::STANDING)
        .of_host()
        .returns("struct", "subscriptions, rate")
}

pub(super) fn sensor_subscribe() -> Declaration {
    channels::declaration_of_subscribe().for_asker().of_host()
}

pub(super) fn sensor_alter() -> Declaration {
    channels::declaration_of_alter().for_asker().of_host()
}

pub(super) fn sensor_unsubscribe() -> Declaration {
    channels::declaration_of_unsubscribe().for_asker().of_host()
}

pub(super) fn sensor_take() -> Declaration {
    channels::declaration_of_take().for_asker().of_host()
}
