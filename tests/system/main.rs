//! System tests over the whole of visperf, in one test program: a file each.
//!
//! Rule: a test runs the real program as its users do; the architecture rules are tests too.
//! Not here: the code that the tests share (`src/`).

#![allow(clippy::unwrap_used)] // A test that cannot continue ends there, and shows where.

mod architecture;
mod deploy;
mod exports;
mod formats;
#[cfg(feature = "lab")]
mod full_disk;
#[cfg(feature = "slurm")]
mod gridengine;
#[cfg(feature = "slurm")]
mod gridengine_jobs;
mod group_usage;
#[cfg(feature = "lab")]
mod hostile_files;
mod hostile_filters;
mod interop;
#[cfg(feature = "clients")]
mod interop_proxy;
mod jobs;
mod jobs_import;
mod kill9;
mod kill9_history;
#[cfg(feature = "matrix")]
mod lab_admission;
#[cfg(feature = "matrix")]
mod lab_archive;
#[cfg(feature = "lab")]
mod lab_away;
#[cfg(feature = "matrix")]
mod lab_calls;
#[cfg(feature = "matrix")]
mod lab_capture;
#[cfg(feature = "lab")]
mod lab_channels;
#[cfg(feature = "lab")]
mod lab_control;
#[cfg(feature = "lab")]
mod lab_daemons;
#[cfg(feature = "lab")]
mod lab_domain;
#[cfg(feature = "matrix")]
mod lab_door;
#[cfg(feature = "lab")]
mod lab_entry;
#[cfg(feature = "matrix")]
mod lab_everywhere;
#[cfg(feature = "matrix")]
mod lab_failover;
#[cfg(feature = "matrix")]
mod lab_follow;
#[cfg(feature = "matrix")]
mod lab_forgets;
#[cfg(feature = "matrix")]
mod lab_grid;
#[cfg(feature = "matrix")]
mod lab_history;
#[cfg(feature = "matrix")]
mod lab_ladder;
#[cfg(feature = "matrix")]
mod lab_logins;
#[cfg(feature = "lab")]
mod lab_map;
#[cfg(feature = "matrix")]
mod lab_matrix;
#[cfg(feature = "matrix")]
mod lab_mistaken;
#[cfg(feature = "lab")]
mod lab_network;
#[cfg(feature = "matrix")]
mod lab_proxy;
#[cfg(feature = "matrix")]
mod lab_punch;
#[cfg(feature = "matrix")]
mod lab_reach;
#[cfg(feature = "matrix")]
mod lab_reports;
#[cfg(feature = "matrix")]
mod lab_targets;
#[cfg(feature = "upgrade")]
mod lab_upgrade;
#[cfg(feature = "lab")]
mod lab_usage;
#[cfg(feature = "lab")]
mod lab_visitor;
#[cfg(feature = "matrix")]
mod lab_visits;
#[cfg(feature = "matrix")]
mod lab_watching;
#[cfg(feature = "mixed")]
mod mixed_jobs;
mod past;
mod slow_filter;
#[cfg(feature = "slurm")]
mod slurm;
#[cfg(feature = "slurm")]
mod slurm_accounting;
#[cfg(feature = "slurm")]
mod slurm_findings;
#[cfg(feature = "slurm")]
mod slurm_groups;
#[cfg(feature = "slurm")]
mod slurm_job;
#[cfg(feature = "slurm")]
mod slurm_usage;
mod viewer;
#[cfg(feature = "desktop")]
mod viewer_demo;
mod viewer_past;
#[cfg(feature = "desktop")]
mod viewer_picture;
#[cfg(feature = "desktop")]
mod viewer_window;
