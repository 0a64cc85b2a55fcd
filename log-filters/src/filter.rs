//! A filter, checked and compiled: valid by construction.
//!
//! Pure. Not here: reading the file's text (`definition`), making this of it (`compile`), running it
//! (`engine`).

use crate::captures::Captures;
use crate::error::Error;
use crate::expression::Expression;
use crate::fields::Cutting;
use crate::pattern::Set;
use crate::test_lines::Test;
use crate::timestamp::Format;
use compact_str::CompactString;
use globset::GlobSet;
use jiff::tz::TimeZone;
use regex::bytes::Regex;
use std::sync::OnceLock;
use wire::call::{Authority, Naming};

/// Most rules of a filter.
pub const RULES_MAX: usize = 256;

/// Most further events of a rule: one line reports of a handful at most.
pub(crate) const ALSO_MAX: usize = 16;

/// Most keys that a rule recalls: a job, its session, its host and one more.
pub(crate) const RECALL_KEYS_MAX: usize = 4;

/// Longest filter file, in bytes: 256 rules of ordinary size are a tenth of it.
pub const FILE_LEN_MAX_BYTES: usize = 1 << 20;

/// Why what a filter's text says can be compiled once more.
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
    /// What a line looks like that names the columns.
    pub(crate) header: Option<Regex>,
    pub(crate) records: Vec<Record>,
    pub(crate) calls: Option<Calls>,
    /// The file's name, for errors of the rules.
    pub(crate) file: String,
    pub(crate) rule_count: usize,
    pub(crate) program: OnceLock<Program>,
    pub(crate) test_count: usize,
}

/// What the rules compiled to.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) set: Set,
    /// For each pattern of `set`, its rule and which alternative of it.
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
    /// Lines that fit belong to it.
    Continues(Regex),
    /// Up to a line that fits.
    Ends(Regex),
}

#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) names: Vec<Expression>,
    pub(crate) naming: Naming,
    pub(crate) parent: Option<Expression>,
    /// Kinds that also report the call's start or end, by themselves.
    pub(crate) implies: Implies,
}

/// What follows from an event where no log reports it outright.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Implies {
    /// A call whose host was chosen runs.
    pub(crate) selected_is_started: bool,
    /// A call that was requested to end is over.
    pub(crate) cancelled_is_ended: bool,
    /// A call whose step is over is over.
    pub(crate) step_end_is_end: bool,
}

#[derive(Debug)]
pub(crate) struct Rule {
    /// Where the captures lie, for each of its patterns.
    pub(crate) alternatives: Vec<Captures>,
    pub(crate) unless: Option<Regex>,
    pub(crate) remember: Option<Remember>,
    pub(crate) recall: Vec<Expression>,
    /// Names of values under those keys that other logs of the product may remember.
    pub(crate) recall_across: Vec<CompactString>,
    pub(crate) forget: Option<Expression>,
    pub(crate) origin_recalled: bool,
    pub(crate) tellings: Vec<Telling>,
    /// Where the rule begins in the file, line from 1.
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Remember {
    pub(crate) key: Expression,
    pub(crate) values: Vec<(CompactString, Expression)>,
    /// Whether it is for all logs of the product.
    pub(crate) across_logs: bool,
}

/// How one event is made.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    pub(crate) event: Option<Expression>,
    pub(crate) job: Option<Expression>,
    pub(crate) user: Option<Expression>,
    pub(crate) from: Option<Expression>,
    pub(crate) to: Option<Expression>,
    pub(crate) outcome: Option<Expression>,
    pub(crate) time: Option<Expression>,
    pub(crate) submitted: Option<Expression>,
    pub(crate) started: Option<Expression>,
    pub(crate) ended: Option<Expression>,
    pub(crate) attributes: Vec<(CompactString, Expression)>,
    pub(crate) call: CallChoice,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum CallChoice {
    /// As `[calls]` says.
    #[default]
    Filter,
    Never,
    Own(Calls),
}

impl Filter {
    /// Read, check and compile a filter's text. `file` is named in errors.
    ///
    /// # Errors
    /// The first thing wrong with it, with line and column.
    pub fn parse(file: &str, text: &str) -> Result<Filter, Error> {
        crate::compile::filter(file, text)
    }

    /// The same for a filter that comes with the program: its rules are compiled when the first log asks
    /// for them, since most hosts have logs of one product only.
    pub(crate) fn parse_shipped(file: &str, text: &str) -> Result<Filter, Error> {
        crate::compile::without_program(file, text)
    }

    /// What its rules compiled to.
    pub(crate) fn program(&self) -> &Program {
        self.program.get_or_init(|| crate::compile::program(&self.file, &self.text).expect(READ_BEFORE))
    }

    /// What it knows first lines by; compiled when the first file asks, for most names say enough.
    pub(crate) fn first_lines(&self) -> Option<&Set> {
        let compiled = || crate::compile::first_lines(&self.file, &self.text).expect(READ_BEFORE);
        self.first_lines.get_or_init(compiled).as_ref()
    }

    /// Its tests, read again: only those who run them need them.
    pub(crate) fn test_lines(&self) -> Vec<Test> {
        crate::compile::tests(&self.file, &self.text).expect(READ_BEFORE)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The product whose logs it reads.
    #[must_use]
    pub fn product(&self) -> &str {
        &self.product
    }

    /// One sentence on it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The versions it is known to read.
    #[must_use]
    pub fn versions(&self) -> &str {
        &self.versions
    }

    /// Its file's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Globs of file names it reads.
    #[must_use]
    pub fn name_globs(&self) -> &[String] {
        &self.name_globs
    }

    /// Globs of full paths where the product keeps the log.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// How many rules it has.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.rule_count
    }

    /// How many embedded tests it has.
    #[must_use]
    pub fn tests(&self) -> usize {
        self.test_count
    }
}
