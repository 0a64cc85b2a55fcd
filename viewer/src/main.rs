//! The `visperf-viewer` program.
//!
//! Its command line is in `viewer::options`, its work in `viewer::run`.

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = viewer::options::Options::parse();
    match viewer::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            viewer::report(&error.to_string());
            ExitCode::from(if error.is_of_usage() { 2 } else { 1 })
        }
    }
}
