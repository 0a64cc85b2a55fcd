//! Every method of a sensor as it is declared: its name, what it takes and gives.
//!
//! Rule: a daemon that only hands questions on declares what a sensor answers, so that its clients see the same.
//! Not here: the answers.

use super::{call_processes, channels, control, modules, past_processes, recordings};
use rpc::method::Declaration;
use wire::api::calls::{DomainCallsParams, SensorCallsParams};
use wire::api::domain::{HostsParams, SummaryParams};
use wire::api::events::{DomainEventsParams, SensorEventsParams};
use wire::api::files::{FilesParams, FiltersParams};
use wire::api::metrics::{DomainMetricsParams, SensorMetricsParams};
use wire::api::processes::ProcessesParams;

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
        sensor_control(),
        sensor_call_processes(),
        sensor_past_processes(),
        sensor_recordings(),
        sensor_record(),
        sensor_recording(),
        sensor_recording_file(),
        sensor_channels(),
        sensor_subscriptions(),
        sensor_subscribe(),
        sensor_alter(),
        sensor_unsubscribe(),
        sensor_take(),
        sensor_modules(),
        sensor_change_module(),
        Declaration::of::<HostsParams>(),
        Declaration::of::<SummaryParams>(),
        Declaration::of::<DomainEventsParams>(),
        Declaration::of::<DomainCallsParams>(),
        Declaration::of::<DomainMetricsParams>(),
    ]
}

pub(super) fn sensor_control() -> Declaration {
    control::declaration()
        .of_host()
        .returns("struct", "order, host, pid, start_ns, name, uid, user, act, ended")
}

pub(super) fn sensor_call_processes() -> Declaration {
    call_processes::declaration()
        .of_host()
        .returns("struct", "call, processes, samples, ended, total, next, unreadable, passed_over")
}

pub(super) fn sensor_past_processes() -> Declaration {
    past_processes::declaration().of_host().returns("struct", "entries, spans, unreadable, next")
}

pub(super) fn sensor_recordings() -> Declaration {
    recordings::list_declaration().of_host().returns(
        "struct",
        "recordings, on, reaches_back, bytes, sweeps, squeezed, deleted, triggers, trouble",
    )
}

pub(super) fn sensor_record() -> Declaration {
    recordings::record_declaration().returns("struct", "id, ready_in")
}

pub(super) fn sensor_recording() -> Declaration {
    recordings::recording_declaration()
        .of_host()
        .returns("struct", "samples, ended, events, total, next, recording, unreadable, damaged")
}

pub(super) fn sensor_recording_file() -> Declaration {
    recordings::file_declaration().of_host().returns("struct", "offset, size, data")
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

pub(super) fn sensor_modules() -> Declaration {
    modules::declaration().of_host().returns("struct", "modules, on, folder, trouble")
}

pub(super) fn sensor_change_module() -> Declaration {
    modules::declaration_of_change().returns("struct", "modules, as in sensor.modules")
}
