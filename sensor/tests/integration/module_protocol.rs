//! Module protocol: arbitrary output of a module is parsed without harm, and values arrive unchanged.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use sensor::module::protocol::{self, FIGURES_MAX};
use serde_json::{Value, json};
use wire::harmless::replaced;
use wire::sample::Number;

fn figures() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e12..1e12f64).prop_map(Value::from)
    ];
    let value_of_label = "\\PC{0,20}".prop_map(|text| replaced(&text, ' '));
    let label = ("[a-z_][a-z0-9_]{0,8}", value_of_label);
    let labels = prop::collection::btree_map(label.0, label.1, 0..4);
    let one = (
        "[A-Za-z_][A-Za-z0-9_]{0,20}",
        labels,
        value,
        prop_oneof![Just("counter"), Just("gauge"), Just("state")],
    );
    prop::collection::vec(one, 0..20).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        let figure = |(number, (name, labels, value, semantics))| {
            json!({"name": format!("{name}{number}"), "labels": labels, "value": value, "semantics": semantics, "unit": "bytes"})
        };
        numbered.map(figure).collect()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_in_a_line(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for error in [protocol::hello(&bytes).err(), protocol::answer(&bytes).err()].into_iter().flatten() {
            let error = error.to_string();
            prop_assert!(!error.contains('\n') && error.len() < 2000, "{}", error);
        }
    }

    #[test]
    fn any_json_is_read_or_refused(text in "[\\{\\}\\[\\]:,\"a-z0-9.eE+-]{0,200}") {
        let answer = protocol::answer(format!("{{\"figures\":[{{\"name\":\"x\",{text}}}]}}").as_bytes());
        if let Ok(figures) = answer {
            prop_assert!(figures.len() <= FIGURES_MAX);
        }
    }

    #[test]
    fn figures_are_as_they_were_given(given in figures()) {
        let line = json!({"figures": given}).to_string();
        let read = protocol::answer(line.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read.len(), given.len());
        for (read, given) in read.iter().zip(&given) {
            prop_assert_eq!(Some(read.name.as_str()), given["name"].as_str());
            prop_assert_eq!(Some(read.semantics.as_str()), given["semantics"].as_str());
            let labels: Vec<(String, String)> =
                given["labels"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
            let found: Vec<(String, String)> = read.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            prop_assert_eq!(found, labels);
            match (read.value, given["value"].as_u64()) {
                (Number::Whole(whole), Some(expected)) => prop_assert_eq!(whole, expected),
                (Number::Real(real), None) => prop_assert_eq!(Some(real), given["value"].as_f64()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
