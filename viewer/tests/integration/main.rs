//! Integration tests of `viewer`: one executable, one module for each topic.

mod control;
mod hostile;
mod replay;
mod window;
