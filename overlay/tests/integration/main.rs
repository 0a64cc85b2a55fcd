//! Integration tests of `overlay`: one executable, one module for each topic.

mod admission;
mod domain;
mod election_faults;
mod election_matrix;
mod election_node;
mod election_scale;
mod election_seeds;
mod election_stories;
mod election_transitions;
mod joining;
mod net;
mod papers;
mod random_streams;
