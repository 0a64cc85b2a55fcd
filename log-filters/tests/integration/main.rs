//! Integration tests of `log-filters`: one executable, one module for each topic.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod accounting;
mod accounting_table;
mod accounts_arc;
mod accounts_captured;
mod accounts_gram;
mod accounts_gridengine;
mod accounts_gridftp;
mod accounts_htcondor;
mod accounts_lsf;
mod accounts_netsolve;
mod accounts_slurm;
mod accounts_torque;
mod across_logs;
mod call_names;
mod collection;
mod columns;
mod engine;
mod first_lines;
mod job_facts;
mod joining;
mod labels;
mod limits;
mod memory;
mod netsolve_generator;
mod one_filter;
mod page;
mod recall_keys;
mod shared_names;
mod short_logs;
mod used_again;
