//! The `visperf` program.
fn main() {}
