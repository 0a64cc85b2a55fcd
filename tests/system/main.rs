//! Stories over the whole.
