//! Checks the references in a filter's expressions: a reference that could never give a value is refused.
//!
//! Pure. Rule: the message lists what is available, or names the missing key. Not here: the evaluation of
//! references (`expression`).

use crate::definition::Definition;
use regex::bytes::Regex;

/// Parts that every log has, in addition to those of its filter.
const PARTS: [&str; 3] = ["host", "cluster", "file"];

/// References available in the whole filter.
pub(crate) struct References {
    is_separated: bool,
    has_pairs: bool,
    /// Names of values that some rule stores.
    remembered: Vec<String>,
    parts: Vec<String>,
}

impl References {
    pub(crate) fn new(raw: &Definition, parts: Option<&Regex>) -> References {
        let remembering = raw
            .rule
            .iter()
            .filter_map(|rule| rule.get_ref().remember.as_ref())
            // `across_logs` of `recall` names these.
            .filter(|remember| !remember.across_logs);
        let mut remembered: Vec<String> =
            remembering.flat_map(|remember| remember.values.keys().cloned()).collect();
        remembered.sort_unstable();
        remembered.dedup();
        let own = parts.into_iter().flat_map(|regex| regex.capture_names().flatten());
        References {
            is_separated: raw.fields.separator.is_some(),
            has_pairs: raw.fields.pairs || raw.fields.header.is_some(),
            remembered,
            parts: PARTS.into_iter().chain(own).map(str::to_owned).collect(),
        }
    }

    /// Check a reference, other than to a capture or to a field of the event; `name` includes its sign.
    fn check(&self, name: &str) -> Result<(), String> {
        let (sign, rest) = name.split_at(1);
        match sign {
            "#" if !self.is_separated => {
                Err(format!("`${{{name}}}`: nothing cuts records into fields; give [fields] a `separator`"))
            }
            "=" if !self.has_pairs => Err(format!(
                "`${{{name}}}`: records are not cut into pairs; write `pairs = true` in [fields], or a `header` that names columns"
            )),
            "<" if !self.remembered.iter().any(|known| known == rest) => Err(format!(
                "`${{{name}}}`: no rule remembers a value of this name; remembered are {}",
                listed(&self.remembered)
            )),
            "@" if !self.parts.iter().any(|known| known == rest) => Err(format!(
                "`${{{name}}}`: `parts` of [files] has no capture of this name; there are {}",
                listed(&self.parts)
            )),
            _ => Ok(()),
        }
    }

    /// Check a reference in an expression of `[calls]`.
    pub(crate) fn of_calls(&self, name: &str) -> Result<usize, String> {
        if is_capture(name) {
            return Err(format!(
                "`${{{name}}}`: [calls] sees no captures; write `${{.{name}}}` for a field of the event"
            ));
        }
        self.check(name).map(|()| 0)
    }
}

/// References available in one rule's expressions; captures get slots in the order of their first use.
pub(crate) struct Slots<'a> {
    references: &'a References,
    regexes: &'a [Regex],
    /// Whether the rule recalls, so that it may refer to stored values.
    recalls: bool,
    /// Names of values that other filters share.
    across: &'a [String],
    names: Vec<String>,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(
        references: &'a References,
        regexes: &'a [Regex],
        recalls: bool,
        across: &'a [String],
    ) -> Slots<'a> {
        Slots { references, regexes, recalls, across, names: Vec::new() }
    }

    /// Names of the captures in use, by slot.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Check a reference. Returns the slot of a capture; 0 for other references.
    pub(crate) fn slot(&mut self, name: &str) -> Result<usize, String> {
        if !is_capture(name) {
            return self.other(name).map(|()| 0);
        }
        if let Some(slot) = self.names.iter().position(|known| known == name) {
            return Ok(slot);
        }
        let known = |regex: &Regex| regex.capture_names().flatten().any(|capture| capture == name);
        if !self.regexes.iter().any(known) {
            let all = self.regexes.iter().flat_map(|regex| regex.capture_names().flatten());
            let mut all: Vec<String> = all.map(str::to_owned).collect();
            all.sort_unstable();
            all.dedup();
            return Err(format!(
                "`${{{name}}}`: `match` has no capture of this name; it has {}",
                listed(&all)
            ));
        }
        self.names.push(name.to_owned());
        Ok(self.names.len() - 1)
    }

    fn other(&self, name: &str) -> Result<(), String> {
        if name.starts_with('<') && !self.recalls {
            return Err(format!(
                "`${{{name}}}`: the rule recalls nothing; write `recall = KEY`, the key under which the value is remembered"
            ));
        }
        if let Some(field) = name.strip_prefix('.') {
            return Err(format!(
                "`${{{name}}}` is for [calls] and `call`; the event is only being made here: name what gives its `{field}`"
            ));
        }
        if name.strip_prefix('<').is_some_and(|name| self.across.iter().any(|own| own == name)) {
            return Ok(());
        }
        self.references.check(name)
    }
}

/// Other references start with a sign.
fn is_capture(name: &str) -> bool {
    !name.starts_with(['#', '=', '<', '@', '.'])
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
