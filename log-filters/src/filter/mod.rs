//! Filter, checked and compiled: valid by construction.
//!
//! Pure. Not here: parsing the file's text (`definition`), running it (`engine`).

mod compile;
mod compile_rules;
pub(crate) mod embedded_test;

use crate::captures::Captures;
use crate::error::Error;
use crate::expression::Expression;
use crate::fields::Cutting;
use crate::pattern::Set;
use crate::timestamp::Format;
use compact_str::CompactString;
use embedded_test::Test;
use globset::GlobSet;
use jiff::tz::TimeZone;
use regex::bytes::Regex;
use std::sync::OnceLock;
use wire::call::{Authority, Naming};

/// Most rules of a filter.
pub const RULES_MAX: usize = 256;

/// Most additional events of a rule: a line reports a handful at most.
pub(crate) const ALSO_MAX: usize = 16;

/// Most keys that a rule recalls: a job, its session, its host and one more.
pub(crate) const RECALL_KEYS_MAX: usize = 4;

/// Longest filter file, in bytes: 256 rules of ordinary size are a tenth of it.
pub const FILE_LEN_MAX_BYTES: usize = 1 << 20;

/// Why a filter's text can be compiled again without an error.
const READ_BEFORE: &str =
    "a filter of a user is compiled whole when it is read, and a test compiles all shipped ones";

/// A compiled filter.
#[derive(Debug)]
pub struct Filter {
    pub(crate) name: CompactString,
    pub(crate) product: String,
    pub(crate) description: String,
    pub(crate) versions: String,
    pub(crate) text: String,
    pub(crate) scope: CompactString,
    pub(crate) authority: Authority,
    pub(crate) names: GlobSet,
    pub(crate) name_globs: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) parts: Option<Regex>,
    pub(crate) first_lines: OnceLock<Option<Set>>,
    pub(crate) prefix: Vec<Format>,
    pub(crate) formats: Vec<Format>,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) cutting: Cutting,
    /// Pattern of a header line.
    pub(crate) header: Option<Regex>,
    pub(crate) records: Vec<Record>,
    pub(crate) calls: Option<Calls>,
    /// Name of the file, for errors in the rules.
    pub(crate) file: String,
    pub(crate) rule_count: usize,
    pub(crate) program: OnceLock<Program>,
    pub(crate) test_count: usize,
}

/// The compiled rules.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) set: Set,
    /// For each pattern of `set`, its rule and the number of the alternative.
    pub(crate) patterns: Vec<(usize, usize)>,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) start: Regex,
    pub(crate) until: Until,
    pub(crate) max_lines: usize,
}

#[derive(Debug)]
pub(crate) enum Until {
    /// Matching lines belong to the record.
    Continues(Regex),
    /// The record ends with a matching line.
    Ends(Regex),
}

#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) names: Vec<Expression>,
    pub(crate) naming: Naming,
    pub(crate) parent: Option<Expression>,
    /// Kinds of events that imply the call's start or end.
    pub(crate) implies: Implies,
}

/// Starts and ends implied by other events, for logs that do not report them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Implies {
    /// A call is running once its host was selected.
    pub(crate) selected_is_started: bool,
    /// A call is over once its cancellation was requested.
    pub(crate) cancelled_is_ended: bool,
    /// A call is over once its step is over.
    pub(crate) step_end_is_end: bool,
}

#[derive(Debug)]
pub(crate) struct Rule {
    /// Captures of each of its patterns.
    pub(crate) alternatives: Vec<Captures>,
    pub(crate) unless: Option<Regex>,
    pub(crate) remember: Option<Remember>,
    pub(crate) recall: Vec<Expression>,
    /// Value names that other logs of the product may store under those keys.
    pub(crate) recall_across: Vec<CompactString>,
    pub(crate) forget: Option<Expression>,
    pub(crate) origin_recalled: bool,
    pub(crate) events: Vec<EventSpec>,
    /// First line of the rule in the file, from 1.
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Remember {
    pub(crate) key: Expression,
    pub(crate) values: Vec<(CompactString, Expression)>,
    /// Whether the values are shared with all logs of the product.
    pub(crate) across_logs: bool,
}

/// How to make one event.
#[derive(Debug, Default)]
pub(crate) struct EventSpec {
    pub(crate) event: Option<Expression>,
    pub(crate) job: Option<Expression>,
    pub(crate) user: Option<Expression>,
    pub(crate) from: Option<Expression>,
    pub(crate) to: Option<Expression>,
    pub(crate) outcome: Option<Expression>,
    pub(crate) time: Option<Expression>,
    pub(crate) submitted: Option<Expression>,
    pub(crate) eligible: Option<Expression>,
    pub(crate) started: Option<Expression>,
    pub(crate) ended: Option<Expression>,
    pub(crate) attributes: Vec<(CompactString, Expression)>,
    pub(crate) call: CallChoice,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum CallChoice {
    /// The filter's `[calls]`.
    #[default]
    Filter,
    Never,
    Own(Calls),
}

impl Filter {
    /// Parse, check and compile a filter's text. `file` is named in errors.
    ///
    /// # Errors
    /// The first error, with line and column.
    pub fn parse(file: &str, text: &str) -> Result<Filter, Error> {
        compile::filter(file, text)
    }

    /// As [`Filter::parse`], for a shipped filter: its rules are compiled when the first log needs them,
    /// because most hosts have logs of only one product.
    pub(crate) fn parse_shipped(file: &str, text: &str) -> Result<Filter, Error> {
        compile::without_program(file, text)
    }

    /// The compiled rules.
    pub(crate) fn program(&self) -> &Program {
        self.program.get_or_init(|| compile::program(&self.file, &self.text).expect(READ_BEFORE))
    }

    /// Patterns of first lines, compiled when a file first needs them: usually the file name decides.
    pub(crate) fn first_lines(&self) -> Option<&Set> {
        let compiled = || compile::first_lines(&self.file, &self.text).expect(READ_BEFORE);
        self.first_lines.get_or_init(compiled).as_ref()
    }

    /// The tests, parsed when needed: only test runs use them.
    pub(crate) fn test_lines(&self) -> Vec<Test> {
        compile::tests(&self.file, &self.text).expect(READ_BEFORE)
    }

    /// Name of the filter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it reads tables whose first line names the columns: one may lack a column.
    #[must_use]
    pub fn reads_tables(&self) -> bool {
        self.header.is_some()
    }

    /// Product whose logs the filter reads.
    #[must_use]
    pub fn product(&self) -> &str {
        &self.product
    }

    /// Description in one sentence.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Versions of the product that it is known to read.
    #[must_use]
    pub fn versions(&self) -> &str {
        &self.versions
    }

    /// Text of its file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Globs of the file names that it reads.
    #[must_use]
    pub fn name_globs(&self) -> &[String] {
        &self.name_globs
    }

    /// Globs of the full paths where the product stores the log.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Number of rules.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.rule_count
    }

    /// Number of embedded tests.
    #[must_use]
    pub fn tests(&self) -> usize {
        self.test_count
    }
}
