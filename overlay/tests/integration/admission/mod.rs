//! Admission: every refusal is tested beside a control that differs in one thing and passes.

mod actions;
mod audit;
mod deny_lists;
mod files;
mod flips;
mod host_names;
mod joining;
mod leaves;
mod orders;
mod passes;
mod records;
mod refusals;
mod rig;
mod seeds;
mod visas;
