//! Help text of a method: the answer of `system.methodHelp`.
//!
//! Pure: no runtime, no file, no socket, no clock.

use crate::dispatch::method::Declaration;
use crate::dispatch::params::{BIG_INTEGERS, Parameter, Type};

impl Declaration {
    /// Format the help text.
    pub(crate) fn help(&self) -> String {
        let mut help = format!("{}\n", self.summary);
        if !self.details.is_empty() {
            help.push_str(&format!("\n{}\n", self.details));
        }
        help.push_str("\nparameters (one structure, all by name):\n");
        add_parameters(&self.parameters, 1, &mut help);
        help.push_str(&format!(
            "  {BIG_INTEGERS}: one of number, string, double; how integers are sent that need more than 32 bits \
             (JSON: 53)\n"
        ));
        help.push_str(&format!("\nresult: {}", self.result_type));
        if !self.result_help.is_empty() {
            help.push_str(&format!("; {}", self.result_help));
        }
        help
    }
}

/// Append one line per parameter; those of structures are indented.
fn add_parameters(parameters: &[Parameter], depth: usize, help: &mut String) {
    for parameter in parameters {
        help.push_str(&format!("{}{}: ", "  ".repeat(depth), parameter.name));
        let fields = if let Type::Fields(fields) = &parameter.kind { fields.as_slice() } else { &[] };
        let kind = if fields.is_empty() { &parameter.kind } else { &Type::Struct };
        help.push_str(&kind.describe());
        match &parameter.default {
            Some(default) => help.push_str(&format!(", {} unless given", default.shown())),
            None if parameter.required => help.push_str(", required"),
            None => {}
        }
        help.push_str(&format!("; {}", parameter.help));
        if let Some((_, former)) = parameter.renamed {
            help.push_str(&format!(" ({former} in the version before; both are taken)"));
        }
        help.push('\n');
        add_parameters(fields, depth + 1, help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::channels::SubscribeParams;

    #[test]
    fn help_shows_types_defaults_and_result() {
        let help = Declaration::new("a.b", "one line")
            .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 9 }, "at most so many").default(5))
            .parameter(Parameter::new("host", Type::Text, "of this host").required())
            .returns("struct", "events, cursor")
            .help();
        for expected in [
            "one line\n",
            "limit: a whole number from 1 to 9, 5 unless given; at most so many\n",
            "host: text, required; of this host\n",
            "big_integers",
            "result: struct; events, cursor",
        ] {
            assert!(help.contains(expected), "{expected} in {help}");
        }
    }

    #[test]
    fn members_of_a_structure_and_former_names_are_there() {
        let help = Declaration::of::<SubscribeParams>().help();
        for expected in [
            "\n  rate_hz: a number; Rate in samples per second, 0.1 to 1000. Initial value: 1 (rate in the version before; both are taken)\n",
            "\n  budget: a structure; ",
            "\n    cpu_ms: a whole number from 1 to 500; ",
        ] {
            assert!(help.contains(expected), "{expected} in {help}");
        }
    }
}
