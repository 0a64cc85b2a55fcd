//! Position in a followed list of events: each call continues at the cursor of the previous answer.
//!
//! Pure. Rule: a method with a cursor is called with the cursor of its last delivered answer, so that a
//! client gets each event once; an answer that was not delivered does not move it. Not here: when it is
//! called (`table`).

use crate::codec::value::{Name, Value};
use crate::dispatch::method::Declaration;
use serde::Deserialize;

/// Parameter of a call, and member of each answer, with the position.
const CURSOR: &str = "cursor";
/// Parameter that selects the start; a cursor replaces it.
const LAST: &str = "last";

#[derive(Deserialize)]
struct Positioned {
    cursor: Option<String>,
}

/// Whether the method's answers continue by a cursor: those of a list that only grows, with a parameter for
/// its last entries. Pages of data that change in place, such as calls, also have a cursor, but are followed
/// as a whole.
pub(crate) fn has_cursor(declaration: &Declaration) -> bool {
    declaration.takes(CURSOR) && declaration.takes(LAST)
}

/// Set the cursor of the next call to that of this answer, which is JSON; an answer without a cursor changes
/// nothing.
pub(crate) fn advance(arguments: &mut [Value], answer: &[u8]) {
    let Some(Value::Struct(members)) = arguments.first_mut() else { return };
    let Ok(Positioned { cursor: Some(cursor) }) = serde_json::from_slice(answer) else { return };
    members.retain(|(name, _)| name != CURSOR && name != LAST);
    members.push((Name::Borrowed(CURSOR), Value::from(cursor)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::params::{Parameter, Type};

    #[test]
    fn pages_of_what_changes_in_place_are_no_positions() {
        let of = |names: &[&'static str]| {
            let parameters = names.iter().map(|name| Parameter::new(*name, Type::Text, ""));
            has_cursor(&parameters.fold(Declaration::new("x", ""), Declaration::parameter))
        };
        assert!(of(&["cursor", "last"]) && !of(&["cursor", "order"]) && !of(&["last"]));
    }

    #[test]
    fn the_cursor_of_an_answer_replaces_the_start() {
        let check = |given: &[(&'static str, &str)], answer: &str, expected: &[(&str, &str)]| {
            let members = given.iter().map(|(name, text)| (Name::Borrowed(*name), Value::from(*text)));
            let mut arguments = [Value::Struct(members.collect())];
            advance(&mut arguments, answer.as_bytes());
            let [Value::Struct(members)] = &arguments else { panic!("{arguments:?}") };
            let found: Vec<_> =
                members.iter().map(|(name, text)| (&**name, text.as_text().unwrap())).collect();
            assert_eq!(found, expected, "{answer}");
        };
        let answer = r#"{"events":[{"cursor":"x"}],"cursor":"k-7","missed":0}"#;
        check(&[("kind", "job_end")], answer, &[("kind", "job_end"), ("cursor", "k-7")]);
        check(&[("cursor", "end"), ("last", "5")], answer, &[("cursor", "k-7")]);
        for useless in ["{}", "[]", r#"{"cursor":7}"#, "{"] {
            check(&[("cursor", "end")], useless, &[("cursor", "end")]);
        }
    }
}
