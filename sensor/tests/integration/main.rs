//! Integration tests of `sensor`: one executable, one module for each topic.

mod archive;
mod channel_methods;
mod channels;
mod control;
mod flowing;
mod history;
mod host_collectors;
mod journal;
mod module_protocol;
mod modules;
mod past_calls;
mod process_sampler;
mod processes;
mod queries;
mod recorder;
mod relays;
mod report;
mod running;
mod sampler;
mod serving;
mod simulated;
mod subscription_memory;
mod tail;
mod viewers;
