//! Admission: every refusal is tested beside a control that differs in one thing and passes.

mod actions;
mod audit;
mod files;
mod flips;
mod host_names;
mod joining;
mod leaves;
mod orders;
mod passes;
mod records;
mod refusals;
mod revocation_lists;
mod rig;
mod seeds;
mod visas;
