//! Any bytes, as what a module says: read or refused in one short line, and what is read is within its bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sensor::module::protocol::{self, FIGURES_MAX, LABELS_MAX};

fuzz_target!(|line: &[u8]| {
    match protocol::answer(line) {
        Ok(figures) => {
            assert!(figures.len() <= FIGURES_MAX);
            assert!(figures.iter().all(|figure| figure.labels.len() <= LABELS_MAX && figure.value.as_f64().is_finite()));
        }
        Err(error) => assert!(error.to_string().len() < 4096 && !error.to_string().contains('\n')),
    }
    if let Err(error) = protocol::hello(line) {
        assert!(error.to_string().len() < 8192 && !error.to_string().contains('\n'));
    }
});
