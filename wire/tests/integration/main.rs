//! Integration tests of `wire`: one executable, one module for each topic.

mod processes;
mod report;
