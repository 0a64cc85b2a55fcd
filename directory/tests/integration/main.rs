//! Integration tests of `directory`: one executable, one module for each topic.

mod hostile;
mod lease_rules;
mod prometheus;
mod replication;
mod restart;
mod service;
