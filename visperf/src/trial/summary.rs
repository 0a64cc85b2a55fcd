//! Summary of a trial: lines, events by kind, rules that matched nothing, calls by state and outcome.
//!
//! Pure.

use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, shortened};
use crate::trial::log::Log;
use log_filters::filter::Filter;
use log_filters::join::Joiner;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::call::State;
use wire::event::{Kind, Outcome};
use wire::shown::count;

/// Characters shown of a rule's match on a terminal.
const MATCH_SHOWN_CHARS: usize = 80;

/// Report of rules that matched no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleRules {
    /// Each rule, for the author of the filter.
    Listed,
    /// Their number.
    Counted,
}

/// Author of a filter, and so the reader of advice about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Shipped with the program: advice on it is of no use to its users.
    Ours,
    /// Written by the user.
    Reader,
}

/// For each rule its line in the filter, and the number of records it matched.
type RuleCounts = Vec<(usize, u64)>;

/// Totals over the logs of a trial.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    lines: u64,
    unknown: u64,
    forgotten: u64,
    events: BTreeMap<&'static str, u64>,
    /// By filter name.
    rules: BTreeMap<String, (Arc<Filter>, Writer, RuleCounts)>,
}

impl Summary {
    /// Count an event.
    pub(crate) fn event(&mut self, kind: Kind) {
        *self.events.entry(kind.as_str()).or_default() += 1;
    }

    /// Add the counts of a log that was read to its end.
    pub(crate) fn log(&mut self, filter: &Arc<Filter>, writer: Writer, log: &Log) {
        let counters = log.counters();
        self.lines += counters.lines;
        self.unknown += counters.unknown;
        self.forgotten += counters.forgotten;
        let counts: Vec<_> = log.rule_counts().collect();
        let (_, _, sums) = self
            .rules
            .entry(filter.name().to_owned())
            .or_insert_with(|| (Arc::clone(filter), writer, Vec::new()));
        if sums.is_empty() {
            *sums = counts;
            return;
        }
        for (sum, (_, more)) in sums.iter_mut().zip(counts) {
            sum.1 += more;
        }
    }

    /// Print the summary.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print(&self, joiner: &Joiner, idle: IdleRules, output: &mut Output) -> Result<(), Failure> {
        let total: u64 = self.events.values().sum();
        let mut kinds: Vec<_> = self.events.iter().collect();
        kinds.sort_by_key(|&(kind, number)| (std::cmp::Reverse(*number), *kind));
        let kinds: Vec<String> = kinds.iter().map(|(kind, number)| format!("{kind} {number}")).collect();
        let head = |name: &str| output.paint(Color::Head, name).into_owned();
        let lines = format!("{}  {}, {} unknown", head("lines "), self.lines, self.unknown);
        let events = format!("{}  {total}: {}", head("events"), listed(&kinds));
        let calls = format!("{}  {}", head("calls "), calls(joiner));
        output.line(&lines)?;
        output.line(&events)?;
        output.line(&calls)?;
        let callable = |kind: &str| ["job_", "step_", "transfer_"].iter().any(|part| kind.starts_with(part));
        let mut of_reader =
            self.rules.iter().filter(|(_, (_, writer, _))| *writer == Writer::Reader).peekable();
        if of_reader.peek().is_some() && joiner.is_empty() && self.events.keys().any(|kind| callable(kind)) {
            output.line("no event has a call: `names` of [calls] defines which belong to one")?;
        }
        if self.forgotten > 0 {
            let keys = count(self.forgotten, "remembered key");
            output
                .line(&format!("{keys} dropped for want of room: some events may lack their attributes"))?;
        }
        for (name, (filter, _, rules)) in of_reader {
            print_idle_rules(name, filter, rules, idle, output)?;
        }
        Ok(())
    }

    /// Print the number of records that each rule matched.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print_rules(&self, output: &mut Output) -> Result<(), Failure> {
        for (name, (filter, _, rules)) in &self.rules {
            output.line("")?;
            output.line(&output.paint(Color::Head, &format!("rules of {name}")))?;
            rules_table(filter, rules, output).print(output)?;
        }
        Ok(())
    }
}

/// A table of the rules of a filter with their counts, in the filter's order.
fn rules_table(filter: &Filter, rules: &[(usize, u64)], output: &Output) -> Table {
    let mut table = Table::new(&["TOOK", "LINE", "RULE"]);
    for &(line, took) in rules {
        let color = if took == 0 { Color::Dim } else { Color::Name };
        table.row(vec![
            Cell::figure(took.to_string()),
            Cell::figure(line.to_string()),
            Cell::text(shown_match(filter, line, output)).color(color),
        ]);
    }
    table
}

fn print_idle_rules(
    name: &str,
    filter: &Filter,
    rules: &[(usize, u64)],
    idle: IdleRules,
    output: &mut Output,
) -> Result<(), Failure> {
    let lines: Vec<usize> = rules.iter().filter(|(_, took)| *took == 0).map(|&(line, _)| line).collect();
    let of = rules.len();
    if lines.is_empty() {
        return output.line(&format!("every rule of {name} took a line ({of} rules)"));
    }
    let head = format!("{} of {of} rules of {name} took no line", lines.len());
    if idle == IdleRules::Counted {
        return output.line(&format!("{head} (see which with --filter {name})"));
    }
    output.line(&format!("{head}:"))?;
    for line in lines {
        let shown = format!("  line {line}: {}", shown_match(filter, line, output));
        output.line(&output.paint(Color::Dim, &shown))?;
    }
    Ok(())
}

/// As [`rule_match`], shortened for a terminal.
fn shown_match(filter: &Filter, line: usize, output: &Output) -> String {
    let whole = rule_match(filter.text(), line);
    match output.width() {
        Some(_) => shortened(&whole, MATCH_SHOWN_CHARS),
        None => clean(&whole).into_owned(),
    }
}

/// The `match` of the rule that starts at a line of the filter's text, as written; of several regexes the
/// first.
fn rule_match(text: &str, line: usize) -> String {
    let mut rule = text.lines().skip(line.saturating_sub(1)).take(40);
    let Some(rest) = rule.find_map(|line| line.trim_start().strip_prefix("match")) else {
        return String::new();
    };
    match rest.trim_start_matches([' ', '=']).trim_end() {
        "[" => format!("[{} …", rule.next().unwrap_or("").trim()),
        whole => whole.to_owned(),
    }
}

fn calls(joiner: &Joiner) -> String {
    let (mut states, mut outcomes): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = Default::default();
    for call in joiner.calls() {
        *states.entry(call.state.as_str()).or_default() += 1;
        if call.state == State::Ended {
            *outcomes.entry(call.outcome.map_or("end unknown", Outcome::as_str)).or_default() += 1;
        }
    }
    let mut parts: Vec<String> = Vec::new();
    for state in ["waiting", "running"] {
        parts.extend(states.get(state).map(|number| format!("{state} {number}")));
    }
    parts.extend(outcomes.iter().map(|(outcome, number)| format!("{outcome} {number}")));
    let mut text = format!("{} joined: {}", joiner.len(), listed(&parts));
    if joiner.dropped() > 0 {
        text.push_str(&format!("; {} older ones no longer held", joiner.dropped()));
    }
    text
}

fn listed(parts: &[String]) -> String {
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_shown_by_its_match() {
        let text =
            "[filter]\n\n[[rule]]\n# why\nmatch = '^a'\nevent = \"x\"\n[[rule]]\nmatch = ['^b', '^c']\n";
        assert_eq!(rule_match(text, 3), "'^a'");
        assert_eq!(rule_match(text, 7), "['^b', '^c']");
        assert_eq!(rule_match(text, 99), "");
        assert_eq!(rule_match("[[rule]]\nmatch = [\n    '^d',\n]\n", 1), "['^d', …");
    }
}
